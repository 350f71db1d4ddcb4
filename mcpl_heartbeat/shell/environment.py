"""What the environment says: where the files and the store are, and which zone the agent lives in.

Nothing here fails: what is wrong becomes a warning and the next best is used.
"""

import contextlib
import os
import time
import zoneinfo
from collections.abc import Mapping
from datetime import timedelta, timezone
from pathlib import Path

import msgspec

from mcpl_heartbeat.times import UTC, Zone

CONFIG_FILE = "HEARTBEAT_CONFIG_FILE"
REMINDERS_FILE = "HEARTBEAT_REMINDERS_FILE"
AGENT_TIMEZONE = "AGENT_TIMEZONE"
STORE = "HEARTBEAT_STORE"
AGENT_KEY = "HEARTBEAT_AGENT_KEY"
CONFIG_NAME = "heartbeat-config.json"
"""The config file, where the environment names none."""

_LOCALTIME = "/etc/localtime"
_TIMEZONE = "/etc/timezone"


class Environment(msgspec.Struct, frozen=True):
    """Everything taken from the environment, and the warnings it gave."""

    config_file: str
    reminders_file: str
    zone: Zone
    warnings: tuple[str, ...] = ()
    store: str | None = None
    """The URL of the shared store; ``None``: there is no watch wing."""
    agent_key: str | None = None
    """The secret of this server's agent; ``None``: it is in a file beside the config."""


def read(
    environ: Mapping[str, str], localtime: str = _LOCALTIME, named: str = _TIMEZONE
) -> Environment:
    """Take in ``environ`` and the system's zone (seed, Recipe wiring; issue 2, section 6).

    An empty variable counts as one that is not set. ``localtime`` is the compiled zone the system
    runs on, ``named`` a file that holds its name. Never raises.
    """
    warnings: list[str] = []
    wanted = environ.get(AGENT_TIMEZONE, "").strip()
    zone = _zone(wanted) if wanted else None
    if zone is None:
        zone = _system_zone(environ.get("TZ"), localtime, named, warnings)
        if wanted:
            warnings.append(
                f"{AGENT_TIMEZONE} {shown(wanted)!r} is not the name of a time zone here; "
                f"{zone.name} is used. Set it to an IANA name such as Europe/Berlin."
            )
    return Environment(
        config_file=environ.get(CONFIG_FILE) or CONFIG_NAME,
        reminders_file=environ.get(REMINDERS_FILE) or "heartbeat-reminders.json",
        zone=zone,
        warnings=tuple(warnings),
        store=environ.get(STORE, "").strip() or None,
        agent_key=environ.get(AGENT_KEY) or None,
    )


def shown(text: str) -> str:
    """Give ``text`` from the system in a form that can be written as UTF-8.

    Bytes of a file name that are not UTF-8 are lone surrogates in Python; they become U+FFFD.
    """
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _zone(name: str) -> Zone | None:
    try:
        return Zone(name, zoneinfo.ZoneInfo(name))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _system_zone(tz: str | None, localtime: str, named: str, warnings: list[str]) -> Zone:
    if tz is None:
        return _zone_of_machine(localtime, named) or UTC
    name = _name_within(tz.strip().removeprefix(":"))
    if name in {"", "UTC"}:
        return UTC
    zone = _zone_of_machine(name, os.devnull) if name.startswith("/") else _zone(name)
    if zone is None:
        zone = _fixed()
        warnings.append(
            f"TZ {shown(tz)!r} is not the name of a time zone here; the fixed offset "
            f"{zone.name} is used. Set {AGENT_TIMEZONE} to an IANA name such as Europe/Berlin."
        )
    return zone


def _zone_of_machine(localtime: str, named: str) -> Zone | None:
    # The link first: it is what the system's own clock follows, and the other file can be stale.
    with contextlib.suppress(OSError):
        zone = _zone(_name_within(os.path.realpath(localtime, strict=True)))
        if zone is not None:
            return zone
    with contextlib.suppress(OSError, ValueError), Path(named).open(encoding="utf-8") as file:
        zone = _zone(file.readline(256).strip())
        if zone is not None:
            return zone
    with contextlib.suppress(OSError, ValueError), Path(localtime).open("rb") as compiled:
        return Zone("local time", zoneinfo.ZoneInfo.from_file(compiled))
    return None


def _name_within(path: str) -> str:
    # "/usr/share/zoneinfo/Europe/Berlin" holds the name; macOS and TZ=:/… have such paths too.
    return path.rpartition("/zoneinfo/")[2]


def _fixed() -> Zone:
    offset = timedelta(seconds=time.localtime().tm_gmtoff)
    fixed = timezone(offset)
    return Zone(fixed.tzname(None), fixed)
