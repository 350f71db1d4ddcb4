"""What the book of reminders keeps beside its rows agrees with them, whatever happens."""

import random
from collections import Counter

import pytest

from mcpl_heartbeat.wake.clock_steps import Step
from mcpl_heartbeat.wake.files import Reminder
from mcpl_heartbeat.wake.reminders import Occurrence, ReminderBook


def row(id: str, due: int, message: str = "m", every: float | None = None) -> Reminder:
    return Reminder(id=id, message=message, created_at=0, fire_at=due, every_seconds=every)


def held(book: ReminderBook, *ids: str) -> None:
    for id in ids:
        book.sent(book.rows[id], f"q{id}", 0, 0)
        book.refused(Occurrence(id, book.rows[id].fire_at), f"q{id}", "no", 0, 0)


@pytest.mark.requirement("reminder.due-order")
def test_what_is_tried_again_goes_in_due_order() -> None:
    book = ReminderBook([row("a", 30), row("b", 10), row("c", 20), row("d", 5)])
    held(book, "a", "b", "c")
    book.retry()
    assert [each.id for each in book.due_again(2)] == ["b", "c"]
    assert [each.id for each in book.due_again(9)] == ["b", "c", "a"]
    book.sent(book.rows["b"], "q", 0, 0)
    assert [each.id for each in book.due_again(9)] == ["c", "a"]


@pytest.mark.requirement("reminder.due-order")
def test_what_is_tried_again_keeps_its_occurrence_over_a_clock_step_and_follows_another_hand() -> (
    None
):
    book = ReminderBook()
    for each in (row("a", 30_000), row("b", 10_000), row("c", 20_000)):
        book.add(each)
    held(book, "a", "b", "c")
    book.retry()
    book.shift(Step(size=-5_000, by=-5_000, ahead=0), 0)
    assert [(each.id, each.fire_at) for each in book.due_again(9)] == [
        ("b", 10_000),
        ("c", 20_000),
        ("a", 30_000),
    ]
    assert [each.id for each in book.due(0, 9)] == ["b", "c", "a"]
    book.replace((row("a", 90_000), row("c", 20_000, "edited"), row("b", 10_000)))
    assert [(each.id, each.message) for each in book.due_again(9)] == [("b", "m"), ("c", "edited")]
    assert [each.id for each in book.due(0, 9)] == ["b", "c"]
    assert book.cancel("b") is not None
    assert [each.id for each in book.due_again(9)] == ["c"]


@pytest.mark.requirement("reminder.twin")
@pytest.mark.parametrize("seed", range(10))
def test_the_messages_are_counted_right_through_every_change(seed: int) -> None:
    chance = random.Random(seed)
    book = ReminderBook()
    for number in range(300):
        ids = list(book.rows)
        match chance.randrange(5):
            case 0 | 1:
                every = chance.choice([None, 5.0])
                book.add(row(f"r{number}", number, chance.choice("xyz"), every))
            case 2 if ids:
                book.cancel(chance.choice(ids))
            case 3 if ids:
                id = chance.choice(ids)
                book.taken(Occurrence(id, book.rows[id].fire_at), number)
            case 4 if chance.random() < 0.1:
                book.replace((*book.snapshot()[1:], row(f"h{number}", number, "x")))
        assert book._messages == Counter(each.message for each in book.rows.values())
        assert all(book._messages.values())
