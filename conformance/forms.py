"""The form behind a value: what would be the same in the next session, and what would not.

Times, approximate lengths and ids differ from run to run. An id is told by its looks (eight or more
letters, digits, ``_`` and ``-``, with a digit among them) and by the host not having said it first.
"""

import re
import zoneinfo
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any

from conformance import moments

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?"
_TIME_FORM = _TIME
_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
_MS = r"(?<!\d)1\d{12}(?!\d)"
_ABOUT = r"~\d+(?:\.\d+)?"
_TOKEN = r"(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[A-Za-z0-9_-]{8,}"
_WHOLE_TIME = re.compile(_TIME)
_WORD = re.compile(r"[A-Za-z0-9_-]+")
_LIVELY = re.compile(r"next|due|fire|remain|elapsed|overdue|since|uptime|age|pid", re.IGNORECASE)
"""Names of members whose numbers move with time."""
_EARLIEST, _LATEST = 10**12, 10**14


class Forms:
    """What one session has shown so far. ``paths`` are its files, ``zone`` its AGENT_TIMEZONE."""

    def __init__(self, paths: Mapping[str, str], zone: str | None) -> None:
        self._paths = {path: f"${{folder}}/heartbeat-{name}.json" for name, path in paths.items()}
        self._zone = _zone(zone)
        self._names: dict[str, str] = {}
        self._said: set[str] = set()

    # What the server says -------------------------------------------------------------------------

    def heard(self, value: Any, name: str = "") -> Any:
        """Return a pattern for what the server said under the member ``name``."""
        match value:
            case str():
                return self._heard_text(value)
            case list():
                return [self.heard(item) for item in value]
            case dict():
                if any(member.startswith("$") for member in value):
                    return {"$literal": value}
                return {member: self.heard(item, member) for member, item in value.items()}
            case bool():
                return value
            case int() if _EARLIEST <= value < _LATEST:
                return "$integer"
            case int() | Decimal() if _LIVELY.match(name):
                return "$number"
        return value

    def _heard_text(self, text: str) -> Any:
        if text in self._names:
            return {"$ref": self._names[text]}
        whole = re.fullmatch(_TOKEN, text) is not None
        regex, varies = self._form(text, {}, bind=not whole)
        if not varies:
            return {"$literal": text} if text.startswith("$") or "${" in text else text
        if whole:
            self._names[text] = name = f"id{len(self._names) + 1}"
            return {"$bind": name, "as": {"$re": f"^{regex}$"}}
        return {"$re": f"^{regex}$"}

    def _form(self, text: str, here: dict[str, str], bind: bool) -> tuple[str, bool]:
        """Return a regex for ``text``, and whether it is more than the text itself.

        ``here`` holds the ids that this same regex binds; without ``bind`` it binds none.
        """
        known = [*self._paths, *self._names]
        known.sort(key=len, reverse=True)
        volatile = re.compile(
            "|".join(
                f"(?P<{kind}>{regex})"
                for kind, regex in (
                    ("known", "|".join(map(_escape, known)) or "(?!)"),
                    ("time", _TIME),
                    ("about", _ABOUT),
                    ("ms", _MS),
                    ("token", _TOKEN),
                )
            )
        )
        pieces, end, varies = [], 0, False
        for found in volatile.finditer(text):
            form = self._piece(found, here, bind)
            pieces += [_escape(text[end : found.start()]), form]
            varies = varies or form != _escape(found[0])
            end = found.end()
        return "".join([*pieces, _escape(text[end:])]), varies

    def _piece(self, found: re.Match[str], here: dict[str, str], bind: bool) -> str:
        text = found[0]
        match found.lastgroup:
            case "known":
                return self._known(text, here)
            case "time":
                return _TIME_FORM
            case "about":
                return r"~\d+(\.\d+)?"
            case "ms":
                return r"\d{13}"
        if text in self._said or re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            return _escape(text)
        inner = self._inside(text, here)
        if inner is not None:
            return inner
        if not bind:
            return r"[\w-]+"
        self._names[text] = here[text] = name = f"id{len(self._names) + 1}"
        return rf"(?P<{name}>[\w-]+)"

    def _inside(self, token: str, here: dict[str, str]) -> str | None:
        """Return the form of a token made of known ids and times alone; ``None`` for another."""
        known = sorted(self._names, key=len, reverse=True)
        regex = re.compile("|".join([*map(_escape, known), _MS]))
        rest = regex.sub("", token)
        if rest == token or re.search(r"\d", rest):
            return None
        pieces, end = [], 0
        for found in regex.finditer(token):
            text = found[0]
            form = self._known(text, here) if text in self._names else r"\d{13}"
            pieces += [_escape(token[end : found.start()]), form]
            end = found.end()
        return "".join([*pieces, _escape(token[end:])])

    def _known(self, text: str, here: dict[str, str]) -> str:
        if text in here:
            return f"(?P={here[text]})"
        if text in self._names:
            return f"${{{self._names[text]}}}"
        path = self._paths[text]
        return "${folder}" + _escape(path.removeprefix("${folder}"))

    # What the host says ---------------------------------------------------------------------------

    def known_to_host(self, message: Any) -> None:
        """Take note of the words in what the host says: they are no ids of the server's making."""
        match message:
            case str():
                self._said.update(_WORD.findall(message))
            case list():
                for item in message:
                    self.known_to_host(item)
            case dict():
                for name, item in message.items():
                    self._said.add(name)
                    self.known_to_host(item)

    def said(self, value: Any, at: int) -> Any:
        """Return what the host says, at wall time ``at``, so that it means the same at any time."""
        match value:
            case str():
                return self._said_text(value, at)
            case list():
                return [self.said(item, at) for item in value]
            case dict():
                if any(member.startswith("$") for member in value):
                    return {"$literal": value}
                return {member: self.said(item, at) for member, item in value.items()}
            case bool():
                return value
            case int() if _EARLIEST <= value < _LATEST:
                return {"$now": (value - at) / 1000}
        return value

    def _said_text(self, text: str, at: int) -> Any:
        if text in self._names:
            return {"$ref": self._names[text]}
        if _WHOLE_TIME.fullmatch(text) and (ms := self._instant(text)) is not None:
            return {"$now": (ms - at) / 1000, "as": "iso"}
        if "${" in text:
            return {"$literal": text}
        for value, name in self._names.items():
            text = text.replace(value, f"${{{name}}}")
        return text

    def _instant(self, text: str) -> int | None:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=self._zone)
        return moments.to_ms(moment.isoformat())


def _zone(name: str | None) -> tzinfo:
    try:
        return zoneinfo.ZoneInfo(name) if name else UTC
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def _escape(text: str) -> str:
    """Return a regex for ``text`` with no more backslashes than a reader has to bear."""
    return _SPECIAL.sub(r"\\\g<0>", text).replace("\n", r"\n")
