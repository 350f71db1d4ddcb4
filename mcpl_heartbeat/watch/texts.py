"""The sentences of the watch wing that agents read."""

from collections.abc import Sequence

from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.results import Result
from mcpl_heartbeat.watch.rows import Alert, Envelope


def text_of(tool: str, result: Result | Failure) -> str:
    """Word what a call of ``tool`` came to."""
    raise NotImplementedError


def alert_objective(alert: Alert) -> str:
    """Word an alert in one line that a model can act on: the ``objective`` of its envelope."""
    raise NotImplementedError


def alert_push_text(envelopes: Sequence[Envelope], total: int, local_now: str) -> str:
    """Word the push that wakes an agent with its alerts, of which ``total`` wait."""
    raise NotImplementedError


def nudge_text(
    scope: str, generation: int, deadline_local: str, seconds_left: float, local_now: str
) -> str:
    """Word the push that reminds an agent of its own switch: beat or disarm."""
    raise NotImplementedError
