"""The server's own key: made once, kept whole, never written over."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mcpl_heartbeat.shell import agent_key
from mcpl_heartbeat.shell.agent_key import Key, NoKeyError, find
from mcpl_heartbeat.storage import disk

SECRET = "s" * 40


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "data" / "heartbeat-config.json"


def key_file(config: Path, content: str, mode: int = 0o600) -> Path:
    path = Path(agent_key.beside(str(config)))
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, "utf-8")
    path.chmod(mode)
    return path


def trouble(config: Path, given: str | None = None) -> str:
    with pytest.raises(NoKeyError) as raised:
        find(given, str(config))
    return f"{raised.value} {raised.value.remedy}"


@pytest.mark.requirement("watch.identity.own-key")
def test_a_key_is_made_once_beside_the_config(config: Path) -> None:
    first = find(None, str(config))
    path = config.with_name("heartbeat-config.agent-key")
    assert path.read_text("utf-8") == f"{first.secret}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert first.secret.startswith("hb_")
    assert first.note is None
    assert first.new
    assert find(None, str(config)) == Key(first.secret, path=str(path))
    assert [found.name for found in config.parent.iterdir()] == [path.name]


@pytest.mark.requirement("watch.identity.own-key")
def test_a_wide_umask_does_not_widen_it(config: Path) -> None:
    before = os.umask(0)
    try:
        find(None, str(config))
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path(agent_key.beside(str(config))).stat().st_mode) == 0o600


@pytest.mark.requirement("watch.identity.own-key")
def test_the_environment_goes_before_the_file(config: Path) -> None:
    assert find(f" {SECRET}\n", str(config)) == Key(SECRET)
    assert not config.parent.exists()


@pytest.mark.requirement("watch.identity.own-key")
def test_servers_that_start_at_once_agree(config: Path) -> None:
    script = (
        "import sys\n"
        "from mcpl_heartbeat.shell.agent_key import find\n"
        "sys.stdin.readline()\n"
        "print(find(None, sys.argv[1]).secret)\n"
    )
    servers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            text=True,
        )
        for _ in range(4)
    ]
    for server in servers:
        assert server.stdin is not None
        server.stdin.write("\n")
        server.stdin.flush()
    told = {server.communicate(timeout=60)[0] for server in servers}
    assert len(told) == 1
    assert len(told.pop()) > 40


@pytest.mark.requirement("watch.identity.own-key")
def test_one_that_another_made_meanwhile_is_taken(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quicker: list[Path] = []
    make_folder = disk.make_folder

    def slowly(folder: str) -> None:
        make_folder(folder)
        quicker.append(key_file(config, SECRET))

    monkeypatch.setattr(disk, "make_folder", slowly)
    assert find(None, str(config)).secret == SECRET
    assert [found.name for found in config.parent.iterdir()] == [quicker[0].name]


@pytest.mark.requirement("watch.identity.own-key")
def test_a_file_system_without_links_will_do(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    first = find(None, str(config))
    assert find(None, str(config)).secret == first.secret
    assert len(list(config.parent.iterdir())) == 1


@pytest.mark.requirement("watch.identity.key-kept")
@pytest.mark.parametrize(
    "content",
    ["", "\n", "short", f"{SECRET}\n{SECRET}", "x" * 5_000, "\ufffd" * 40],
)
def test_a_file_that_holds_no_key_is_left_and_named(config: Path, content: str) -> None:
    path = key_file(config, content)
    assert str(path) in trouble(config)
    assert path.read_text("utf-8") == content


@pytest.mark.requirement("watch.identity.key-kept")
def test_bytes_that_are_no_text_are_no_key(config: Path) -> None:
    path = key_file(config, "")
    path.write_bytes(b"\xff" * 40)
    assert str(path) in trouble(config)
    assert path.read_bytes() == b"\xff" * 40


@pytest.mark.requirement("watch.identity.key-kept")
def test_one_that_cannot_be_read_is_left_and_named(config: Path) -> None:
    path = Path(agent_key.beside(str(config)))
    path.mkdir(parents=True)
    assert "it is a folder" in trouble(config)
    path.rmdir()
    path.symlink_to(path)
    assert str(path) in trouble(config)


@pytest.mark.requirement("watch.identity.key-kept")
def test_one_that_cannot_be_kept_is_none(config: Path) -> None:
    config.parent.write_text("no folder", "utf-8")
    said = trouble(config)
    assert "cannot be" in said
    assert "agent_key" in said


@pytest.mark.requirement("watch.identity.key-kept")
def test_one_that_others_can_read_is_used_and_said(config: Path) -> None:
    path = key_file(config, SECRET, 0o640)
    found = find(None, str(config))
    assert found.secret == SECRET
    assert found.note is not None
    assert "chmod 600" in found.note
    assert SECRET not in found.note
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.requirement("watch.identity.key-kept")
def test_a_given_one_that_is_too_short_is_named_and_no_file_is_made(config: Path) -> None:
    said = trouble(config, "short")
    assert "HEARTBEAT_AGENT_KEY" in said
    assert "short" not in said
    assert not config.parent.exists()


@pytest.mark.requirement("watch.identity.own-key")
def test_a_draft_of_a_killed_server_is_cleared_away(config: Path) -> None:
    config.parent.mkdir()
    draft = config.with_name(".heartbeat-config.agent-key.4194304-0.tmp")
    draft.write_text(f"{SECRET}\n", "utf-8")
    find(None, str(config))
    assert not draft.exists()


def test_a_link_to_the_config_leads_to_its_key(config: Path, tmp_path: Path) -> None:
    first = find(None, str(config))
    config.write_text("{}", "utf-8")
    link = tmp_path / "link.json"
    link.symlink_to(config)
    assert find(None, str(link)).secret == first.secret


@pytest.mark.requirement("watch.identity.key-kept")
def test_a_working_directory_that_is_gone_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(path: str) -> str:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(os.path, "realpath", gone)
    assert "HEARTBEAT_CONFIG_FILE" in trouble(Path("heartbeat-config.json"))


@pytest.mark.requirement("watch.identity.own-label")
@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("/agents/keeper.agent-key", "keeper"),
        ("/agents/keeper/heartbeat-config.agent-key", "keeper"),
        ("/heartbeat-config.agent-key", None),
        (f"/agents/{'x' * 65}.agent-key", None),
        ("/agents/two\nlines.agent-key", None),
        ("/agents/\udcff.agent-key", "\ufffd"),
        (None, None),
    ],
)
def test_a_key_gives_its_agent_a_label(path: str | None, label: str | None) -> None:
    assert Key(SECRET, path=path).label == label
