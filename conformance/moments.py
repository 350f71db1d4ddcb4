"""Wall times as transcripts write them: milliseconds, or ISO 8601 text."""

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZONE = re.compile(r" \[[^\]]*\]$")


def to_ms(text: str) -> int | None:
    """Return the milliseconds of ISO 8601 ``text`` with an offset (`` [Zone]`` may follow it)."""
    try:
        moment = datetime.fromisoformat(_ZONE.sub("", text))
    except ValueError:
        return None
    return None if moment.tzinfo is None else (moment - _EPOCH) // timedelta(milliseconds=1)


def to_text(ms: int, form: str) -> str:
    """Return ``ms`` in UTC: ``"iso"`` to the millisecond with Z, ``"local"`` to the second."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    if form == "local":
        return moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"
