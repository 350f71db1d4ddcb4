"""Servers whose tasks go by the wrong clock, are lost with their worker, or are queued wrongly."""

# Each mutant's sentence stands in its decorator.
# ruff: noqa: D103

from typing import Any

import sqlalchemy as sa
from msgspec import UNSET
from msgspec.structs import replace

from conformance.mutants import Patch, mutant
from mcpl_heartbeat.storage.store import mail, operations, schema, tasks, wakes, work
from mcpl_heartbeat.storage.store.store import Store
from mcpl_heartbeat.tasks import machine, moves, refusals, views
from mcpl_heartbeat.watch import beats, switches
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.rows import Alert


@mutant(
    "A heartbeat moves the timeout as it moves the lease.",
    caught_by={"tasks/a-timeout-that-beats-cannot-move": '"seconds_left":{"$max":15}'},
)
def heartbeat_moves_the_timeout(patch: Patch) -> None:
    column = schema.tasks.c
    later = sa.update(schema.tasks).values(timeout_at=column.timeout_at + column.lease_ms)

    def moving(tx: Any, who: Any, arguments: Any) -> Any:
        outcome = work.heartbeat(tx, who, arguments)
        if not isinstance(outcome, Failure):
            tx.conn.execute(later.where(column.id == arguments.task_id))
        return outcome

    patch(operations, "_WRITES", {**operations._WRITES, "heartbeat_agent_task": moving})


@mutant(
    "A lease is told to end after the timeout that ends it.",
    caught_by={"tasks/a-timeout-that-beats-cannot-move": '"seconds_left":{"$max":15}'},
)
def lease_told_beyond_the_timeout(patch: Patch) -> None:
    def unclamped(task: Any, now: Any) -> int | None:
        return None if task.expires_watched is None else now.real_of(task.expires_watched)

    patch(views, "lease_end", unclamped)


@mutant(
    "A heartbeat holds a task from the time it was claimed, not from now.",
    caught_by={"tasks/a-lease-that-lapsed": "Held from the heartbeat on."},
)
def heartbeat_renews_nothing(patch: Patch) -> None:
    heartbeat = machine.heartbeat

    def idle(task: Any, *rest: Any) -> machine.Change:
        change = heartbeat(task, *rest)
        if change.task is None:
            return change
        return replace(change, task=replace(change.task, expires_watched=task.expires_watched))

    patch(machine, "heartbeat", idle)


@mutant(
    "A task whose worker holds it does not time out.",
    caught_by={"tasks/a-timeout-that-beats-cannot-move": '"code":"task_closed"'},
)
def held_task_never_times_out(patch: Patch) -> None:
    overdue = machine.is_overdue

    def unless_held(task: Any, now: Any) -> bool:
        held = task.expires_watched is not None and now.watched < task.expires_watched
        return overdue(task, now) and not held

    live = machine.is_live
    patch(machine, "is_overdue", unless_held)
    patch(machine, "is_live", lambda task, now: live(replace(task, timeout_at=2**60), now))
    patch(tasks, "overdue", lambda tx, most: ([], []))


@mutant(
    "What is done at a timeout is done twice.",
    caught_by={"tasks/a-timeout-that-beats-cannot-move": "One timeout, one review."},
)
def timeout_done_twice(patch: Patch) -> None:
    put = mail.Post.put

    def doubled(self: mail.Post, envelope: Any, of: Any = None, review: Any = None) -> Any:
        if review is not None:
            put(self, replace(envelope, task_id=mail.task_id(self._tx)), None, review)
        return put(self, envelope, of, review)

    patch(mail.Post, "put", doubled)


@mutant(
    "A task that is to fail at its timeout is sent to review all the same.",
    caught_by={"tasks/a-timeout-that-beats-cannot-move": "It was to fail, and no more."},
)
def every_timeout_reviewed(patch: Patch) -> None:
    time_out = machine.time_out

    def reviewing(task: Any, *rest: Any) -> machine.TimedOut:
        return time_out(replace(task, fallthrough="route_to_review"), *rest)

    patch(machine, "time_out", reviewing)


@mutant(
    "Nobody is told of a task that timed out.",
    caught_by={"tasks/a-timeout-that-beats-cannot-move": '"tags":["tasks:review"]'},
)
def timeout_not_told(patch: Patch) -> None:
    time_out = machine.time_out
    patch(machine, "time_out", lambda *args: replace(time_out(*args), review=None))


# A worker that dies -------------------------------------------------------------------------------


@mutant(
    "A switch that fires leaves the tasks of its scope with the dead worker.",
    caught_by={
        "tasks/given-back-by-a-switch": '"push"',
        "tasks/guarded": '"released_tasks"',
    },
)
def fire_gives_nothing_back(patch: Patch) -> None:
    patch(tasks, "under", lambda tx, keys: {key: [] for key in keys})


@mutant(
    "The alert does not say which tasks a fire gave back.",
    caught_by={
        "tasks/given-back-by-a-switch": '"push"',
        "tasks/guarded": '"released_tasks"',
    },
)
def given_back_untold(patch: Patch) -> None:
    def silent(**facts: Any) -> Alert:
        return Alert(**{**facts, "released_tasks": ()})

    patch(switches, "Alert", silent)


@mutant(
    "A given-back task does not say how it was lost.",
    caught_by={"tasks/given-back-by-a-switch": '"cause":"switch_fired"'},
)
def fire_taken_for_a_release(patch: Patch) -> None:
    available = moves.available

    def released(task: Any, event: Any, lost: Any, *rest: Any) -> Any:
        return available(task, event, "released" if lost == "switch_fired" else lost, *rest)

    patch(moves, "available", released)


@mutant(
    "The guard of a claim is not beaten by the task's heartbeat.",
    caught_by={"tasks/guarded": '"seconds_left":{"$min":29'},
)
def guard_not_beaten(patch: Patch) -> None:
    heartbeat = machine.heartbeat
    patch(machine, "heartbeat", lambda *args: replace(heartbeat(*args), guard=()))


@mutant(
    "The guard of a claim stays armed when the work is submitted.",
    caught_by={"tasks/guarded": '"state":"disarmed"'},
)
def guard_outlives_the_claim(patch: Patch) -> None:
    patch(moves, "disarm", lambda task: ())


@mutant(
    "A claim with a guard arms none.",
    caught_by={"tasks/guarded": "The claim armed it."},
)
def guard_not_armed(patch: Patch) -> None:
    claim = machine.claim
    patch(machine, "claim", lambda *args: replace(claim(*args), guard=()))


@mutant(
    "A claim under a scope is not told that the scope's switch needs beats of its own.",
    caught_by={"tasks/given-back-by-a-switch": '"notes":{"$has"'},
)
def what_is_not_renewed_unsaid(patch: Patch) -> None:
    patch(views, "not_renewed", lambda task: ())


# The queue ----------------------------------------------------------------------------------------


@mutant(
    "The same dedupe key makes a second task.",
    caught_by={"tasks/queued-once-and-withdrawn": "The same once more."},
)
def dedupe_key_makes_a_second(patch: Patch) -> None:
    create = machine.create
    patch(machine, "create", lambda *args: replace(create(*args), dedupe_key=None))


@mutant(
    "A dedupe key that names other work is taken in silence.",
    caught_by={"tasks/queued-once-and-withdrawn": '"notes":{"$length":{"$min":1}}'},
)
def dedupe_difference_unsaid(patch: Patch) -> None:
    created = machine.created_result
    patch(machine, "created_result", lambda *args: replace(created(*args), notes=()))


@mutant(
    "A dedupe key is taken for everybody's.",
    caught_by={"tasks/another-namespace": "The same dedupe key"},
)
def dedupe_over_namespaces(patch: Patch) -> None:
    column = schema.tasks.c
    patch(tasks, "_KEYED", sa.select(column.id).where(column.dedupe_key == sa.bindparam("key")))
    load = tasks.load

    def anywhere(tx: Any, namespace: str, id: str, *, whole: bool) -> Any:
        owner = tx.conn.execute(tasks._BY_IDS, {"keys": [id]}).first()
        return load(tx, namespace if owner is None else owner.namespace, id, whole=whole)

    def keyed(tx: Any, who: Any, dedupe_key: str) -> Any:
        id = tasks.keyed(tx, who.namespace, dedupe_key)
        return None if id is None else anywhere(tx, who.namespace, id, whole=True)

    patch(work, "_keyed", keyed)


@mutant(
    "A task that somebody works on cannot be withdrawn.",
    caught_by={"tasks/queued-once-and-withdrawn": '"status":"cancelled","cancelled":true'},
)
def claimed_task_not_cancelled(patch: Patch) -> None:
    cancel = machine.cancel

    def hesitant(task: Any, arguments: Any, now: Any) -> machine.Change:
        if task is not None and machine.is_live(task, now):
            return machine.Change(result=refusals.already_claimed(task, now))
        return cancel(task, arguments, now)

    patch(machine, "cancel", hesitant)


@mutant(
    "What a worker gave up for good is offered to the next.",
    caught_by={"tasks/one-holder-at-a-time": '"status":"failed"'},
)
def final_release_offered_again(patch: Patch) -> None:
    release = machine.release

    def hopeful(task: Any, arguments: Any, now: Any) -> machine.Change:
        return release(task, replace(arguments, final=False, reason=UNSET), now)

    patch(machine, "release", hopeful)


# Waking by work -----------------------------------------------------------------------------------


@mutant(
    "Who never asked for it is woken by work.",
    caught_by={"tasks/woken-by-a-lapse": "Nobody has asked."},
)
def woken_unasked(patch: Patch) -> None:
    patch(wakes, "_WANTED", sa.select(schema.switches.c.scope).limit(1))


@mutant(
    "Who asked once is woken for ever.",
    caught_by={"tasks/woken-by-work": '"structured":{"wake_on_tasks":false}'},
)
def wake_option_kept_for_ever(patch: Patch) -> None:
    wakes_of = beats.wakes
    patch(
        beats,
        "wakes",
        lambda current, arguments: (
            wakes_of(current, arguments) or (current is not None and current.wake_on_tasks)
        ),
    )


@mutant(
    "Who was woken by work once is not woken by further work.",
    caught_by={"tasks/woken-by-work": '"origin":{"claimable":2}'},
)
def woken_once_for_all(patch: Patch) -> None:
    patch(Store, "woken", lambda self, *args, **more: None)


@mutant(
    "What was told of work is told again and again.",
    caught_by={"tasks/woken-by-a-lapse": "Nothing further has appeared."},
)
def woken_again_and_again(patch: Patch) -> None:
    woken = wakes.woken

    def unmarked(tx: Any, namespace: str, token: str, work: Any, *, taken: bool) -> None:
        woken(tx, namespace, token, replace(work, real=0, watched=0), taken=taken)

    patch(wakes, "woken", unmarked)


@mutant(
    "A lease that runs out wakes nobody.",
    caught_by={"tasks/woken-by-a-lapse": "The lease has run out."},
)
def lapse_wakes_nobody(patch: Patch) -> None:
    patch(wakes, "_LAPSED", wakes._LAPSED.where(sa.false()))
