"""The folder a server keeps its files in, as another hand sees and changes it."""

import base64
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance import exact, values
from conformance.patterns import ABSENT
from conformance.values import Names

_VARIABLES = {"config": "HEARTBEAT_CONFIG_FILE", "reminders": "HEARTBEAT_REMINDERS_FILE"}


class Folder:
    """A fresh folder; ``remove`` deletes it with all that is in it."""

    def __init__(self) -> None:
        # In memory where the system offers that: nobody pulls the plug during a test.
        memory = Path("/dev/shm")
        within = str(memory) if os.access(memory, os.W_OK) else None
        self._base = Path(tempfile.mkdtemp(prefix="conformance-", dir=within)).resolve()
        self.path = self._base / "files"
        self.path.mkdir()
        self._named = {name: self.path / f"heartbeat-{name}.json" for name in _VARIABLES}

    def environment(self, env: Mapping[str, str | None], names: Names) -> dict[str, str]:
        """Return the server's environment: what a host passes on, our files, and ``env`` on top."""
        passed = {name: text for name, text in os.environ.items() if _is_passed_on(name)}
        ours = {_VARIABLES[name]: str(path) for name, path in self._named.items()}
        every: dict[str, str | None] = {**passed, **ours, "AGENT_TIMEZONE": "UTC", **env}
        filled = {
            name: values.interpolate(text, names)
            for name, text in every.items()
            if text is not None
        }
        for name, variable in _VARIABLES.items():
            if filled.get(variable):
                self._named[name] = self.path / filled[variable]
        return filled

    def locate(self, name: str | dict[str, str]) -> Path | None:
        """Return the path that ``name`` means; ``None`` for a regex that fits not just one."""
        if isinstance(name, dict):
            fitting = [found for found in self.names() if re.search(name["$re"], found)]
            return self.path / fitting[0] if len(fitting) == 1 else None
        return self._named.get(name, self.path / name)

    def names(self) -> list[str]:
        """Return what is in the folder, sorted."""
        return sorted(entry.name for entry in self.path.iterdir())

    def text(self, name: Any) -> Any:
        """Return a file's text, or ``ABSENT``; bytes that are not UTF-8 become U+FFFD."""
        path = self.locate(name)
        try:
            return ABSENT if path is None else path.read_bytes().decode("utf-8", "replace")
        except FileNotFoundError:
            return ABSENT
        except OSError as error:
            return f"({error.strerror})"

    def content(self, name: Any) -> Any:
        """Return a file's JSON value, its text where it is none, or ``ABSENT``."""
        text = self.text(name)
        try:
            return text if text is ABSENT else exact.read(text)
        except ValueError:
            return text

    def write(self, name: str, content: Any, names: Names, now: int) -> None:
        """Put ``content`` under ``name``, whole: by rename, through a link that is there."""
        path = self.locate(name)
        assert path is not None
        path.parent.mkdir(parents=True, exist_ok=True)
        match content:
            case {"$directory": True}:
                path.mkdir()
                return
            case {"$link": str(target)}:
                path.symlink_to(values.interpolate(target, names))
                return
            case {"$text": pieces}:
                data = values.text(pieces, names).encode("utf-8", "surrogatepass")
            case {"$bytes": str(encoded)}:
                data = base64.b64decode(encoded)
            case _:
                data = exact.write(values.fill(content, names, now)).encode()
        draft = self._base / "draft"
        draft.write_bytes(data)
        draft.replace(path.resolve())

    def take_away(self, name: str) -> None:
        """Remove what ``name`` means, be it a file, a link or a folder; nothing there is fine."""
        path = self.locate(name)
        if path is not None and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path is not None:
            path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self._base, ignore_errors=True)


_PASSED_ON = {
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TZ", "TMPDIR", "TMP", "TEMP"),
    *("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
}


def _is_passed_on(name: str) -> bool:
    return name.upper() in _PASSED_ON or name.startswith("LC_")
