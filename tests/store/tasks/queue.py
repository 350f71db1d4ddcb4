"""Tasks made and worked on in a test."""

import json
from typing import Any

import msgspec
from msgspec import Raw

from mcpl_heartbeat.tasks.arguments import FieldArguments, GuardArguments
from tests.store.operations.rig import Agent

CONTRACT = [{"key": "total", "dataType": "number", "required": True}]
TOTAL = {"total": {"value": 12.5}}


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


def new(snapshot: Any = None, **more: Any) -> dict[str, Any]:
    """The arguments of a new task."""
    given = {"input_snapshot": raw({"page": 1} if snapshot is None else snapshot)}
    given |= {"output_contract": [], **more}
    given["output_contract"] = msgspec.convert(given["output_contract"], list[FieldArguments])
    return given


def guard(**more: Any) -> GuardArguments:
    return GuardArguments(**more)


def make(agent: Agent, snapshot: Any = None, **more: Any) -> str:
    """Make a task and give its id."""
    result = agent.create_agent_task(**new(snapshot, **more))
    assert result.created, result
    return str(result.id)


def claim(agent: Agent, id: str, **more: Any) -> int:
    """Claim it and give the epoch."""
    result = agent.claim_agent_task(task_id=id, **more)
    assert result.status == "claimed", result
    return int(result.execution_epoch)


def beat(agent: Agent, id: str, epoch: int, **more: Any) -> Any:
    return agent.heartbeat_agent_task(task_id=id, execution_epoch=epoch, **more)


def submit(agent: Agent, id: str, epoch: int, outputs: Any = None, **more: Any) -> Any:
    return agent.submit_agent_task(
        task_id=id, execution_epoch=epoch, outputs=raw(outputs or {}), **more
    )


def release(agent: Agent, id: str, epoch: int, **more: Any) -> Any:
    return agent.release_agent_task(task_id=id, execution_epoch=epoch, **more)


def get(agent: Agent, id: str) -> Any:
    return agent.get_agent_task(task_id=id)


def listed(agent: Agent, status: str | None = None, **more: Any) -> list[str]:
    given = {} if status is None else {"status": status}
    return [each.id for each in agent.list_agent_tasks(**given, **more).data]
