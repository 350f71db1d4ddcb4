"""The params of ``push/event``, kind by kind, and its result, as Structs."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from mcpl_heartbeat.policy.pushing import MAX_COALESCE_KEY_BYTES
from spec.shared import NotBlank, Read, Sent, Text, Utc, Yes


class Visible(Sent, frozen=True):
    """A payload the agent reads."""

    content: Annotated[list[Text], Meta(min_length=1, max_length=1)]


class Nothing(Sent, frozen=True):
    """The payload of a silent wake."""

    content: Annotated[list[Text], Meta(max_length=0)]


class Coalesce(Sent, frozen=True):
    """What a newer push of this key replaces, as long as it is unread (MCPL RFC-006)."""

    key: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_COALESCE_KEY_BYTES,
            description=f"At most {MAX_COALESCE_KEY_BYTES} bytes of UTF-8.",
        ),
    ]


class TickOrigin(Sent, frozen=True):
    """Whence a heartbeat in message mode comes."""

    source: Literal["heartbeat"]
    reason: Literal["schedule", "manual"]
    silent_fallback: Yes | UnsetType = UNSET


class SilentOrigin(Sent, frozen=True):
    """Whence a silent heartbeat comes."""

    source: Literal["heartbeat"]
    reason: Literal["schedule", "manual"]
    silent: Yes


class ReminderOrigin(Sent, frozen=True):
    """Whence a reminder comes."""

    source: Literal["reminder"]
    reminder_id: NotBlank
    recurring: bool


TickId = Annotated[
    str, Meta(pattern=r"^heartbeat_[0-9]+_.+$", description="heartbeat_<due, ms>_<random>")
]


class Tick(Sent, frozen=True):
    """The params of a heartbeat that is read."""

    feature_set: Literal["heartbeat"]
    event_id: TickId
    timestamp: Utc
    origin: TickOrigin
    payload: Visible
    tags: Annotated[list[Literal["heartbeat:tick"]], Meta(min_length=1, max_length=1)]
    coalesce: Coalesce | UnsetType = UNSET


class SilentTick(Sent, frozen=True):
    """The params of a silent heartbeat."""

    feature_set: Literal["heartbeat"]
    event_id: TickId
    timestamp: Utc
    origin: SilentOrigin
    payload: Nothing


class ReminderPush(Sent, frozen=True):
    """The params of a due reminder."""

    feature_set: Literal["heartbeat"]
    event_id: Annotated[
        str, Meta(pattern=r"^reminder_.+_[0-9]+$", description="reminder_<id>_<due, ms>")
    ]
    timestamp: Utc
    origin: ReminderOrigin
    payload: Visible
    tags: Annotated[list[Literal["heartbeat:reminder"]], Meta(min_length=1, max_length=1)]
    coalesce: Coalesce | UnsetType = UNSET


class AlertOrigin(Sent, frozen=True):
    """Whence an alert comes: the switch that fired."""

    source: Literal["alert"]
    scope: NotBlank
    generation: Annotated[int, Meta(ge=1)]


class AlertsOrigin(Sent, frozen=True):
    """Whence several alerts come; of their scopes the first 20."""

    source: Literal["alert"]
    count: Annotated[int, Meta(ge=2)]
    scopes: Annotated[list[NotBlank], Meta(min_length=1, max_length=20)]


class NudgeOrigin(Sent, frozen=True):
    """Whence a nudge comes: the agent's own switch."""

    source: Literal["nudge"]
    scope: NotBlank
    generation: Annotated[int, Meta(ge=1)]


AlertTags = Annotated[list[Literal["watch:alert"]], Meta(min_length=1, max_length=1)]


class AlertPush(Sent, frozen=True):
    """The params of one alert."""

    feature_set: Literal["watch"]
    event_id: Annotated[str, Meta(pattern=r"^alert_.+$", description="alert_<task_id>")]
    timestamp: Utc
    origin: AlertOrigin
    payload: Visible
    tags: AlertTags


class AlertsPush(Sent, frozen=True):
    """The params of several alerts in one push."""

    feature_set: Literal["watch"]
    event_id: Annotated[
        str,
        Meta(pattern=r"^alerts_.+_[0-9]+$", description="alerts_<task_id of the newest>_<count>"),
    ]
    timestamp: Utc
    origin: AlertsOrigin
    payload: Visible
    tags: AlertTags


class NudgePush(Sent, frozen=True):
    """The params of a nudge."""

    feature_set: Literal["watch"]
    event_id: Annotated[
        str,
        Meta(
            pattern=r"^nudge_[0-9a-f]{16}_[0-9]+_-?[0-9]+$",
            description="nudge_<hash of the scope>_<generation>_<deadline>",
        ),
    ]
    timestamp: Utc
    origin: NudgeOrigin
    payload: Visible
    tags: Annotated[list[Literal["watch:nudge"]], Meta(min_length=1, max_length=1)]
    coalesce: Coalesce | UnsetType = UNSET


class NudgesOrigin(Sent, frozen=True):
    """Whence several nudges come; of their scopes the first 20."""

    source: Literal["nudge"]
    count: Annotated[int, Meta(ge=2)]
    scopes: Annotated[list[NotBlank], Meta(min_length=1, max_length=20)]


class NudgesPush(Sent, frozen=True):
    """The params of several nudges in one push."""

    feature_set: Literal["watch"]
    event_id: Annotated[
        str,
        Meta(
            pattern=r"^nudges_[0-9a-f]{16}_[0-9]+$",
            description="nudges_<hash of the scopes, generations and deadlines>_<count>",
        ),
    ]
    timestamp: Utc
    origin: NudgesOrigin
    payload: Visible
    tags: Annotated[list[Literal["watch:nudge"]], Meta(min_length=1, max_length=1)]


class WorkOrigin(Sent, frozen=True):
    """Whence a wake for work comes, and how many tasks can be claimed."""

    source: Literal["tasks"]
    claimable: Annotated[int, Meta(ge=1)]


class WorkPush(Sent, frozen=True):
    """The params of a wake for claimable tasks."""

    feature_set: Literal["tasks"]
    event_id: Annotated[
        str,
        Meta(
            pattern=r"^tasks_[0-9a-z]+_[0-9]+$",
            description="tasks_<hash of the namespace>_<which wake of it>",
        ),
    ]
    timestamp: Utc
    origin: WorkOrigin
    payload: Visible
    tags: Annotated[list[Literal["tasks:available"]], Meta(min_length=1, max_length=1)]
    coalesce: Coalesce | UnsetType = UNSET


class ReviewOrigin(Sent, frozen=True):
    """Whence a review comes: the task that timed out."""

    source: Literal["review"]
    task_id: NotBlank = msgspec.field(name="task_id")


class ReviewsOrigin(Sent, frozen=True):
    """Whence several reviews come; of their tasks the first 20."""

    source: Literal["review"]
    count: Annotated[int, Meta(ge=2)]
    task_ids: Annotated[list[NotBlank], Meta(min_length=1, max_length=20)] = msgspec.field(
        name="task_ids"
    )


ReviewTags = Annotated[list[Literal["tasks:review"]], Meta(min_length=1, max_length=1)]


class ReviewPush(Sent, frozen=True):
    """The params of one review."""

    feature_set: Literal["tasks"]
    event_id: Annotated[
        str, Meta(pattern=r"^review_.+$", description="review_<task_id of the mail>")
    ]
    timestamp: Utc
    origin: ReviewOrigin
    payload: Visible
    tags: ReviewTags


class ReviewsPush(Sent, frozen=True):
    """The params of several reviews in one push."""

    feature_set: Literal["tasks"]
    event_id: Annotated[
        str,
        Meta(
            pattern=r"^reviews_.+_[0-9]+$",
            description="reviews_<task_id of the newest mail>_<count>",
        ),
    ]
    timestamp: Utc
    origin: ReviewsOrigin
    payload: Visible
    tags: ReviewTags


class PushResult(Read, frozen=True):
    """A host's answer."""

    accepted: bool
    reason: str | UnsetType | None = UNSET
    inference_id: str | UnsetType = UNSET
