"""Any history of a box: its places hold, every alert is told, and only the newest token counts."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.watch import mail
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.mail import FOREIGN_RESERVED, PLACES, RESERVED, Fold
from mcpl_heartbeat.watch.rows import BoxLoad, Envelope
from tests.watch.mailing import acking, alert_mail, at, letter, nacking

STEPS = st.lists(
    st.one_of(
        st.sampled_from(["letter", "own", "own", "foreign", "foreign", "poll", "poll"]).map(
            lambda what: (what, 0)
        ),
        st.tuples(st.sampled_from(["ack", "ack", "bare ack", "nack"]), st.integers(0, 40)),
        st.tuples(st.just("wait"), st.integers(1, 20)),
    ),
    max_size=80,
)


class Box:
    """One box, with ``crowd`` letters in it that nobody reads."""

    def __init__(self, crowd: int) -> None:
        self.crowd = crowd
        self.ms = 0
        self.mail: dict[str, tuple[Envelope, bool]] = {}
        self.deliveries: list[tuple[str, str]] = []
        self.shown: dict[str, int] = {}
        """How many deaths the last delivery of each alert told."""
        self.sent_alerts = self.told_alerts = self.sent_letters = self.told_letters = 0

    def pending(self, *, alert: bool, own: bool | None = None) -> list[Envelope]:
        return [
            envelope
            for envelope, is_own in self.mail.values()
            if envelope.state == "pending"
            and (envelope.alert is not None) is alert
            and (own is None or own is is_own)
        ]

    def load(self) -> BoxLoad:
        alerts = self.pending(alert=True)
        return BoxLoad(
            pending=self.crowd + len(self.pending(alert=False)) + len(alerts),
            own_alerts=len(self.pending(alert=True, own=True)),
            foreign_alerts=len(self.pending(alert=True, own=False)),
            newest_alert=alerts[-1] if alerts else None,
            boxes=1,
        )

    def put(self, envelope: Envelope, own: bool) -> None:
        load = self.load()
        placed = mail.place(load, envelope, own=own)
        if isinstance(placed, Failure):
            assert envelope.kind == "message"
            return
        if isinstance(placed, Fold):
            placed, own = placed.envelope, self.mail[placed.envelope.task_id][1]
            assert placed.task_id == (load.newest_alert and load.newest_alert.task_id)
        self.mail[placed.task_id] = (placed, own)
        self.sent_alerts += envelope.kind == "alert"
        self.sent_letters += envelope.kind == "message"

    def keep(self, envelope: Envelope) -> None:
        self.mail[envelope.task_id] = (envelope, self.mail[envelope.task_id][1])

    def poll(self) -> None:
        waiting = [
            envelope
            for envelope, _ in self.mail.values()
            if envelope.state == "pending" and envelope.visible_at <= at(self.ms).real
        ]
        if not waiting:
            return
        envelope = min(waiting, key=lambda one: (one.alert is None, one.due_at))
        token = f"dt_{len(self.deliveries)}"
        held = mail.hand_out(envelope, 10_000, token, at(self.ms))
        self.keep(held)
        self.deliveries.append((held.task_id, token))
        self.shown[held.task_id] = deaths(held)

    def answer(self, what: str, which: int) -> None:
        if not self.deliveries:
            return
        name, token = self.deliveries[which % len(self.deliveries)]
        envelope = self.mail[name][0]
        newest = envelope.token == token
        if what == "nack":
            back, given = mail.nack(envelope, nacking(name, delivery_token=token), at(self.ms))
            assert newest or given.reason == "lost_delivery"
            if back is not None:
                self.keep(back)
            return
        shown = acking(name) if what == "bare ack" else acking(name, delivery_token=token)
        changed, result = mail.ack(envelope, shown, at(self.ms))
        if what != "bare ack" and not newest:
            assert (changed, result.reason) == (None, "lost_delivery")
        if changed is None:
            return
        assert envelope.state == "pending"
        self.keep(changed)
        if changed.alert is None:
            self.told_letters += 1
        else:
            assert self.shown[name] == deaths(changed), "acknowledged, but not told of"
            self.told_alerts += deaths(changed)

    def check(self) -> None:
        letters = self.crowd + len(self.pending(alert=False))
        foreign = len(self.pending(alert=True, own=False))
        alerts = self.pending(alert=True)
        assert letters <= PLACES - RESERVED
        assert letters + foreign <= PLACES - RESERVED + FOREIGN_RESERVED
        assert letters + len(alerts) <= PLACES
        assert self.told_alerts + sum(map(deaths, alerts)) == self.sent_alerts
        assert self.told_letters + letters - self.crowd == self.sent_letters


def deaths(envelope: Envelope) -> int:
    return 0 if envelope.alert is None else 1 + envelope.alert.folded


@pytest.mark.requirement(
    "watch.mail.places",
    "watch.mail.reserve",
    "watch.mail.folded",
    "watch.mail.folded-is-told",
    "watch.mail.never-lost",
    "watch.mail.token",
    "watch.mail.visibility",
)
@given(crowd=st.sampled_from([0, 900, 960, 966, 968]), steps=STEPS)
def test_no_history_of_a_box_loses_an_envelope(crowd: int, steps: list[tuple[str, int]]) -> None:
    box = Box(crowd)
    for number, (what, value) in enumerate(steps):
        name = f"t{number}"
        match what:
            case "letter":
                box.put(letter(name, box.ms), own=False)
            case "own" | "foreign":
                box.put(alert_mail(name, box.ms, scope=f"s{number}"), own=what == "own")
            case "poll":
                box.poll()
            case "wait":
                box.ms += value * 1000
            case _:
                box.answer(what, value)
        box.check()


@pytest.mark.requirement("watch.mail.reserve", "watch.mail.folded")
@given(
    crowd=st.integers(900, 968),
    own=st.lists(st.booleans(), min_size=60, max_size=140),
)
def test_a_storm_of_alerts_is_placed_or_counted_and_the_owner_keeps_a_share(
    crowd: int, own: list[bool]
) -> None:
    box = Box(crowd)
    for number, is_own in enumerate(own):
        box.put(alert_mail(f"t{number}", scope=f"s{number}"), own=is_own)
        box.check()
    stands_for = sum(map(deaths, box.pending(alert=True)))
    assert stands_for == len(own)
    placed_own = len(box.pending(alert=True, own=True))
    assert placed_own >= min(sum(own), FOREIGN_RESERVED)


@pytest.mark.requirement("watch.mail.ack")
@given(status=st.sampled_from(["done", "failed"]), times=st.integers(1, 4))
def test_an_ack_sent_again_is_answered_alike(status: Any, times: int) -> None:
    held = mail.hand_out(letter(), 10_000, "dt", at())
    asked = msgspec.structs.replace(acking(delivery_token="dt"), status=status)
    settled, first = mail.ack(held, asked, at())
    for _ in range(times):
        assert mail.ack(settled, asked, at()) == (None, first)
