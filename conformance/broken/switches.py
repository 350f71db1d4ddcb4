"""Servers whose dead-man switch fires at the wrong time, too often, or without what was asked."""

# Each mutant's sentence stands in its decorator.
# ruff: noqa: D103

from typing import Any

import sqlalchemy as sa
from msgspec import UNSET
from msgspec.structs import replace

from conformance.mutants import Patch, mutant
from mcpl_heartbeat.storage.store import clock, due, fires, identities, news, schema, sweep, work
from mcpl_heartbeat.storage.store import switches as kept
from mcpl_heartbeat.storage.store.store import Store
from mcpl_heartbeat.watch import beats, switches
from mcpl_heartbeat.watch import mail as boxes
from mcpl_heartbeat.watch.switches import Event, State

_WHO_LOOKS = (due, fires, sweep, switches)
"""The modules that ask whether a switch is due."""


@mutant(
    "A switch fires half a second before its deadline.",
    caught_by={"watch/at-the-very-deadline": "A tenth of a second before."},
)
def fires_early(patch: Patch) -> None:
    def early(switch: Any, now: Any) -> bool:
        return bool(switch.state == "armed" and switch.deadline_watched - 500 <= now.watched)

    for module in _WHO_LOOKS:
        patch(module, "is_due", early)


@mutant(
    "A switch is late only when a sweep finds it so: a beat that comes first hides the death.",
    caught_by={"watch/at-the-very-deadline": "In the very millisecond of the deadline."},
)
def late_only_when_swept(patch: Patch) -> None:
    def lenient(tx: Any, keys: Any) -> Any:
        found = kept.load(tx, keys)
        for key, switch in found.switches.items():
            if switch.state == "armed" and switch.deadline_watched <= tx.now.watched:
                found.switches[key] = replace(switch, deadline_watched=tx.now.watched + 1)
        return found

    patch(due, "settle", lenient)


@mutant(
    "A look does not fire what is due, and shows it armed.",
    caught_by={"watch/at-the-very-deadline": "A look fires it, too."},
)
def looks_do_not_settle(patch: Patch) -> None:
    for hand in ("LOOKING", "WRITING"):
        patch(work, hand, replace(getattr(work, hand), switches=kept.load))


@mutant(
    "A switch fires again each time its window has passed once more.",
    caught_by={"watch/dead-once": "It was taken, though nobody has read it."},
)
def fires_again_and_again(patch: Patch) -> None:
    fire = switches.fire

    def repeating(switch: Any, *rest: Any) -> Any:
        fired = fire(switch, *rest)
        again = replace(
            fired.switch,
            state="armed",
            generation=switch.generation + 1,
            deadline_watched=switch.deadline_watched + switch.window_ms,
        )
        return replace(fired, switch=again)

    patch(fires, "fire", repeating)


@mutant(
    "A restart arms what had fired.",
    caught_by={"watch/dead-once": "A restart is no death."},
)
def restart_arms_the_fired(patch: Patch) -> None:
    begin = Store.open
    column = schema.switches.c
    anew = sa.update(schema.switches).values(
        state="armed", generation=column.generation + 1, check_watched=0
    )

    def opening(self: Any) -> Any:
        opened = begin(self)
        self._transactions.write(lambda tx: tx.conn.execute(anew))
        return opened

    patch(Store, "open", opening)


@mutant(
    "Time in which nobody watched counts against the living.",
    caught_by={"watch/nobody-watched": '"quiet":55'},
)
def gaps_count(patch: Patch) -> None:
    tick = clock.tick
    patch(clock, "tick", lambda row, sample, memory, *gap: tick(row, sample, memory, 10**15))


@mutant(
    "After a sleep a switch fires before its agent can beat.",
    caught_by={"watch/a-minute-after-the-sleep": "Ten seconds were left, and a minute is given."},
)
def no_chance_after_a_gap(patch: Patch) -> None:
    patch(sweep, "after_gap", lambda tx: None)


@mutant(
    "A beat that finds its switch fired is not told so.",
    caught_by={"watch/it-dies-and-is-told": '"fired_generation":1'},
)
def fire_unsaid(patch: Patch) -> None:
    armed = beats.armed

    def silent(*args: Any, fired: bool = False) -> Any:
        return armed(*args, fired=False)

    patch(beats, "armed", silent)


@mutant(
    "A beat without on_expiry puts the actions back to the default, and the alert is lost.",
    caught_by={"watch/a-bare-beat": "A bare beat."},
)
def bare_beat_drops_the_alert(patch: Patch) -> None:
    actions = beats.actions
    patch(beats, "actions", lambda current, arguments: actions(None, arguments))


@mutant(
    "A new generation does what the one before was to do.",
    caught_by={"watch/a-bare-beat": "A new generation takes nothing over."},
)
def generation_inherits(patch: Patch) -> None:
    arm = switches._arm

    def inheriting(before: Any, namespace: str, arguments: Any, *rest: Any) -> Any:
        beaten = arm(before, namespace, arguments, *rest)
        if before is None or beaten.switch is None:
            return beaten
        switch = replace(beaten.switch, on_expiry=before.on_expiry, notify=before.notify)
        told = replace(beaten.result, on_expiry=before.on_expiry, notify_address=before.notify)
        return replace(beaten, switch=switch, result=told)

    patch(switches, "_arm", inheriting)


@mutant(
    "A beat does not move the deadline.",
    caught_by={"watch/a-bare-beat": "The first deadline has been moved."},
)
def beat_moves_nothing(patch: Patch) -> None:
    beaten = switches._beaten

    def idle(before: Any, *rest: Any) -> Any:
        return replace(beaten(before, *rest), deadline_watched=before.deadline_watched)

    patch(switches, "_beaten", idle)


@mutant(
    "A disarmed switch keeps its deadline, and dies of it.",
    caught_by={"watch/finished-in-time": "Finished work dies of nothing."},
)
def disarm_keeps_the_deadline(patch: Patch) -> None:
    table = {**switches.TABLE, (State.ARMED, Event.DISARM): State.ARMED}
    patch(switches, "TABLE", table)


@mutant(
    "Generations begin anew after a fire.",
    caught_by={"watch/it-dies-and-is-told": '"fired_generation":1'},
)
def generation_begins_anew(patch: Patch) -> None:
    arm = switches._arm

    def first(*args: Any) -> Any:
        beaten = arm(*args)
        assert beaten.switch is not None
        return replace(
            beaten,
            switch=replace(beaten.switch, generation=1),
            result=replace(beaten.result, generation=1),
        )

    patch(switches, "_arm", first)


# What a fire does ---------------------------------------------------------------------------------


def _fire(patch: Patch, change: Any) -> None:
    """Have ``change`` make another thing of what a fire does."""
    fire = switches.fire
    patch(fires, "fire", lambda *args: change(fire(*args)))


@mutant(
    "An alert does not say what the fire freed.",
    caught_by={"watch/it-dies-and-is-told": '"push"', "watch/only-its-own-leases": "One was freed"},
)
def alert_without_what_was_freed(patch: Patch) -> None:
    _fire(
        patch,
        lambda fired: replace(
            fired, alert=None if fired.alert is None else replace(fired.alert, released=())
        ),
    )


@mutant(
    "The mark of failed work is kept nowhere.",
    caught_by={"watch/only-its-own-leases": '"fires":1,"failed":true'},
)
def mark_forgotten(patch: Patch) -> None:
    _fire(patch, lambda fired: replace(fired, switch=replace(fired.switch, failed=False)))


@mutant(
    "A disarm takes back the mark of failed work.",
    caught_by={"watch/only-its-own-leases": "No disarm takes the mark back."},
)
def disarm_takes_the_mark_back(patch: Patch) -> None:
    disarm = switches._disarm

    def forgiving(*args: Any) -> Any:
        beaten = disarm(*args)
        switch = None if beaten.switch is None else replace(beaten.switch, failed=False)
        return replace(beaten, switch=switch, result=replace(beaten.result, failed=False))

    patch(switches, "_disarm", forgiving)


@mutant(
    "A fire leaves the leases of its scope as they are, and lists them as freed.",
    caught_by={
        "watch/it-dies-and-is-told": '"acquired":true,"generation":2',
        "watch/only-its-own-leases": '"acquired":true,"generation":2',
    },
)
def leases_not_freed(patch: Patch) -> None:
    _fire(patch, lambda fired: replace(fired, leases=()))


@mutant(
    "An alert does not say where to resume.",
    caught_by={"watch/it-dies-and-is-told": '"push"'},
)
def alert_without_a_way_on(patch: Patch) -> None:
    patch(switches, "resume_point", lambda checkpoint, now: None)


@mutant(
    "An alert goes to an address that nobody has, which is found out at the death.",
    caught_by={"watch/nobody-at-that-address": '"code":"not_registered"'},
)
def any_address_taken(patch: Patch) -> None:
    patch(identities, "registered", lambda tx, agents: set(agents))


# Telling ------------------------------------------------------------------------------------------


@mutant(
    "An alert that the host has taken is pushed again.",
    caught_by={"watch/dead-once": "A restart is no death."},
)
def taken_alert_pushed_again(patch: Patch) -> None:
    pushed = news.pushed

    def untaken(tx: Any, token: str, seqs: Any, *, taken: bool) -> None:
        pushed(tx, token, seqs, taken=False)

    patch(news, "pushed", untaken)


@mutant(
    "An alert that the host refused is not pushed again.",
    caught_by={"watch/refused-and-sent-again": '"eventId":{"$ref":"first"}'},
)
def refused_alert_forgotten(patch: Patch) -> None:
    pushed = news.pushed

    def settled(tx: Any, token: str, seqs: Any, *, taken: bool) -> None:
        pushed(tx, token, seqs, taken=True)

    patch(news, "pushed", settled)


@mutant(
    "Each of many deaths is a push of its own.",
    caught_by={"watch/many-die-at-once": '"count":5'},
)
def a_push_for_each_death(patch: Patch) -> None:
    claim = news._claim

    def one(tx: Any, query: Any, agent: str, token: str, most: int) -> Any:
        return claim(tx, query, agent, token, min(most, 1))

    patch(news, "_claim", one)


# Mail ---------------------------------------------------------------------------------------------


@mutant(
    "What one reader has in hand is handed to the next as well.",
    caught_by={"watch/mail-in-hand": "Still in hand."},
)
def mail_in_two_hands(patch: Patch) -> None:
    hand_out = boxes.hand_out

    def open_handed(envelope: Any, visibility_ms: int, *rest: Any) -> Any:
        return hand_out(envelope, 0, *rest)

    patch(boxes, "hand_out", open_handed)


@mutant(
    "What was handed out once does not come again.",
    caught_by={"watch/mail-in-hand": "That hand was too slow."},
)
def mail_lost_in_hand(patch: Patch) -> None:
    hand_out = boxes.hand_out

    def final(envelope: Any, visibility_ms: int, *rest: Any) -> Any:
        return hand_out(envelope, 10**12, *rest)

    patch(boxes, "hand_out", final)


@mutant(
    "A reader that was too slow acknowledges what another has in hand.",
    caught_by={"watch/mail-in-hand": "And cannot take it from the next."},
)
def old_token_acknowledges(patch: Patch) -> None:
    refused = boxes._unknown_or_lost

    def tokenless(envelope: Any, token: Any) -> Any:
        return refused(envelope, UNSET)

    patch(boxes, "_unknown_or_lost", tokenless)


@mutant(
    "What was acknowledged comes again.",
    caught_by={"watch/mail-in-hand": "Gone for good."},
)
def acknowledged_comes_again(patch: Patch) -> None:
    ack = boxes.ack

    def forgetful(envelope: Any, *rest: Any) -> Any:
        return None, ack(envelope, *rest)[1]

    patch(boxes, "ack", forgetful)
