"""Servers that take a call's arguments otherwise than they were sent."""

# Each mutant's sentence stands in its decorator.
# ruff: noqa: D103

from typing import Any

import msgspec

from conformance.mutants import Patch, mutant
from mcpl_heartbeat.mcp import arguments as rules
from mcpl_heartbeat.mcp import slips, values
from mcpl_heartbeat.wake import arguments as limits
from mcpl_heartbeat.wake import calls
from mcpl_heartbeat.wake.calls import WakeCalls


@mutant(
    "An argument nobody takes is passed over without a word.",
    caught_by=("plain-mcp/unknown-arguments", "mcpl-harness/extra-arguments"),
)
def unknown_arguments_unsaid(patch: Patch) -> None:
    patch(calls, "ignored_text", lambda tool, ignored: "")


@mutant(
    "Unknown arguments alone are taken for a call without any.",
    caught_by="plain-mcp/unknown-arguments",
)
def only_unknown_arguments_taken(patch: Patch) -> None:
    weigh = rules._weigh

    def narrow(tool: Any, members: Any, *rest: Any) -> Any:
        known: Any = [member for member in members if member[0] in rules._properties(tool)]
        return weigh(tool, known, *rest)

    patch(rules, "_weigh", narrow)


@mutant(
    "A number or a boolean in quotes is taken for one.",
    caught_by="plain-mcp/arguments-of-wrong-types",
)
def strings_taken_for_values(patch: Patch) -> None:
    read = values.read_value

    def lenient(name: str, value: Any, rule: Any) -> Any:
        if isinstance(value, str) and rule["type"] != "string":
            try:
                value = msgspec.json.decode(value)
            except msgspec.DecodeError:
                return read(name, value, rule)
        return read(name, value, rule)

    patch(rules, "read_value", lenient)


@mutant(
    "A refusal names only the first problem.",
    caught_by=("plain-mcp/arguments-of-wrong-types", "plain-mcp/arguments-that-contradict"),
)
def first_problem_only(patch: Patch) -> None:
    check = rules.check

    def hasty(*args: Any) -> Any:
        outcome = check(*args)
        if isinstance(outcome, rules.Refused):
            return rules.Refused(outcome.problems[:1])
        return outcome

    patch(rules, "check", hasty)
    patch(rules, "_takes", lambda tool: "takes other arguments")


@mutant(
    "A refused call is carried out in part: the heartbeat is paused all the same.",
    caught_by="plain-mcp/arguments-of-wrong-types",
)
def half_applied(patch: Patch) -> None:
    refused = WakeCalls.refused

    def applied(self: WakeCalls, tool: Any, *rest: Any) -> Any:
        if tool.name == "heartbeat_configure":
            settings = self._wing.settings
            self._wing.settings = msgspec.structs.replace(settings, paused=True)
            self._wing.schedule.pause()
        return refused(self, tool, *rest)

    patch(WakeCalls, "refused", applied)


@mutant(
    "Intervals have no floor.",
    caught_by="plain-mcp/arguments-out-of-range",
)
def no_floor(patch: Patch) -> None:
    patch(limits, "MIN_INTERVAL_SECONDS", 0)
    patch(limits, "MIN_EVERY_SECONDS", 0)


@mutant(
    "A slip is ignored like any other name.",
    caught_by=("plain-mcp/slips", "plain-mcp/slips-on-their-own-merits"),
)
def slips_ignored(patch: Patch) -> None:
    patch(rules, "find_slip", lambda *args: None)


@mutant(
    "Beside a name that is taken no other can be a slip.",
    caught_by="plain-mcp/slips-on-their-own-merits",
)
def slips_excused_by_company(patch: Patch) -> None:
    find_slip = slips.find_slip

    def excused(name: str, sent: Any, own: Any, others: Any) -> Any:
        if any(known in name.lower() for known in sent if known in own):
            return None
        return find_slip(name, sent, own, others)

    patch(rules, "find_slip", excused)


@mutant("Of a name sent twice the last value wins.", caught_by="plain-mcp/arguments-sent-twice")
def last_value_wins(patch: Patch) -> None:
    weigh = rules._weigh

    def merged(tool: Any, members: Any, *rest: Any) -> Any:
        last: Any = list(dict(members).items())
        return weigh(tool, last, *rest)

    patch(rules, "_weigh", merged)


@mutant(
    "A delay and a moment together are taken, the moment counts.",
    caught_by="plain-mcp/arguments-that-contradict",
)
def contradictions_taken(patch: Patch) -> None:
    refused = rules.Refused

    def excused(problems: Any, ignored: Any = ()) -> Any:
        kept = tuple(each for each in problems if "contradict" not in each.text)
        return refused(kept or problems[:0], ignored)

    def check(tool: Any, raw: Any, *rest: Any) -> Any:
        outcome = checked(tool, raw, *rest)
        if isinstance(outcome, refused) and not outcome.problems:
            members = msgspec.json.decode(raw)
            for name in ("inSeconds", "inMinutes", "inHours"):
                members.pop(name, None)
            return checked(tool, msgspec.Raw(msgspec.json.encode(members)), *rest)
        return outcome

    checked = rules.check
    conclude = rules._conclude

    def concluded(*args: Any) -> Any:
        outcome = conclude(*args)
        return excused(outcome.problems) if isinstance(outcome, refused) else outcome

    patch(rules, "_conclude", concluded)
    patch(rules, "check", check)
