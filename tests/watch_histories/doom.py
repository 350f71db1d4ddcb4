"""kill -9 at a chosen point: before or after any statement or commit of this process."""

import os
import signal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.engine.default import DefaultDialect


class Doom:
    """Counts the points that are passed, and ends the process at the one that was chosen."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.passed = 0
        commit = DefaultDialect.do_commit

        def do_commit(dialect: DefaultDialect, connection: Any) -> None:
            self.point()
            commit(dialect, connection)
            self.point()

        DefaultDialect.do_commit = do_commit
        for event in ("before_cursor_execute", "after_cursor_execute"):
            sa.event.listen(Engine, event, lambda *_: self.point())

    def point(self) -> None:
        """One more; perhaps the last."""
        self.passed += 1
        if self.passed == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
