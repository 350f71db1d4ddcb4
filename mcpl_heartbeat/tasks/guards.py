"""The guard of a claim: a dead-man switch of its own, whose window is the lease. Pure.

It is armed by the claim, beaten with it, and disarmed when the claim ends in any way but its fire.
Whoever disarms it by hand meanwhile has ended that generation, not the guard: the next heartbeat of
the task arms it again, with what the claim had it do at expiry, and says so.
"""

import msgspec
from msgspec import UNSET

from mcpl_heartbeat.tasks.arguments import ClaimAgentTaskArguments
from mcpl_heartbeat.tasks.rows import Task, guard_scope
from mcpl_heartbeat.watch.arguments import HeartbeatArguments
from mcpl_heartbeat.watch.rows import DEFAULT_ACTIONS, Action, Switch


class Down(msgspec.Struct, frozen=True):
    """A guard that keeps no deadline: how it is armed again, and what there is to say of it."""

    on_expiry: tuple[Action, ...]
    notify: str | None
    note: str


def arm(task: Task, arguments: ClaimAgentTaskArguments) -> HeartbeatArguments:
    """The call of ``heartbeat`` that arms the guard of a claim, for as long as its lease.

    It names what is done at expiry in any case, so that nothing is taken over from whoever may
    have beaten this scope before.
    """
    assert arguments.guard is not UNSET
    on_expiry = arguments.guard.on_expiry
    return HeartbeatArguments(
        scope=guard_scope(task.id),
        expect_within_seconds=task.lease_ms // 1000,
        on_expiry=list(DEFAULT_ACTIONS) if on_expiry is UNSET else on_expiry,
        notify_address=arguments.guard.notify_address,
        agent_id=arguments.agent_id,
    )


def beat(task: Task, down: Down | None) -> HeartbeatArguments:
    """The call that beats the guard with its claim, or arms it again where it is ``down``."""
    plain = HeartbeatArguments(
        scope=guard_scope(task.id), expect_within_seconds=task.lease_ms // 1000
    )
    if down is None:
        return plain
    return msgspec.structs.replace(
        plain,
        on_expiry=list(down.on_expiry),
        notify_address=UNSET if down.notify is None else down.notify,
        agent_id=UNSET if task.agent_id is None else task.agent_id,
    )


def down(task: Task, switch: Switch | None, *, registered: bool) -> Down | None:
    """Say whether the guard of a claimed ``task`` keeps no deadline, and what follows.

    ``switch`` is that of its scope, if it can be read; ``registered``: whether the address that it
    notifies is still somebody's. One that an earlier claim left behind counts for nothing: each
    claim beats its guard at least once, even one that somebody had armed before it.
    """
    if switch is None or switch.last_beat_at < (task.claimed_at or 0):
        return Down(
            DEFAULT_ACTIONS,
            None,
            "What the guard of this claim was to do at expiry is not known any more: it is armed "
            f"again with {', '.join(DEFAULT_ACTIONS)}. For anything else, release the task and "
            "claim it again.",
        )
    if switch.state == "armed":
        return None
    actions, notify, lost = switch.on_expiry, switch.notify, ""
    if notify is not None and not registered:
        # There is something that every switch does.
        rest = tuple(action for action in actions if action != "queue_alert")
        actions = rest or DEFAULT_ACTIONS
        lost = f", but without its alert, for nobody is registered at {notify} any more"
        notify = None
    to = "" if notify is None else f" to {notify}"
    return Down(
        actions,
        notify,
        f"The guard of this claim had been disarmed; it is armed again as it was{lost}: "
        f"{', '.join(actions)}{to}.",
    )
