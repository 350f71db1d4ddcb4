"""Which pages state a rule, and which tests and transcripts show it.

``python -m spec.links`` prints it for every rule of ``requirements.toml``, ``python -m spec.links
ID…`` for some.
"""

import ast
import functools
import json
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGES = ("wake.md", "policy.md", "files.md", "errors.md", "watch.md", "tasks.md", "doors.md")

_NAMED = re.compile(r"\[`([a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+)`\]")

Where = dict[str, list[str]]
"""Ids, and for each the places that name it."""


@functools.cache
def requirements() -> dict[str, dict[str, Any]]:
    """Read the table of requirements."""
    return tomllib.loads((HERE / "requirements.toml").read_text("utf-8"))


def in_pages() -> Where:
    """Find the ids that the pages name, each written in brackets and backticks."""
    found: Where = defaultdict(list)
    for page in PAGES:
        for number, line in enumerate((HERE / page).read_text("utf-8").splitlines(), 1):
            for name in _NAMED.findall(line):
                found[name].append(f"spec/{page}:{number}")
    return found


def in_tests(folder: Path = ROOT / "tests") -> Where:
    """Find the ids that tests name in a ``requirement`` mark."""
    found: Where = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "requirement":
                for argument in node.args:
                    if isinstance(argument, ast.Constant):
                        found[str(argument.value)].append(f"{_shown(path)}:{argument.lineno}")
    return found


def in_transcripts(folder: Path = ROOT / "conformance") -> Where:
    """Find the ids that transcripts name, in their heads and in their steps."""
    found: Where = defaultdict(list)
    for path in sorted(folder.glob("*/*.jsonl")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if line.strip() and not line.lstrip().startswith("//"):
                for name in _rules(json.loads(line)):
                    found[name].append(f"{_shown(path)}:{number}")
    return found


def _rules(item: Any) -> Iterator[str]:
    rules = item.get("rules", ()) if isinstance(item, dict) else ()
    yield from (str(name) for name in rules)


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def report(names: Iterable[str]) -> Iterator[str]:
    """Word the links of the rules ``names``, a block each."""
    rows, pages, tests, transcripts = requirements(), in_pages(), in_tests(), in_transcripts()
    for name in names:
        row = rows[name]
        yield f"{name}: {row['text']} ({row['source']})"
        for what, where in (("page", pages), ("test", tests), ("transcript", transcripts)):
            yield from (f"  {what:10} {place}" for place in where.get(name, ()))


def main(asked: list[str]) -> int:
    """Print the links; 1 when an id is unknown."""
    rows = requirements()
    unknown = [name for name in asked if name not in rows]
    if unknown:
        print("not in spec/requirements.toml:", ", ".join(unknown), file=sys.stderr)
        return 1
    print("\n".join(report(asked or rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
