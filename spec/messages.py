"""The messages for which the code has no Struct, as Structs.

The server builds pushes, the manifest and ``initialize``'s result as plain data and reads what a
host sends member by member, so that each fault can be named. Their shapes are written out here;
``tests/spec`` holds them against what a session really says.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from mcpl_heartbeat.policy.pushing import MAX_COALESCE_KEY_BYTES

Yes = Annotated[bool, Meta(extra_json_schema={"const": True})]
NotBlank = Annotated[str, Meta(pattern=r"\S")]
Utc = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]


class _Sent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What the server sends: no other members."""


class _Read(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the host sends: other members are passed over."""


# --- push/event ----------------------------------------------------------------------------------


class Text(_Sent, frozen=True):
    """A content block."""

    type: Literal["text"]
    text: NotBlank


class Visible(_Sent, frozen=True):
    """A payload the agent reads."""

    content: Annotated[list[Text], Meta(min_length=1, max_length=1)]


class Nothing(_Sent, frozen=True):
    """The payload of a silent wake."""

    content: Annotated[list[Text], Meta(max_length=0)]


class Coalesce(_Sent, frozen=True):
    """What a newer push of this key replaces, as long as it is unread (MCPL RFC-006)."""

    key: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_COALESCE_KEY_BYTES,
            description=f"At most {MAX_COALESCE_KEY_BYTES} bytes of UTF-8.",
        ),
    ]


class TickOrigin(_Sent, frozen=True):
    """Whence a heartbeat in message mode comes."""

    source: Literal["heartbeat"]
    reason: Literal["schedule", "manual"]
    silent_fallback: Yes | UnsetType = UNSET


class SilentOrigin(_Sent, frozen=True):
    """Whence a silent heartbeat comes."""

    source: Literal["heartbeat"]
    reason: Literal["schedule", "manual"]
    silent: Yes


class ReminderOrigin(_Sent, frozen=True):
    """Whence a reminder comes."""

    source: Literal["reminder"]
    reminder_id: NotBlank
    recurring: bool


TickId = Annotated[
    str, Meta(pattern=r"^heartbeat_[0-9]+_.+$", description="heartbeat_<due, ms>_<random>")
]


class Tick(_Sent, frozen=True):
    """The params of a heartbeat that is read."""

    feature_set: Literal["heartbeat"]
    event_id: TickId
    timestamp: Utc
    origin: TickOrigin
    payload: Visible
    tags: Annotated[list[Literal["heartbeat:tick"]], Meta(min_length=1, max_length=1)]
    coalesce: Coalesce | UnsetType = UNSET


class SilentTick(_Sent, frozen=True):
    """The params of a silent heartbeat."""

    feature_set: Literal["heartbeat"]
    event_id: TickId
    timestamp: Utc
    origin: SilentOrigin
    payload: Nothing


class ReminderPush(_Sent, frozen=True):
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


class AlertOrigin(_Sent, frozen=True):
    """Whence an alert comes: the switch that fired."""

    source: Literal["alert"]
    scope: NotBlank
    generation: Annotated[int, Meta(ge=1)]


class AlertsOrigin(_Sent, frozen=True):
    """Whence several alerts come; of their scopes the first 20."""

    source: Literal["alert"]
    count: Annotated[int, Meta(ge=2)]
    scopes: Annotated[list[NotBlank], Meta(min_length=1, max_length=20)]


class NudgeOrigin(_Sent, frozen=True):
    """Whence a nudge comes: the agent's own switch."""

    source: Literal["nudge"]
    scope: NotBlank
    generation: Annotated[int, Meta(ge=1)]


AlertTags = Annotated[list[Literal["watch:alert"]], Meta(min_length=1, max_length=1)]


class AlertPush(_Sent, frozen=True):
    """The params of one alert."""

    feature_set: Literal["watch"]
    event_id: Annotated[str, Meta(pattern=r"^alert_.+$", description="alert_<task_id>")]
    timestamp: Utc
    origin: AlertOrigin
    payload: Visible
    tags: AlertTags


class AlertsPush(_Sent, frozen=True):
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


class NudgePush(_Sent, frozen=True):
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


class WorkOrigin(_Sent, frozen=True):
    """Whence a wake for work comes, and how many tasks can be claimed."""

    source: Literal["tasks"]
    claimable: Annotated[int, Meta(ge=1)]


class WorkPush(_Sent, frozen=True):
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


class ReviewOrigin(_Sent, frozen=True):
    """Whence a review comes: the task that timed out."""

    source: Literal["review"]
    task_id: NotBlank = msgspec.field(name="task_id")


class ReviewsOrigin(_Sent, frozen=True):
    """Whence several reviews come; of their tasks the first 20."""

    source: Literal["review"]
    count: Annotated[int, Meta(ge=2)]
    task_ids: Annotated[list[NotBlank], Meta(min_length=1, max_length=20)] = msgspec.field(
        name="task_ids"
    )


ReviewTags = Annotated[list[Literal["tasks:review"]], Meta(min_length=1, max_length=1)]


class ReviewPush(_Sent, frozen=True):
    """The params of one review."""

    feature_set: Literal["tasks"]
    event_id: Annotated[
        str, Meta(pattern=r"^review_.+$", description="review_<task_id of the mail>")
    ]
    timestamp: Utc
    origin: ReviewOrigin
    payload: Visible
    tags: ReviewTags


class ReviewsPush(_Sent, frozen=True):
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


class PushResult(_Read, frozen=True):
    """A host's answer."""

    accepted: bool
    reason: str | UnsetType | None = UNSET
    inference_id: str | UnsetType = UNSET


# --- initialize, the manifest, featureSets/update ------------------------------------------------


class Info(_Read, frozen=True):
    """Who speaks."""

    name: str
    version: str
    title: str | UnsetType = UNSET


class Coalescing(_Read, frozen=True):
    """A host's event coalescing, method by method."""

    push_events: bool | UnsetType = UNSET


class HostMcpl(_Read, frozen=True):
    """A host's ``experimental.mcpl``."""

    version: str | UnsetType = UNSET
    event_coalescing: bool | Coalescing | UnsetType = UNSET


class HostExperimental(_Read, frozen=True):
    """A client's experimental capabilities."""

    mcpl: Annotated[
        HostMcpl | bool | UnsetType, Meta(description="An object or true asks for MCPL.")
    ] = UNSET


class HostCapabilities(_Read, frozen=True):
    """A client's capabilities."""

    experimental: HostExperimental | UnsetType = UNSET


class Initialize(_Read, frozen=True):
    """The params of ``initialize``."""

    protocol_version: str
    capabilities: HostCapabilities | UnsetType = UNSET
    client_info: Info | UnsetType = UNSET


class Declaration(_Sent, frozen=True):
    """A feature set under its name."""

    description: str
    uses: list[str]


class NamedDeclaration(Declaration, frozen=True):
    """A feature set as an entry of an array."""

    name: Literal["heartbeat", "watch", "tasks"]


class FeatureSets(_Sent, frozen=True):
    """The feature sets by name; ``watch`` and ``tasks`` where a store is configured."""

    heartbeat: Declaration
    watch: Declaration | UnsetType = UNSET
    tasks: Declaration | UnsetType = UNSET


class Manifest(_Sent, frozen=True):
    """The manifest."""

    version: Literal["0.5"]
    push_events: Yes
    feature_sets: FeatureSets | list[NamedDeclaration]
    revision: Annotated[str, Meta(pattern=r"^sha256:[A-Za-z0-9_-]{43}$")]


class Experimental(_Sent, frozen=True):
    """The server's experimental capabilities."""

    mcpl: Manifest


class ToolsCapability(_Sent, frozen=True):
    """Nothing more than that there are tools."""


class Capabilities(_Sent, frozen=True):
    """The server's capabilities."""

    tools: ToolsCapability
    experimental: Experimental | UnsetType = UNSET


class Initialized(_Sent, frozen=True):
    """The result of ``initialize``."""

    protocol_version: Literal["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
    capabilities: Capabilities
    server_info: Info
    instructions: str | UnsetType = UNSET


class Update(_Read, frozen=True):
    """The params of ``featureSets/update``."""

    effective_capabilities: list[str] | UnsetType = UNSET
    denied_capabilities: list[str] | UnsetType = UNSET
    enabled: list[str] | UnsetType = UNSET
    disabled: list[str] | UnsetType = UNSET


# --- tools, cancellation -------------------------------------------------------------------------


class CallParams(_Read, frozen=True):
    """The params of ``tools/call``."""

    name: str
    arguments: dict[str, Any] | UnsetType | None = UNSET


class CallResult(_Sent, frozen=True):
    """The result of ``tools/call``."""

    content: Annotated[list[Text], Meta(min_length=1, max_length=1)]
    structured_content: dict[str, Any] | UnsetType = UNSET
    is_error: Yes | UnsetType = UNSET


class Annotations(_Sent, frozen=True):
    """Hints for a client."""

    title: str
    read_only_hint: bool
    destructive_hint: bool
    idempotent_hint: bool
    open_world_hint: bool


class ToolMeta(_Sent, frozen=True, kw_only=True):
    """MCPL's word on a tool (RFC-008)."""

    classes: Annotated[list[str], Meta(min_length=1)] = msgspec.field(name="mcpl/class")


class ListedTool(_Sent, frozen=True, kw_only=True):
    """A tool as it is listed."""

    name: str
    title: str | UnsetType = UNSET
    description: NotBlank
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | UnsetType = UNSET
    annotations: Annotations
    meta: ToolMeta = msgspec.field(name="_meta")


class ListedTools(_Sent, frozen=True):
    """The result of ``tools/list``."""

    tools: list[ListedTool]


class Cancelled(_Read, frozen=True):
    """The params of ``notifications/cancelled``."""

    request_id: str | int | float
    reason: str | UnsetType = UNSET


class Error(_Sent, frozen=True):
    """Why a request was not carried out; the code's Refusal, whose ``data`` no schema can name."""

    code: Annotated[int, Meta(extra_json_schema={"enum": [-32700, -32600, -32601, -32602, -32603]})]
    message: NotBlank
    data: Any | UnsetType = UNSET
