"""``start.py``: from a bare Python to an installed package."""

import base64
import hashlib
import importlib.util
import io
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def start(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("start", ROOT / "start.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in [name for name in module.os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    # No settings but the test's own.
    monkeypatch.setattr(module.PipSettings, "files", staticmethod(lambda: [tmp_path / "pip.conf"]))
    return module


@pytest.fixture
def wheels(tmp_path):
    """A folder with two wheels that hold a pip which does nothing."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version in ("9.5", "10.0"):
        with zipfile.ZipFile(folder / f"pip-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("pip/__init__.py", f"__version__ = {version!r}\n")
            wheel.writestr("pip/__main__.py", "")
    (folder / "pipx-99.0-py3-none-any.whl").write_bytes(b"")
    return folder


def settings(start, tmp_path, text=""):
    (tmp_path / "pip.conf").write_text(text, encoding="utf-8")
    return start.PipSettings()


@pytest.mark.requirement("people.readme")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["demo"], ("demo", [])),
        (["test", "-k", "demo"], ("test", ["-k", "demo"])),
        (["serve", "--listen", "[::1]:80"], ("serve", ["--listen", "[::1]:80"])),
        (["demo", "--help"], ("demo", ["--help"])),
        (["--help"], (None, [])),
        ([], (None, [])),
    ],
)
def test_the_command_line(start, arguments, expected):
    assert start.read_command_line(arguments)[:2] == expected


@pytest.mark.requirement("people.readme")
@pytest.mark.parametrize("arguments", [["dmeo"], ["--env"], ["--quiet", "test"]])
def test_what_is_not_understood_is_said_and_does_nothing(start, arguments, capsys):
    assert start.main(arguments) == 2
    assert "is not understood. Say one of: demo, serve, test, install." in capsys.readouterr().err


@pytest.mark.requirement("people.readme", "watch.serve.start-py")
@pytest.mark.parametrize(
    ("typed", "extras", "became"),
    [
        ("demo --raw", [], "mcpl-heartbeat demo --raw"),
        (
            "serve --listen [::1]:80",
            ["postgres", "serve"],
            "mcpl-heartbeat serve --listen [::1]:80",
        ),
        ("test -x", ["postgres", "serve", "test"], "pytest -n 4 --dist worksteal -x"),
        ("install", ["postgres", "serve"], None),
    ],
)
def test_a_word_installs_what_it_needs_and_becomes_it(start, monkeypatch, typed, extras, became):
    installed, ran = [], []
    monkeypatch.setattr(start, "install", lambda env, package, extras: installed.append(extras))
    monkeypatch.setattr(start.os, "chdir", lambda folder: None)
    monkeypatch.setattr(start.os, "execv", lambda path, words: ran.append(words))
    start.main(["--env", "/env", *typed.split()])
    assert installed == [extras]
    assert ran == ([f"/env/bin/{became}".split()] if became else [])


@pytest.mark.requirement("people.readme")
def test_nothing_may_follow_install(start, monkeypatch, capsys):
    monkeypatch.setattr(start, "install", None)
    assert start.main(["install", "x"]) == 2
    assert "nothing may follow install, but 'x' does" in capsys.readouterr().err


@pytest.mark.requirement("people.readme")
def test_without_a_word_it_explains_itself(start, capsys):
    assert start.main([]) == 2
    assert "python3 start.py demo" in capsys.readouterr().out


@pytest.mark.requirement("people.readme")
def test_pips_settings_say_where_to_look(start, tmp_path, monkeypatch):
    text = (
        "[global]\nindex-url = https://one/simple/\nextra-index-url =\n  https://two\n  file:///x\n"
    )
    found = settings(start, tmp_path, text + f"[install]\nfind-links = {tmp_path}\n")
    assert found.places() == [
        tmp_path.as_uri(),
        "https://one/simple/pip/",
        "https://two/pip/",
        "file:///x/pip/",
    ]
    monkeypatch.setenv("PIP_INDEX_URL", "https://three")
    assert "https://three/pip/" in start.PipSettings().places()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert start.PipSettings().places() == [tmp_path.as_uri()]


@pytest.mark.requirement("people.readme")
def test_without_settings_it_is_the_public_index(start, tmp_path):
    assert settings(start, tmp_path).places() == [start.PUBLIC_INDEX + "/pip/"]


@pytest.mark.requirement("people.readme")
def test_the_newest_pip_of_a_folder_is_taken(start, tmp_path, wheels):
    found = settings(start, tmp_path, f"[global]\nfind-links = {wheels}\nno-index = true\n")
    assert start.fetch_pip(found) == (wheels / "pip-10.0-py3-none-any.whl").read_bytes()


@pytest.mark.requirement("people.readme")
def test_the_pip_whose_digest_is_known_goes_before_a_newer_one(
    start, tmp_path, wheels, monkeypatch
):
    monkeypatch.setattr(start, "PIP_VERSION", "9.5")
    found = settings(start, tmp_path, f"[global]\nfind-links = {wheels}\nno-index = true\n")
    assert start.fetch_pip(found) == (wheels / "pip-9.5-py3-none-any.whl").read_bytes()


@pytest.mark.requirement("people.readme")
def test_an_index_page_is_read_with_its_digests(start, tmp_path, wheels):
    page = tmp_path / "simple" / "pip"
    page.mkdir(parents=True)
    wheel = wheels / "pip-10.0-py3-none-any.whl"
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    link = f'<a href="../../wheels/{wheel.name}#sha256=%s">{wheel.name}</a>'
    text = f"[global]\nindex-url = {(tmp_path / 'simple').as_uri()}\n"

    (page / "index.html").write_text(link % right, encoding="utf-8")
    assert start.fetch_pip(settings(start, tmp_path, text)) == wheel.read_bytes()
    (page / "index.html").write_text(link % ("0" * 64), encoding="utf-8")
    with pytest.raises(start.Stop, match="not the expected content"):
        start.fetch_pip(settings(start, tmp_path, text))


@pytest.mark.requirement("people.readme")
def test_a_sender_that_could_not_be_checked_must_send_the_known_content(
    start, tmp_path, wheels, monkeypatch
):
    trusted = start.read
    monkeypatch.setattr(start, "read", lambda *place: (trusted(*place)[0], False))
    found = settings(start, tmp_path, f"[global]\nfind-links = {wheels}\nno-index = true\n")
    with pytest.raises(start.Stop, match="not the expected content"):
        start.fetch_pip(found)
    wheel = wheels / "pip-10.0-py3-none-any.whl"
    monkeypatch.setattr(start, "PIP_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert start.fetch_pip(found) == wheel.read_bytes()


@pytest.mark.requirement("people.readme")
def test_no_pip_anywhere_is_said_with_what_was_tried(start, tmp_path):
    found = settings(start, tmp_path, "[global]\nindex-url = file:///nowhere\n")
    with pytest.raises(start.Stop, match=r"Debian: python3-venv.*file:///nowhere/pip/"):
        start.fetch_pip(found)


@pytest.mark.requirement("people.readme")
def test_a_password_is_not_shown(start):
    assert start.hide_password("https://me:secret@host/simple") == "https://…@host/simple"


@pytest.mark.requirement("people.readme")
def test_a_password_in_an_address_goes_along_as_one_and_not_in_it(start, tmp_path, monkeypatch):
    asked = []

    class Opener:
        def open(self, request, timeout):
            asked.append(request)
            return io.BytesIO(b"page")

    found = settings(start, tmp_path, "[global]\n")
    monkeypatch.setattr(found, "opener", lambda checked: Opener())
    assert start.read(found, "https://m%40e:se%3Acret@host/simple/") == (b"page", True)
    assert start.read(found, "https://host/simple/") == (b"page", True)
    first, second = asked
    assert first.full_url == second.full_url == "https://host/simple/"
    assert first.get_header("Accept") == second.get_header("Accept")
    secret = base64.b64encode(b"m@e:se:cret").decode()
    assert first.get_header("Authorization") == f"Basic {secret}"
    assert second.get_header("Authorization") is None


@pytest.mark.requirement("people.readme")
def test_a_python_without_ensurepip_gets_its_pip_all_the_same(start, tmp_path, wheels, monkeypatch):
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    env = tmp_path / "env"
    start.make_environment(env)
    assert start.runs(env)
    assert not start.has_pip(env)
    settings(start, tmp_path, f"[global]\nfind-links = {wheels}\nno-index = true\n")
    start.add_pip(env)
    assert start.has_pip(env)
    assert list(env.rglob("pip/__pycache__/*.pyc"))


@pytest.mark.requirement("people.readme")
def test_a_second_time_there_is_nothing_to_do(start, tmp_path, wheels, monkeypatch):
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    settings(start, tmp_path, f"[global]\nfind-links = {wheels}\nno-index = true\n")
    asked = []
    monkeypatch.setattr(start, "run_pip", lambda env, verb, arguments: asked.append(arguments[-1]))
    monkeypatch.setattr(start, "compile_sources", lambda env, package: None)
    env = tmp_path / "env"
    for extras in ([], [], ["test"], ["test"], []):
        start.install(env, None, extras)
    assert asked == [str(start.HERE), f"{start.HERE}[test]"]


@pytest.mark.requirement("people.readme")
def test_another_package_replaces_the_one_before(start, tmp_path, wheels, monkeypatch):
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    settings(start, tmp_path, f"[global]\nfind-links = {wheels}\nno-index = true\n")
    asked = []
    monkeypatch.setattr(start, "run_pip", lambda env, verb, arguments: asked.append(verb))
    wheel = tmp_path / "some.whl"
    for content in (b"1", b"1", b"2"):
        wheel.write_bytes(content)
        start.install(tmp_path / "env", wheel, [])
    assert asked == ["uninstall", "install"] * 2


@pytest.mark.requirement("people.readme")
def test_a_folder_that_is_something_else_is_left_alone(start, tmp_path):
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "letters.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(start.Stop, match="is there and is no virtual environment"):
        start.make_environment(tmp_path / "env")
    assert (tmp_path / "env" / "letters.txt").read_text(encoding="utf-8") == "dear"
