"""Draws what in ``spec/`` comes from the code: diagrams, tables and JSON Schemas.

``python -m spec.generate`` writes them into the pages and ``spec/schemas``; a test fails when what
is committed differs. In a page, what is generated stands between ``<!-- generated: NAME -->`` and
``<!-- end -->``.
"""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mcpl_heartbeat.tasks.tools import TOOLS as TASKS
from mcpl_heartbeat.wake.tools import TOOLS as WAKE
from mcpl_heartbeat.watch.tools import TOOLS as WATCH
from spec import diagrams, links, shapes, tables

SCHEMAS = links.HERE / "schemas"

_BLOCK = re.compile(r"(<!-- generated: ([a-z ]+) -->\n).*?(\n?<!-- end -->)", re.DOTALL)


def _blocks(page: str) -> dict[str, Callable[[], str]]:
    named = links.in_pages()
    rows = links.requirements()
    here = [name for name, at in named.items() if any(f"/{page}:" in place for place in at)]
    drawn: dict[str, Callable[[], str]] = {
        f"{name} diagram": partial(diagrams.diagram, machine)
        for name, machine in diagrams.MACHINES.items()
    }
    return drawn | {
        "tools": lambda: tables.tools(WAKE),
        "arguments": lambda: tables.arguments(WAKE),
        "watch tools": lambda: tables.tools(WATCH),
        "watch arguments": lambda: tables.arguments(WATCH, besides={"agent_key"}),
        "task tools": lambda: tables.tools(TASKS),
        "task arguments": lambda: tables.arguments(TASKS, besides={"agent_key"}),
        "failures": tables.failures,
        "sources": lambda: tables.sources(here, rows),
    }


def page(name: str) -> str:
    """Give the page with its blocks as the code has them now; ``KeyError`` for an unknown one."""
    blocks = _blocks(name)
    text = (links.HERE / name).read_text("utf-8")
    return _BLOCK.sub(lambda found: found[1] + blocks[found[2]]() + "\n<!-- end -->", text)


def outputs() -> dict[Path, str]:
    """Give every generated file with its content."""
    schemas = {
        SCHEMAS / f"{name}.json": json.dumps(shapes.document(shape), indent=2, ensure_ascii=False)
        + "\n"
        for name, shape in shapes.shapes().items()
    }
    return {links.HERE / name: page(name) for name in links.PAGES} | schemas


def main() -> None:
    """Write what differs, and remove schemas of nothing."""
    wanted = outputs()
    for path in set(SCHEMAS.rglob("*.json")) - set(wanted):
        path.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            print(path.relative_to(links.ROOT))


if __name__ == "__main__":
    main()
