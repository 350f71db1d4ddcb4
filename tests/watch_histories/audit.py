"""What has to hold in any store, whatever was done to it: looked at from outside, as rows."""

import json
from collections import Counter, defaultdict
from typing import Any

import sqlalchemy as sa

from tests.watch_histories.facts import expect, freed

Row = dict[str, Any]


class Shelf:
    """All rows of a store."""

    def __init__(self, url: str) -> None:
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        with engine.connect() as conn:
            self.switches = self._rows(conn, "switches")
            self.identities = self._rows(conn, "identities")
            self.leases = self._rows(conn, "leases")
            self.envelopes = self._rows(conn, "envelopes")
            self.gaps = self._rows(conn, "gaps ORDER BY began")
            self.journal = self._rows(conn, "journal ORDER BY seq")
        engine.dispose()
        for entry in self.journal:
            entry["detail"] = json.loads(entry["detail"])
        for envelope in self.envelopes:
            envelope["alert"] = json.loads(envelope["alert"]) if envelope["alert"] else None

    @staticmethod
    def _rows(conn: sa.Connection, table: str) -> list[Row]:
        return [dict(row) for row in conn.execute(sa.text(f"SELECT * FROM {table}")).mappings()]

    def fires(self) -> list[Row]:
        """The journal's entries of fires."""
        return [entry for entry in self.journal if entry["kind"] == "fired"]


def audit(url: str) -> Shelf:
    """One fire a generation, one alert a fire, each fire whole; the rows, to look further."""
    shelf = Shelf(url)
    fires = shelf.fires()
    once = Counter((f["namespace"], f["scope"], f["generation"]) for f in fires)
    expect("fired twice", [key for key, count in once.items() if count > 1], [])
    of: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for fire in fires:
        of[fire["namespace"], fire["scope"]].append(fire)
    for switch in shelf.switches:
        key = (switch["namespace"], switch["scope"])
        mine = of[key]
        expect(f"fires of {key}", switch["fires"], len(mine))
        if mine:
            last = mine[-1]
            expect("last fire", switch["fired_generation"], last["generation"])
            marked = "mark_failed" in last["detail"]["on_expiry"]
            expect(f"mark of {key}", bool(switch["failed"]), marked)
            expect("mark in the journal", last["detail"]["marked_failed"], marked)
    _alerts(shelf, fires)
    _leases(shelf, fires)
    _gaps(shelf)
    return shelf


def _alerts(shelf: Shelf, fires: list[Row]) -> None:
    alerts = {
        (e["of_namespace"], e["of_scope"], e["of_generation"]): e
        for e in shelf.envelopes
        if e["kind"] == "alert"
    }
    expect(
        "alerts, each of one fire", len(alerts), sum(e["kind"] == "alert" for e in shelf.envelopes)
    )
    folded = sum(alert["alert"].get("folded", 0) for alert in alerts.values())
    missing = 0
    for fire in fires:
        key = (fire["namespace"], fire["scope"], fire["generation"])
        wanted = "queue_alert" in fire["detail"]["on_expiry"]
        if wanted and key not in alerts:
            missing += 1
        if not wanted:
            expect(f"an alert that nobody wanted, of {key}", key in alerts, False)
        if wanted and key in alerts:
            told = alerts.pop(key)["alert"]
            expect("freed, in alert and journal", freed(told["released"]), _freed(fire))
        alerts.pop(key, None)
    expect("alerts without a fire", list(alerts), [])
    expect("alerts that found no place", missing, folded)


def _freed(fire: Row) -> frozenset[tuple[str, str, int]]:
    return freed(fire["detail"]["released"])


def _leases(shelf: Shelf, fires: list[Row]) -> None:
    now = {(lease["namespace"], lease["key"]): lease for lease in shelf.leases}
    freed_once: Counter[tuple[str, str, int]] = Counter()
    for fire in fires:
        for key, _, generation in _freed(fire):
            lease = now[fire["namespace"], key]
            freed_once[fire["namespace"], key, generation] += 1
            still = lease["held"] and lease["generation"] <= generation
            expect(f"{key} held though a fire freed it", bool(still), False)
    expect("freed twice", [key for key, count in freed_once.items() if count > 1], [])


def _gaps(shelf: Shelf) -> None:
    cut = 0
    for gap in shelf.gaps:
        expect("cut of a gap", gap["cut"], cut)
        cut += gap["ended"] - gap["began"]
