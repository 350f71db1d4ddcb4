"""Transcripts as they stand in their files: the head, the steps, and what is wrong with them.

The format is described in ``FORMAT.md``; a file that says something else is refused as a whole,
with the line, before anything is run.
"""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import msgspec

from conformance import exact, moments, patterns

ROOT = Path(__file__).resolve().parent
START = 1_790_000_000_000
"""The wall time (ms) at which a virtual run begins unless its head says otherwise."""
WITHIN = 5.0
LONGEST_REAL_PASS = 5
ACCEPTED: dict[str, Any] = {"result": {"accepted": True}}


class TranscriptError(Exception):
    """A transcript that cannot be read; the text names the file, the line and what to do."""


class Step(msgspec.Struct, frozen=True):
    """One line after the head. ``kind`` is its step, ``value`` that member, ``more`` the others."""

    line: int
    text: str
    kind: str
    value: Any
    more: Mapping[str, Any]
    within: float
    rules: tuple[str, ...]
    on: str


class Transcript(msgspec.Struct, frozen=True):
    """One file, read."""

    name: str
    title: str
    host: str
    rules: tuple[str, ...]
    clock: str
    within: float
    env: Mapping[str, str | None]
    files: Mapping[str, Any]
    now: int
    answer: Any
    start: bool
    file_size: int | None
    steps: tuple[Step, ...]

    def plays(self, clock: str) -> bool:
        """Whether it can be replayed under ``"real"`` or ``"virtual"`` time."""
        return self.clock in {clock, "either"}

    def all_rules(self) -> tuple[str, ...]:
        """Return every rule it shows, those of single steps included, each once."""
        named = [*self.rules, *(rule for step in self.steps for rule in step.rules)]
        return tuple(dict.fromkeys(named))


_HEAD = {
    *("transcript", "host", "rules", "clock", "within", "env", "files", "now", "answer"),
    *("start", "limits", "note"),
}
_EVERY_STEP = {"note", "rules", "within", "on"}

_PATTERN = patterns.complaint


def _nothing(value: Any) -> None:
    return None


def _is(kind: type | tuple[type, ...], what: str) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        return None if fits else f"takes {what}"

    return check


def _one_of(*choices: str) -> Callable[[Any], str | None]:
    return lambda value: None if value in choices else f"is one of {', '.join(choices)}"


def _message_pattern(value: Any) -> str | None:
    if isinstance(value, dict) and value.keys() == {"$line"}:
        value = value["$line"]
    return patterns.complaint(value)


def _messages_pattern(value: Any) -> str | None:
    if isinstance(value, list):
        return next(filter(None, map(_message_pattern, value)), None)
    return _message_pattern(value)


def _kind_pattern(value: Any) -> str | None:
    return None if value in ("push", "reply") else _message_pattern(value)


def _instant(value: Any) -> str | None:
    fits = isinstance(value, str) and moments.to_ms(value) is not None
    return None if fits else "takes ISO 8601 with an offset"


def answer_complaint(value: Any) -> str | None:
    """Say what is wrong with how a push is to be answered, or ``None``."""
    match value:
        case "never" | "later":
            return None
        case {"result": _, **rest} if not rest:
            return None
        case {"error": {"code": int()}, **rest} if not rest:
            return None
        case [_, *_]:
            return next(filter(None, map(answer_complaint, value)), None)
    return 'is {"result": …}, {"error": {"code": …}}, "never", "later", or a list of these'


_number = _is((int, Decimal), "a number")
_text = _is(str, "text")
_object = _is(dict, "an object")
_list = _is(list, "a list")
_bool = _is(bool, "true or false")
Check = Callable[[Any], str | None]
"""Says what is wrong with a member's value, or ``None``."""

STEPS: dict[str, tuple[Check, dict[str, Check]]] = {
    "host": (_nothing, {}),
    "request": (_text, {"params": _nothing, "id": _nothing}),
    "notify": (_text, {"params": _nothing}),
    "call": (_text, {"arguments": _nothing, "id": _nothing}),
    "handshake": (_object, {}),
    "server": (_messages_pattern, {"order": _one_of("given", "any")}),
    "push": (_PATTERN, {"id": _PATTERN, "answer": answer_complaint}),
    "reply": (_message_pattern, {"to": _nothing}),
    "result": (_PATTERN, {"to": _nothing, "structured": _PATTERN}),
    "refused": (_PATTERN, {"to": _nothing, "structured": _PATTERN}),
    "quiet": (_number, {"of": _kind_pattern}),
    "answer": (answer_complaint, {}),
    "answer_push": (_nothing, {"with": answer_complaint}),
    "wait": (_number, {}),
    "pass": (_number, {}),
    "until": (_instant, {}),
    "clock": (_number, {}),
    "suspend": (_number, {}),
    "file": (_nothing, {"is": _nothing, "at_once": _bool}),
    "folder": (_PATTERN, {}),
    "write": (_text, {"content": _nothing}),
    "remove": (_text, {}),
    "stderr": (patterns.regex_complaint, {"times": _number}),
    "signal": (
        _one_of("SIGTERM", "SIGKILL", "SIGINT", "SIGHUP", "SIGSTOP", "SIGCONT"),
        {},
    ),
    "close": (_one_of("stdin", "stdout"), {}),
    "exit": (_object, {}),
    "start": (_object, {}),
}
"""Each kind of step: what its own member takes, and the members that may stand beside it."""

NEEDED = {"file": "is", "write": "content"}
ONLY_VIRTUAL = {"until", "clock", "suspend"}
HANDSHAKE = {
    *("version", "id", "client", "mcpl", "policy", "initialized", "result", "receipt"),
}


def find(only: str = "*") -> list[Path]:
    """Return the transcripts of this checkout whose name fits the glob ``only``, sorted by name."""
    # A folder's name alone means all in it.
    globs = (only, f"{only}/*")
    every = sorted(ROOT.rglob("*.jsonl"))
    return [path for path in every if any(fnmatch(name_of(path), glob) for glob in globs)]


def name_of(path: Path) -> str:
    """Return what a transcript is called: its path below ``conformance/`` without the suffix."""
    path = path.resolve()
    inside = path.is_relative_to(ROOT)
    return (path.relative_to(ROOT) if inside else Path(path.name)).with_suffix("").as_posix()


def read(path: Path) -> Transcript:
    """Read one file, or raise ``TranscriptError``."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TranscriptError(f"{path}: cannot be read ({error})") from None
    return parse(text, name_of(path))


def parse(text: str, name: str) -> Transcript:
    """Read the text of a transcript called ``name``, or raise ``TranscriptError``."""
    lines = list(_objects(text, name))
    if not lines:
        raise TranscriptError(f"{name}: has no head; see conformance/FORMAT.md")
    (number, _, head), *rest = lines
    try:
        return _transcript(name, head, rest)
    except _WrongError as wrong:
        line = wrong.line or number
        raise TranscriptError(f"{name}.jsonl:{line}: {wrong.text}") from None


class _WrongError(Exception):
    def __init__(self, text: str, line: int = 0) -> None:
        super().__init__(text)
        self.text = text
        self.line = line


def _objects(text: str, name: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    # Only LF ends a line: other line ends may stand inside a JSON string.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("//"):
            continue
        try:
            value = exact.read(line)
        except ValueError as error:
            raise TranscriptError(f"{name}.jsonl:{number}: is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise TranscriptError(f"{name}.jsonl:{number}: is no object")
        yield number, line.strip(), value


def _transcript(
    name: str, head: dict[str, Any], lines: list[tuple[int, str, dict[str, Any]]]
) -> Transcript:
    _only_known(head, _HEAD, "the head")
    checks: dict[str, Check] = {
        **{"transcript": _text, "host": _text, "rules": _list, "env": _object, "files": _object},
        **{"within": _number, "now": _instant, "answer": answer_complaint, "start": _bool},
        **{"limits": _object, "clock": _one_of("real", "virtual", "either")},
    }
    for member, check in checks.items():
        if member in head:
            _demand(check(head[member]), member)
    for member in ("transcript", "host"):
        if member not in head:
            raise _WrongError(f"the head lacks {member!r}")
    within = float(head.get("within", WITHIN))
    clock = head.get("clock", "either")
    limits = head.get("limits", {})
    _only_known(limits, {"file_size"}, "limits")
    if limits and clock != "real":
        raise _WrongError('limits are for transcripts whose clock is "real"')
    return Transcript(
        name=name,
        title=head["transcript"],
        host=head["host"],
        rules=tuple(map(str, head.get("rules", []))),
        clock=clock,
        within=within,
        env=head.get("env", {}),
        files=head.get("files", {}),
        now=moments.to_ms(head["now"]) or 0 if "now" in head else START,
        answer=head.get("answer", ACCEPTED),
        start=head.get("start", True),
        file_size=limits.get("file_size"),
        steps=tuple(_step(number, line, value, within, clock) for number, line, value in lines),
    )


def _step(line: int, text: str, value: dict[str, Any], within: float, clock: str) -> Step:
    kind = next((name for name in value if name in STEPS), None)
    try:
        if kind is None:
            raise _WrongError(f"there is no step {next(iter(value), '')!r}")
        check, beside = STEPS[kind]
        _demand(check(value[kind]), kind)
        _only_known(value, {kind, *beside, *_EVERY_STEP}, f"a {kind} step")
        for member, check_member in {**beside, "within": _number, "rules": _list}.items():
            if member in value and member != kind:
                _demand(check_member(value[member]), member)
        _check_further(kind, value, clock)
    except _WrongError as wrong:
        raise _WrongError(wrong.text, line) from None
    return Step(
        line=line,
        text=text,
        kind=kind,
        value=value[kind],
        more={name: member for name, member in value.items() if name in beside},
        within=float(value.get("within", within)),
        rules=tuple(map(str, value.get("rules", []))),
        on=str(value.get("on", "first")),
    )


def _check_further(kind: str, value: dict[str, Any], clock: str) -> None:
    """Check what one member alone does not show."""
    needed = NEEDED.get(kind)
    if needed is not None and needed not in value:
        raise _WrongError(f"a {kind} step lacks {needed!r}")
    if kind in ONLY_VIRTUAL and clock != "virtual":
        raise _WrongError(f'{kind} needs a head that says "clock": "virtual"')
    if kind in {"wait", "pass"} and value[kind] > LONGEST_REAL_PASS and clock != "virtual":
        raise _WrongError(
            f'more than {LONGEST_REAL_PASS} s need a head that says "clock": "virtual"'
        )
    if kind == "server" and "order" in value and not isinstance(value[kind], list):
        raise _WrongError("order is for a list of patterns")
    if kind == "file":
        if isinstance(value[kind], dict):
            _only_known(value[kind], {"$re"}, "a file")
            _demand(patterns.regex_complaint(value[kind].get("$re")), kind)
        wanted = value["is"]
        if isinstance(wanted, dict) and wanted.keys() == {"$text"}:
            wanted = wanted["$text"]
        _demand(patterns.complaint(wanted), "is")
    if kind == "handshake":
        _only_known(value[kind], HANDSHAKE, "a handshake")
        for member in ("result", "receipt"):
            _demand(patterns.complaint(value[kind].get(member)), member)
    if kind == "exit":
        _only_known(value[kind], {"within", "status"}, "exit")


def _only_known(value: Mapping[str, Any], known: set[str], what: str) -> None:
    unknown = value.keys() - known
    if unknown:
        raise _WrongError(f"{what} takes no {', '.join(sorted(unknown))}")


def _demand(complaint: str | None, member: str) -> None:
    if complaint is not None:
        raise _WrongError(f"{member} {complaint}")
