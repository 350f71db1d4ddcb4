"""An advisory lock on a document, so that a second server on the same file notices (issue 2 §5)."""

# Descriptors and exact system calls are the point here, and pathlib hides them.
# ruff: noqa: PTH100, PTH108, PTH116, PTH118, PTH120

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections.abc import Sequence

from mcpl_heartbeat.storage.disk import hidden_name, make_folder, reason

_HELD = frozenset({errno.EWOULDBLOCK, errno.EAGAIN})
_UNOPENABLE = frozenset({errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENXIO})
_TRIES = 10


class Lock:
    """The lock of the document at ``path``: a ``flock`` on ``.<name>.lock`` beside its target.

    It dies with its process, so a killed server leaves nothing to clear away; the lock file itself
    stays, which is what makes it safe: ``keep`` sees to it. What stands in its place and cannot be
    opened is replaced. Where its folder cannot be written, the data file itself is locked (it
    cannot be replaced there either). Where nothing can be locked, the server goes on without, and
    ``note`` says so.
    """

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(path)
        self._descriptor: int | None = None
        self.note: str | None = None

    @property
    def held(self) -> bool:
        """Whether this process holds it, for real."""
        return self._descriptor is not None

    @property
    def stands(self) -> bool:
        """Whether nothing shows that the locked file has gone from its place; two system calls.

        A second server locks what is in that place, so once it has gone it locks nobody out.
        """
        if (descriptor := self._descriptor) is None:
            return True
        try:
            ours = os.fstat(descriptor)
        except OSError:
            return False
        return any(_is_at(place, ours) for place in self._places())

    def keep(self) -> str | None:
        """Take it anew if it does not stand: ``None`` unless another has it now, then who.

        Where it cannot be taken, what was held is still held, and ``note`` says why. Never raises
        ``OSError``.
        """
        if self.stands:
            return None
        before, self._descriptor = self._descriptor, None
        holder = self.acquire()
        if holder is None and self._descriptor is None:
            self._descriptor = before
        elif before is not None:
            with contextlib.suppress(OSError):
                os.close(before)
        return holder

    def acquire(self) -> str | None:
        """Take it without waiting: ``None`` when it is ours, else who holds it ("process 4711").

        Never raises ``OSError``. Taking it twice is as good as once.
        """
        if self._descriptor is not None:
            return None
        self.note = None
        beside, target = self._places()
        folder = os.path.dirname(target)
        try:
            make_folder(folder)
            return self._take(beside, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            failure = error
        with contextlib.suppress(OSError):
            return self._take(beside, os.O_RDONLY)
        with contextlib.suppress(OSError):
            # A save takes the data file away and its lock with it, so that lock is worth something
            # only where nothing can be saved.
            if not os.access(folder, os.W_OK | os.X_OK):
                return self._take(target, os.O_RDONLY)
            if failure.errno in _UNOPENABLE:
                os.unlink(beside)
                return self._take(beside, os.O_RDWR | os.O_CREAT)
        self.note = (
            f"{_shown(self._path)} could not be locked ({reason(failure)}): a second server on it "
            "would not be noticed."
        )
        return None

    def release(self) -> None:
        """Give it up, if it is held."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            # The descriptor is gone either way, and the lock with it.
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _places(self) -> tuple[str, str]:
        """The lock file and the data file, where the links of ``path`` lead by now."""
        target = os.path.realpath(self._path)
        return os.path.join(os.path.dirname(target), f"{hidden_name(target)}.lock"), target

    def _take(self, path: str, flags: int) -> str | None:
        """Lock ``path``; ``OSError`` when it cannot be locked at all."""
        for _ in range(_TRIES):
            descriptor = os.open(
                path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC, 0o666
            )
            keep = False
            try:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    if error.errno not in _HELD:
                        raise
                    return _holder(descriptor)
                # Somebody may have removed or replaced the file while we were opening it.
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    keep = True
                    self._descriptor = descriptor
                    if flags & os.O_RDWR:
                        _sign(descriptor)
                    return None
            except FileNotFoundError:
                pass
            finally:
                if not keep:
                    os.close(descriptor)
        raise OSError(errno.EBUSY, "the lock file keeps being replaced")


def acquire_all(locks: Sequence[Lock]) -> str | None:
    """Take all of ``locks`` or none: ``None`` when they are ours, else who holds one of them."""
    taken: list[Lock] = []
    # One order for everybody, or two servers could each take one and both give up.
    for lock in sorted(locks, key=lambda lock: lock._path):
        had = lock.held
        holder = lock.acquire()
        if holder is not None:
            for other in taken:
                other.release()
            return holder
        if not had:
            taken.append(lock)
    return None


def _is_at(path: str, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.lstat(path), status)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # it cannot be seen, which is not to say that it has gone
        return True


def _sign(descriptor: int) -> None:
    """Write our process id where a second server looks for it; only words depend on it."""
    with contextlib.suppress(OSError):
        # Another user's server can lock only what it can read, whatever umask there is.
        os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) | 0o444)
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)


def _holder(descriptor: int) -> str:
    try:
        signature = os.pread(descriptor, 20, 0)
    except OSError:
        signature = b""
    if re.fullmatch(rb"[1-9][0-9]{0,9}\n", signature):
        return f"process {int(signature)}"
    return "another process"


def _shown(path: str) -> str:
    return os.fsencode(path).decode(errors="replace")
