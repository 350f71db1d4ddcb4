"""A fire that frees very many: what it names has a bound, what it counts has none."""

from typing import Any

import msgspec
import pytest

from mcpl_heartbeat.watch import mail, resume, switches, texts
from mcpl_heartbeat.watch.results import HeldTaskView
from mcpl_heartbeat.watch.rows import LISTED, Alert, Entry, Freed, FreedTask, Lease
from tests.watch.mailing import alert, alert_mail
from tests.watch.switching import ADDRESS, ALL, NAMESPACE, SCOPE, START, armed, at

pytestmark = pytest.mark.requirement("watch.switch.named-and-counted")

MANY = 3_000
LATE = at(60_000)
LEASES = tuple(
    Lease(
        namespace=NAMESPACE,
        key=f"k{n:04}",
        holder="h",
        scope=SCOPE,
        fence="f",
        generation=n,
        expires_watched=START + 3_600_000,
    )
    for n in range(MANY)
)
TASKS = tuple(FreedTask(id=f"t{n:04}", execution_epoch=2, agent_id="w") for n in range(MANY))


def fire(leases: int, tasks: int) -> switches.Fired:
    switch = armed(at(), on_expiry=ALL, notify_address=ADDRESS)
    return switches.fire(switch, LEASES[:leases], 0, None, LATE, TASKS[:tasks])


def alert_of(fired: switches.Fired) -> Alert:
    assert fired.alert is not None
    return fired.alert


def packet(entries: tuple[Entry, ...], **more: Any) -> Any:
    given = {"leases": (), **more}
    return resume.packet(
        SCOPE, None, None, given.pop("leases"), (), 0, entries, 10, (), LATE, **given
    )


@pytest.mark.parametrize(("leases", "tasks"), [(LISTED, LISTED + 1), (MANY, MANY), (0, MANY)])
def test_all_are_freed_and_counted_and_the_first_are_named(leases: int, tasks: int) -> None:
    fired = fire(leases, tasks)
    assert len(fired.leases) == leases
    made = alert_of(fired)
    shown = mail.view(mail.alert_envelope(made, ("a", "inbox"), "s", "t", LATE), LATE)
    (entry,) = fired.entries
    (death,) = packet(fired.entries).deaths
    for told in (shown, death):
        assert [each["key"] for each in told.released] == [
            lease.key for lease in LEASES[: min(leases, LISTED)]
        ]
        assert [each["id"] for each in told.released_tasks] == [
            task.id for task in TASKS[: min(tasks, LISTED)]
        ]
        assert (told.released_count, told.released_tasks_count) == (leases, tasks)
    assert len(entry.detail["released"]) == min(leases, LISTED)
    assert entry.detail["released_count"] == leases
    assert entry.detail["released_tasks_count"] == tasks
    kept = msgspec.json.encode(made)
    assert len(kept) < 20_000
    assert msgspec.json.decode(kept, type=Alert) == made


def test_the_words_count_all_of_them_and_say_where_the_rest_is_to_be_seen() -> None:
    made = alert_of(fire(MANY, MANY))
    said = texts.alert_objective(made)
    assert "Freed 3000 leases: " in said
    assert "Back in the queue: 3000 tasks" in said
    assert said.count(" and 2995 more.") == 2
    assert "The first 100 of these are named in released;" in said
    assert "list_agent_tasks, status available" in said
    whole = texts.alert_objective(alert_of(fire(LISTED, LISTED)))
    assert "The first" not in whole
    assert "list_agent_tasks" not in whole
    late = alert_of(fire(MANY, MANY))
    resolved = msgspec.structs.replace(late, resolution="recovered", resolved_at="T")
    assert texts.alert_objective(resolved).count(" and 2995 more.") == 2
    both = [alert_mail(), alert_mail("t2", released_tasks=TASKS[:1], released_tasks_more=2_999)]
    pushed = texts.alert_push_text(both, 2, "NOW")
    assert "Freed by them: 2 leases; tasks given back: 3000;" in pushed
    assert "3000 leases freed; 3000 tasks given back; " in texts.text_of(
        "resume_packet", packet(fire(MANY, MANY).entries)
    )


def test_what_was_kept_before_there_was_a_bound_is_read_and_shown_alike() -> None:
    freed = [Freed(key=lease.key, holder="h", generation=1) for lease in LEASES]
    kept = msgspec.json.encode(alert(released=tuple(freed), released_tasks=TASKS))
    values = msgspec.json.decode(kept)
    assert not {"released_more", "released_tasks_more"} & set(values)
    old = msgspec.json.decode(kept, type=Alert)
    shown = mail.view(mail.alert_envelope(old, ("a", "inbox"), "s", "t", LATE), LATE)
    assert (len(shown.released), shown.released_count) == (LISTED, MANY)
    assert (len(shown.released_tasks), shown.released_tasks_count) == (LISTED, MANY)
    detail = {
        **fire(1, 0).entries[0].detail,
        "released": values["released"],
        "released_tasks": values["released_tasks"],
    }
    del detail["released_count"]
    line = Entry(namespace=NAMESPACE, scope=SCOPE, at=START, kind="fired", detail=detail)
    told = packet((line,))
    (death,) = told.deaths
    assert (len(death.released), death.released_count) == (LISTED, MANY)
    assert (len(death.released_tasks), death.released_tasks_count) == (LISTED, MANY)
    (entry,) = told.journal
    assert (len(entry.detail["released"]), entry.detail["released_count"]) == (LISTED, MANY)
    assert entry.detail["released_tasks_count"] == MANY
    assert len(line.detail["released"]) == MANY, "the row is left as it is"


def test_a_briefing_names_some_of_what_is_held_and_counts_all() -> None:
    held = HeldTaskView(
        id="t", status="claimed", execution_epoch=2, agent_id=None, lease_expires_at="T"
    )
    told = packet((), leases=LEASES, tasks=(held,) * LISTED, tasks_total=MANY)
    assert (len(told.leases), told.leases_total, told.tasks_total) == (LISTED, MANY, MANY)
    said = texts.text_of("resume_packet", told)
    assert "Leases held on it in all: 3000." in said
    assert "Agent tasks claimed under it in all: 3000. list_agent_tasks with status claimed" in said
    assert said.count("Lease ") < LISTED
    few = texts.text_of(
        "resume_packet", packet((), leases=LEASES[:2], tasks=(held,), tasks_total=1)
    )
    assert "in all" not in few
