"""A PostgreSQL of the tests' own: a private cluster made by the machine's own binaries.

It lives in a temporary folder, listens on a Unix socket there and nowhere else, and is shared by
all workers of one run. Nobody has to stop it: a small process (``python -m tests.postgres``) waits
until the last test process is gone, however it went, and then removes everything. Where
``HEARTBEAT_TEST_POSTGRES`` names a server (a URL whose user may create databases), that is used.
Nothing of it is kept over a crash of the machine (``fsync`` is off).
"""

import contextlib
import fcntl
import functools
import importlib.util
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TEMPLATE = "heartbeat_template"
GIVEN = "HEARTBEAT_TEST_POSTGRES"
GIVEN_TEMPLATE = "HEARTBEAT_TEST_POSTGRES_TEMPLATE"
"""A database on it with a store's tables, if there is one to copy."""
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "log_min_messages": "warning",
}


class NoPostgresError(Exception):
    """There is none, and why."""


class Server:
    """A server to make databases on; ``url`` is that of one to connect to for that."""

    def __init__(self, url: str, template: str | None) -> None:
        self.url = url
        self._template = template
        self._emptied: list[str] = []

    @property
    def environ(self) -> dict[str, str]:
        """What leads another process of the tests to it."""
        return {GIVEN: self.url, GIVEN_TEMPLATE: self._template or ""}

    def of(self, database: str) -> str:
        """Give the URL of a database."""
        import sqlalchemy as sa

        return sa.make_url(self.url).set(database=database).render_as_string(hide_password=False)

    def execute(self, statement: str) -> list[Any]:
        """Run a statement outside of transactions, and give the first column of what it answers."""
        import sqlalchemy as sa

        engine = sa.create_engine(self.url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as conn:
            result = conn.exec_driver_sql(statement)
            return list(result.scalars()) if result.returns_rows else []

    @functools.cached_property
    def _way(self) -> str:
        # To copy the files is what releases before 15 do, and half the work.
        [version] = self.execute("SELECT current_setting('server_version_num')::int")
        return " STRATEGY FILE_COPY" if version >= 150_000 else ""

    @contextlib.contextmanager
    def database(self, *, empty: bool = False) -> Iterator[str]:
        """Give the URL of a fresh database, with a store's tables unless ``empty``."""
        name = self._make(empty=empty)
        try:
            yield self.of(name)
        finally:
            self._drop(name)

    @contextlib.contextmanager
    def used_again(self) -> Iterator[str]:
        """Give the URL of a store's database whose rows alone may be touched.

        To make a database and to drop it takes fifty times as long as to empty one.
        """
        name = self._emptied.pop() if self._emptied else self._make(empty=False)
        yield self.of(name)
        _empty(self.of(name))
        self._emptied.append(name)

    def close(self) -> None:
        """Drop what would have been used again."""
        while self._emptied:
            self._drop(self._emptied.pop())

    def _make(self, *, empty: bool) -> str:
        name = f"heartbeat_{uuid.uuid4().hex[:12]}"
        template = None if empty else self._template
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template or 'template0'}{self._way}")
        if not empty and template is None:
            _migrate(self.of(name))
        return name

    def _drop(self, name: str) -> None:
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextlib.contextmanager
def server() -> Iterator[Server]:
    """Give the server of this run. Raises ``NoPostgresError``."""
    if given := os.environ.get(GIVEN):
        yield Server(given, os.environ.get(GIVEN_TEMPLATE) or None)
        return
    if importlib.util.find_spec("psycopg") is None:
        raise NoPostgresError("psycopg is not installed")
    binaries = find_binaries()
    with _part_in(_folder(), binaries) as folder:
        yield Server(_url(folder, "postgres"), TEMPLATE)


def find_binaries() -> Path:
    """Find ``initdb`` and ``postgres``. Raises ``NoPostgresError``."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    for folder in [*folders, *versions]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise NoPostgresError(f"no PostgreSQL server is installed, and {GIVEN} is not set")


def _version(folder: Path) -> int:
    found = re.fullmatch(r"(\d+).*", folder.parent.name)
    return int(found[1]) if found else 0


def _folder() -> Path:
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"{os.getpid()}"
    return Path(tempfile.gettempdir()) / f"heartbeat-pg-{os.getuid()}-{run[:12]}"


def _user() -> dict[str, Any]:
    """As whom to run it: it refuses to be root's."""
    if os.getuid():
        return {}
    try:
        found = pwd.getpwnam("postgres")
    except KeyError:
        raise NoPostgresError("it refuses to run as root, and no user is postgres") from None
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


def _url(folder: Path, database: str) -> str:
    return f"postgresql+psycopg://postgres@/{database}?host={folder}"


@contextlib.contextmanager
def _part_in(folder: Path, binaries: Path) -> Iterator[Path]:
    """Use the cluster in ``folder``, which the first one makes; it goes when the last one has."""
    while (users := _join(folder, binaries)) is None:
        time.sleep(0.05)
    try:
        yield folder
    finally:
        os.close(users)


def _join(folder: Path, binaries: Path) -> int | None:
    """Take part, and give what is to be closed in the end; ``None`` while it is being removed."""
    with _locked(folder.with_suffix(".lock")) as lock:
        users = os.open(folder.with_suffix(".users"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        joined = False
        try:
            fcntl.flock(users, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.fstat(lock).st_nlink and os.fstat(users).st_nlink:
                if not (folder / "ready").exists():
                    _make(folder, binaries)
                joined = True
        except BlockingIOError:
            pass
        finally:
            if not joined:
                os.close(users)
    return users if joined else None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _make(folder: Path, binaries: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755)
    who = _user()
    if who:
        os.chown(folder, who["user"], who["group"])
    data, log = folder / "data", folder / "log"
    init = [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N"]
    init += ["-E", "UTF8", "--locale=C"]
    made = subprocess.run(
        list(map(str, init)), capture_output=True, text=True, cwd="/", check=False, **who
    )
    if made.returncode:
        raise NoPostgresError(f"initdb failed: {made.stderr.strip()[-300:]}")
    options = " ".join(f"-c {name}='{value}'" for name, value in _SETTINGS.items())
    start = [binaries / "pg_ctl", "-D", data, "-l", log, "-w", "-t", "60", "-s"]
    start += ["-o", f"-k {folder} {options}", "start"]
    # The keeper comes first: what starts the server may be killed half way.
    subprocess.run(
        [sys.executable, "-m", "tests.postgres", str(folder), str(binaries)],
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=True,
    )
    started = subprocess.run(
        list(map(str, start)), stdout=subprocess.DEVNULL, cwd="/", check=False, **who
    )
    if started.returncode:
        text = log.read_text("utf-8", "replace") if log.exists() else ""
        raise NoPostgresError(f"the server did not start: {text.strip()[-300:]}")
    Server(_url(folder, "postgres"), None).execute(f"CREATE DATABASE {TEMPLATE} TEMPLATE template0")
    _migrate(_url(folder, TEMPLATE))
    (folder / "ready").touch()


def _migrate(url: str) -> None:
    from mcpl_heartbeat.storage.store import migrate

    migrate.upgrade(url)


def _empty(url: str) -> None:
    import sqlalchemy as sa

    from mcpl_heartbeat.storage.store import schema

    statements = [f"DELETE FROM {table.name}" for table in reversed(schema.metadata.sorted_tables)]
    statements.append("SELECT setval(seqrelid, seqstart, false) FROM pg_sequence")
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as conn:
        conn.exec_driver_sql("; ".join(statements))


def keep(folder: Path, binaries: Path) -> None:
    """Wait until nobody uses the cluster any more, and remove it."""
    users, lock = folder.with_suffix(".users"), folder.with_suffix(".lock")
    with _locked(users):
        stop = [binaries / "pg_ctl", "-D", folder / "data", "-m", "immediate", "-s", "stop"]
        subprocess.run(list(map(str, stop)), cwd="/", check=False, **_user())
        shutil.rmtree(folder, ignore_errors=True)
        for path in (users, lock):
            path.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """The PostgreSQL of this run; without one the test is skipped."""
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(server())
        except NoPostgresError as error:
            pytest.skip(f"no PostgreSQL to test with: {error}")
        stack.callback(made.close)
        yield made


@pytest.fixture
def postgres_url(postgres_server: Server) -> Iterator[str]:
    """The URL of a fresh PostgreSQL store."""
    with postgres_server.database() as url:
        yield url


if __name__ == "__main__":
    if os.fork():  # nobody waits for it
        os._exit(0)
    keep(Path(sys.argv[1]), Path(sys.argv[2]))
