"""What a wing beside the wake wing is to the session: a feature set, its tools, and six verbs.

The wake wing owns the two files and the clock's steps, so the session knows it by name; any further
wing is declared by an ``Annex`` and driven through the protocol ``Wing``. Nothing of such a wing is
imported before the shell hands its ``Annex`` to the session.
"""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from mcpl_heartbeat.actions import Action, Moment
from mcpl_heartbeat.jsonrpc.messages import Answer
from mcpl_heartbeat.jsonrpc.outgoing import Outgoing
from mcpl_heartbeat.mcp.arguments import Accepted, Refused
from mcpl_heartbeat.mcp.tools import Rules, Tool, ToolResult
from mcpl_heartbeat.policy.grant import Policy
from mcpl_heartbeat.policy.manifest import FeatureSet
from mcpl_heartbeat.times import Zone


class Calls(Protocol):
    """The tools of a wing."""

    def call(
        self, tool: Tool, accepted: Accepted, now: Moment, answer: Callable[[ToolResult], None]
    ) -> ToolResult | None:
        """Carry out a call; ``None``: ``answer`` is called later."""
        ...

    def refused(self, tool: Tool, why: Refused, now: Moment) -> ToolResult:
        """The error result of a call whose arguments were refused."""
        ...

    def rules_at(self, tool: Tool, now: Moment) -> Rules | None:
        """The argument rules that hold only now."""
        ...


class Wing(Calls, Protocol):
    """A wing at work on one connection."""

    def told(self, id: int, outcome: Any, now: Moment) -> None:
        """The ``Ask`` with this id has ended; one of another wing is passed over."""
        ...

    def news(self, news: Any, asked: Moment, now: Moment) -> None:
        """What ``Listen`` asked for; ``asked`` is a moment before the store was looked at."""
        ...

    def answered(self, subject: Any, answer: Answer, now: Moment) -> None:
        """The host answered a push of this wing, however late."""
        ...

    def policy_came(self, *, as_request: bool) -> None:
        """The host sent a policy, or took one away."""
        ...

    def pump(self, now: Moment) -> None:
        """Do what is due at ``now``. Ends every pass."""
        ...

    def next_alarm(self) -> int | None:
        """When (monotonic ms) ``pump`` next has something to do."""
        ...

    def leave(self) -> None:
        """The host is gone: let go of what another server may see to."""
        ...


class Sent(msgspec.Struct, frozen=True):
    """A push of a wing's: to which the answer goes, and what about."""

    wing: Wing
    subject: Any


Troubles = Callable[[str, Any], tuple[str, ...]]
"""Sentences on pushes that do not reach the agent, for the reply to its own call of this tool that
came to this result."""


class Connection(msgspec.Struct, frozen=True):
    """What a wing is given to work with. ``emit`` takes each action as it arises, in order."""

    zone: Zone
    gate: Policy
    outgoing: Outgoing[Any]
    emit: Callable[[Action], None]
    ask_id: Callable[[], int]
    """Gives the id of a new ``Ask``, unique over all wings."""
    troubles: list[Troubles] = []
    """Each wing adds its own here: whichever answers, the agent is told of all."""


class Annex(msgspec.Struct, frozen=True):
    """A further wing, as it is declared to a host before it does anything."""

    feature_set: FeatureSet
    tools: tuple[Tool, ...]
    instructions: str
    """Sentences for the server's instructions, which an agent reads at the handshake."""
    make: Callable[[Connection], Wing]
