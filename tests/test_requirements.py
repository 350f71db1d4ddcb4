"""Each requirement has a test, and each test's requirement exists.

It reads the tests' sources rather than a run's collection, so that a run of one test sees the whole
table.
"""

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
TABLE = TESTS.parent / "spec" / "requirements.toml"


@cache
def _rows() -> dict[str, dict[str, Any]]:
    return tomllib.loads(TABLE.read_text("utf-8"))


def _is_requirement(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "requirement"


def _marks(source: str) -> Iterator[tuple[str | None, int]]:
    """Yield each id that a ``requirement`` mark names, with its line; None: no plain string."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _is_requirement(node):
            for argument in node.args:
                plain = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
                yield (argument.value if plain else None), argument.lineno


@cache
def _named() -> dict[str | None, list[str]]:
    """Return each id that tests name, and where."""
    found: dict[str | None, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("*.py")):
        for name, line in _marks(path.read_text("utf-8")):
            found[name].append(f"{path.relative_to(TESTS.parent)}:{line}")
    return found


def test_each_requirement_has_a_test() -> None:
    """A promise that nothing shows is listed."""
    named = _named()
    built = [name for name, row in _rows().items() if row.get("status") != "not built"]
    missing = [name for name in built if name not in named]
    assert not missing, "requirements without a test:\n" + "\n".join(missing)


def test_each_named_requirement_exists() -> None:
    """A test cannot show a promise that nobody made."""
    rows = _rows()
    unknown = [f"{name}: {', '.join(at)}" for name, at in _named().items() if name not in rows]
    assert not unknown, "ids that spec/requirements.toml does not hold:\n" + "\n".join(unknown)


def test_what_is_not_built_has_a_reason_and_no_test() -> None:
    """A row is either shown by a test or says why it cannot be."""
    named = _named()
    for name, row in _rows().items():
        if "status" in row:
            assert row["status"] == "not built", name
            assert row.get("reason"), name
            assert name not in named, name


def test_the_table_is_whole_and_sorted() -> None:
    """Each row has its source and sentence; ids stand in order inside their section."""
    for name, row in _rows().items():
        assert set(row) <= {"source", "text", "status", "reason"}, name
        assert row["source"], name
        assert row["text"].endswith("."), name
    for section in TABLE.read_text("utf-8").split("\n# ")[1:]:
        names = [line.split('"')[1] for line in section.splitlines() if line.startswith('"')]
        assert names == sorted(names, key=_in_order), section.splitlines()[0]


def _in_order(name: str) -> list[tuple[int, str]]:
    return [(int(p), "") if p.isdigit() else (-1, p) for p in name.split(".")]


@pytest.mark.parametrize(
    ("source", "ids"),
    [
        ("@pytest.mark.requirement('a.b', 'c')\ndef test(): pass", ["a.b", "c"]),
        ("pytestmark = pytest.mark.requirement('a')", ["a"]),
        ("pytest.param(1, marks=pytest.mark.requirement('a'))", ["a"]),
        ("@pytest.mark.requirement(NAME)\ndef test(): pass", [None]),
        ("requirement('a')", []),
    ],
)
def test_marks_are_read_from_the_source(source: str, ids: list[str | None]) -> None:
    """The reader sees decorators, module marks and marks of parameters."""
    assert [name for name, _ in _marks(source)] == ids
