"""The environment: defaults, names that are wrong, and the system's own zone."""

import datetime
import os
from pathlib import Path

import pytest

from mcpl_heartbeat.shell import environment

WINTER = datetime.datetime(2026, 1, 15)


def read(tmp_path: Path, **environ: str) -> environment.Environment:
    """Read with a system that has no zone of its own."""
    return environment.read(environ, str(tmp_path / "localtime"), str(tmp_path / "timezone"))


def hours(found: environment.Environment) -> float:
    offset = found.zone.tzinfo.utcoffset(WINTER)
    assert offset is not None
    return offset.total_seconds() / 3600


@pytest.mark.requirement("seed.config.path", "seed.reminder.path")
def test_the_files_are_where_the_environment_says_or_here(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert (found.config_file, found.reminders_file) == (
        "heartbeat-config.json",
        "heartbeat-reminders.json",
    )
    assert read(tmp_path, HEARTBEAT_CONFIG_FILE="", HEARTBEAT_REMINDERS_FILE="") == found
    found = read(tmp_path, HEARTBEAT_CONFIG_FILE="/a/b", HEARTBEAT_REMINDERS_FILE="c d")
    assert (found.config_file, found.reminders_file) == ("/a/b", "c d")


def test_a_file_name_that_is_not_utf8_can_be_shown_and_used() -> None:
    name = os.fsdecode(b"/data/\xff\xe9.json")
    assert environment.shown(name) == "/data/\ufffd\ufffd.json"
    assert environment.shown("/data/é🍸") == "/data/é🍸"


@pytest.mark.requirement("words.zone-choice")
def test_the_agents_zone_comes_first(tmp_path: Path) -> None:
    found = read(tmp_path, AGENT_TIMEZONE=" America/Los_Angeles \n", TZ="Asia/Tokyo")
    assert found.zone.name == "America/Los_Angeles"
    assert hours(found) == -8
    assert found.warnings == ()


@pytest.mark.requirement("words.zone-choice")
@pytest.mark.parametrize(
    ("tz", "name"),
    [
        ("Asia/Tokyo", "Asia/Tokyo"),
        (":Asia/Tokyo", "Asia/Tokyo"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "UTC"),
        ("", "UTC"),
        ("UTC", "UTC"),
        ("EST5EDT", "EST5EDT"),
    ],
)
def test_then_tz(tmp_path: Path, tz: str, name: str) -> None:
    found = read(tmp_path, TZ=tz)
    if tz.startswith("/"):
        name = "Asia/Tokyo"
    assert found.zone.name == name
    assert found.warnings == ()


def link(tmp_path: Path, name: str) -> None:
    target = tmp_path / "zoneinfo" / name
    target.parent.mkdir(parents=True)
    target.write_bytes(b"")
    (tmp_path / "localtime").symlink_to(target)


@pytest.mark.requirement("words.zone-choice")
def test_then_the_systems_link(tmp_path: Path) -> None:
    link(tmp_path, "Europe/Berlin")
    (tmp_path / "timezone").write_text("Asia/Tokyo\n")
    assert read(tmp_path).zone.name == "Europe/Berlin"


@pytest.mark.requirement("words.zone-choice")
def test_then_the_systems_name(tmp_path: Path) -> None:
    (tmp_path / "timezone").write_text("Asia/Tokyo\n")
    assert read(tmp_path).zone.name == "Asia/Tokyo"


@pytest.mark.requirement("words.zone-choice")
def test_then_rules_without_a_name(tmp_path: Path) -> None:
    (tmp_path / "localtime").write_bytes(b"TZif2" + bytes(15) + _counts() + _rules(7200))
    found = read(tmp_path)
    assert found.zone.name == "local time"
    assert hours(found) == 2


def _counts() -> bytes:
    return b"".join(number.to_bytes(4, "big") for number in (0, 0, 0, 0, 1, 4))


def _rules(offset: int) -> bytes:
    block = offset.to_bytes(4, "big") + b"\0\0XST\0"
    return block + b"TZif2" + bytes(15) + _counts() + block + b"\nXST-2\n"


@pytest.mark.requirement("words.zone-choice")
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"../../etc/passwd", b"Nowhere/Land\n"])
def test_then_utc(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "timezone").write_bytes(content)
    (tmp_path / "localtime").write_bytes(content)
    found = read(tmp_path)
    assert found.zone.name == "UTC"
    assert found.warnings == ()


@pytest.mark.requirement("words.zone-bad", "host.33")
@pytest.mark.parametrize(
    "name",
    ["Nowhere/Land", "../../etc/passwd", "/etc/localtime", "x" * 5000, "a\udcffb", "America"],
)
def test_a_bad_agent_zone_warns_and_falls_back(tmp_path: Path, name: str) -> None:
    link(tmp_path, "Europe/Berlin")
    found = read(tmp_path, AGENT_TIMEZONE=name)
    assert found.zone.name == "Europe/Berlin"
    (warning,) = found.warnings
    assert warning.startswith("AGENT_TIMEZONE '")
    assert "Europe/Berlin is used" in warning
    warning.encode()


@pytest.mark.requirement("words.zone-bad", "host.33")
@pytest.mark.parametrize("name", ["Nowhere/Land", "/no/such/file", "<+03>-3"])
def test_a_bad_tz_warns_and_falls_back_to_an_offset(tmp_path: Path, name: str) -> None:
    found = read(tmp_path, TZ=name)
    assert found.zone.name.startswith("UTC")
    (warning,) = found.warnings
    assert f"{found.zone.name} is used" in warning
