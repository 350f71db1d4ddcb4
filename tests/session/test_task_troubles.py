"""What of the tasks wing does not reach the agent is told where it looks, and no longer than so."""

import pytest

from mcpl_heartbeat.policy.pushing import UNKNOWN_FEATURE_SET
from mcpl_heartbeat.storage.store.ports import News
from mcpl_heartbeat.tasks.results import ListAgentTasksResult, PaginationView
from mcpl_heartbeat.watch.results import InboxPollResult, Result, WhoamiResult
from tests.session.test_task_reviews import review
from tests.session.test_task_reviews import told as give
from tests.session.test_task_wakes import GRANT, WITHOUT, tasks_world, tell, work
from tests.session.watching import READING, alert, beaten, no_switches
from tests.world import ACCEPTED, World, accept, refuse, silence

pytestmark = pytest.mark.requirement("tasks.push.held-told")
KEY = "k" * 32
REFUSED = refuse(-32603, "stopping")


def notes(world: World, tool: str, **arguments: object) -> list[str]:
    """Call a tool that shows something, and give the notes of its reply."""
    now = READING.server_time
    answers: dict[str, Result] = {
        "list_agent_tasks": ListAgentTasksResult(
            server_time=now, data=(), pagination=PaginationView(has_more=False, next_cursor=None)
        ),
        "whoami": WhoamiResult(
            server_time=now,
            address="agent:a",
            label=None,
            total=0,
            due=0,
            next_due_at=None,
            dead_lettered=0,
            boxes=(),
            switches={},
            leases=0,
            tasks={"available": 0, "claimed": 0},
        ),
        "inbox_poll": InboxPollResult(server_time=now, envelope=None, waiting=0, next_due_at=None),
        "switch_status": no_switches(),
    }
    id = world.begin_call(tool, **arguments)
    ask = world.asks[-1]
    world.tell(ask, answers[tool] if tool in answers else beaten(ask))
    result = world.reply(id)["result"]
    assert not result.get("isError"), result
    said: list[str] = result["structuredContent"]["notes"]
    for note in said:
        assert note in result["content"][0]["text"]
    return said


def beat(world: World, **more: object) -> list[str]:
    return notes(world, "heartbeat", scope="s", expect_within_seconds=60, **more)


def of_tasks(said: list[str]) -> list[str]:
    return [note for note in said if "review" in note or "tasks" in note]


@pytest.mark.parametrize("tool", ["whoami", "switch_status", "list_agent_tasks", "inbox_poll"])
def test_reviews_that_the_host_refuses_are_told_with_the_reason(tool: str) -> None:
    world = tasks_world(answer=REFUSED)
    assert notes(world, tool) == []
    give(world, review(1), review(2))
    (note,) = notes(world, tool)
    assert "does not take 2 reviews" in note
    assert 'box "review"' in note
    assert "stopping" in note
    assert notes(world, tool, agent_key=KEY) == [], "it is no news of another agent's"
    assert beat(world, wake_on_tasks=True) == [], "nor of any use to a worker"


@pytest.mark.parametrize("tool", ["whoami", "switch_status", "list_agent_tasks"])
def test_so_is_a_wake_for_claimable_tasks(tool: str) -> None:
    world = tasks_world(answer=REFUSED)
    tell(world, work())
    (note,) = notes(world, tool)
    assert "does not take the wake for claimable tasks" in note
    assert "list_agent_tasks" in note
    assert "stopping" in note
    assert notes(world, tool, agent_key=KEY) == []


def test_and_to_a_beat_that_asks_for_it() -> None:
    world = tasks_world(answer=REFUSED)
    tell(world, work())
    assert beat(world) == []
    assert beat(world, wake_on_tasks=False) == []
    assert len(beat(world, wake_on_tasks=True)) == 1
    assert beat(world, wake_on_tasks=True, agent_key=KEY) == []
    assert notes(world, "inbox_poll") == [], "it is nothing of the inbox"


def test_one_that_is_not_answered_is_told_from_then_on_and_until_it_is() -> None:
    world = tasks_world(answer=silence)
    world.news(News(READING, work=work(), reviews=(review(1),)))
    world.pass_time(29_999)
    assert notes(world, "list_agent_tasks") == []
    world.pass_time(1)
    said = notes(world, "list_agent_tasks")
    assert len(said) == 2
    assert all("has not answered within 30 s" in note for note in said)
    world.answer_push(0, ACCEPTED)
    world.answer_push(1, ACCEPTED)
    assert notes(world, "list_agent_tasks") == []


def test_what_somebody_else_took_or_read_is_told_no_more() -> None:
    world = tasks_world(answer=REFUSED)
    world.news(News(READING, work=work(), reviews=(review(1),)))
    world.news(News(READING))
    assert len(notes(world, "whoami")) == 2, "neither was looked for"
    world.pass_time(5_000)
    world.news(News(READING, quiet=frozenset({"work"})))
    (note,) = notes(world, "whoami")
    assert "1 review" in note
    world.news(News(READING, quiet=frozenset({"alerts", "reviews"})))
    assert notes(world, "whoami") == []
    tell(world, work(2))
    assert len(world.pushes) == 3, "further work is sent at once"


def test_it_stands_beside_what_is_held_of_the_other_wing() -> None:
    world = tasks_world(answer=REFUSED)
    world.news(News(READING, alerts=(alert(1),), work=work(), reviews=(review(2),)))
    for tool, many in (("whoami", 3), ("inbox_poll", 2), ("list_agent_tasks", 2)):
        assert len(notes(world, tool)) == many, tool
    world.news(News(READING, quiet=frozenset({"alerts"})))
    assert len(of_tasks(notes(world, "whoami"))) == 2


def test_a_set_that_the_host_denies_is_told_to_whoever_works_with_tasks() -> None:
    world = tasks_world(answer=refuse(UNKNOWN_FEATURE_SET, "never heard of it"))
    tell(world, work())
    (note,) = notes(world, "list_agent_tasks")
    assert "never heard of it" in note
    world.request("featureSets/update", WITHOUT)
    (note,) = notes(world, "list_agent_tasks")
    assert "Claimable tasks and reviews cannot wake you here" in note
    assert 'box "review"' in note
    assert notes(world, "whoami") == []
    world.answer = accept
    world.request("featureSets/update", GRANT)
    world.pass_time(5_000)
    tell(world, work())
    assert notes(world, "list_agent_tasks") == []


def test_on_a_host_that_takes_no_push_at_all_the_list_of_tasks_says_nothing_of_it() -> None:
    world = tasks_world(policy=None)
    assert notes(world, "list_agent_tasks") == []
    assert of_tasks(notes(world, "whoami")) == []
