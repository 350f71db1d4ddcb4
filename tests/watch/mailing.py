"""What the tests of mail, briefings and words share: moments, alerts, envelopes."""

from typing import Any

import msgspec

from mcpl_heartbeat.watch import mail
from mcpl_heartbeat.watch.arguments import InboxAckArguments, InboxNackArguments, SendArguments
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.rows import Alert, Envelope, Freed, ResumePoint

START = 1_790_000_000_000
"""A real time (ms): 2026-09-21T14:13:20.000Z."""
READER = "abcdefghijklmnop"
SENDER = "qrstuvwxyz234567"

ALERT = Alert(
    scope="permit-review",
    generation=3,
    agent_id="worker-3",
    last_beat_at="2026-09-21T14:08:20.000Z",
    deadline="2026-09-21T14:13:20.000Z",
    noticed_at="2026-09-21T14:13:20.400Z",
    on_expiry=("release_leases", "mark_failed", "queue_alert"),
    released=(Freed(key="db", holder="w3", generation=7),),
    unreachable=2,
    marked_failed=True,
    resume=ResumePoint(
        objective="review the permits",
        next_action="open permit 17",
        step="16 of 40",
        saved_at="2026-09-21T14:08:19.000Z",
    ),
)


def at(ms: int = 0, *, shift: int = 0) -> Reading:
    """The store's time ``ms`` after ``START``."""
    return Reading(START + ms, shift=shift)


def alert(**changes: Any) -> Alert:
    return msgspec.structs.replace(ALERT, **changes)


def alert_mail(name: str = "t1", ms: int = 0, *, box: str = "inbox", **changes: Any) -> Envelope:
    """An alert of ``SENDER``'s switch, queued for ``READER``."""
    return mail.alert_envelope(alert(**changes), (READER, box), SENDER, name, at(ms))


def letter(name: str = "t1", ms: int = 0, **arguments: Any) -> Envelope:
    """Ordinary mail that is taken."""
    sent = SendArguments(**{"to": f"agent:{READER}", "objective": "look", **arguments})
    envelope = mail.message(sent, SENDER, name, at(ms))
    assert isinstance(envelope, Envelope), envelope
    return envelope


def acking(name: str = "t1", **arguments: Any) -> InboxAckArguments:
    return InboxAckArguments(task_id=name, **arguments)


def nacking(name: str = "t1", **arguments: Any) -> InboxNackArguments:
    return InboxNackArguments(task_id=name, **arguments)
