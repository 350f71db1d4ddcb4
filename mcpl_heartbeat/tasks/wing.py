"""The tasks wing on one MCPL connection: its tools, and what wakes a worker. Pure.

What the tools come to is the store's affair (``Ask``). This wing says when to look for claimable
work and for reviews (``Seek``), pushes them, and tells the store what the host took (``Woken``,
``Settle``).
"""

from typing import Any, Protocol

from mcpl_heartbeat.actions import Moment, Seek
from mcpl_heartbeat.jsonrpc.messages import Answer
from mcpl_heartbeat.policy.manifest import TASKS, WATCH
from mcpl_heartbeat.policy.pushing import read_answer
from mcpl_heartbeat.tasks import pushes, reviews
from mcpl_heartbeat.tasks.rows import REVIEW_BOX
from mcpl_heartbeat.tasks.texts import text_of
from mcpl_heartbeat.tasks.tools import TOOLS
from mcpl_heartbeat.watch.calls import TELLING, WatchCalls
from mcpl_heartbeat.watch.pushes import AlertPush, AlertPushes
from mcpl_heartbeat.watch.results import HeartbeatResult, Result
from mcpl_heartbeat.watch.rows import Envelope
from mcpl_heartbeat.watch.store_wing import StoreWing
from mcpl_heartbeat.watch.words import counted, quoted
from mcpl_heartbeat.wings import Annex, Connection

INSTRUCTIONS = (
    "It keeps a queue of tasks too: create_agent_task puts work into it; a worker finds it with "
    "list_agent_tasks, takes it with claim_agent_task, holds it with heartbeat_agent_task and "
    "ends it with submit_agent_task."
)


LOOKS = TELLING | {"list_agent_tasks"}
"""The tools whose replies say what of this wing does not reach the agent."""


class News(Protocol):
    """What is to be pushed, as the store gives it (``storage.store.ports.News``)."""

    @property
    def work(self) -> pushes.Work | None:
        """Tasks to wake the agent for, if there are any new ones."""

    @property
    def reviews(self) -> tuple[Envelope, ...]:
        """Mail of tasks that timed out."""

    @property
    def quiet(self) -> frozenset[str]:
        """What was looked for and is not there: ``alerts``, ``reviews``, ``work``."""


class TasksWing(StoreWing):
    """See the module, and ``wings.Wing``."""

    def __init__(self, connection: Connection) -> None:
        calls = WatchCalls(
            emit=connection.emit,
            ask_id=connection.ask_id,
            text_of=text_of,
            looks="list_agent_tasks or get_agent_task",
            troubles=connection.troubles,
        )
        super().__init__(connection, calls, TASKS)
        connection.troubles.append(self._troubles_of)
        self._work = pushes.WorkPushes(**self._ways_out)
        self._reviews = AlertPushes(noun="review", event=reviews.review_event, **self._ways_out)
        self._seek = Seek(False)

    def news(self, news: News, asked: Moment, now: Moment) -> None:
        """What the store has to push."""
        blocked = self._blocked is not None
        if news.work is not None:
            self._work.news(news.work, blocked, self._gate.coalesces, now)
        elif "work" in news.quiet:
            self._work.quiet()
        self._reviews.news(news.reviews, blocked, now)
        if "reviews" in news.quiet:
            self._reviews.quiet()

    def answered(self, subject: Any, answer: Answer, now: Moment) -> None:
        """The host answered a push, however late."""
        policy, about = subject
        outcome = read_answer(answer)
        self._reach.heard(policy, outcome)
        if isinstance(about, AlertPush):
            self._reviews.answered(about, outcome, now)
        else:
            self._work.answered(about, outcome, now)

    def policy_came(self, *, as_request: bool) -> None:
        """The host sent a policy, or took one away."""
        if as_request:
            self._reach.renew()
            self._work.retry()
            self._reviews.retry()

    def pump(self, now: Moment) -> None:
        """Hold what was not answered, and say whether to look for more."""
        self._work.pass_time(now)
        self._reviews.pass_time(now)
        blocked = self._blocked is not None
        seek = Seek(
            self._work.seeks(blocked, now),
            reviews=self._reviews.wanted(blocked, now),
            here=not blocked and self._reach.refusal is None,
        )
        if seek != self._seek:
            self._seek = seek
            self._emit(seek)
        self._wake_at(self._work.next_moment(now), self._reviews.next_moment(now))

    def leave(self) -> None:
        """The host is gone: another server may push what it did not take."""
        super().leave()
        self._work.leave()
        self._reviews.leave()

    def _troubles_of(self, tool: str, result: Result) -> tuple[str, ...]:
        """Say what does not reach the agent, where it looks or has just asked for it."""
        asked = isinstance(result, HeartbeatResult) and result.wake_on_tasks is True
        if tool not in LOOKS and not asked:
            return ()
        denied = self._gate.verdict(TASKS.name)
        if denied is not None:
            # Where no push at all can leave the store has said so, to whoever asked for a wake.
            says = asked or tool == "list_agent_tasks"
            if not says or self._gate.verdict(WATCH.name) is not None:
                return ()
            return (
                "Claimable tasks and reviews cannot wake you here, look with list_agent_tasks, and "
                f"with inbox_poll in box {quoted(REVIEW_BOX)}: {denied.reason}.",
            )
        said = []
        if self._work.held is not None and tool != "inbox_poll":
            said.append(
                "The host does not take the wake for claimable tasks, so list_agent_tasks is the "
                f"way to them: {self._work.held}."
            )
        reviews = self._reviews.held
        if reviews is not None and tool in LOOKS:
            said.append(
                f"The host does not take {counted(len(reviews.marks), 'review')} for you, so poll "
                f"with inbox_poll and box {quoted(REVIEW_BOX)}: {reviews.reason}."
            )
        return tuple(said)


TASKS_WING = Annex(TASKS, TOOLS, INSTRUCTIONS, TasksWing)
"""The tasks wing, for a session that has a store."""
