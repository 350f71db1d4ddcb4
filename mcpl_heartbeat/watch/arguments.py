"""What the tools of the watch wing take; on HTTP the same names make the body.

Names are those of the seed and its siblings (`liveness-surfaces` A.2), spelled with underscores;
``nudge_seconds``, ``delivery_token`` and the tools ``switch_status`` and ``register``'s ``label``
are added. Every bound that is enforced stands in the schema, and every rule in a description.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from mcpl_heartbeat.mcp.tools import Problem
from mcpl_heartbeat.watch.rows import Action

MIN_WINDOW, MAX_WINDOW = 2, 2_592_000
ADDRESS = r"^agent:[a-z2-7]{16}(/[A-Za-z0-9._-]{1,64})?$"
BOX = r"^[A-Za-z0-9._-]{1,64}$"

Scope = Annotated[str, Meta(min_length=1, max_length=256)]
Text = Annotated[str, Meta(min_length=1, max_length=4096)]
Lines = Annotated[list[Annotated[str, Meta(max_length=1024)]], Meta(max_length=100)]
Key = Annotated[
    Annotated[str, Meta(max_length=256)] | UnsetType,
    Meta(
        description="Your agent_secret, if your host cannot set the header "
        "Authorization: Bearer <agent_secret>. Prefer the header."
    ),
]


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every tool takes."""


class Authed(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every tool but ``register`` takes."""

    agent_key: Key = UNSET


class HeartbeatArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A beat, or with ``disarm`` the end of them.

    ``expect_within_seconds`` is required as the seed's schema says, but forgiven with ``disarm``;
    it is UNSET then.
    """

    scope: Scope
    expect_within_seconds: Annotated[int, Meta(ge=MIN_WINDOW, le=MAX_WINDOW)] | UnsetType
    on_expiry: Annotated[list[Action], Meta(min_length=1, max_length=3)] | UnsetType = UNSET
    notify_address: Annotated[str, Meta(pattern=ADDRESS)] | UnsetType = UNSET
    agent_id: Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    disarm: bool = False
    nudge_seconds: Annotated[int, Meta(ge=1, le=MAX_WINDOW - 1)] | UnsetType = UNSET


class SwitchStatusArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All switches of the namespace, or one with its journal."""

    scope: Scope | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=100)] = 50
    cursor: Annotated[str, Meta(min_length=1, max_length=512)] | UnsetType = UNSET


class RegisterArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new identity; ``agent_id`` and ``label`` are two names of one thing."""

    label: Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    agent_id: Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    agent_secret: Annotated[str, Meta(min_length=32, max_length=256)] | UnsetType = UNSET


class WhoamiArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is asking."""


class SendArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Mail to an address."""

    to: Annotated[str, Meta(pattern=ADDRESS)]
    objective: Annotated[str, Meta(min_length=1, max_length=2048)]
    scope: Scope | UnsetType = UNSET
    due_at: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    context: Raw | UnsetType = UNSET
    history: Raw | UnsetType = UNSET


class InboxPollArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The next envelope of a box."""

    box: Annotated[str, Meta(pattern=BOX)] = "inbox"
    visibility_timeout_seconds: Annotated[int, Meta(ge=5, le=86_400)] = 300


class InboxAckArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An envelope is dealt with."""

    task_id: Annotated[str, Meta(min_length=1, max_length=64)]
    status: Literal["done", "failed"] = "done"
    result: Raw | UnsetType = UNSET
    delivery_token: Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType = UNSET


class InboxNackArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An envelope is given back, to be handed out again."""

    task_id: Annotated[str, Meta(min_length=1, max_length=64)]
    delay_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 0
    delivery_token: Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType = UNSET


class LeaseArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Take a lock; with ``fence`` its holder takes it again, which renews it."""

    key: Annotated[str, Meta(min_length=1, max_length=256)]
    holder: Annotated[str, Meta(min_length=1, max_length=128)]
    scope: Scope | UnsetType = UNSET
    ttl_seconds: Annotated[int, Meta(ge=1, le=3600)] = 60
    fence: Annotated[str, Meta(min_length=1, max_length=128)] | UnsetType = UNSET


class LeaseRenewArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hold it for longer, from now."""

    key: Annotated[str, Meta(min_length=1, max_length=256)]
    fence: Annotated[str, Meta(min_length=1, max_length=128)]
    holder: Annotated[str, Meta(min_length=1, max_length=128)]
    ttl_seconds: Annotated[int, Meta(ge=1, le=3600)] = 60


class LeaseReleaseArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Let it go."""

    key: Annotated[str, Meta(min_length=1, max_length=256)]
    fence: Annotated[str, Meta(min_length=1, max_length=128)]
    holder: Annotated[str, Meta(min_length=1, max_length=128)]


class CheckpointPutArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the work stands; ``workflow_id`` is another name of ``scope``."""

    scope: Scope | UnsetType = UNSET
    workflow_id: Scope | UnsetType = UNSET
    objective: Text
    next_action: Text
    step: Annotated[str, Meta(max_length=1024)] | UnsetType = UNSET
    status: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    last_verified_state: Annotated[str, Meta(max_length=4096)] | UnsetType = UNSET
    files: Lines | UnsetType = UNSET
    risks: Lines | UnsetType = UNSET
    questions: Lines | UnsetType = UNSET
    tools_used: Lines | UnsetType = UNSET
    budget_left: Annotated[str, Meta(max_length=256)] | UnsetType = UNSET
    body: Raw | UnsetType = UNSET
    state: Raw | UnsetType = UNSET
    provider_extras: Raw | UnsetType = UNSET
    privacy_mode: Literal["client_key"] | UnsetType = UNSET


class ResumePacketArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What whoever takes the work up has to know."""

    scope: Scope
    box: Annotated[str, Meta(pattern=BOX)] = "inbox"
    tail: Annotated[int, Meta(ge=0, le=100)] = 20


def heartbeat_rules(arguments: HeartbeatArguments, bad: frozenset[str]) -> Iterable[Problem]:
    """The rules between arguments of ``heartbeat`` that need no stored switch."""
    raise NotImplementedError
