"""Where the work on a scope stands, in the words of whoever did it last.

A scope has one checkpoint, and each one put takes the place of the one before. It holds what was
sent and nothing else, so that a briefing never shows a member that nobody wrote. One put with
``privacy_mode`` ``client_key`` is for its own namespace only: an alert, which another may read,
then says nothing of it.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from mcpl_heartbeat.watch.arguments import CheckpointPutArguments
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import Failure, invalid
from mcpl_heartbeat.watch.results import CheckpointPutResult
from mcpl_heartbeat.watch.rows import Checkpoint, Entry, ResumePoint

_NOT_CONTENT = frozenset({"scope", "workflow_id", "agent_key"})


def put(
    before: Checkpoint | None, namespace: str, arguments: CheckpointPutArguments, now: Reading
) -> tuple[Checkpoint, CheckpointPutResult, tuple[Entry, ...]] | Failure:
    """Take what was sent for the scope's checkpoint; ``before`` only gives its version."""
    problems: list[str] = []
    scope = _scope(arguments, problems)
    content = _content(arguments, problems)
    if problems:
        return invalid("checkpoint_put", problems)
    version = 1 if before is None else before.version + 1
    checkpoint = Checkpoint(
        namespace=namespace, scope=scope, version=version, saved_at=now.real, content=content
    )
    result = CheckpointPutResult(
        server_time=now.server_time,
        saved=True,
        scope=scope,
        version=version,
        saved_at=now.server_time,
    )
    detail: dict[str, Any] = {"version": version}
    entry = Entry(namespace=namespace, scope=scope, at=now.real, kind="checkpoint", detail=detail)
    return checkpoint, result, (entry,)


def resume_point(checkpoint: Checkpoint | None, now: Reading) -> ResumePoint | None:
    """What an alert may say of where to resume; ``None`` where there is nothing, or not for it."""
    if checkpoint is None or is_private(checkpoint):
        return None
    content = checkpoint.content
    return ResumePoint(
        objective=content["objective"],
        next_action=content["next_action"],
        step=content.get("step"),
        saved_at=now.tell(checkpoint.saved_at),
    )


def is_private(checkpoint: Checkpoint | None) -> bool:
    """Whether there is one of which an alert says nothing."""
    return checkpoint is not None and checkpoint.content.get("privacy_mode") == "client_key"


def _scope(arguments: CheckpointPutArguments, problems: list[str]) -> str:
    scope, alias = arguments.scope, arguments.workflow_id
    if scope is UNSET and alias is UNSET:
        problems.append("scope: is required")
        return ""
    if UNSET not in (scope, alias) and scope != alias:
        problems.append("scope + workflow_id: are two names of one thing, and must be equal")
    return str(alias if scope is UNSET else scope)


def _content(arguments: CheckpointPutArguments, problems: list[str]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for name in arguments.__struct_fields__:
        value = getattr(arguments, name)
        if name in _NOT_CONTENT or value is UNSET:
            continue
        if isinstance(value, Raw):
            try:
                value = msgspec.json.decode(value)
            except (ValueError, RecursionError):
                problems.append(
                    f"{name}: cannot be kept: it nests too deep, or holds a number or a string "
                    "that no reader could take"
                )
                continue
        content[name] = value
    return content
