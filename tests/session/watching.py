"""Alerts, nudges and a world with the watch wing, for its tests."""

from typing import Any

import msgspec

from mcpl_heartbeat.actions import Ask
from mcpl_heartbeat.storage.store.ports import News
from mcpl_heartbeat.watch import beats, switches
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.results import HeartbeatResult, SwitchStatusResult
from mcpl_heartbeat.watch.rows import Alert, Envelope, Freed, Nudge, ResumePoint
from mcpl_heartbeat.watch.wing import WATCH_WING
from tests.world import BEGAN, START, World

GRANT = {"effectiveCapabilities": ["tools", "pushEvents"], "enabled": ["heartbeat", "watch"]}
READING = Reading(real=START)


def watch_world(*, connect: bool = True, **options: Any) -> World:
    """A world whose server has a store, with a host that lets it push."""
    world = World(annexes=(WATCH_WING,), **options)
    if connect:
        world.connect(policy=GRANT)
    return world


def alert(seq: int, scope: str = "", **more: Any) -> Envelope:
    """An alert as the store gives it."""
    said: dict[str, Any] = {
        "scope": scope or f"scope-{seq}",
        "generation": 3,
        "agent_id": "worker-3",
        "last_beat_at": "2026-09-21T14:03:20.000Z",
        "deadline": "2026-09-21T14:08:20.000Z",
        "noticed_at": "2026-09-21T14:08:20.412Z",
        "on_expiry": ("release_leases", "mark_failed", "queue_alert"),
        "released": (Freed(key="deploy", holder="worker-3", generation=7),),
        "unreachable": 0,
        "marked_failed": True,
        "resume": ResumePoint(
            objective="review permits", next_action="open page 4", saved_at="2026-09-21T14:03:00Z"
        ),
    }
    return Envelope(
        seq=seq,
        task_id=f"task-{seq}",
        agent="a" * 16,
        box="inbox",
        kind="alert",
        sender="b" * 16,
        objective="worker-3 died",
        alert=Alert(**(said | more)),
        sent_at=START,
        due_at=START,
        visible_at=START,
    )


def resolved(envelope: Envelope) -> Envelope:
    """The same, after its switch was beaten again."""
    assert envelope.alert is not None
    better = msgspec.structs.replace(
        envelope.alert, resolution="recovered", resolved_at="2026-09-21T14:09:00.000Z"
    )
    return msgspec.structs.replace(envelope, alert=better)


def news(*alerts: Envelope) -> News:
    """What the store gives when these alerts wait."""
    return News(READING, alerts)


def nudge(*scopes: str, left: int = 30_000, generation: int = 2, now: Reading = READING) -> News:
    """Nudges for switches (``permits`` alone) with ``left`` ms to their deadlines."""
    deadline = now.watched + left
    told = (Nudge(scope, generation, deadline) for scope in scopes or ("permits",))
    return News(now, (), tuple(told))


def given(world: World, *scopes: str, left: int = 30_000, took: int = 0) -> None:
    """Have the store give such nudges now."""
    world.news(nudge(*scopes, left=left, now=_reading(world)), took=took)


def checked(world: World, *void: str, cut: int = 0) -> None:
    """Have the store say which of the held nudges still stand.

    Those of scopes not ``void``, unless their deadline has come; ``cut`` ms passed unwatched.
    """
    now = _reading(world, cut)
    held = _doubtful(world)
    over = tuple(e for e in held if e.scope in void or e.deadline_watched <= now.watched)
    world.news(News(now, standing=tuple(e for e in held if e not in over), void=over))


def _reading(world: World, cut: int = 0) -> Reading:
    return Reading(START + world.monotonic - BEGAN, cut)


def pass_looking(world: World, ms: int) -> None:
    """Let time pass, with a look at the store twice a second."""
    for _ in range(ms // 500):
        world.pass_time(500)
        if _doubtful(world):
            checked(world)


def _doubtful(world: World) -> tuple[Any, ...]:
    return world.listening.held


def beaten(ask: Ask) -> HeartbeatResult:
    """What the store answers to a first beat."""
    beat = switches.beat(None, "0" * 64, ask.arguments, READING)
    assert not isinstance(beat, Failure), beat
    return beats.with_delivery(beat.result, alert=None, nudge=None)


def no_switches() -> SwitchStatusResult:
    """What the store answers to ``switch_status`` where there are none."""
    return SwitchStatusResult(
        server_time=READING.server_time, switches=(), total=0, next_cursor=None, watch_gaps=()
    )
