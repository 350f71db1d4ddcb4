"""Mailboxes: write-only to everybody but their owner, and nothing in them is lost.

An envelope is *pending* until its reader acknowledges it. Handing it out only hides it for a while,
under a delivery token: whoever dies with it in hand loses nothing, it comes again. An ack or nack
that shows a token must show the newest one, so a late reader cannot take away what another has been
handed since; without a token it is taken at its word (A.2).

A box has ``PLACES`` places. Ordinary mail stops when all but ``RESERVED`` are taken; those are kept
for alerts, and alerts of other agents' switches leave at least ``RESERVED - FOREIGN_RESERVED`` of
them to the owner's own. An alert that finds no place is *folded*: the newest alert in the box
counts it and names its scope. It never vanishes: where there is no alert to count it, it takes a
place that the box does not have. An alert that has taken in another is handed out again, and is
only gone when its reader has seen the new count.

| state | handed out | ack | nack | folded into (an alert) |
|---|---|---|---|---|
| pending | pending, hidden | done or failed | pending | pending, visible, its token void |
| done, failed | never | as it is | refused | never |
"""

import hmac
import re
from typing import Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from mcpl_heartbeat.times import UTC, read_instant
from mcpl_heartbeat.watch.arguments import InboxAckArguments, InboxNackArguments, SendArguments
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import Failure, failure, invalid
from mcpl_heartbeat.watch.identity import address
from mcpl_heartbeat.watch.results import (
    EnvelopeView,
    InboxAckResult,
    InboxNackResult,
    InboxPollResult,
    SendResult,
)
from mcpl_heartbeat.watch.rows import LISTED, Alert, BoxLoad, Envelope
from mcpl_heartbeat.watch.switches import DEFAULT_BOX, split_address
from mcpl_heartbeat.watch.texts import alert_objective

PLACES = 1000
"""How many pending envelopes a box holds."""
RESERVED = 32
"""How many of these places only alerts may take."""
FOREIGN_RESERVED = 16
"""How many of those at most may go to alerts of switches in another namespace."""
MAX_BOXES = 64
"""Beyond how many filled boxes of one agent nobody opens another: ordinary mail is refused, alerts
of other agents' switches go to the default box. That one is always to be had: by filling others
nobody can keep mail out of it."""
FOLDED_SCOPES = 20
"""Of how many folded alerts the scopes are kept."""
FARTHEST_MS = 365 * 86_400_000
"""How far ahead ``due_at`` may lie."""


_T = TypeVar("_T")


class Fold(msgspec.Struct, frozen=True):
    """An alert found no place: this older one of the box counts it from now on."""

    envelope: Envelope
    """To be written over the one that it was, the whole of it."""


class Elsewhere(msgspec.Struct, frozen=True):
    """An alert has to go to another box of its reader's, this one, and find a place there."""

    envelope: Envelope


def message(
    arguments: SendArguments, sender: str, task_id: str, now: Reading
) -> Envelope | Failure:
    """Make an envelope of what ``sender``, the ``<id>`` of an address, sends."""
    due_at = _due_at(arguments.due_at, now)
    if isinstance(due_at, str):
        return invalid("send", (f"due_at: {due_at}",))
    agent, box = split_address(arguments.to)
    return Envelope(
        task_id=task_id,
        agent=agent,
        box=box,
        kind="message",
        sender=sender,
        objective=arguments.objective,
        scope=_or_none(arguments.scope),
        context=_or_none(arguments.context),
        history=_or_none(arguments.history),
        sent_at=now.real,
        due_at=due_at,
        visible_at=due_at,
    )


def sent(envelope: Envelope, now: Reading) -> SendResult:
    """Say that it is queued, and nothing of the box."""
    return SendResult(
        server_time=now.server_time,
        queued=True,
        task_id=envelope.task_id,
        to=f"{address(envelope.agent)}/{envelope.box}",
        due_at=now.tell(envelope.due_at),
    )


def alert_envelope(
    alert: Alert, notify: tuple[str, str], sender: str, task_id: str, now: Reading
) -> Envelope:
    """Make the envelope that carries ``alert`` to ``notify``, an agent's ``<id>`` and a box."""
    agent, box = notify
    return Envelope(
        task_id=task_id,
        agent=agent,
        box=box,
        kind="alert",
        sender=sender,
        objective=alert_objective(alert),
        scope=alert.scope,
        alert=alert,
        sent_at=now.real,
        due_at=now.real,
        visible_at=now.real,
    )


def place(
    load: BoxLoad, envelope: Envelope, *, own: bool, review: str | None = None
) -> Envelope | Elsewhere | Fold | Failure:
    """Find a place for ``envelope`` in its box. ``own``: it is of its reader's own switch.

    ``review``: it is this server's own message on what must not be lost. It is placed as an own
    alert is; where it has to be folded, the alert that takes it in names it so among its scopes.
    """
    if review is not None:
        own = True
    elif envelope.alert is None:
        return _place_message(load, envelope)
    room = load.pending < PLACES
    if not own and _opens_too_many(load, envelope):
        return Elsewhere(_to_default_box(envelope))
    if not own:
        # Counted so that the owner's own alerts, however many there are, never lose their share.
        room = room and load.pending - load.own_alerts < PLACES - (RESERVED - FOREIGN_RESERVED)
    if room or load.newest_alert is None:
        return envelope
    scope = review or envelope.scope or ""
    return Fold(_take_in(load.newest_alert, envelope, scope))


def hand_out(envelope: Envelope, visibility_ms: int, token: str, now: Reading) -> Envelope:
    """Hide it for ``visibility_ms`` under a new delivery token; the one before is void."""
    return replace(
        envelope,
        visible_at=now.real + visibility_ms,
        attempts=envelope.attempts + 1,
        token=token,
    )


def ack(
    envelope: Envelope | None, arguments: InboxAckArguments, now: Reading
) -> tuple[Envelope | None, InboxAckResult]:
    """Take the word that an envelope is dealt with. Gives the changed envelope, or ``None``."""
    refused = _unknown_or_lost(envelope, arguments.delivery_token)
    result = InboxAckResult(
        server_time=now.server_time, acked=False, task_id=arguments.task_id, reason=refused
    )
    if envelope is None or refused is not UNSET:
        return None, result
    if envelope.state != "pending":
        notes: tuple[str, ...] = ()
        if envelope.state != arguments.status:
            notes = (f"It was acknowledged as {envelope.state} before, and stays so.",)
        return None, replace(result, acked=True, status=envelope.state, notes=notes)
    if _unseen(envelope):
        note = "It has taken in more alerts than were shown: inbox_poll shows it anew."
        return None, replace(result, reason="lost_delivery", notes=(note,))
    changed = replace(envelope, state=arguments.status, result=_or_none(arguments.result))
    return changed, replace(result, acked=True, status=arguments.status)


def nack(
    envelope: Envelope | None, arguments: InboxNackArguments, now: Reading
) -> tuple[Envelope | None, InboxNackResult]:
    """Take an envelope back, to be handed out again. Gives the changed envelope, or ``None``."""
    refused = _unknown_or_lost(envelope, arguments.delivery_token)
    result = InboxNackResult(
        server_time=now.server_time, nacked=False, task_id=arguments.task_id, reason=refused
    )
    if envelope is None or refused is not UNSET:
        return None, result
    if envelope.state != "pending":
        return None, replace(result, reason="already_done")
    # What is not due yet stays so: giving back is no way to have it earlier.
    again = max(envelope.due_at, now.real + arguments.delay_seconds * 1000)
    changed = replace(envelope, visible_at=again)
    return changed, replace(result, nacked=True, visible_again_at=now.tell(again))


def poll_result(
    envelope: Envelope | None, waiting: int, next_due: int | None, now: Reading
) -> InboxPollResult:
    """Show what ``hand_out`` gave; ``next_due`` is when (real ms) the next one becomes visible."""
    return InboxPollResult(
        server_time=now.server_time,
        envelope=None if envelope is None else view(envelope, now),
        waiting=waiting,
        next_due_at=None if next_due is None else now.tell(next_due),
    )


def resolve(
    envelope: Envelope, resolution: Literal["recovered", "disarmed"], now: Reading
) -> Envelope:
    """Mark a pending alert resolved, ``recovered`` or ``disarmed``; its first resolution stands."""
    alert = envelope.alert
    if alert is None or alert.resolution is not None or envelope.state != "pending":
        return envelope
    changed = replace(alert, resolved_at=now.server_time, resolution=resolution)
    return _with_alert(envelope, changed)


def is_over(alert: Alert) -> bool:
    """Whether it wakes nobody any more: it is resolved, and stands for no other that may not be."""
    return alert.resolution is not None and not alert.folded


def view(envelope: Envelope, now: Reading) -> EnvelopeView:
    """Show an envelope to its reader. An alert's facts stand beside the rest."""
    shown = EnvelopeView(
        task_id=envelope.task_id,
        box=envelope.box,
        kind=envelope.kind,
        objective=envelope.objective,
        sender=None if envelope.sender is None else address(envelope.sender),
        sent_at=now.tell(envelope.sent_at),
        due_at=now.tell(envelope.due_at),
        attempts=envelope.attempts,
        delivery_token=envelope.token or "",
        visible_again_at=now.tell(envelope.visible_at),
        context=_or_unset(envelope.context),
        history=_or_unset(envelope.history),
        scope=_or_unset(envelope.scope),
    )
    alert = envelope.alert
    if alert is None:
        return shown
    return replace(
        shown,
        generation=alert.generation,
        agent_id=alert.agent_id,
        last_beat_at=alert.last_beat_at,
        deadline=alert.deadline,
        noticed_at=alert.noticed_at,
        on_expiry=alert.on_expiry,
        released=tuple(msgspec.to_builtins(freed) for freed in alert.released[:LISTED]),
        released_count=alert.released_count,
        released_tasks=tuple(msgspec.to_builtins(task) for task in alert.released_tasks[:LISTED]),
        released_tasks_count=alert.released_tasks_count,
        unreachable=alert.unreachable,
        marked_failed=alert.marked_failed,
        resume=None if alert.resume is None else msgspec.to_builtins(alert.resume),
        resume_private=alert.resume_private,
        resolved_at=alert.resolved_at,
        resolution=alert.resolution,
        folded=alert.folded,
        folded_scopes=alert.folded_scopes,
        meant_for=_or_unset(alert.meant_for),
    )


# --- places ------------------------------------------------------------------------------------


def _place_message(load: BoxLoad, envelope: Envelope) -> Envelope | Failure:
    if load.pending >= PLACES - RESERVED:
        return failure(
            "mailbox_full",
            "The mailbox is full: nothing was queued.",
            "Send it again later, when its reader has acknowledged some of its mail.",
        )
    if _opens_too_many(load, envelope):
        return failure(
            "mailbox_full",
            f"That agent has mail in {MAX_BOXES} boxes, and this would open another: nothing was "
            "queued.",
            "Send it to agent:<id> without a box, or to a box that is in use.",
        )
    return envelope


def _opens_too_many(load: BoxLoad, envelope: Envelope) -> bool:
    opens = load.pending == 0 and envelope.box != DEFAULT_BOX
    return opens and load.boxes >= MAX_BOXES


def _to_default_box(envelope: Envelope) -> Envelope:
    assert envelope.alert is not None
    moved = replace(envelope, box=DEFAULT_BOX)
    return _with_alert(moved, replace(envelope.alert, meant_for=envelope.box))


def _take_in(newest: Envelope, envelope: Envelope, scope: str) -> Envelope:
    alert = newest.alert
    assert alert is not None
    scopes = (*alert.folded_scopes, scope)[-FOLDED_SCOPES:]
    changed = _with_alert(
        newest,
        replace(alert, folded=alert.folded + 1, folded_scopes=scopes),
    )
    # Whoever holds it, or was pushed it, has not seen this one: it is told again.
    return replace(
        changed,
        token=None,
        visible_at=min(newest.visible_at, envelope.visible_at),
        pushed_at=None,
    )


def _unseen(envelope: Envelope) -> bool:
    alert = envelope.alert
    return alert is not None and alert.folded > 0 and envelope.token is None


def _with_alert(envelope: Envelope, alert: Alert) -> Envelope:
    return replace(envelope, alert=alert, objective=alert_objective(alert))


# --- what was sent -----------------------------------------------------------------------------

_ENDS_WITH_OFFSET = re.compile(r".*(Z|z|[+-][0-9]{2}:?[0-9]{2})")
_WANTED = "send YYYY-MM-DDTHH:MM:SS followed by Z or an offset such as +02:00"


def _due_at(text: str | UnsetType, now: Reading) -> int | str:
    if text is UNSET:
        return now.real
    instant = read_instant(text, UTC)
    if isinstance(instant, str):
        return f"{instant.partition('; send ')[0]}; {_WANTED}"
    if _ENDS_WITH_OFFSET.fullmatch(text.removesuffix(" [UTC]")) is None:
        return f"has no offset, so it is no moment; {_WANTED}"
    due_at = instant.wall_ms - now.shift
    if due_at > now.real + FARTHEST_MS:
        return f"lies more than 365 days ahead; it is {now.server_time} now"
    return max(due_at, now.real)


def _unknown_or_lost(
    envelope: Envelope | None, token: str | UnsetType
) -> Literal["unknown_task", "lost_delivery"] | UnsetType:
    if envelope is None:
        return "unknown_task"
    if token is UNSET or hmac.compare_digest(token.encode(), (envelope.token or "").encode()):
        return UNSET
    return "lost_delivery"


def _or_none(value: _T | UnsetType) -> _T | None:
    return None if value is UNSET else value


def _or_unset(value: _T | None) -> _T | UnsetType:
    return UNSET if value is None else value
