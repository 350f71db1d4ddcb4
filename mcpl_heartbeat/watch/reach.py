"""Whether a host takes what is pushed under a feature set, as far as its answers tell."""

from mcpl_heartbeat.policy.pushing import Refused, Taken


class Reach:
    """See the module. What was sent under an earlier ``policy`` says nothing of the present one."""

    def __init__(self) -> None:
        self.policy = 0
        """Counts the policies that came as requests."""
        self.refusal: str | None = None
        """Why nothing of the feature set passes, as the host said last."""

    def renew(self) -> None:
        """A policy came."""
        self.policy += 1
        self.refusal = None

    def heard(self, policy: int, outcome: Taken | Refused) -> None:
        """The host answered a push that was sent under ``policy``."""
        if isinstance(outcome, Taken):
            self.refusal = None
        elif outcome.blocking and policy == self.policy:
            self.refusal = outcome.reason
