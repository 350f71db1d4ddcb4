"""A file that somebody is writing while it is read."""

from pathlib import Path

import pytest

from mcpl_heartbeat.actions import Opened
from mcpl_heartbeat.storage import documents
from mcpl_heartbeat.wake.files import Config, decode_config, encode_config
from tests.storage.support import copies


@pytest.mark.requirement("seed.file.copy-aside")
@pytest.mark.parametrize("looks", [1, documents._LOOKS - 1, documents._LOOKS])
def test_what_is_read_and_what_is_judged_are_the_same_content(tmp_path: Path, looks: int) -> None:
    path = tmp_path / "config.json"
    whole = encode_config(Config(interval_seconds=120))
    path.write_bytes(whole[:1])
    seen = 0

    def pause(seconds: float) -> None:
        nonlocal seen
        seen += 1
        path.write_bytes(whole if seen == looks else whole[: seen + 1])

    file = documents.DocumentFile(str(path), decode_config, encode_config, "config", pause)
    assert file.open() == Opened(Config(interval_seconds=120))
    assert copies(path) == []
    assert seen == looks


@pytest.mark.requirement("seed.file.copy-aside")
def test_one_that_is_never_finished_is_copied_as_it_was_judged(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"[")
    written = [b"["]

    def pause(seconds: float) -> None:
        written.append(written[-1] + b"[")
        path.write_bytes(written[-1])

    file = documents.DocumentFile(str(path), decode_config, encode_config, "config", pause)
    assert file.open().value is None
    assert len(written) == documents._LOOKS + 1
    (copy,) = copies(path)
    assert copy.read_bytes() == written[-1]
