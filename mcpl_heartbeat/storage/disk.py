"""Reading, replacing and copying one file, so that a crash leaves it old or new, but whole.

A replacement is written under a temporary name in the same folder, synced, renamed, and the folder
synced (design, law 5). Everything here blocks and raises ``OSError``; ``documents`` turns that into
values.
"""

# Descriptors and exact system calls are the point here, and pathlib hides them.
# ruff: noqa: PTH102, PTH105, PTH108, PTH112, PTH116, PTH118, PTH119, PTH120, PTH123, PTH208

import contextlib
import errno
import hashlib
import itertools
import os
import re
import stat
from collections.abc import Iterator

import msgspec

Fingerprint = tuple[int, int, int, int]
"""Device, inode, size and mtime (ns): changes whenever another hand replaces or edits the file."""

_SERIAL = itertools.count(1)
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EACCES, errno.EPERM})


class Content(msgspec.Struct, frozen=True):
    """A regular file as read in one go."""

    data: bytes
    status: os.stat_result

    @property
    def fingerprint(self) -> Fingerprint:
        """Which state of the file this is."""
        return fingerprint_of(self.status)


def fingerprint_of(status: os.stat_result) -> Fingerprint:
    """The part of ``status`` that tells one state of a file from another."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def fingerprint(path: str) -> Fingerprint | None:
    """Which state the file is in now; ``None`` when there is none."""
    try:
        return fingerprint_of(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def reason(error: OSError) -> str:
    """The system's words for what failed, without the path."""
    return error.strerror or str(error) or type(error).__name__


def read(path: str) -> Content | None:
    """The file's content, ``None`` when there is none.

    What is not a regular file is refused with an ``OSError`` before it is opened: opening a FIFO
    would block and reading a device may never end.
    """
    try:
        _require_regular(os.stat(path))
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        _require_regular(status)
        try:
            return Content(file.read(), status)
        except MemoryError:
            raise OSError(errno.EFBIG, "it does not fit in memory") from None


def _require_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


class Draft:
    """A file's next content, on disk and synced under a temporary name beside ``target``.

    ``like`` is the status of the file it will replace: its mode is kept, and its owner where the
    system lets us. A new file gets the mode that the operator's umask gives any file.
    """

    def __init__(self, target: str, data: bytes, like: os.stat_result | None) -> None:
        self.target = target
        self.path: str | None = _temporary(target)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o666 if like is None else 0o600)
        try:
            try:
                _write_all(descriptor, data)
                if like is not None:
                    _imitate(descriptor, like)
                os.fsync(descriptor)
                self.fingerprint = fingerprint_of(os.fstat(descriptor))
            finally:
                # Some file systems report a full quota only here.
                os.close(descriptor)
        except BaseException:
            self.discard()
            raise

    def rename(self) -> None:
        """Put it in the target's place; the folder is still to be synced."""
        if self.path is not None:
            os.replace(self.path, self.target)
            self.path = None

    def discard(self) -> None:
        """Remove it unless it was renamed."""
        if self.path is not None:
            _unlink(self.path)
            self.path = None


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _imitate(descriptor: int, like: os.stat_result) -> None:
    ours = os.fstat(descriptor)
    if (ours.st_uid, ours.st_gid) != (like.st_uid, like.st_gid):
        # Only root may give files away; the content matters more than its owner.
        with contextlib.suppress(OSError):
            os.fchown(descriptor, like.st_uid, like.st_gid)
    mode = stat.S_IMODE(like.st_mode)
    # After the owner, since changing that clears bits of the mode.
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        with _letting_off():
            os.fchmod(descriptor, mode)


def _unlink(path: str) -> None:
    # What cannot be removed now is at a later start, once this process is gone.
    with contextlib.suppress(OSError):
        os.unlink(path)


@contextlib.contextmanager
def _letting_off() -> Iterator[None]:
    """Pass over a call that this file system or this user has no means for."""
    try:
        yield
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise


def sync_folder(folder: str) -> None:
    """Make renames in ``folder`` durable; file systems that cannot sync a folder are let off."""
    with _letting_off():
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(folder: str) -> None:
    """Make ``folder`` and the ones above it that are missing, each of them durable."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    for path in reversed(missing):
        try:
            os.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
        sync_folder(os.path.dirname(path))


def copy_aside(target: str, content: Content) -> str:
    """Keep ``content`` as ``<target>.unreadable-<hash>`` and return that path.

    The hash is the first 12 hex digits of the SHA-256 of the bytes, more of them in the odd case
    that another content stands there. A copy that is there already is not made again.
    """
    digest = hashlib.sha256(content.data).hexdigest()
    for length in (12, 24, 64):
        path = f"{target}.unreadable-{digest[:length]}"
        if not os.path.lexists(path):
            draft = Draft(path, content.data, content.status)
            try:
                draft.rename()
            finally:
                draft.discard()
        elif not _holds(path, content.data):
            continue
        sync_folder(os.path.dirname(path))
        return path
    raise FileExistsError(errno.EEXIST, "other files stand in the copy's place")


def _holds(path: str, data: bytes) -> bool:
    try:
        found = read(path)
    except OSError:
        return False
    return found is not None and found.data == data


# --- Temporary names -----------------------------------------------------------------------------


def hidden_name(target: str) -> str:
    """A hidden name for a helper of ``target``, short enough that an ending can be added."""
    name = os.path.basename(target)
    if len(os.fsencode(name)) > 180:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return f".{name}"


def _temporary(target: str) -> str:
    name = f"{hidden_name(target)}.{os.getpid()}-{next(_SERIAL)}.tmp"
    return os.path.join(os.path.dirname(target), name)


def remove_stale(target: str) -> None:
    """Remove temporary files for ``target`` that a killed process left behind.

    A file of a living process stays. One with our own process id is a leftover too, since ids come
    round again, in containers at every start; so this must not run while a save is under way.
    """
    folder = os.path.dirname(target)
    name = re.escape(hidden_name(target))
    pattern = re.compile(rf"{name}(?:\.unreadable-[0-9a-f]+)?\.(\d{{1,10}})-\d+\.tmp")
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for found in names:
        match = pattern.fullmatch(found)
        if match and not _lives(int(match[1])):
            _unlink(os.path.join(folder, found))


def _lives(process: int) -> bool:
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
