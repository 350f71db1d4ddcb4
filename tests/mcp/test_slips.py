"""When a wrong name is a slip, and for what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.mcp.slips import Slip, allowed_edits, edits, find_slip

CONFIGURE = (
    "intervalSeconds",
    "intervalMinutes",
    "intervalHours",
    "paused",
    "deliveryMode",
    "message",
)
ADD = ("message", "inSeconds", "inMinutes", "inHours", "atIso", "everySeconds", "everyMinutes")
CANCEL = ("id",)
OTHERS = [("add", ADD), ("cancel", CANCEL), ("list", ())]


def slip(name: str, *beside: str, own: tuple[str, ...] = CONFIGURE) -> Slip | None:
    return find_slip(name, {name, *beside}, own, OTHERS)


def meant(name: str, *beside: str) -> str | None:
    found = slip(name, *beside)
    return found.meant[0] if found else None


@pytest.mark.requirement("seed.args.slip-case")
@pytest.mark.parametrize("name", ["Paused", "PAUSED", "pauseD"])
def test_other_case(name: str) -> None:
    assert slip(name) == Slip(("paused",), ())
    assert slip(name, "paused") == Slip(("paused",), ()), "also beside the known name"


@pytest.mark.requirement("seed.args.slip-case")
def test_other_case_of_a_short_name() -> None:
    assert slip("ID", own=CANCEL) == Slip(("id",), ())


@pytest.mark.requirement("seed.args.slip-edits")
@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("pausde", "paused"),
        ("pased", "paused"),
        ("Pausedd", "paused"),
        ("mesage", "message"),
        ("massege", "message"),
        ("interval_seconds", "intervalSeconds"),
        ("intervalMinuts", "intervalMinutes"),
        ("IntervallMinuts", "intervalMinutes"),
        ("delivery-mode", "deliveryMode"),
        ("deliverMod", "deliveryMode"),
    ],
)
def test_a_few_edits(name: str, known: str) -> None:
    assert meant(name) == known


@pytest.mark.requirement("seed.args.slip-edits")
@pytest.mark.parametrize("name", ["ids", "iid", "di", "_id", "iD", "pid"])
def test_edits_of_a_short_name(name: str) -> None:
    assert slip(name, own=CANCEL) == Slip(("id",), ())


@pytest.mark.requirement("seed.args.slip-edits", "seed.args.unknown-ignored")
@pytest.mark.parametrize("name", ["x", "at", "i", "d", "in", "is", "it", "", "ad", "key", "uuid"])
def test_short_words_of_their_own(name: str) -> None:
    assert slip(name, own=CANCEL) is None


@pytest.mark.requirement("seed.args.slip-part")
@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("mode", "deliveryMode"),
        ("MODE", "deliveryMode"),
        ("delivery", "deliveryMode"),
        ("ess", "message"),
        ("pau", "paused"),
        ("hours", "intervalHours"),
    ],
)
def test_a_part_of_three_letters(name: str, known: str) -> None:
    assert meant(name) == known


@pytest.mark.requirement("seed.args.slip-part")
@pytest.mark.parametrize("name", ["mo", "pa", "es"])
def test_a_part_of_two_letters_is_none(name: str) -> None:
    assert slip(name) is None


@pytest.mark.requirement("seed.args.slip-longer")
@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("heartbeatIntervalMinutes", "intervalMinutes"),
        ("heartbeatMessageText", "message"),
        ("isPausedUntilTomorrow", "paused"),
    ],
)
def test_a_longer_name(name: str, known: str) -> None:
    assert meant(name) == known
    assert meant(name, known) is None, "not beside the name that it holds"


@pytest.mark.requirement("seed.args.slip-longer")
@pytest.mark.parametrize("name", ["reminderId", "sessionId", "identity"])
def test_a_longer_name_that_holds_a_short_one_is_none(name: str) -> None:
    assert slip(name, own=CANCEL) is None


@pytest.mark.requirement("seed.args.slip-own-merits")
def test_each_name_is_weighed_on_its_own() -> None:
    assert slip("pausedReason", "paused") is None
    assert slip("pausedReason") == Slip(("paused",), ())
    assert slip("pausedMessage", "paused") == Slip(("message",), ())
    assert slip("pausedMessage", "paused", "message") is None
    assert slip("pausedMode", "paused") is None, "neither holds the other"


@pytest.mark.requirement("seed.args.slip-other-tool")
def test_names_of_other_tools() -> None:
    assert slip("atIso") == Slip(("atIso",), ("add",))
    assert slip("at_iso") == Slip(("atIso",), ("add",))
    assert slip("id") == Slip(("id",), ("cancel",))
    assert slip("message", own=CANCEL) == Slip(("message",), ("add",))
    assert slip("everySeconds") == Slip(("everySeconds",), ("add",)), "not intervalSeconds"
    assert slip("inSeconds", own=("inSecond",)) == Slip(("inSeconds",), ("add",)), "though so near"
    found = find_slip("message", {"message"}, (), [("a", ("message",)), ("b", ("message",))])
    assert found == Slip(("message",), ("a", "b"))


@pytest.mark.requirement("seed.args.slip-other-tool")
def test_own_names_come_first() -> None:
    assert slip("messages") == Slip(("message",), ())
    assert slip("seconds") == Slip(("intervalSeconds",), ())
    assert slip("second", own=ADD) == Slip(("inSeconds", "everySeconds"), ())


@pytest.mark.requirement("seed.args.unknown-ignored", "host.37")
@pytest.mark.parametrize("own", [(), CONFIGURE, ADD, CANCEL])
@pytest.mark.parametrize(
    "name", ["_meta", "state", "checkpoint", "foo", "note", "timezone", "random_string", "session"]
)
def test_extras_of_hosts_are_no_slips(name: str, own: tuple[str, ...]) -> None:
    assert slip(name, own=own) is None


NAMES = st.text("abcdeABC_", max_size=9)


@pytest.mark.requirement("seed.args.slip-edits")
@given(NAMES, st.integers(0, 8), st.sampled_from("xyz"))
def test_one_edit_counts_one(name: str, at: int, letter: str) -> None:
    at = min(at, len(name))
    assert edits(name[:at] + letter + name[at:], name, 3) == 1
    assert edits(name, name[:at] + letter + name[at:], 3) == 1
    if at < len(name):
        assert edits(name[:at] + letter + name[at + 1 :], name, 3) == 1
    if at + 1 < len(name):
        swapped = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
        assert edits(swapped, name, 3) == (swapped != name)


@pytest.mark.requirement("seed.args.slip-edits")
@given(NAMES, NAMES, st.integers(0, 9))
def test_the_limit_only_cuts(a: str, b: str, limit: int) -> None:
    exact = edits(a, b, 20)
    assert exact is not None
    assert exact == edits(b, a, 20)
    assert abs(len(a) - len(b)) <= exact <= max(len(a), len(b))
    assert edits(a, b, limit) == (exact if exact <= limit else None)


@pytest.mark.requirement("seed.args.slip-edits")
def test_how_many_are_a_few() -> None:
    assert [allowed_edits("x" * n) for n in (2, 3, 4, 5, 8, 9, 15)] == [1, 1, 1, 2, 2, 3, 3]


@pytest.mark.requirement("seed.args.slip-case", "seed.args.slip-longer", "seed.args.slip-part")
@given(st.sampled_from(CONFIGURE), st.text(max_size=20), st.text(max_size=20))
def test_whatever_holds_or_is_in_a_known_name(known: str, before: str, after: str) -> None:
    name = before + known.upper() + after
    found = find_slip(name, {name}, (known,), ())
    assert found == Slip((known,), ())
    for start in range(len(known) - 2):
        part = known[start : start + 3]
        assert find_slip(part, {part}, (known,), ()) == Slip((known,), ())


@pytest.mark.requirement("seed.args.unknown-ignored")
@given(st.text(max_size=40), st.lists(st.text(max_size=10), max_size=4))
def test_any_name_is_weighed_without_harm(name: str, beside: list[str]) -> None:
    found = slip(name, *beside)
    assert found is None or 1 <= len(found.meant) <= 3
