"""kill -9 in the middle of saving, again and again (field report 94)."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.support import holds, names

ADDER = """
import sys
from mcpl_heartbeat.actions import Saved
from tests.storage.support import reminders_file, rows

file = reminders_file(sys.argv[1])
have = file.open().value or ()
print(len(have), flush=True)
while True:
    have += rows(str(len(have)), every_seconds=60)
    assert file.save(have) == Saved()
    print(len(have), flush=True)
"""


@pytest.mark.requirement("field.94", "file.atomic", "file.no-temp-left")
def test_a_killed_save_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    moments = random.Random(94)
    answered = 0
    for _ in range(20):
        with subprocess.Popen(
            [sys.executable, "-c", ADDER, str(path)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            first = int(child.stdout.readline())
            assert first >= answered
            # What the killed ones left is gone; the child may be saving by now.
            temps = [name for name in names(tmp_path) if name != "r.json"]
            assert all(name.startswith(f".r.json.{child.pid}-") for name in temps)
            for _ in range(moments.randrange(1, 30)):
                answered = int(child.stdout.readline())
            child.kill()
            rest = child.stdout.read().split("\n")
        # A line that was cut by the kill is no answer.
        answered = max([answered, *map(int, rest[:-1])])
        found = holds(path)
        assert found is not None
        assert len(found) in {answered, answered + 1}
        assert [row.id for row in found] == [str(number) for number in range(len(found))]
