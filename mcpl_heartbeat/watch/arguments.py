"""What the tools of the watch wing take; on HTTP the same names make the body.

Names are those of the seed and its siblings (`liveness-surfaces` A.2), spelled with underscores;
``nudge_seconds``, ``delivery_token`` and the tools ``switch_status`` and ``register``'s ``label``
are added. Every bound that is enforced stands in the schema, and every rule in a description.
The rules between arguments are in ``rules.py``; what depends on a stored row, or on now, is decided
where those are known.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from mcpl_heartbeat.watch.fields import (
    FENCE,
    HOLDER,
    LEASE_KEY,
    LEASE_SECONDS,
    MAX_VISIBILITY,
    TASK_ID,
    Actions,
    Address,
    Box,
    Cursor,
    DeliveryToken,
    Fence,
    Holder,
    Key,
    Label,
    LeaseKey,
    LeaseSeconds,
    Line,
    Lines,
    Moment,
    Nudge,
    Objective,
    Scope,
    Secret,
    TaskId,
    Text,
    WakeOnTasks,
    Window,
    lines,
    opaque,
)


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every tool takes."""


class Authed(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every tool but ``register`` takes."""

    agent_key: Key = UNSET


# --- the switch --------------------------------------------------------------------------------


class HeartbeatArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A beat, or with ``disarm`` the end of them.

    ``expect_within_seconds`` is required as the seed's schema says, but forgiven with ``disarm``.
    """

    scope: Annotated[
        Scope,
        Meta(
            description="The unit of work whose liveness this tracks, 1 to 256 characters: your "
            "own name for it, the one under which resume_packet reports a death. One switch to a "
            "scope, so give each worker its own.",
            examples=["permit-review-2026-08"],
        ),
    ]
    expect_within_seconds: Annotated[
        Window | UnsetType,
        Meta(
            description="Beat again within this many seconds, or the switch fires. A whole number "
            "from 2 to 2592000 (30 days). Leave room for your slowest step, and beat at each third "
            "of it, so that one late beat is no death. Required, but with disarm true it has no "
            "use and may be left out.",
            examples=[300],
        ),
    ]
    on_expiry: Annotated[
        Actions | UnsetType,
        Meta(
            description="What is done when the next beat is late: release_leases (frees the "
            "leases taken with this scope, and counts those taken without one, which it cannot "
            "reach), mark_failed, queue_alert (needs notify_address in the same call); always in "
            "that order. Default mark_failed; left out on a later beat, the list in force stays.",
            examples=[["release_leases", "queue_alert"]],
        ),
    ] = UNSET
    notify_address: Annotated[
        Address | UnsetType,
        Meta(
            description="Where the alert goes: agent:<id> or agent:<id>/<box> (inbox when no box "
            "is named), an address that register gave to someone. Required in each call whose "
            "on_expiry has queue_alert, refused where no alert will be queued. Write-only: you "
            "never read that box.",
            examples=["agent:7k2pq4m3x5w6y7zb/alerts"],
        ),
    ] = UNSET
    agent_id: Annotated[
        Label | UnsetType,
        Meta(
            description="A label for the instance that beats, 1 to 64 characters; the alert "
            "carries it, so that others know which worker died. Left out when arming: the label "
            "you registered with. Proves nothing.",
            examples=["worker-3"],
        ),
    ] = UNSET
    disarm: Annotated[
        bool,
        Meta(
            description="true stops the switch instead of beating: send it when the work is done, "
            "or a false alarm follows. Default false.",
            examples=[False],
        ),
    ] = False
    nudge_seconds: Annotated[
        Nudge | UnsetType,
        Meta(
            description="This many seconds before the deadline you yourself are woken once to "
            "beat or disarm, where a server can push to you. A whole number of 1 or more, less "
            "than expect_within_seconds. Never counts as a beat. Left out on a later beat, the "
            "one in force stays.",
            examples=[60],
        ),
    ] = UNSET
    wake_on_tasks: WakeOnTasks = UNSET


class SwitchStatusArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All switches of the namespace, or one with its journal."""

    scope: Annotated[
        Scope | UnsetType,
        Meta(description="Show this one switch, with its journal. Left out: all your switches."),
    ] = UNSET
    limit: Annotated[
        int,
        Meta(ge=1, le=100, description="How many switches to list at once, 1 to 100; default 50."),
    ] = 50
    cursor: Annotated[
        Cursor | UnsetType,
        Meta(description="The next_cursor of the part before, to go on from there."),
    ] = UNSET


# --- who is asking -----------------------------------------------------------------------------


class RegisterArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new identity; ``agent_id`` and ``label`` are two names of one thing."""

    label: Annotated[
        Label | UnsetType,
        Meta(
            description="A name for people to read, 1 to 64 characters. Do not take it from a "
            "session id, which changes.",
            examples=["permit-reviewer"],
        ),
    ] = UNSET
    agent_id: Annotated[
        Label | UnsetType,
        Meta(description="Another name of label. Send one of them, or both alike."),
    ] = UNSET
    agent_secret: Annotated[
        Secret | UnsetType,
        Meta(
            description="A secret of your own, 32 to 256 characters that nobody can guess. Left "
            "out, one is made for you. One that was registered before gives the same identity."
        ),
    ] = UNSET


class WhoamiArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is asking."""


# --- mail --------------------------------------------------------------------------------------


class SendArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Mail to an address."""

    to: Annotated[
        Address,
        Meta(
            description="The address: agent:<id> or agent:<id>/<box> (inbox when none is named).",
            examples=["agent:7k2pq4m3x5w6y7zb/reviews"],
        ),
    ]
    objective: Annotated[
        Objective,
        Meta(
            description="What the reader is to do or know, 1 to 2048 characters. Write it so that "
            "it makes sense on its own."
        ),
    ]
    scope: Annotated[
        Scope | UnsetType,
        Meta(description="The unit of work it is about; resume_packet of that scope shows it."),
    ] = UNSET
    due_at: Annotated[
        Moment | UnsetType,
        Meta(
            description="When it may be read first: a moment with Z or an offset, at most 365 days "
            "ahead. Past, or left out: at once.",
            examples=["2030-01-31T09:00:00Z"],
        ),
    ] = UNSET
    context: Annotated[Raw | UnsetType, opaque("What the reader needs for it")] = UNSET
    history: Annotated[Raw | UnsetType, opaque("What came before")] = UNSET


class InboxPollArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The next envelope of a box."""

    box: Annotated[
        Box,
        Meta(
            description="Which of your boxes: up to 64 letters, digits, . - or _; default inbox.",
            examples=["inbox"],
        ),
    ] = "inbox"
    visibility_timeout_seconds: Annotated[
        int,
        Meta(
            ge=5,
            le=MAX_VISIBILITY,
            description="For how many seconds the envelope is hidden while you deal with it, 5 to "
            "86400; default 300. Not acknowledged by then, it comes again.",
        ),
    ] = 300


class InboxAckArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An envelope is dealt with."""

    task_id: Annotated[TaskId, TASK_ID]
    status: Annotated[
        Literal["done", "failed"],
        Meta(description='"done" (default), or "failed": it cannot be done, nor must come again.'),
    ] = "done"
    result: Annotated[Raw | UnsetType, opaque("What came of it, to be kept")] = UNSET
    delivery_token: DeliveryToken = UNSET


class InboxNackArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An envelope is given back, to be handed out again."""

    task_id: Annotated[TaskId, TASK_ID]
    delay_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_VISIBILITY,
            description="In how many seconds it may be handed out again, 0 to 86400; default 0.",
        ),
    ] = 0
    delivery_token: DeliveryToken = UNSET


# --- leases ------------------------------------------------------------------------------------


class LeaseArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Take a lock; with ``fence`` its holder takes it again, which renews it."""

    key: Annotated[LeaseKey, LEASE_KEY]
    holder: Annotated[
        Holder,
        Meta(
            description="Your name, told to whoever is refused, 1 to 128 characters. The same name "
            "is no proof that it is you.",
            examples=["worker-3"],
        ),
    ]
    scope: Annotated[
        Scope | UnsetType,
        Meta(
            description="The unit of work it is for, 1 to 256 characters: only then can that "
            "scope's dead-man switch release it, should you die."
        ),
    ] = UNSET
    ttl_seconds: Annotated[LeaseSeconds, LEASE_SECONDS] = 60
    fence: Annotated[
        Fence | UnsetType,
        Meta(description="The fence that you hold, to take your own lock again: it is renewed."),
    ] = UNSET


class LeaseRenewArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hold it for longer, from now."""

    key: Annotated[LeaseKey, LEASE_KEY]
    fence: Annotated[Fence, FENCE]
    holder: Annotated[Holder, HOLDER]
    ttl_seconds: Annotated[LeaseSeconds, LEASE_SECONDS] = 60


class LeaseReleaseArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Let it go."""

    key: Annotated[LeaseKey, LEASE_KEY]
    fence: Annotated[Fence, FENCE]
    holder: Annotated[Holder, HOLDER]


# --- where the work stands ---------------------------------------------------------------------


class CheckpointPutArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the work stands; ``workflow_id`` is another name of ``scope``."""

    scope: Annotated[
        Scope | UnsetType,
        Meta(
            description="The unit of work, 1 to 256 characters. scope or workflow_id is required.",
            examples=["permit-review-2026-08"],
        ),
    ] = UNSET
    workflow_id: Annotated[
        Scope | UnsetType,
        Meta(description="Another name of scope. Send one of them, or both alike."),
    ] = UNSET
    objective: Annotated[Text, Meta(description="What the work is for, 1 to 4096 characters.")]
    next_action: Annotated[
        Text,
        Meta(
            description="What whoever takes over does first, 1 to 4096 characters. An alert and "
            "resume_packet show it."
        ),
    ]
    step: Annotated[
        Line | UnsetType,
        Meta(description="Where in the work you are, at most 1024 characters."),
    ] = UNSET
    status: Annotated[
        Annotated[str, Meta(max_length=64)] | UnsetType,
        Meta(description="A word of your own on how it goes, at most 64 characters."),
    ] = UNSET
    last_verified_state: Annotated[
        Annotated[str, Meta(max_length=4096)] | UnsetType,
        Meta(description="What you know for sure to be done, at most 4096 characters."),
    ] = UNSET
    files: Annotated[Lines | UnsetType, lines("The files that matter")] = UNSET
    risks: Annotated[Lines | UnsetType, lines("What may go wrong")] = UNSET
    questions: Annotated[Lines | UnsetType, lines("What is still open")] = UNSET
    tools_used: Annotated[Lines | UnsetType, lines("The tools you worked with")] = UNSET
    budget_left: Annotated[
        Annotated[str, Meta(max_length=256)] | UnsetType,
        Meta(description="What is left to spend, in your own words, at most 256 characters."),
    ] = UNSET
    body: Annotated[Raw | UnsetType, opaque("The checkpoint itself")] = UNSET
    state: Annotated[Raw | UnsetType, opaque("Your program's state")] = UNSET
    provider_extras: Annotated[Raw | UnsetType, opaque("What your provider adds")] = UNSET
    privacy_mode: Annotated[
        Literal["client_key"] | UnsetType,
        Meta(
            description='"client_key" says that what you send is for you alone: an alert, which '
            "another reads, then shows nothing of it."
        ),
    ] = UNSET


class ResumePacketArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What whoever takes the work up has to know."""

    scope: Annotated[
        Scope,
        Meta(
            description="The unit of work to be briefed on, 1 to 256 characters.",
            examples=["permit-review-2026-08"],
        ),
    ]
    box: Annotated[
        Box,
        Meta(
            description="In which of your boxes to look for mail of this scope; default inbox.",
            examples=["inbox"],
        ),
    ] = "inbox"
    tail: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="How many of the newest lines of the scope's journal to show, 0 to 100; "
            "default 20.",
        ),
    ] = 20
