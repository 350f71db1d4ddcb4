"""The tables of the wake wing: each pair leads where it says, and the code follows them."""

import pytest

from mcpl_heartbeat.wake import ledger, reminders, schedule
from mcpl_heartbeat.wake.files import Reminder
from mcpl_heartbeat.wake.reminders import Life, Occurrence, ReminderBook

MINUTE = 60_000


def row(id: str = "a", every: float | None = None, due: int = 1_000) -> Reminder:
    return Reminder(id=id, message="m", created_at=0, fire_at=due, every_seconds=every)


@pytest.mark.requirement("schedule.table")
@pytest.mark.parametrize("state", schedule.Tick)
@pytest.mark.parametrize("event", schedule.Event)
def test_a_heartbeat_moves_as_its_table_says_and_otherwise_stays(
    state: schedule.Tick, event: schedule.Event
) -> None:
    heartbeat = schedule.Schedule(MINUTE, lambda: "r")
    heartbeat.rearm(MINUTE, 0)
    heartbeat.state = state
    heartbeat._move(event)
    assert heartbeat.state is schedule.TRANSITIONS.get((state, event), state)


@pytest.mark.requirement("schedule.table")
def test_every_state_of_a_heartbeat_can_be_reached_and_left() -> None:
    assert set(schedule.TRANSITIONS.values()) == set(schedule.Tick)
    assert {state for state, _ in schedule.TRANSITIONS} == set(schedule.Tick)


@pytest.mark.requirement("schedule.table")
def test_a_lost_heartbeat_that_cannot_be_replaced_is_owed() -> None:
    heartbeat = schedule.Schedule(MINUTE, lambda: "r")
    heartbeat.rearm(MINUTE, 0)
    assert heartbeat.tick(MINUTE, 0, True) is schedule.Verdict.SEND
    assert heartbeat.tick(2 * MINUTE, MINUTE, True) is schedule.Verdict.SKIPPED
    late = schedule.LOST_AFTER_MS
    assert heartbeat.tick(3 * MINUTE, late, False) is schedule.Verdict.SUPPRESSED
    assert heartbeat.state is schedule.Tick.OWED
    assert heartbeat.occurrence is not None
    assert heartbeat.occurrence.scheduled == 3 * MINUTE
    assert heartbeat.tick(3 * MINUTE + 1, late, True) is schedule.Verdict.SEND


def put(book: ReminderBook, state: Life, reminder: Reminder) -> None:
    book.add(reminder)
    if state in (Life.OUT, Life.HELD):
        book.sent(reminder, "r1", 1_000, 0)
    if state is Life.HELD:
        assert book.refused(Occurrence(reminder.id, reminder.fire_at), "r1", "no", 1_000, 0)


@pytest.mark.requirement("reminder.table")
@pytest.mark.parametrize("state", [Life.WAITING, Life.OUT, Life.HELD])
@pytest.mark.parametrize(
    ("event", "every"),
    [
        (event, every)
        for event in reminders.Event
        for every in (None, 5)
        if event is not (reminders.Event.TAKEN_ONCE if every else reminders.Event.TAKEN_RECURRING)
    ],
)
def test_a_reminder_moves_as_its_table_says(
    state: Life, event: reminders.Event, every: float | None
) -> None:
    book = ReminderBook()
    reminder = row(every=every)
    put(book, state, reminder)
    occurrence = Occurrence("a", 1_000)
    match event:
        case reminders.Event.SENT:
            if state is not Life.WAITING:
                return
            book.sent(reminder, "r2", 1_000, 0)
        case reminders.Event.TAKEN_ONCE | reminders.Event.TAKEN_RECURRING:
            assert book.taken(occurrence, 1_000)
        case reminders.Event.REFUSED:
            book.refused(occurrence, "r1", "again", 2_000, 0)
        case reminders.Event.UNANSWERED:
            book.pass_time(31_000, 30_000 - (1 if every and state is Life.HELD else 0))
        case reminders.Event.RETRY:
            book.retry()
        case reminders.Event.CANCELLED:
            assert book.cancel("a") is reminder
    expected = reminders.TRANSITIONS.get((state, event), state)
    if event is reminders.Event.UNANSWERED and every and state is Life.HELD:
        expected = Life.WAITING
    now = book.state("a")
    if "a" not in book.rows:
        assert expected is Life.GONE
        assert book.next_waiting() is None
    elif now is None:
        assert expected is Life.WAITING
        retried = (
            event in (reminders.Event.RETRY, reminders.Event.UNANSWERED) and state is Life.HELD
        )
        assert book.next_waiting() == (0 if retried else book.rows["a"].fire_at)
    else:
        assert expected is (Life.OUT if isinstance(now, reminders.Out) else Life.HELD)
        assert book.next_waiting() is None


@pytest.mark.requirement("reminder.table")
def test_an_answer_for_a_row_that_is_gone_edited_or_advanced_changes_nothing() -> None:
    book = ReminderBook()
    put(book, Life.OUT, row(every=5))
    assert not book.taken(Occurrence("b", 1_000), 1_000)
    assert not book.refused(Occurrence("b", 1_000), "r1", "no", 0, 0)
    assert book.taken(Occurrence("a", 1_000), 1_000)
    assert not book.taken(Occurrence("a", 1_000), 1_000)
    assert not book.refused(Occurrence("a", 1_000), "r1", "no", 0, 0)
    assert book.rows["a"].fire_at == 6_000


@pytest.mark.requirement("reminder.table", "file.changed-merge")
def test_rows_replaced_by_hand_start_anew_and_the_unchanged_keep_their_state() -> None:
    book = ReminderBook()
    for id in "abc":
        put(book, Life.HELD, row(id, every=5))
    put(book, Life.OUT, row("d"))
    book.replace((row("a", every=5), row("b", every=5, due=2_000), row("d")))
    assert isinstance(book.state("a"), reminders.Held)
    assert book.state("b") is None
    assert isinstance(book.state("d"), reminders.Out)
    assert list(book.rows) == ["a", "b", "d"]
    assert [each.id for each in book.in_order(0)] == ["a", "d", "b"]
    book.pass_time(40_000, 40_000)
    assert [each.id for each in book.due(40_000, 9)] == ["a", "b"]


@pytest.mark.requirement("reminder.list-pages")
def test_the_order_of_a_list_mixes_the_busy_with_the_waiting_at_every_offset() -> None:
    book = ReminderBook()
    for n in range(12):
        put(
            book,
            [Life.WAITING, Life.OUT, Life.HELD][n % 3],
            row(f"r{n}", due=(n * 7) % 12 * 100 + 1),
        )
    whole = [each.fire_at for each in book.in_order(0)]
    assert whole == sorted(whole)
    assert len(whole) == 12
    for offset in range(14):
        assert [each.fire_at for each in book.in_order(offset)] == whole[offset:]


@pytest.mark.requirement("file.said-means-done")
@pytest.mark.parametrize("state", ledger.Disk)
@pytest.mark.parametrize("event", ledger.Event)
def test_a_document_moves_as_its_table_says(state: ledger.Disk, event: ledger.Event) -> None:
    document = ledger.Ledger(ledger.Document.CONFIG)
    document.state = state
    document._move(event)
    assert document.state is ledger.TRANSITIONS.get((state, event), state)


@pytest.mark.requirement("file.said-means-done")
def test_no_reply_is_ever_left_waiting_for_a_save_that_cannot_come() -> None:
    for state in ledger.Disk:
        document = ledger.Ledger(ledger.Document.CONFIG)
        document.state = state
        said: list[ledger.Note] = []
        document.change()
        document.when_saved(said.append)
        if document.begin(lambda: "value") is not None:
            assert said == []
            document.settle(ledger.Saved(), 0)
        assert len(said) == 1 or state is ledger.Disk.SAVING, state
