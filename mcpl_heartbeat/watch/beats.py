"""What a beat asks for, weighed against the switch it meets, and what it is told.

The rules that need no stored switch (``rules.py``) are looked at here again, so that no way to a
beat can leave a switch that names an action it cannot do.
"""

import msgspec
from msgspec import UNSET

from mcpl_heartbeat.watch.arguments import HeartbeatArguments
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.results import HeartbeatResult
from mcpl_heartbeat.watch.rows import ACTIONS, DEFAULT_ACTIONS, Action, Switch
from mcpl_heartbeat.watch.rules import heartbeat_rules


def problems(current: Switch | None, arguments: HeartbeatArguments) -> tuple[str, ...]:
    """What is wrong with a beat, all of it; ``current`` is the switch if it is armed."""
    found = [f"{each.argument}: {each.text}" for each in heartbeat_rules(arguments, frozenset())]
    if arguments.expect_within_seconds is UNSET:
        found.append("expect_within_seconds: is required unless disarm is true")
    if (
        arguments.notify_address is not UNSET
        and arguments.on_expiry is UNSET
        and "queue_alert" not in actions(current, arguments)
    ):
        found.append(
            "notify_address: has no use without queue_alert; name it in on_expiry, or leave "
            "notify_address out"
        )
    return tuple(found)


def actions(current: Switch | None, arguments: HeartbeatArguments) -> tuple[Action, ...]:
    """What is to be done at expiry: as sent, else as this generation has it, else the default."""
    sent = arguments.on_expiry
    if sent is not UNSET:
        return tuple(action for action in ACTIONS if action in sent)
    return DEFAULT_ACTIONS if current is None else current.on_expiry


def window_ms(arguments: HeartbeatArguments) -> int:
    """How long (ms) from now the next beat is due, of a beat without problems."""
    assert arguments.expect_within_seconds is not UNSET
    return arguments.expect_within_seconds * 1000


def nudge(
    current: Switch | None, arguments: HeartbeatArguments
) -> tuple[int | None, tuple[str, ...]]:
    """How long (ms) before the deadline the agent is nudged, and what to say of it.

    One that is kept from earlier beats and no longer fits the window is dropped.
    """
    if arguments.nudge_seconds is not UNSET:
        return arguments.nudge_seconds * 1000, ()
    kept = None if current is None else current.nudge_ms
    if kept is None or kept < window_ms(arguments):
        return kept, ()
    return None, (
        f"The nudge {seconds(kept)} s before the deadline does not fit expect_within_seconds "
        f"{arguments.expect_within_seconds} and was dropped: send nudge_seconds to have another.",
    )


def wakes(current: Switch | None, arguments: HeartbeatArguments) -> bool:
    """Whether claimable tasks wake the agent: as sent, else as this generation has it."""
    if arguments.wake_on_tasks is not UNSET:
        return arguments.wake_on_tasks
    return current is not None and current.wake_on_tasks


def alternation(before: Switch, arguments: HeartbeatArguments, now: Reading) -> tuple[str, ...]:
    """Warn when two instances beat one scope: either hides the other's death.

    One change of the label is a handover. A second one within two windows is not: the label before
    the last has not had the time to die.
    """
    last = before.agent_id
    if arguments.agent_id is UNSET or arguments.agent_id == last or before.other_at is None:
        return ()
    if now.real - before.other_at > 2 * before.window_ms:
        return ()
    return (
        f"The label of who beats this scope has changed twice of late, now from {last!r} to "
        f"{arguments.agent_id!r}: if both live, the switch cannot tell when one of them dies. Give "
        "each a scope of its own.",
    )


def armed(
    switch: Switch,
    now: Reading,
    notes: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
    *,
    fired: bool = False,
) -> HeartbeatResult:
    """Tell when the next beat is due, and what happens without it."""
    return HeartbeatResult(
        server_time=now.server_time,
        notes=notes,
        scope=switch.scope,
        state="armed",
        generation=switch.generation,
        deadline=now.tell_watched(switch.deadline_watched),
        seconds_left=seconds_left(switch, now),
        expect_within_seconds=switch.window_ms // 1000,
        on_expiry=switch.on_expiry,
        notify_address=switch.notify,
        nudge_seconds=seconds(switch.nudge_ms),
        wake_on_tasks=switch.wake_on_tasks,
        agent_id=switch.agent_id,
        fired=fired,
        fired_generation=switch.fired_generation,
        failed=switch.failed,
        warnings=warnings,
    )


def at_rest(
    scope: str, switch: Switch | None, now: Reading, notes: list[str], *, fired: bool = False
) -> HeartbeatResult:
    """Tell that no deadline is kept: ``switch`` is disarmed, or there is none."""
    return HeartbeatResult(
        server_time=now.server_time,
        notes=tuple(notes),
        scope=scope,
        state="unarmed" if switch is None else "disarmed",
        generation=0 if switch is None else switch.generation,
        deadline=None,
        seconds_left=None,
        expect_within_seconds=None,
        on_expiry=(),
        notify_address=None,
        nudge_seconds=None,
        wake_on_tasks=False,
        agent_id=None if switch is None else switch.agent_id,
        fired=fired,
        fired_generation=None if switch is None else switch.fired_generation,
        failed=switch is not None and switch.failed,
        warnings=(),
    )


def with_delivery(
    result: HeartbeatResult, *, alert: bool | None, nudge: bool | None, work: bool | None = None
) -> HeartbeatResult:
    """Add how an alert, a nudge and a wake for tasks would reach whom they are for (issue 4 §4).

    ``alert``: whether a server is connected that can wake whom the alert is for; ``nudge``,
    ``work``: the same for the beating agent itself; ``None``: not looked up.
    """
    notes = list(result.notes)
    delivery = result.alert_delivery
    if alert is not None and result.on_expiry is not UNSET and "queue_alert" in result.on_expiry:
        delivery = "push" if alert else "inbox"
        if not alert:
            notes.append(inbox_only(result.notify_address))
    if nudge is False and result.nudge_seconds:
        notes.append(
            "No server can wake you at present, so nudge_seconds has no effect: beat in time by "
            "yourself."
        )
    if work is False and result.wake_on_tasks:
        notes.append(
            "No server that can wake you for tasks is known at present, so do not count on "
            "wake_on_tasks: list_agent_tasks shows what can be claimed."
        )
    return msgspec.structs.replace(result, alert_delivery=delivery, notes=tuple(notes))


def inbox_only(address: object) -> str:
    """Say that an alert wakes nobody."""
    return (
        f"Nothing can wake {address} at present: the alert can only be collected with inbox_poll."
    )


def had_fired(before: Switch, now: Reading) -> str:
    """Say what the agent who comes back has to know of its own death."""
    done = []
    if "release_leases" in before.on_expiry:
        done.append("the leases of this scope were released, take them anew before you go on")
    if "mark_failed" in before.on_expiry:
        done.append("the work was marked failed")
    if "queue_alert" in before.on_expiry:
        done.append(f"an alert was queued for {before.notify}")
    return (
        f"Generation {before.generation} had fired, no beat having come before "
        f"{now.tell_watched(before.deadline_watched)}: {'; '.join(done)}."
    )


def without_effect(arguments: HeartbeatArguments) -> list[str]:
    """Name what was sent with ``disarm`` in vain, in a sentence if there is any."""
    names = ("on_expiry", "notify_address", "nudge_seconds", "wake_on_tasks")
    sent = [name for name in names if getattr(arguments, name) is not UNSET]
    if not sent:
        return []
    return [f"With disarm nothing is armed, so {' and '.join(sent)} had no effect."]


def seconds_left(switch: Switch, now: Reading) -> float:
    """How long (s) until it fires."""
    return max(0, switch.deadline_watched - now.watched) / 1000


def seconds(ms: int | None) -> int | None:
    """Whole seconds of milliseconds."""
    return None if ms is None else ms // 1000
