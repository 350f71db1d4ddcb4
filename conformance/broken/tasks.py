"""Servers that hand a task to the wrong worker, or do not keep to what a claim is.

What is wrong in the task's clocks, its guard and its queue is in ``task_clocks``.
"""

# Each mutant's sentence stands in its decorator.
# ruff: noqa: D103

from collections.abc import Callable
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from conformance.mutants import Patch, mutant
from mcpl_heartbeat.storage.store import tasks, work
from mcpl_heartbeat.tasks import contract, machine, moves, refusals, views
from mcpl_heartbeat.tasks.results import RecordView, SubmitAgentTaskResult
from mcpl_heartbeat.watch.failures import Failure

Decide = Callable[..., machine.Change]


def _revived(decide: Decide) -> Decide:
    """Have ``decide`` look at a lapsed claim as if it had a moment left."""

    def deciding(task: Any, arguments: Any, now: Any, *rest: Any) -> machine.Change:
        if task is not None and machine.is_lapsed(task, now):
            task = replace(task, expires_watched=now.watched + 1)
        return decide(task, arguments, now, *rest)

    return deciding


def _unfenced(decide: Decide) -> Decide:
    """Have ``decide`` take every epoch for the present one."""

    def deciding(task: Any, arguments: Any, *rest: Any) -> machine.Change:
        if task is not None:
            arguments = replace(arguments, execution_epoch=task.epoch)
        return decide(task, arguments, *rest)

    return deciding


@mutant(
    "A claim that has lapsed is revived by a heartbeat.",
    caught_by={"tasks/a-lease-that-lapsed": '"code":"lease_expired"'},
)
def lapsed_claim_beats(patch: Patch) -> None:
    patch(machine, "heartbeat", _revived(machine.heartbeat))


@mutant(
    "A claim that has lapsed can still submit, if nobody has taken it over.",
    caught_by={"tasks/a-claim-that-is-over": "The submit of a claim"},
)
def lapsed_claim_submits(patch: Patch) -> None:
    patch(machine, "submit", _revived(machine.submit))


@mutant(
    "A claim that has lapsed can still be released.",
    caught_by={"tasks/a-claim-that-is-over": "The release of a claim"},
)
def lapsed_claim_releases(patch: Patch) -> None:
    patch(machine, "release", _revived(machine.release))


@mutant(
    "A heartbeat counts under whatever epoch.",
    caught_by={"tasks/one-holder-at-a-time": '"code":"stale_epoch","status":409,"execution_epoch"'},
)
def stale_epoch_beats(patch: Patch) -> None:
    patch(machine, "heartbeat", _unfenced(machine.heartbeat))


@mutant(
    "A result is taken under whatever epoch.",
    caught_by={"tasks/a-lease-that-lapsed": '"code":"stale_epoch","status":409,"execution_epoch"'},
)
def stale_epoch_submits(patch: Patch) -> None:
    patch(machine, "submit", _unfenced(machine.submit))


@mutant(
    "Whoever lost a task can release it from the one who has it.",
    caught_by={"tasks/a-lease-that-lapsed": '"code":"stale_epoch","status":409}'},
)
def stale_epoch_releases(patch: Patch) -> None:
    patch(machine, "release", _unfenced(machine.release))


@mutant(
    "A claim leaves the epoch where it was.",
    caught_by={"tasks/claimed-and-submitted": '"input_snapshot":{"pages":3},"agent_id"'},
)
def claim_without_an_epoch(patch: Patch) -> None:
    claim = machine.claim

    def standing(task: Any, *rest: Any) -> machine.Change:
        return claim(None if task is None else replace(task, epoch=task.epoch - 1), *rest)

    patch(machine, "claim", standing)


@mutant(
    "A release raises the epoch.",
    caught_by={"tasks/one-holder-at-a-time": '"claimable":true,"execution_epoch":2,"lease'},
)
def release_raises_the_epoch(patch: Patch) -> None:
    available = moves.available

    def raised(*args: Any) -> Any:
        task = available(*args)
        return replace(task, epoch=task.epoch + 1)

    patch(moves, "available", raised)


@mutant(
    "A heartbeat raises the epoch.",
    caught_by={"tasks/claimed-and-submitted": '"status":"claimed","execution_epoch":2,"lease_expi'},
)
def heartbeat_raises_the_epoch(patch: Patch) -> None:
    heartbeat = machine.heartbeat

    def raising(*args: Any) -> machine.Change:
        change = heartbeat(*args)
        if change.task is None or isinstance(change.result, Failure):
            return change
        task = replace(change.task, epoch=change.task.epoch + 1)
        return replace(change, task=task, result=replace(change.result, execution_epoch=task.epoch))

    patch(machine, "heartbeat", raising)


@mutant(
    "A live claim is taken over by the next worker that asks.",
    caught_by={"tasks/one-holder-at-a-time": '"code":"already_claimed"'},
)
def live_claim_taken_over(patch: Patch) -> None:
    patch(machine, "is_live", lambda task, now: False)


@mutant(
    "A refused claim is told the epoch, by which it can act as the holder.",
    caught_by={"tasks/one-holder-at-a-time": '"code":"already_claimed"'},
)
def already_claimed_tells_the_epoch(patch: Patch) -> None:
    refused = refusals.already_claimed

    def telling(task: Any, now: Any) -> Failure:
        return replace(refused(task, now), execution_epoch=task.epoch)

    patch(refusals, "already_claimed", telling)


@mutant(
    "The idempotency_key of a claim that has lapsed still gives its reply.",
    caught_by={"tasks/a-claim-that-is-over": "The same key once more"},
)
def key_outlives_its_claim(patch: Patch) -> None:
    claim = machine.claim

    def replayed(task: Any, arguments: Any, now: Any) -> machine.Change:
        key = arguments.idempotency_key
        if task is not None and key is not UNSET and key == task.claim_key:
            left = views.handover(task, now)
            return machine.Change(result=views.claimed(task, left, now, replayed=True))
        return claim(task, arguments, now)

    patch(machine, "claim", replayed)


@mutant(
    "A claim's reply that is given again renews the lease.",
    caught_by={"tasks/a-claim-that-is-over": "A reply that is given again"},
)
def replay_renews(patch: Patch) -> None:
    claim = machine.claim

    def renewing(task: Any, arguments: Any, now: Any) -> machine.Change:
        change = claim(task, arguments, now)
        if change.task is not None or isinstance(change.result, Failure):
            return change
        renewed = replace(task, expires_watched=now.watched + task.lease_ms)
        left = views.handover(renewed, now)
        return replace(
            change, task=renewed, result=views.claimed(renewed, left, now, replayed=True)
        )

    patch(machine, "claim", renewing)


@mutant(
    "The note that a worker left is not handed to the next.",
    caught_by={
        "tasks/one-holder-at-a-time": '"cause":"released","note"',
        "tasks/a-lease-that-lapsed": '"cause":"lapsed","note"',
    },
)
def note_lost_at_handover(patch: Patch) -> None:
    handover = views.handover

    def forgetful(*args: Any, **more: Any) -> Any:
        left = handover(*args, **more)
        return None if left is None else replace(left, note=None)

    patch(views, "handover", forgetful)


@mutant(
    "A claim that comes after a lapse is not told that there was one before.",
    caught_by={"tasks/a-lease-that-lapsed": '"handover"'},
)
def lapse_leaves_no_handover(patch: Patch) -> None:
    handover = views.handover

    def blank(task: Any, now: Any, *rest: Any, **more: Any) -> Any:
        return None if machine.is_lapsed(task, now) else handover(task, now, *rest, **more)

    patch(views, "handover", blank)


# Results ------------------------------------------------------------------------------------------


@mutant(
    "Outputs that do not fit cost the worker its claim.",
    caught_by={"tasks/claimed-and-submitted": '"submitted_at":{"$now":0}'},
)
def bad_outputs_end_the_claim(patch: Patch) -> None:
    submit = machine.submit

    def strict(task: Any, arguments: Any, now: Any) -> machine.Change:
        change = submit(task, arguments, now)
        if not isinstance(change.result, Failure) or change.result.code != "invalid_outputs":
            return change
        back = moves.available(task, machine.Event.RELEASE, "released", now)
        return replace(change, task=back, ends="released", ended_at=now.real)

    patch(machine, "submit", strict)


@mutant(
    "Of what is wrong with outputs only the first problem is named.",
    caught_by={"tasks/claimed-and-submitted": '"code":"invalid_outputs"'},
)
def first_output_problem_only(patch: Patch) -> None:
    check = contract.check
    patch(contract, "check", lambda *args: check(*args)[:1])


@mutant(
    "Outputs are not held against the contract.",
    caught_by={"tasks/claimed-and-submitted": '"code":"invalid_outputs"'},
)
def contract_unread(patch: Patch) -> None:
    patch(contract, "check", lambda *args: ())


@mutant(
    "A second result takes the place of the first.",
    caught_by={"tasks/claimed-and-submitted": "Another result."},
)
def second_result_accepted(patch: Patch) -> None:
    submit = machine.submit

    def again(task: Any, arguments: Any, now: Any) -> machine.Change:
        change = submit(task, arguments, now)
        if not isinstance(change.result, Failure) or task is None or task.status != "submitted":
            return change
        kept = replace(task, outputs=arguments.outputs)
        result = SubmitAgentTaskResult(**views.metadata(kept, now), replayed=False)
        return machine.Change(task=kept, result=result)

    patch(machine, "submit", again)


@mutant(
    "A result with another value is taken for the one that is stored.",
    caught_by={"tasks/claimed-and-submitted": "Another value in it."},
)
def other_result_taken_for_the_same(patch: Patch) -> None:
    patch(contract, "same", lambda one, other: True)


@mutant(
    "The same result sent again, its reply lost, is refused.",
    caught_by={"tasks/claimed-and-submitted": '"replayed":true'},
)
def same_result_refused(patch: Patch) -> None:
    patch(contract, "same", lambda one, other: False)


@mutant(
    "A result is the same only in the same bytes.",
    caught_by={"tasks/claimed-and-submitted": '"replayed":true'},
)
def same_result_by_its_bytes(patch: Patch) -> None:
    patch(contract, "same", lambda one, other: bytes(one) == bytes(other))


# Lists and namespaces -----------------------------------------------------------------------------


@mutant(
    "A claim that has lapsed is not listed as available.",
    caught_by={"tasks/a-lease-that-lapsed": '"status":"claimed","claimable":true'},
)
def lapsed_claim_not_listed(patch: Patch) -> None:
    patch(tasks, "_PAGES", {**tasks._PAGES, "available": tasks._PAGES["available"][:1]})


@mutant(
    "A claim that has lapsed is still listed as claimed.",
    caught_by={"tasks/a-lease-that-lapsed": "Nobody has it now."},
)
def lapsed_claim_listed_as_held(patch: Patch) -> None:
    everything = (tasks._page(tasks.CLAIMED),)
    patch(tasks, "_PAGES", {**tasks._PAGES, "claimed": everything})


class _Whole(RecordView, frozen=True, kw_only=True):
    input_snapshot: Any


@mutant(
    "A list gives away what is in the tasks.",
    caught_by={"tasks/claimed-and-submitted": '"input_snapshot":"$absent","output_contract"'},
)
def list_leaks_the_snapshot(patch: Patch) -> None:
    listed: Callable[..., Any] = work._list

    def leaking(tx: Any, who: Any, *rest: Any) -> Any:
        result = listed(tx, who, *rest)
        whole = [tasks.load(tx, who.namespace, each.id, whole=True) for each in result.data]
        return replace(
            result,
            data=tuple(
                _Whole(**views._record(task, tx.now), input_snapshot=task.input_snapshot)
                for task in whole
                if task is not None
            ),
        )

    patch(work, "_list", leaking)


@mutant(
    "Whoever knows a task's id can read it, whosever it is.",
    caught_by={"tasks/another-namespace": "A stranger reads it."},
)
def tasks_of_all_namespaces(patch: Patch) -> None:
    load = tasks.load

    def anywhere(tx: Any, namespace: str, id: str, *, whole: bool) -> Any:
        owner = tx.conn.execute(tasks._BY_IDS, {"keys": [id]}).first()
        return load(tx, namespace if owner is None else owner.namespace, id, whole=whole)

    patch(tasks, "load", anywhere)
