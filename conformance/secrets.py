"""Finds what must not be written down, and puts a placeholder of the same length in its place."""

import re
from collections.abc import Mapping
from typing import Any

_NAMES = re.compile(
    r"token|secret|passw|api[-_]?key|private[-_]?key|authorization|credential", re.IGNORECASE
)
_NO_SECRET = {"progressToken"}
_SHORTEST = 6
_FORMS = re.compile(
    r"""
      sk-[\w-]{16,}                                  # model providers
    | gh[pousr]_\w{20,} | github_pat_\w{20,}         # code hosts
    | xox[abeprs]-[\w-]{10,}                         # chats
    | AKIA[0-9A-Z]{16}                               # clouds
    | eyJ[\w-]+\.[\w-]+\.[\w-]+                      # JSON web tokens
    | (?<=[Bb]earer\ )[\w.~+/-]{8,}=*                # headers
    | (?<=://)[^\s/:@]+:[^\s/@]+(?=@)                # addresses
    """,
    re.VERBOSE,
)


class Secrets:
    """Knows the secrets of one session: those of its environment, and those it has seen."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._placeholders: dict[str, str] = {}
        for name, value in environment.items():
            if _NAMES.search(name):
                self._learn(value)

    def hide(self, value: Any) -> Any:
        """Return a JSON value without secrets."""
        match value:
            case str():
                return self._hide_in_text(value)
            case list():
                return [self.hide(item) for item in value]
            case dict():
                return {name: self._member(name, member) for name, member in value.items()}
        return value

    def hide_in_bytes(self, data: bytes) -> bytes:
        """Return ``data`` without secrets."""
        text = data.decode("utf-8", "surrogateescape")
        return self._hide_in_text(text).encode("utf-8", "surrogateescape")

    def _member(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and name not in _NO_SECRET and _NAMES.search(name):
            self._learn(value)
        return self.hide(value)

    def _hide_in_text(self, text: str) -> str:
        for found in _FORMS.findall(text):
            self._learn(found)
        for secret, placeholder in self._placeholders.items():
            text = text.replace(secret, placeholder)
        return text

    def _learn(self, secret: str) -> None:
        # A shorter one would be found in the middle of ordinary words.
        if len(secret) >= _SHORTEST and secret not in self._placeholders:
            label = f"secret{len(self._placeholders) + 1}"
            if secret not in self._placeholders.values():
                self._placeholders[secret] = label.ljust(len(secret), "x")
