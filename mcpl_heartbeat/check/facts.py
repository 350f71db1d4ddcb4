"""Looking things up on this machine for a check; nothing is changed here."""

import contextlib
import fcntl
import json
import os
import shutil
import zoneinfo
from pathlib import Path

from mcpl_heartbeat.check.case import Facts, FileFact
from mcpl_heartbeat.check.hosts import AGENT_KEY, AGENT_TIMEZONE, CONFIG_FILE, Plan
from mcpl_heartbeat.check.store_rules import SHORTEST_KEY
from mcpl_heartbeat.storage.disk import hidden_name
from mcpl_heartbeat.storage.documents import DocumentFile
from mcpl_heartbeat.wake import files as documents


def gather(plan: Plan) -> Facts:
    """Look up the command, the files and the zone of ``plan``. Never raises ``OSError``."""
    folder = Path(plan.cwd or ".").absolute()
    files = {name: _file(name, folder / path) for name, path in plan.files.items()}
    zone = plan.environment.get(AGENT_TIMEZONE, "").strip()
    store_trouble = "" if plan.store is None else _store_trouble(plan.store)
    key_known, key_unseen = (None, "") if store_trouble else _look_for_key(plan)
    return Facts(
        command=_command(plan, folder),
        files=files,
        missing_arguments=tuple(word for word in plan.args if _is_missing(word)),
        silent=_silent(Path(files[CONFIG_FILE].real)),
        held_by=next((h for fact in files.values() if (h := _holder(Path(fact.real)))), None),
        zone_known=not zone or _is_zone(zone),
        store_trouble=store_trouble,
        key_known=key_known,
        key_unseen=key_unseen,
    )


def _store_trouble(url: str) -> str:
    """Weigh the store's URL; of a database file also whether it can be written."""
    from mcpl_heartbeat.storage.store import urls  # noqa: PLC0415 - only where there is one
    from mcpl_heartbeat.storage.store.ports import StoreError  # noqa: PLC0415 - the same

    try:
        place = urls.read(url)
        if place.path is not None and (why := _unwritable(Path(os.path.realpath(place.path)))):
            return f"{place.path} cannot be written: {why}."
    except StoreError as error:
        return f"{error}."
    except OSError as failure:
        return f"{url} cannot be used: {failure.strerror or failure}."
    return ""


def _look_for_key(plan: Plan) -> tuple[bool | None, str]:
    """Say whether the store knows the environment's key, and why that was not seen."""
    key = plan.environment.get(AGENT_KEY, "").strip()
    if plan.store is None or len(key) < SHORTEST_KEY:
        return None, ""
    from mcpl_heartbeat.storage.store import urls  # noqa: PLC0415 - only where there is one
    from mcpl_heartbeat.storage.store.ports import StoreError  # noqa: PLC0415 - the same

    try:
        place = urls.read(plan.store)
        urls.need_extras(place)
        from mcpl_heartbeat.storage.store import onlook  # noqa: PLC0415 - of the extra

        return onlook.knows(place, key), ""
    except StoreError as error:
        return None, str(error)


def _command(plan: Plan, folder: Path) -> str | None:
    if not plan.command or "\0" in plan.command:
        return None
    path = plan.environment.get("PATH", os.defpath)
    if "/" in plan.command:
        plain = folder / plan.command
        return str(plain) if plain.is_file() and os.access(plain, os.X_OK) else None
    return shutil.which(plan.command, path=path)


def _is_missing(argument: str) -> bool:
    try:
        return argument.startswith("/") and not Path(argument).exists()
    except (OSError, ValueError):
        return True


def _file(name: str, path: Path) -> FileFact:
    if "\0" in str(path):
        return FileFact(str(path))
    try:
        real = Path(os.path.realpath(path))
        if why := _unwritable(real):
            return FileFact(str(real), why)
    except OSError as failure:
        return FileFact(str(path), failure.strerror or str(failure))
    trouble = _document(name, str(real)).peek().trouble
    if trouble is None:
        return FileFact(str(real))
    if trouble.savable:
        return FileFact(str(real), unusable=trouble.text)
    return FileFact(str(real), unreadable=trouble.text)


def _document(name: str, path: str) -> DocumentFile:
    if name == CONFIG_FILE:
        return DocumentFile(path, documents.decode_config, documents.encode_config, "config")
    return DocumentFile(path, documents.decode_reminders, documents.encode_reminders, "reminders")


def _unwritable(path: Path) -> str:
    if path.is_dir():
        return "it is a folder"
    if path.exists() and not os.access(path, os.W_OK):
        return "it is write-protected"
    # Missing folders are made at the first save.
    folder = next(parent for parent in path.parents if parent.exists())
    if not folder.is_dir():
        return f"{folder} is no folder"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"nothing can be written into {folder}"
    return ""


def _silent(config: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        value = json.loads(config.read_bytes())
        return isinstance(value, dict) and value.get("deliveryMode") == "silent"
    return False


def _holder(path: Path) -> str | None:
    """Say who works on the file: its lock beside it is held as long as that server lives."""
    lock = path.with_name(f"{hidden_name(str(path))}.lock")
    with contextlib.suppress(OSError, ValueError):
        descriptor = os.open(lock, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            number = os.pread(descriptor, 20, 0).strip()
            return f"process {int(number)}" if number.isdigit() else "another process"
        finally:
            os.close(descriptor)
    return None


def _is_zone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
