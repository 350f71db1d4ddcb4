"""Nobody changes a name or a schema without noticing."""

import pytest

from .surface import SNAPSHOT, as_text, shown


@pytest.mark.requirement("people.surface")
def test_the_surface_is_the_committed_one():
    committed = SNAPSHOT.read_text(encoding="utf-8")
    assert as_text(shown()) == committed, (
        "names or schemas of the tools have changed: if that is meant, run "
        "python -m tests.clients.surface and say it in CHANGELOG.md"
    )
