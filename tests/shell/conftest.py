"""The fixture that the tests of the server's tasks share."""

from collections.abc import AsyncIterator

import pytest

from tests.shell.bench import Bench, running, until


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with running() as made:
        await until(lambda: len(made.core.openings) == 1)
        yield made
