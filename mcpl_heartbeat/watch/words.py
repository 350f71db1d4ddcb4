"""The words of alerts and nudges, and how what others wrote is put between ours.

Whatever an agent wrote (labels, scopes, objectives) stands in quotation marks on one line, so that
it can neither pass for a sentence of this server nor begin a line of its own. A resolved alert is
never worded as a death that is still to be dealt with.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from mcpl_heartbeat.watch.identity import address
from mcpl_heartbeat.watch.rows import Alert, Envelope, Freed, FreedTask, ResumePoint

SHOWN_SCOPES = 5
"""How many scopes are named where there are more."""
SHOWN_LEASES = 5
SHOWN_TASKS = 5
SHOWN_NUDGES = 20
_SHORT, _LONG = 120, 400
"""How much of a text (characters) is shown where all of it stands elsewhere."""

# What some readers take for the end of a line, and JSON does not.
_BREAKS = str.maketrans(
    {"\x7f": "\\u007f", "\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def quoted(text: str, limit: int | None = None) -> str:
    """``text`` as a JSON string on one line; longer than ``limit`` characters, its beginning."""
    cut = text if limit is None or len(text) <= limit else f"{text[: limit - 1]}…"
    return msgspec.json.encode(cut).decode().translate(_BREAKS)


def json_line(value: Any, limit: int) -> str:
    """Any JSON value on one line; longer than ``limit`` characters, its beginning."""
    line = msgspec.json.format(msgspec.json.encode(value), indent=-1).decode().translate(_BREAKS)
    if len(line) <= limit:
        return line
    return f"{line[:limit]}… ({len(line)} characters, all in structuredContent)"


def counted(count: int, what: str, plural: str | None = None) -> str:
    """``1 lease``, ``2 leases``."""
    return f"{count} {what if count == 1 else plural or f'{what}s'}"


def span(seconds: float) -> str:
    """A length of time, such as ``300 s`` or ``1.5 s``."""
    return f"{seconds:.1f}".removesuffix(".0") + " s"


def listed(texts: Sequence[str], most: int) -> str:
    """Texts in quotation marks, the first ``most`` of them."""
    shown = ", ".join(quoted(text, _SHORT) for text in texts[:most])
    return shown if len(texts) <= most else f"{shown} and {len(texts) - most} more"


def alert_objective(alert: Alert) -> str:
    """Word an alert in one line that a model can act on: the ``objective`` of its envelope."""
    return " ".join(_sentences(alert))


def alert_push_text(envelopes: Sequence[Envelope], total: int, local_now: str) -> str:
    """Word the push that wakes an agent with its alerts.

    ``total`` of them wait, of which ``envelopes`` are the oldest; at least one.
    """
    if total == 1 and len(envelopes) == 1:
        return _one_alert(envelopes[0], local_now)
    alerts = [envelope.alert for envelope in envelopes if envelope.alert is not None]
    open_ = [alert for alert in alerts if alert.resolution is None]
    count = total + sum(alert.folded for alert in alerts)
    lines = [f"[{local_now}] {counted(count, 'alert')} of dead-man switches for you."]
    folded = [scope for alert in alerts for scope in alert.folded_scopes]
    scopes = list(dict.fromkeys([*(alert.scope for alert in open_), *folded]))
    if scopes:
        lines.append(
            f"Silent past the deadline: {listed(scopes, SHOWN_SCOPES)}"
            + ("." if len(envelopes) == total else f" (of the oldest {len(envelopes)} alerts).")
        )
    if open_:
        freed = sum(alert.released_count for alert in open_)
        failed = sum(alert.marked_failed for alert in open_)
        tasks = sum(alert.released_tasks_count for alert in open_)
        back = f"; tasks given back: {tasks}" if tasks else ""
        lines.append(f"Freed by them: {counted(freed, 'lease')}{back}; marked failed: {failed}.")
    if len(open_) < len(alerts):
        lines.append(f"Resolved meanwhile, nothing to do: {len(alerts) - len(open_)}.")
    boxes = list(dict.fromkeys(envelope.box for envelope in envelopes))
    lines.append(
        "Each stays in your inbox until it is acknowledged: call inbox_poll with box "
        f"{listed(boxes, SHOWN_SCOPES)}, act, call inbox_ack, until there is none."
    )
    return "\n".join(lines)


def nudge_text(
    scope: str, generation: int, deadline_local: str, seconds_left: float, local_now: str
) -> str:
    """Word the push that reminds an agent of its own switch: beat or disarm."""
    return (
        f"[{local_now}] Beat or disarm: your dead-man switch of scope {quoted(scope)} (generation "
        f"{generation}) fires in {span(seconds_left)}, at {deadline_local}. Still at work: call "
        "heartbeat with that scope and expect_within_seconds. Finished: call it with that scope "
        "and disarm true. This reminder is no beat."
    )


def nudges_text(told: Sequence[tuple[str, int, str, float]], local_now: str) -> str:
    """Word the push that reminds an agent of several switches of its own, the soonest first.

    Of each is told its scope, its generation, its deadline and the seconds until then.
    """
    lines = [
        f"[{local_now}] Beat or disarm: {len(told)} of your dead-man switches fire soon.",
        *(
            f"- scope {quoted(scope)} (generation {generation}) in {span(seconds)}, at {deadline}"
            for scope, generation, deadline, seconds in told[:SHOWN_NUDGES]
        ),
    ]
    if len(told) > SHOWN_NUDGES:
        lines.append(f"- and {len(told) - SHOWN_NUDGES} more: switch_status lists them.")
    lines.append(
        "Still at work: call heartbeat with each scope and expect_within_seconds. Finished: call "
        "it with that scope and disarm true. This reminder is no beat."
    )
    return "\n".join(lines)


def freed_list(released: Sequence[Freed], count: int) -> str:
    """Of the ``count`` leases that a fire let go the first few by name."""
    shown = [
        f"{quoted(freed.key, _SHORT)} (held by {quoted(freed.holder, _SHORT)}, generation "
        f"{freed.generation})"
        for freed in released[:SHOWN_LEASES]
    ]
    return ", ".join(shown) + _and_more(count - len(shown))


def task_list(tasks: Sequence[FreedTask], count: int) -> str:
    """Of the ``count`` agent tasks that a fire gave back the first few by id."""
    shown = [
        f"{task.id} (epoch {task.execution_epoch}"
        + ("" if task.agent_id is None else f", held by {quoted(task.agent_id, _SHORT)}")
        + ")"
        for task in tasks[:SHOWN_TASKS]
    ]
    return ", ".join(shown) + _and_more(count - len(shown))


def _and_more(count: int) -> str:
    return f" and {count} more" if count else ""


def resume_line(resume: ResumePoint | dict[str, Any], limit: int | None) -> str:
    """Where the work can be taken up, in the words of the last checkpoint."""
    point = msgspec.convert(resume, ResumePoint, from_attributes=True)
    step = "" if point.step is None else f", step {quoted(point.step, limit)}"
    return (
        f"Resume where its last checkpoint ({point.saved_at}) stands, in its own words: next "
        f"action {quoted(point.next_action, limit)}{step}, objective "
        f"{quoted(point.objective, limit)}."
    )


def _one_alert(envelope: Envelope, local_now: str) -> str:
    alert = envelope.alert
    assert alert is not None
    first, *rest = _sentences(alert)
    sender = (
        "" if envelope.sender is None else f"Sent by the switch of {address(envelope.sender)}. "
    )
    lines = [
        f"[{local_now}] {first}",
        *rest,
        f"{sender}It stays in your inbox (box {quoted(envelope.box)}) until inbox_ack "
        f"{quoted(envelope.task_id)}.",
    ]
    return "\n".join(lines)


def _sentences(alert: Alert) -> list[str]:
    said = _resolved(alert) if alert.resolution is not None else _died(alert)
    if alert.meant_for is not None:
        said.append(
            f"It was sent to your box {quoted(alert.meant_for, _SHORT)}, and is here since you "
            "have mail in too many boxes to open another: acknowledge some of it."
        )
    if alert.folded:
        scopes = tuple(dict.fromkeys(reversed(alert.folded_scopes)))
        said.append(
            f"It stands for {counted(alert.folded, 'more alert')} for which the box had no place, "
            f"the last of scopes {listed(scopes, SHOWN_SCOPES)}: look at each."
        )
    return said


def _resolved(alert: Alert) -> list[str]:
    todo = "this one needs nothing" if alert.folded else "nothing is to be done"
    how = f"beats again since {alert.resolved_at}: do not take its work over"
    if alert.resolution == "disarmed":
        how = f"was disarmed at {alert.resolved_at}, its work being finished"
    said = [f"resolved: {todo}. {_whose(alert)} was late for {alert.deadline} and {how}."]
    if alert.released:
        freed = freed_list(alert.released, alert.released_count)
        said.append(f"Leases that had been freed: {freed}.")
    if alert.released_tasks:
        tasks = task_list(alert.released_tasks, alert.released_tasks_count)
        said.append(f"Tasks that had been given back: {tasks}.")
    return said


def _died(alert: Alert) -> list[str]:
    said = [
        f"DEAD-MAN SWITCH FIRED. {_whose(alert)} did not beat by {alert.deadline} (last beat "
        f"{alert.last_beat_at}, noticed {alert.noticed_at})."
    ]
    said += _freed(alert)
    if alert.unreachable and "release_leases" in alert.on_expiry:
        said.append(
            f"Not freed: {counted(alert.unreachable, 'lease')} taken without a scope, its own or "
            "those of others of its namespace."
        )
    if alert.marked_failed:
        said.append("The work is marked failed.")
    if alert.resume_private:
        said.append(
            "It kept its last checkpoint private: only its own namespace may read it, with "
            "resume_packet."
        )
    elif alert.resume is None:
        said.append("It left no checkpoint: what was done before is not known.")
    else:
        said.append(resume_line(alert.resume, _LONG))
    return said


def _freed(alert: Alert) -> list[str]:
    """What can be taken anew, and where that is to be seen which the alert does not name."""
    leases, tasks = alert.released_count, alert.released_tasks_count
    said = []
    if leases:
        said.append(f"Freed {counted(leases, 'lease')}: {freed_list(alert.released, leases)}.")
        if alert.released_more:
            said.append(
                f"The first {len(alert.released)} of these are named in released; of any other "
                "key lease tells whether it is free."
            )
    elif "release_leases" in alert.on_expiry:
        said.append("No lease of that scope was held, so none was freed.")
    if tasks:
        said.append(
            f"Back in the queue: {counted(tasks, 'task')}, to be claimed anew: "
            f"{task_list(alert.released_tasks, tasks)}."
        )
        if alert.released_tasks_more:
            said.append(
                f"The first {len(alert.released_tasks)} of these are named in released_tasks; its "
                "own namespace sees all that can be claimed with list_agent_tasks, status "
                "available."
            )
    return said


def _whose(alert: Alert) -> str:
    agent = (
        "An agent without a label" if alert.agent_id is None else f"Agent {quoted(alert.agent_id)}"
    )
    return f"{agent} on scope {quoted(alert.scope)} (generation {alert.generation})"
