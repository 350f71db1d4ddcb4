"""Reminders that the host does not take: blocked, denied, held, and tried again."""

import pytest

from tests.session.reminders import BLOCKED, HOUR, MINUTE, add, ready, texts
from tests.world import ACCEPTED, GRANT, START, World, accept, refuse, silence


@pytest.mark.requirement(
    "seed.reminder.deliverable-only", "seed.reminder.list-overdue", "words.reminder-held"
)
def test_while_blocked_it_waits_overdue_and_the_list_ends_with_why() -> None:
    world = World()
    world.connect(policy=BLOCKED)
    assert "No wake can be delivered (" in world.text("reminder_add", message="x", inSeconds=1)
    world.pass_time(5_000)
    head, line, last = world.text("reminder_list").split("\n")
    assert head == "1 reminder(s):"
    assert " (overdue) | one-shot" in line
    assert last.startswith("No wake can be delivered (")
    assert "pushEvents" in last
    assert world.pushes == []
    assert len(world.disk.rows()) == 1


@pytest.mark.requirement("seed.reminder.waits-blocked")
def test_after_a_malformed_policy_it_waits_too() -> None:
    world = ready()
    add(world, inSeconds=1)
    reply = world.request("featureSets/update", {"effectiveCapabilities": "all"})
    assert reply["error"]["code"] == -32602
    world.pass_time(5_000)
    assert world.pushes == []
    world.request("featureSets/update", GRANT)
    assert len(world.pushes) == 1


@pytest.mark.requirement(
    "seed.reminder.never-fires-host", "policy.plain", "host.7", "words.reminder-add"
)
def test_on_a_host_that_takes_no_wake_add_and_list_say_so() -> None:
    plain = World()
    plain.connect(mcpl=False, policy=None)
    told = World()
    told.connect(policy=None)
    told.notify("featureSets/update", GRANT)
    for world in (plain, told):
        for text in (
            world.text("reminder_add", message="x", inSeconds=1),
            world.text("reminder_list"),
        ):
            assert "No reminder will fire on this host" in text
        world.pass_time(60_000)
        assert world.pushes == []


@pytest.mark.requirement("seed.reminder.blocked-log", "seed.policy.log-drops")
def test_while_blocked_the_log_counts_the_stranded_at_each_occasion() -> None:
    world = ready()
    id = add(world, "a", inHours=1)
    add(world, "b", inHours=2)
    assert world.logs == []

    def said() -> list[str]:
        logs, world.logs = world.logs, []
        return [line for line in logs if "will not fire" in line]

    world.request("featureSets/update", BLOCKED)
    (line,) = said()
    assert line.startswith("2 reminders will not fire: ")
    assert "pushEvents" in line
    add(world, "c", inHours=3)
    assert len(said()) == 1
    world.call("reminder_cancel", id=id)
    assert len(said()) == 1
    world.boot()
    assert len(said()) == 1
    world.connect()
    said()
    world.answer = silence
    world.pass_time(2 * HOUR)
    world.request("featureSets/update", BLOCKED)
    said()
    world.answer_push(-1, refuse(-32002)({}))
    assert said() == ["2 reminders will not fire" + line.split("will not fire")[1]]


@pytest.mark.requirement("seed.reminder.blocked-log", "policy.answer-codes")
def test_a_denial_in_answer_to_a_reminder_counts_the_stranded_too() -> None:
    world = ready(answer=refuse(-32002, "not for you"))
    add(world, "due", inSeconds=1)
    add(world, "later", inHours=1)
    world.pass_time(1_000)
    (line,) = [line for line in world.logs if "will not fire" in line]
    assert line.startswith("2 reminders will not fire")
    assert "not for you" in line


@pytest.mark.requirement(
    "seed.reminder.held", "field.77", "reminder.late-answer", "words.reminder-held"
)
def test_one_without_an_answer_is_held_after_30_s_kept_and_settled_by_a_late_one() -> None:
    world = ready(answer=silence)
    add(world, inSeconds=1)
    world.pass_time(30_999)
    assert "not answered yet" in world.text("reminder_list")
    world.pass_time(1)
    assert (
        "held since 2026-09-21T14:13:51+00:00 [UTC]: the host gave no answer within 30 s"
        in world.text("reminder_list")
    )
    assert len(world.disk.rows()) == 1
    world.answer_push(0, ACCEPTED)
    assert world.disk.rows() == []


@pytest.mark.requirement("seed.reminder.retry-events", "seed.reminder.file-until-taken", "host.15")
@pytest.mark.parametrize("occasion", ["policy", "add", "cancel", "restart"])
def test_a_held_one_is_tried_once_more_at_each_occasion_under_the_same_id(occasion: str) -> None:
    world = ready(answer=refuse(-32603, "stopping"))
    spare = add(world, "spare", inHours=9)
    add(world, inSeconds=1)
    world.pass_time(HOUR)
    assert len(world.pushes) == 1
    match occasion:
        case "policy":
            world.request("featureSets/update", GRANT)
        case "add":
            add(world, inHours=9)
        case "cancel":
            world.call("reminder_cancel", id=spare)
        case "restart":
            world.boot()
            world.connect()
    assert len(world.pushes) == 2
    assert world.pushes[0]["eventId"] == world.pushes[1]["eventId"]
    world.pass_time(HOUR)
    assert len(world.pushes) == 2


@pytest.mark.requirement("seed.reminder.retry-interval")
def test_a_held_recurring_one_is_also_tried_an_interval_later() -> None:
    world = ready(answer=refuse(-32603))
    add(world, everyMinutes=10)
    world.pass_time(35 * MINUTE)
    assert world.sent_at == [START + n * 10 * MINUTE for n in (1, 2, 3)]
    assert len({push["eventId"] for push in world.pushes}) == 1
    world.answer = accept
    world.pass_time(15 * MINUTE)
    assert world.sent_at[3:] == [START + n * 10 * MINUTE for n in (4, 5)]


@pytest.mark.requirement("field.74", "policy.replaces")
def test_two_policies_send_a_due_reminder_once() -> None:
    world = World(answer=silence)
    world.connect(policy=None)
    add(world, inSeconds=1)
    world.pass_time(2_000)
    world.request("featureSets/update", GRANT)
    world.pass_time(10)
    world.request("featureSets/update", GRANT)
    assert len(world.pushes) == 1


@pytest.mark.requirement("host.17")
def test_unknown_server_is_no_delivery() -> None:
    world = ready(answer=lambda push: {"result": {"accepted": False, "reason": "Unknown server"}})
    add(world, inSeconds=1)
    world.pass_time(1_000)
    assert "Unknown server" in world.text("reminder_list")
    assert len(world.disk.rows()) == 1


@pytest.mark.requirement("field.47", "jsonrpc.answer-matching", "jsonrpc.unexpected-answer")
def test_only_the_exact_first_answer_counts() -> None:
    world = ready(answer=silence)
    add(world, inSeconds=1)
    world.pass_time(1_000)
    before = len(world.replies)
    for id in (1, "1", 99, None, world.push_ids[0] + "x", [world.push_ids[0]]):
        world.send({"jsonrpc": "2.0", "id": id, **ACCEPTED})
    assert len(world.disk.rows()) == 1
    world.answer_push(0, refuse(-32603)({}))
    world.answer_push(0, ACCEPTED)
    assert len(world.disk.rows()) == 1
    assert len(world.replies) == before


@pytest.mark.requirement("reminder.table")
def test_a_push_that_is_out_twice_is_settled_by_whichever_answer_takes_it() -> None:
    world = ready(answer=silence)
    add(world, inSeconds=1)
    world.pass_time(31_000)
    world.request("featureSets/update", GRANT)
    assert len(world.pushes) == 2
    world.answer_push(0, refuse(-32603)({}))
    assert "not answered yet" in world.text("reminder_list")
    world.request("featureSets/update", GRANT)
    assert len(world.pushes) == 2
    world.answer_push(1, ACCEPTED)
    assert world.disk.rows() == []


@pytest.mark.requirement("host.16", "policy.answer-codes")
def test_at_a_host_that_denies_wakes_only_a_probe_a_minute_and_the_retries_leave() -> None:
    world = ready(answer=refuse(-32002, "denied"))
    for n in range(1, 200):
        add(world, str(n), inSeconds=n)
    world.pass_time(1_000)
    assert len(world.pushes) == 1
    world.pass_time(200_000)
    assert len(world.pushes) == 4
    assert "denied" in world.text("reminder_add", message="y", inHours=1)
    assert len(world.pushes) == 8
    assert world.text("reminder_list").endswith("reminders wait and fire once when one can.")
    world.answer = accept
    world.pass_time(60_000)
    assert len(world.disk.rows()) == 5
    world.request("featureSets/update", GRANT)
    assert [row["message"] for row in world.disk.rows()] == ["y"]


@pytest.mark.requirement("policy.replaces", "policy.answer-codes")
def test_a_denial_of_a_push_from_before_the_policy_blocks_nothing_under_it() -> None:
    world = ready(answer=silence)
    add(world, "before", inSeconds=1)
    world.pass_time(1_000)
    world.request("featureSets/update", GRANT)
    world.answer_push(0, refuse(-32001)({}))
    assert "delivery=ok" in world.text("heartbeat_status")
    add(world, "after", inSeconds=5)
    world.pass_time(5_000)
    assert texts(world)[-1].endswith("after")


@pytest.mark.requirement("seed.reminder.held", "host.39")
def test_the_status_says_that_reminders_are_held_and_since_when_does_not_move() -> None:
    world = ready(answer=refuse(-32603, "stopping"))
    add(world, everySeconds=60)
    world.pass_time(3 * MINUTE)
    assert "1 reminder is held, not taken by the host" in world.text("heartbeat_status")
    assert "held since 2026-09-21T14:14:20+00:00 [UTC]: " in world.text("reminder_list")
    world.answer = accept
    world.pass_time(MINUTE)
    assert "held" not in world.text("heartbeat_status")
