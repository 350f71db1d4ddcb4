"""The command line, for hosts and for people."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpl_heartbeat import __version__, cli

ROOT = Path(__file__).parents[2]


def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> tuple[object, str, str]:
    monkeypatch.setattr(sys, "argv", ["mcpl-heartbeat", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    return ended.value.code, out, err


@pytest.mark.requirement("people.version")
def test_version(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    said = f"mcpl-heartbeat, version {__version__}\n"
    assert run(capsys, monkeypatch, "--version") == (0, said, "")


@pytest.mark.requirement("people.help")
def test_help_names_what_there_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, out, err = run(capsys, monkeypatch, "--help")
    assert (status, err) == (0, "")
    for word in ("--stdio", "--version", "demo"):
        assert word in out


@pytest.mark.requirement("people.bare")
def test_bare_it_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, out, err = run(capsys, monkeypatch)
    assert (status, out) == (2, "")
    assert "--stdio" in err
    assert "mcpl-heartbeat demo" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["--stdoi"], ["--stdio", "--more"], ["nope"], ["--stdio", "demo"], ["demo", "-x"]]
)
def test_what_is_not_understood_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    status, out, err = run(capsys, monkeypatch, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("mcpl-heartbeat: ")
    assert err.count("\n") == 1


@pytest.mark.requirement("stdio.unsupported-platform")
@pytest.mark.parametrize("arguments", [[], ["--stdio"]])
def test_elsewhere_one_plain_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    status, out, err = run(capsys, monkeypatch, *arguments)
    assert (status, out) == (1, "")
    assert err == "mcpl-heartbeat does not run on win32 yet, only on Linux and macOS.\n"


@pytest.mark.requirement("people.light-import")
def test_the_way_in_for_hosts_imports_nothing_for_people(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "sys.argv = ['mcpl-heartbeat', '--stdio']\n"
        "from mcpl_heartbeat import cli\n"
        "try:\n"
        "    cli.main()\n"
        "except SystemExit as ended:\n"
        "    names = {name.partition('.')[0] for name in sys.modules}\n"
        "    heavy = {'click', 'rich', 'asyncio', 'jsonrpcserver', 'jsonschema', 'sqlite3'}\n"
        "    print(ended.code, sorted(names & heavy), file=sys.__stderr__)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert (found.stdout, found.stderr) == (b"", b"0 []\n")


def test_the_module_is_the_command(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "mcpl_heartbeat", "--version"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert __version__.encode() in found.stdout


@pytest.mark.requirement("people.demo")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["demo"], ["show"], ["--help"]])
def test_a_full_output_is_one_line_and_no_traceback(tmp_path: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(
            [sys.executable, "-m", "mcpl_heartbeat", *arguments],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            check=False,
            timeout=60,
            text=True,
        )
    assert found.returncode == 1
    assert found.stderr.startswith("mcpl-heartbeat: the output could not be written: ")
    assert found.stderr.count("\n") == 1


def test_the_hint_names_the_commands_own_help(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "See mcpl-heartbeat check --help." in run(capsys, monkeypatch, "check", "--nope")[2]
