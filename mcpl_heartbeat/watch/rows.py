"""What the store holds of the watch wing, a Struct for each table.

``*_at`` without another word is real time, ``*_watched`` is watched time (``clock.py``); both in
milliseconds. The decisions in this package take these rows and give back changed ones; the storage
loads and keeps them.
"""

from typing import Any, Literal

import msgspec

Action = Literal["release_leases", "mark_failed", "queue_alert"]
ACTIONS: tuple[Action, ...] = ("release_leases", "mark_failed", "queue_alert")
"""What can be done at expiry, in the order in which it is done (seed)."""
DEFAULT_ACTIONS: tuple[Action, ...] = ("mark_failed",)
LISTED = 100
"""How many leases, and how many tasks, an alert, a line of the journal or a briefing names at most.
All of them are counted."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that registered. Its secret is not kept anywhere."""

    namespace: str
    """The keyed hash of the secret, in hex: the key of everything the agent owns."""
    agent: str
    """The ``<id>`` of its address ``agent:<id>``; public."""
    label: str | None = None
    registered_at: int


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """The dead-man switch of one scope; its life is the table in ``switches.py``."""

    namespace: str
    scope: str
    state: Literal["armed", "fired", "disarmed"]
    generation: int
    """Counts armings from 1: a beat that finds the switch not armed begins the next one."""
    deadline_watched: int
    """When it fires; the one of its last arming when it is no longer armed."""
    window_ms: int
    on_expiry: tuple[Action, ...]
    """In the order of ``ACTIONS``."""
    notify: str | None = None
    """An address, ``agent:<id>/<box>`` in full."""
    agent_id: str | None = None
    """The label of the instance that beat last."""
    other_agent_id: str | None = None
    """Another label that beat in this generation, and when, to see two that alternate."""
    other_at: int | None = None
    armed_at: int
    last_beat_at: int
    beats: int = 1
    nudge_ms: int | None = None
    """How long before the deadline the agent itself is pushed."""
    nudged: bool = False
    """Whether that was done for the present deadline."""
    fires: int = 0
    """How many generations have fired so far."""
    fired_generation: int | None = None
    """The last generation that fired."""
    failed: bool = False
    """Whether the last death marked the work failed; stays after a recovery, and a disarm."""
    wake_on_tasks: bool = False
    """Whether the agent is pushed when claimable tasks appear, while it is armed."""


class Nudge(msgspec.Struct, frozen=True):
    """A switch that is near its deadline, of which its agent is to be told; one for each."""

    scope: str
    generation: int
    deadline_watched: int
    """Before which to beat or to disarm."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A lock by name. The row stays when it is free, so that its generation only rises."""

    namespace: str
    key: str
    holder: str
    scope: str | None = None
    fence: str
    """The secret of this acquisition, by which its holder is known; labels never suffice."""
    generation: int
    expires_watched: int
    ttl_ms: int = 60_000
    """For how long it was taken, or renewed last: what a watch gap gives back at most."""
    held: bool = True


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of mail in ``agent``'s box ``box``."""

    seq: int = 0
    """Rises with every envelope of the store; 0 until it is kept."""
    task_id: str
    agent: str
    """The ``<id>`` of the address it was sent to."""
    box: str
    kind: Literal["message", "alert"]
    sender: str | None
    """The ``<id>`` of whose switch or hand it came from."""
    objective: str
    scope: str | None = None
    context: msgspec.Raw | None = None
    history: msgspec.Raw | None = None
    alert: "Alert | None" = None
    sent_at: int
    due_at: int
    visible_at: int
    """Hidden until then: what was handed to a reader and not acknowledged comes again."""
    attempts: int = 0
    """How often it was handed out."""
    token: str | None = None
    """The delivery token of the last time."""
    state: Literal["pending", "done", "failed"] = "pending"
    result: msgspec.Raw | None = None
    pushed_at: int | None = None
    """When a host took the push of it, or since when nothing is to be pushed of it."""


class Freed(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that a fire released, as the alert lists it."""

    key: str
    holder: str
    generation: int


class FreedTask(msgspec.Struct, frozen=True, kw_only=True):
    """An agent task that a fire gave back to the queue, as the alert lists it."""

    id: str
    execution_epoch: int
    """The epoch that ended with it."""
    agent_id: str | None
    """The label of whoever held it."""


class ResumePoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the work can be taken up, from the last checkpoint of the scope."""

    objective: str
    next_action: str
    step: str | None = None
    saved_at: str


class Alert(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an alert says (issue 4 §5). Times are as agents read them; ``null`` when unknown."""

    scope: str
    generation: int
    agent_id: str | None
    last_beat_at: str
    deadline: str
    noticed_at: str
    on_expiry: tuple[str, ...]
    released: tuple[Freed, ...]
    """The leases that were freed, the first ``LISTED`` of them."""
    unreachable: int
    """Leases of the namespace that no scope names, which ``release_leases`` cannot reach."""
    marked_failed: bool
    resume: ResumePoint | None = None
    resume_private: bool = False
    """There is a checkpoint, and it is for its own namespace only."""
    resolved_at: str | None = None
    """When a later beat or a disarm showed that the work goes on, or is finished."""
    resolution: Literal["recovered", "disarmed"] | None = None
    folded: int = 0
    """How many more alerts this one stands for, because the box was full."""
    folded_scopes: tuple[str, ...] = ()
    """The scopes of the last 20 of them."""
    released_tasks: tuple[FreedTask, ...] = ()
    """Agent tasks claimed under the scope, which went back to the queue; the first ``LISTED``."""
    released_more: int = 0
    """How many more leases were freed than are named, and likewise tasks given back."""
    released_tasks_more: int = 0
    meant_for: str | None = None
    """The box that it was sent to, where its reader has mail in too many to open another."""

    @property
    def released_count(self) -> int:
        """How many leases were freed."""
        return len(self.released) + self.released_more

    @property
    def released_tasks_count(self) -> int:
        """How many tasks went back to the queue."""
        return len(self.released_tasks) + self.released_tasks_more


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The last checkpoint of a scope: ``content`` is what ``checkpoint_put`` was given."""

    namespace: str
    scope: str
    version: int
    saved_at: int
    content: dict[str, Any]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a scope's journal: what changed, never a mere beat."""

    namespace: str
    scope: str
    seq: int = 0
    at: int
    kind: Literal[
        "armed", "fired", "disarmed", "recovered", "nudged", "alerted", "alert_folded",
        "pushed", "leased", "lease_released", "checkpoint", "quarantined",
    ]  # fmt: skip
    generation: int = 0
    detail: dict[str, Any] = {}


class BoxLoad(msgspec.Struct, frozen=True, kw_only=True):
    """How full a box is, and which pending alert in it would take in a further one."""

    pending: int
    own_alerts: int
    foreign_alerts: int
    newest_alert: Envelope | None = None
    boxes: int = 0
    """How many boxes of that agent hold anything pending."""
