"""The server's own key: the secret by which the shared store knows its agent.

It comes from ``HEARTBEAT_AGENT_KEY``, or from a file beside the config, which is made once. The
secret is on disk, whole, before anybody is told of it, so a crash never loses an identity; a file
that is there is never written over, whatever is in it.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from mcpl_heartbeat.shell.environment import AGENT_KEY, CONFIG_NAME, shown
from mcpl_heartbeat.storage import disk
from mcpl_heartbeat.watch.identity import SECRET_BYTES, new_secret

SHORTEST, LONGEST = 32, 256
"""How many characters a secret may have (issue 4 §2)."""
LONGEST_LABEL = 64
_MEANWHILE = "meanwhile send agent_key with each call"


class Key(msgspec.Struct, frozen=True):
    """The secret, and what has to be said of where it was found."""

    secret: str
    note: str | None = None
    path: str | None = None
    """The file that it is kept in; ``None``: the environment gave it."""
    new: bool = False
    """Whether that file was made just now."""

    @property
    def label(self) -> str | None:
        """What the agent is called where it registers this key: after the config, or its folder."""
        if self.path is None:
            return None
        file = Path(shown(self.path))
        name = file.stem if file.stem != Path(CONFIG_NAME).stem else file.parent.name
        return name if 0 < len(name) <= LONGEST_LABEL and name.isprintable() else None


class NoKeyError(Exception):
    """There is no key that can be used. The text is a sentence; ``remedy`` says what to do."""

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(text)
        self.remedy = remedy


def beside(config_file: str) -> str:
    """The path of the key file that belongs to a config file, links followed."""
    # Path reads a name that ends in a dot otherwise, and another way in each Python.
    return f"{os.path.splitext(os.path.realpath(config_file))[0]}.agent-key"  # noqa: PTH122


def find(given: str | None, config_file: str, random: Callable[[int], bytes] = os.urandom) -> Key:
    """Give the key: the one that was ``given``, that beside the config, or a new one kept there.

    May block. Raises ``NoKeyError``.
    """
    if given is not None:
        return Key(_weighed(given, AGENT_KEY, f"Set {AGENT_KEY} to the agent_secret of register."))
    try:
        path = beside(config_file)
    except (OSError, ValueError) as error:
        raise NoKeyError(
            f"This server has no key of its own: {shown(config_file)} is no path to keep one "
            f"beside ({error}).",
            f"Set HEARTBEAT_CONFIG_FILE to a whole path; {_MEANWHILE}.",
        ) from None
    disk.remove_stale(path)
    found = _read(path)
    made = found is None
    if found is None:
        try:
            _make(path, new_secret(random(SECRET_BYTES)))
        except OSError as error:
            raise NoKeyError(
                f"This server has no key of its own, since {shown(path)} cannot be written: "
                f"{disk.reason(error)}.",
                f"Let this server's user write there, or set {AGENT_KEY}; {_MEANWHILE}.",
            ) from None
        # What stands there now, ours or that of a server which was quicker.
        found = _read(path)
    if found is None:
        raise NoKeyError(
            f"This server has no key of its own: {shown(path)} does not stay where it is put.",
            f"See what removes it; {_MEANWHILE}.",
        )
    return msgspec.structs.replace(found, new=made)


def _read(path: str) -> Key | None:
    try:
        content = disk.read(path)
    except OSError as error:
        raise NoKeyError(
            f"This server has no key of its own, since {shown(path)} cannot be read: "
            f"{disk.reason(error)}. It is left as it is.",
            f"Let this server's user read it; {_MEANWHILE}.",
        ) from None
    if content is None:
        return None
    remedy = (
        f"Put the agent_secret back into it, or move it away to have a new identity; {_MEANWHILE}."
    )
    secret = _weighed(content.data.decode("utf-8", "replace"), shown(path), remedy)
    if not content.status.st_mode & 0o077:
        return Key(secret, path=path)
    return Key(
        secret,
        f"The key file {shown(path)} can be read by others than its owner: run chmod 600 on it; "
        "if somebody may have read it, move it away and a new identity is made.",
        path,
    )


def _weighed(text: str, where: str, remedy: str) -> str:
    secret = text.strip()
    # U+FFFD stands for bytes that are no text: anybody could guess a secret of nothing else.
    if SHORTEST <= len(secret) <= LONGEST and secret.isprintable() and "\ufffd" not in secret:
        return secret
    what = "it is empty"
    if secret:
        what = f"a key has {SHORTEST} to {LONGEST} characters on one line, and this is none"
    raise NoKeyError(f"This server has no key of its own: {where} cannot be used, {what}.", remedy)


def _make(path: str, secret: str) -> None:
    """Put ``secret`` at ``path``, whole, unless somebody else was quicker."""
    target = Path(path)
    disk.make_folder(str(target.parent))
    # Named so that ``disk.remove_stale`` knows it, should we be killed before it goes.
    draft = target.with_name(f"{disk.hidden_name(path)}.{os.getpid()}-0.tmp")
    draft.unlink(missing_ok=True)
    _write_new(draft, secret)
    try:
        # A link is made or is not, and never in place of what is there.
        target.hardlink_to(draft)
    except FileExistsError:
        pass
    except OSError:
        # A file system without links: then in place, which a crash can cut short.
        with contextlib.suppress(FileExistsError):
            _write_new(target, secret)
    finally:
        draft.unlink(missing_ok=True)
    disk.sync_folder(str(target.parent))


def _write_new(path: Path, secret: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(f"{secret}\n".encode())
        file.flush()
        os.fsync(file.fileno())
