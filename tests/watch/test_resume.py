"""The briefing: the checkpoint's word beside what the server saw itself."""

from typing import Any

import msgspec
import pytest

from mcpl_heartbeat.watch import resume, switches
from mcpl_heartbeat.watch.arguments import HeartbeatArguments
from mcpl_heartbeat.watch.clock import Gap, Reading
from mcpl_heartbeat.watch.results import HeldTaskView, ResumePacketResult
from mcpl_heartbeat.watch.rows import Checkpoint, Entry, Lease, Switch
from mcpl_heartbeat.watch.switches import Beaten
from tests.watch.mailing import START, at, letter

CHECKPOINT = Checkpoint(
    namespace="ns",
    scope="s",
    version=4,
    saved_at=START,
    content={"objective": "review", "next_action": "open 17", "files": ["a"], "body": [1]},
)


HELD = HeldTaskView(
    id="t", status="claimed", execution_epoch=1, agent_id=None, lease_expires_at="soon"
)


class Life:
    """A switch that lives, and the journal it leaves."""

    def __init__(self) -> None:
        self.switch: Switch | None = None
        self.entries: list[Entry] = []

    def call(self, now: Reading, *, disarm: bool = False, **arguments: Any) -> None:
        asked = HeartbeatArguments(scope="s", expect_within_seconds=60, disarm=disarm, **arguments)
        outcome = switches.beat(self.switch, "ns", asked, now)
        assert isinstance(outcome, Beaten)
        self.switch = outcome.switch or self.switch
        self.entries += outcome.entries

    def fire(self, now: Reading, *scoped: Lease) -> None:
        assert self.switch is not None
        fired = switches.fire(self.switch, scoped, 2, None, now)
        self.switch = fired.switch
        self.entries += fired.entries

    def packet(self, now: Reading, **more: Any) -> ResumePacketResult:
        return packet(now, switch=self.switch, entries=self.entries, **more)


def lease(key: str = "db", **changes: Any) -> Lease:
    row = Lease(
        namespace="ns", key=key, holder="w", scope="s", fence="f-secret", generation=7,
        expires_watched=START + 90_000,
    )  # fmt: skip
    return msgspec.structs.replace(row, **changes)


def packet(now: Reading, **parts: Any) -> ResumePacketResult:
    given = {
        "scope": "s",
        "switch": None,
        "checkpoint": None,
        "leases": (),
        "arrivals": (),
        "arrivals_total": len(parts.get("arrivals", ())),
        "entries": (),
        "tail": 20,
        "gaps": (),
        **parts,
    }
    return resume.packet(**given, now=now)


@pytest.mark.requirement("watch.resume.empty")
def test_an_empty_scope_says_so() -> None:
    result = packet(at())
    assert (result.empty, result.known) == (True, False)
    assert (result.objective, result.next_action, result.checkpoint) == (None, None, None)
    assert (result.switch, result.failed, result.recovered) == (None, False, False)
    assert (result.deaths, result.leases, result.arrivals, result.journal) == ((), (), (), ())
    assert len(result.notes) == 1
    assert result.notes[0].startswith("This namespace has no such scope")
    assert "spelling" in result.notes[0]


@pytest.mark.requirement("watch.resume.empty")
@pytest.mark.parametrize(
    "part",
    [
        {"checkpoint": CHECKPOINT},
        {"leases": [lease()]},
        {"tasks": [HELD]},
        {"entries": [Entry(namespace="ns", scope="s", at=START, kind="checkpoint")]},
    ],
)
def test_whatever_is_known_makes_it_not_empty(part: dict[str, Any]) -> None:
    result = packet(at(), **part)
    assert (result.empty, result.known, result.notes) == (False, True, ())


@pytest.mark.requirement("watch.resume.others")
def test_a_scope_of_which_only_mail_tells_is_none_of_this_namespace() -> None:
    result = packet(at(), arrivals=[letter()])
    assert (result.empty, result.known) == (False, False)
    (note,) = result.notes
    assert "no such scope" in note
    assert "its alert tells where to resume" in note
    assert "spelling" not in note


@pytest.mark.requirement("watch.resume.packet")
def test_the_packet_holds_the_checkpoint_leases_mail_gaps_and_journal() -> None:
    gaps = (Gap(START - 5_000, START - 2_500, 0),)
    held = lease()
    lapsed, let_go = lease("old", expires_watched=START), lease("gone", held=False)
    life = Life()
    life.call(at())
    result = life.packet(
        at(1_000),
        checkpoint=CHECKPOINT,
        leases=[held, lapsed, let_go],
        arrivals=[letter("t9", scope="s")],
        arrivals_total=12,
        gaps=gaps,
    )
    assert (result.scope, result.objective, result.next_action) == ("s", "review", "open 17")
    assert result.checkpoint == {
        **CHECKPOINT.content,
        "version": 4,
        "saved_at": "2026-09-21T14:13:20.000Z",
    }
    assert life.switch is not None
    assert result.switch == switches.view(life.switch, at(1_000))
    assert [msgspec.to_builtins(view) for view in result.leases or ()] == [
        {"key": "db", "holder": "w", "generation": 7, "expires_at": "2026-09-21T14:14:50.000Z"}
    ]
    assert "f-secret" not in msgspec.json.encode(result).decode()
    assert [msgspec.to_builtins(view) for view in result.arrivals or ()] == [
        {
            "task_id": "t9",
            "box": "inbox",
            "kind": "message",
            "objective": "look",
            "sent_at": "2026-09-21T14:13:20.000Z",
        }
    ]
    assert result.arrivals_total == 12
    assert [msgspec.to_builtins(view) for view in result.watch_gaps or ()] == [
        {
            "began_at": "2026-09-21T14:13:15.000Z",
            "ended_at": "2026-09-21T14:13:17.500Z",
            "seconds": 2.5,
        }
    ]
    (line,) = result.journal or ()
    assert (line.kind, line.generation, line.at) == ("armed", 1, "2026-09-21T14:13:20.000Z")


@pytest.mark.requirement("watch.resume.packet")
@pytest.mark.parametrize(("tail", "shown"), [(0, 0), (1, 1), (3, 3), (20, 5)])
def test_the_tail_of_the_journal_is_shown(tail: int, shown: int) -> None:
    entries = [
        Entry(namespace="ns", scope="s", at=START + n, kind="checkpoint", detail={"n": n})
        for n in range(5)
    ]
    result = packet(at(), entries=entries, tail=tail)
    assert [line.detail["n"] for line in result.journal or ()] == list(range(5))[5 - shown :]


@pytest.mark.requirement("watch.resume.observed-death")
def test_a_death_is_told_with_its_true_deadline_and_when_it_was_noticed() -> None:
    life = Life()
    life.call(at(), agent_id="w3", on_expiry=["release_leases", "mark_failed"])
    life.fire(at(75_000), lease())
    result = life.packet(at(80_000))
    assert (result.failed, result.recovered) == (True, False)
    (death,) = result.deaths or ()
    assert msgspec.to_builtins(death) == {
        "generation": 1,
        "agent_id": "w3",
        "last_beat_at": "2026-09-21T14:13:20.000Z",
        "deadline": "2026-09-21T14:14:20.000Z",
        "noticed_at": "2026-09-21T14:14:35.000Z",
        "marked_failed": True,
        "released": ({"key": "db", "holder": "w", "generation": 7},),
        "released_count": 1,
        "released_tasks": (),
        "released_tasks_count": 0,
        "unreachable": 2,
        "recovered_at": None,
    }


@pytest.mark.requirement("watch.resume.recovered")
def test_a_beat_after_a_death_is_a_recovery() -> None:
    life = Life()
    life.call(at())
    life.fire(at(60_000))
    life.call(at(61_000))
    result = life.packet(at(62_000))
    assert (result.failed, result.recovered) == (False, True)
    assert [death.recovered_at for death in result.deaths or ()] == ["2026-09-21T14:14:21.000Z"]
    life.fire(at(121_000))
    result = life.packet(at(122_000))
    assert (result.failed, result.recovered) == (True, False)
    assert [death.recovered_at for death in result.deaths or ()] == [
        "2026-09-21T14:14:21.000Z",
        None,
    ]


@pytest.mark.requirement("watch.resume.recovered")
def test_disarming_a_dead_switch_leaves_the_work_failed() -> None:
    life = Life()
    life.call(at())
    life.fire(at(60_000))
    life.call(at(61_000), disarm=True)
    result = life.packet(at(62_000))
    assert (result.failed, result.recovered) == (True, False)
    life.call(at(63_000))
    life.call(at(64_000), disarm=True)
    result = life.packet(at(65_000))
    assert (result.failed, result.recovered) == (False, True)
    assert [death.recovered_at for death in result.deaths or ()] == ["2026-09-21T14:14:23.000Z"]


@pytest.mark.requirement("watch.resume.observed-death")
def test_a_death_that_marks_nothing_is_seen_all_the_same() -> None:
    life = Life()
    life.call(at(), on_expiry=["release_leases"])
    life.fire(at(60_000))
    result = life.packet(at(61_000))
    assert (result.failed, result.recovered) == (False, False)
    assert [death.marked_failed for death in result.deaths or ()] == [False]


@pytest.mark.requirement("watch.resume.recovered")
def test_the_standing_outlives_the_journal_and_the_journal_a_damaged_switch() -> None:
    life = Life()
    life.call(at())
    life.fire(at(60_000))
    forgotten = packet(at(61_000), switch=life.switch)
    assert (forgotten.failed, forgotten.recovered, forgotten.deaths) == (True, False, ())
    damaged = packet(at(61_000), entries=life.entries)
    assert (damaged.failed, damaged.recovered) == (True, False)
    life.call(at(62_000))
    damaged = packet(at(63_000), entries=life.entries)
    assert (damaged.failed, damaged.recovered) == (False, True)


@pytest.mark.requirement("watch.resume.damaged-line")
def test_a_damaged_line_costs_only_itself_and_is_said() -> None:
    life = Life()
    life.call(at())
    life.fire(at(60_000))
    torn = msgspec.structs.replace(life.entries[-1], detail={"deadline": 5})
    result = life.packet(at(61_000))
    assert result.notes == ()
    life.entries.append(torn)
    result = life.packet(at(61_000))
    assert len(result.deaths or ()) == 1
    assert result.notes == ("Deaths left out because their line of the journal is damaged: 1.",)


@pytest.mark.requirement("watch.resume.packet")
def test_only_the_newest_deaths_are_told() -> None:
    life = Life()
    for number in range(25):
        life.call(at(number * 100_000))
        life.fire(at(number * 100_000 + 60_000))
    result = life.packet(at(3_000_000))
    assert [death.generation for death in result.deaths or ()] == list(range(6, 26))
    assert result.notes == ("Of 25 deaths the last 20 are shown.",)
