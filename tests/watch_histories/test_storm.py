"""Ten thousand deaths at once: all of them fire, in bounded steps, and nobody else waits."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.watch_histories.audit import audit
from tests.watch_histories.fileclock import FileClock
from tests.watch_histories.history import History
from tests.watch_histories.worker import Server

COUNT, MOST = 10_000, 200
ALL = ["release_leases", "mark_failed", "queue_alert"]


def copy(url: str, scope: str, count: int) -> None:
    """Arm as many more switches, whose deadlines are spread over a second."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as conn:
        columns = [column["name"] for column in sa.inspect(conn).get_columns("switches")]
        values = {"scope": "printf('dies-%05d', i)"}
        for name in ("deadline_watched", "check_watched"):
            values[name] = f"{name} + (i * 7919) % 1000"
        chosen = ", ".join(values.get(name, name) for name in columns)
        conn.exec_driver_sql(
            "WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers "
            f"WHERE i < {count}) INSERT INTO switches ({', '.join(columns)}) "
            f"SELECT {chosen} FROM numbers, switches WHERE scope = '{scope}'"
        )


@pytest.mark.requirement("watch.switch.storm")
def test_ten_thousand_due_at_once_fire_in_bounded_sweeps_with_beats_between(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    clock = FileClock.make(tmp_path / "clock")
    history = History(url, clock, tmp_path, seed=0)
    server = Server(url, clock, tmp_path / "storm.log")
    assert server.open()
    history.begin(server)
    alert = {"on_expiry": ALL, "notify_address": history.addresses[1]}
    server.call(("heartbeat", 0, {"scope": "dies", "expect_within_seconds": 2, **alert}))
    copy(url, "dies", COUNT - 1)
    clock.advance(900)
    server.call(("heartbeat", 0, {"scope": "lives", "expect_within_seconds": 30, **alert}))
    server.store.sweep(MOST)
    clock.advance(2_100)

    fired = sweeps = 0
    more = True
    while more:
        swept = server.store.sweep(MOST)
        assert swept.fired <= MOST
        fired, more, sweeps = fired + swept.fired, swept.more, sweeps + 1
        beats = server.call(
            ("heartbeat", 0, {"scope": "lives", "expect_within_seconds": 30}),
            # Late too, but the sweep has not come to it: it fires by its own beat.
            ("heartbeat", 0, {"scope": f"dies-{sweeps:05}", "expect_within_seconds": 30}),
        )
        assert beats
        assert [beat["state"] for beat in beats] == ["armed", "armed"]
        assert [beat["fired"] for beat in beats] == [False, True]
    server.close()

    shelf = audit(url)
    fires = shelf.fires()
    assert len(fires) == COUNT
    assert fired > COUNT - 2 * sweeps
    # No box takes more than it may, and not one of the alerts is lost for it.
    alerts = [envelope["alert"] for envelope in shelf.envelopes if envelope["kind"] == "alert"]
    assert len(alerts) <= 1_000
    assert len(alerts) + sum(alert.get("folded", 0) for alert in alerts) == COUNT
    # The longest late come first.
    late = [sorted(group) for group in batches(fires)]
    assert all(before[-1] <= after[0] for before, after in itertools.pairwise(late))


def batches(fires: list[dict[str, Any]]) -> list[list[str]]:
    """The true deadlines, as many at a time as a sweep fires."""
    deadlines = [
        fire["detail"]["deadline"]
        for fire in fires
        if not 1 <= int(fire["scope"].removeprefix("dies").removeprefix("-") or 0) <= COUNT // 100
    ]
    return [deadlines[first : first + MOST] for first in range(0, len(deadlines), MOST)]
