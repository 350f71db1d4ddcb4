"""The kinds of values that the watch wing's tools take, with their bounds.

An optional argument is its kind or UNSET; its description stands where it is used, since the same
kind means another thing in another tool.
"""

from typing import Annotated

from msgspec import Meta, UnsetType

from mcpl_heartbeat.watch.rows import Action

MIN_WINDOW, MAX_WINDOW = 2, 2_592_000
"""Seconds that may lie between two beats: up to 30 days (seed)."""
MAX_LEASE = 3600
"""Seconds for which a lease may be taken (A.2)."""
MAX_VISIBILITY = 86_400
"""Seconds for which an envelope may be hidden (A.2)."""

ADDRESS = r"^agent:[a-z2-7]{16}(/[A-Za-z0-9._-]{1,64})?$"
BOX = r"^[A-Za-z0-9._-]{1,64}$"
MOMENT = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?"
    r"([Zz]|[+-][0-9]{2}:?[0-9]{2})( \[UTC\])?$"
)

Scope = Annotated[str, Meta(min_length=1, max_length=256)]
Text = Annotated[str, Meta(min_length=1, max_length=4096)]
Line = Annotated[str, Meta(max_length=1024)]
Lines = Annotated[list[Line], Meta(max_length=100)]
Objective = Annotated[str, Meta(min_length=1, max_length=2048)]
Label = Annotated[str, Meta(min_length=1, max_length=64)]
Secret = Annotated[str, Meta(min_length=32, max_length=256)]
Cursor = Annotated[str, Meta(min_length=1, max_length=1400)]
Window = Annotated[int, Meta(ge=MIN_WINDOW, le=MAX_WINDOW)]
Nudge = Annotated[int, Meta(ge=1, le=MAX_WINDOW - 1)]
Actions = Annotated[
    list[Action], Meta(min_length=1, max_length=3, extra_json_schema={"uniqueItems": True})
]
Address = Annotated[str, Meta(pattern=ADDRESS)]
Moment = Annotated[str, Meta(pattern=MOMENT, max_length=64)]
Box = Annotated[str, Meta(pattern=BOX)]
TaskId = Annotated[str, Meta(min_length=1, max_length=64)]
LeaseKey = Annotated[str, Meta(min_length=1, max_length=256)]
Holder = Annotated[str, Meta(min_length=1, max_length=128)]
Fence = Annotated[str, Meta(min_length=1, max_length=128)]
LeaseSeconds = Annotated[int, Meta(ge=1, le=MAX_LEASE)]

Key = Annotated[
    Annotated[str, Meta(max_length=256)] | UnsetType,
    Meta(
        description="Your agent_secret, if your host cannot set the header "
        "Authorization: Bearer <agent_secret>. Prefer the header; a server that keeps a key for "
        "you needs neither. At most 256 characters.",
        examples=["the agent_secret that register returned"],
    ),
]
WakeOnTasks = Annotated[
    bool | UnsetType,
    Meta(
        description="true: while this switch is armed you are woken, once, when agent tasks of "
        "your namespace can be claimed, where a server can push to you; again only when more have "
        "come since. Of what waited before you started another may have been told: look with "
        "list_agent_tasks first. false ends that. Default false; left out on a later beat, what is "
        "in force stays.",
        examples=[True],
    ),
]
DeliveryToken = Annotated[
    Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType,
    Meta(
        description="The delivery_token that inbox_poll gave with this envelope, 1 to 64 "
        "characters. When it is sent and the envelope has been handed out again since, the call "
        "is refused with reason lost_delivery; without it a late call still counts."
    ),
]
TASK_ID = Meta(description="The task_id of the envelope, as inbox_poll gave it.")
LEASE_KEY = Meta(description="The name of the lock, 1 to 256 characters.")
LEASE_SECONDS = Meta(
    description="For how many seconds from now, 1 to 3600; default 60. Renew at each third of it, "
    "so that one failed try loses nothing."
)
FENCE = Meta(
    description="The fence that lease returned to you for this acquisition: it proves that the "
    "lock is yours. The holder's name alone never does."
)
HOLDER = Meta(description="The name you took the lock with, 1 to 128 characters.")


def lines(what: str) -> Meta:
    """Describe a list of ``Lines``."""
    return Meta(description=f"{what}: a list of up to 100 strings of at most 1024 characters.")


def opaque(what: str) -> Meta:
    """Describe a value of any JSON."""
    return Meta(
        description=f"{what}: any JSON, at most 65536 bytes and 100 levels deep, never looked into."
    )
