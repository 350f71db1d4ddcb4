"""Starting a server as its host would, shaking hands with it, and seeing what an agent will get.

The server works on copies of its files, and on an empty store if it has one, in a folder that goes
afterwards, and nothing that falls due is taken from it: a check neither loses a wake nor moves the
schedule, and watches over nobody.
"""

import contextlib
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from mcpl_heartbeat.check.case import Case
from mcpl_heartbeat.check.findings import Finding, error, note, warning
from mcpl_heartbeat.check.gate import as_list
from mcpl_heartbeat.check.hosts import AGENT_KEY, PROFILES, STORE, Policy, Profile, policy
from mcpl_heartbeat.check.watch import Watch
from mcpl_heartbeat.demo.host import Failure, Host
from mcpl_heartbeat.policy.paths import VOCABULARY

SLOW_SECONDS = 3.0
"""A start that takes longer than this is worth a word: a host has others to start."""
_STOPPING, _DENIED, _DISABLED, _UNKNOWN, _WRONG = -32603, -32002, -32001, -32003, -32602


class Outcome(msgspec.Struct, frozen=True):
    """What an agent will get from a server; ``why_not`` says why it will not be woken (or "").

    ``seconds`` is from the start of the process to its list of tools.
    """

    server: str = ""
    seconds: float | None = None
    tools: tuple[str, ...] = ()
    granted: tuple[str, ...] = ()
    wakes: bool = False
    why_not: str = ""
    status: str = ""
    silent: bool = False
    watches: bool = False
    """Whether alerts and nudges may wake it, too."""
    tasks: bool = False
    """Whether claimable tasks may, where it asks for that."""


def try_out(case: Case, seconds: float | None = None) -> tuple[Outcome, list[Finding]]:
    """Start the case's server as its host does; ``seconds`` bounds each wait (default: the host's).

    Never raises for anything the server does or fails to do.
    """
    profile = PROFILES[case.host]
    watch = Watch()
    where = case.entry.where or case.plan.command
    with tempfile.TemporaryDirectory(prefix="mcpl-heartbeat-check-") as folder:
        command = [case.facts.command or case.plan.command, *case.plan.args]
        copies = _copies(case, Path(folder))
        started = time.monotonic()
        try:
            with _Host(case, command, copies, watch) as host:
                return _converse(case, profile, host, started, seconds)
        except (Failure, AttributeError, LookupError, TypeError) as failure:
            # The last three: an answer of another shape than the protocol's.
            if not isinstance(failure, Failure):
                failure = Failure(f"the server's answers are not MCP's ({failure})")
            reason, _, last_words = str(failure).partition(". Its last words: ")
            text = f"{_capital(reason)}."
            if last_words or watch.log:
                text += f" It said: {last_words or watch.log[-1]}"
            return Outcome(why_not=reason), [
                error("start", where, text, "Run the command by hand and see what it says.")
            ]


def _copies(case: Case, folder: Path) -> dict[str, str]:
    copies = {}
    for name, fact in case.facts.files.items():
        copy = folder / f"{name.lower()}.json"
        try:
            shutil.copyfile(fact.real, copy)
        except (OSError, ValueError):
            copy.unlink(missing_ok=True)
        copies[name] = str(copy)
    if case.plan.store is not None and not case.facts.store_trouble:
        # Not the agent's own: a server that takes part in the watch would speak for it.
        copies[STORE] = f"sqlite:///{folder}/store.db"
        copies[AGENT_KEY] = ""
    return copies


class _Host(Host):
    """A host that answers pushes as the real one would, and takes none but the one it asked for."""

    def __init__(
        self, case: Case, command: list[str], copies: dict[str, str], watch: Watch
    ) -> None:
        folder = Path(case.plan.cwd or ".")
        self._case = case
        self._copies = copies
        self.watch = watch
        self.policy: Policy | None = None
        self.declared: frozenset[str] = frozenset()
        self.refused: list[str] = []
        self.watches = self.tasks = False
        super().__init__(command, case.plan.environment | copies, folder, watch)

    def __exit__(self, *raised: Any) -> None:
        # A launcher may leave a child behind that outlives it.
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        super().__exit__(*raised)

    def own_warnings(self) -> list[str]:
        """The warnings of its log, with the real files in place of the copies it works on.

        What it says of a file that it cannot use is known, and said of the real one.
        """
        lines = self.watch.warnings
        for name, fact in self._case.facts.files.items():
            copy = self._copies[name]
            if fact.unusable:
                lines = [line for line in lines if copy not in line]
            lines = [line.replace(copy, fact.real) for line in lines]
        return lines

    def _push_event(self, **event: Any) -> Any:
        refusal = self._refusal(event)
        if refusal is not None:
            self.refused.append(refusal[1])
            return self._rpc.Error(*refusal)
        self._taken = event
        return self._rpc.Success({"accepted": True})

    def _refusal(self, event: dict[str, Any]) -> tuple[int, str, dict[str, Any]] | None:
        if "pushEvents" not in self.granted:
            return _DENIED, "Capability denied: pushEvents", {"capability": "pushEvents"}
        name = event.get("featureSet")
        if PROFILES[self._case.host].checks_pushes:
            if name not in self.declared:
                return _UNKNOWN, f"Unknown feature set: {name}", {"featureSet": name}
            if self.policy is None or not self.policy.allows(str(name)):
                return _DISABLED, f"Feature set disabled: {name}", {"featureSet": name}
            if not _visible(event) and not self._is_silent_wake(event):
                return _WRONG, "The content is empty", {"field": "payload.content"}
        origin = event.get("origin")
        if not isinstance(origin, dict) or origin.get("reason") != "manual":
            return _STOPPING, "the host is stopping", {}
        return None

    def _is_silent_wake(self, event: dict[str, Any]) -> bool:
        origin = event.get("origin") or {}
        return (
            self._case.entry.id in ("", "heartbeat")
            and event.get("featureSet") == "heartbeat"
            and origin.get("source") == "heartbeat"
            and origin.get("silent") is True
            and (event.get("payload") or {}).get("content") == []
        )


def _visible(event: dict[str, Any]) -> bool:
    content = (event.get("payload") or {}).get("content")
    return any(
        block.get("type") != "text" or str(block.get("text", "")).strip()
        for block in (content if isinstance(content, list) else [])
        if isinstance(block, dict)
    )


def _converse(
    case: Case, profile: Profile, host: _Host, started: float, limit: float | None
) -> tuple[Outcome, list[Finding]]:
    where = case.entry.where or case.plan.command
    answer, why_not = _greet(case, profile, host, limit)
    listed = host.request("tools/list", {}, limit or 60.0)
    seconds = time.monotonic() - started
    tools = tuple(
        str(tool.get("name")) for tool in as_list(listed.get("tools")) if isinstance(tool, dict)
    )
    status = host.call("heartbeat_status", {})[0] if "heartbeat_status" in tools else ""
    wakes = False
    if not why_not and "heartbeat_trigger" not in tools:
        why_not = "the server has no heartbeat_trigger to try it with"
    elif not why_not:
        wakes, why_not = _trigger(host)
    server = _object(answer.get("serverInfo"))
    outcome = Outcome(
        server=f"{server.get('name')} {server.get('version')}",
        seconds=round(seconds, 2),
        tools=tools,
        granted=tuple(sorted(host.granted)),
        wakes=wakes,
        why_not=why_not,
        status=status,
        silent="silent" in host.watch.pushes,
        watches=wakes and host.watches,
        tasks=wakes and host.tasks,
    )
    found = [*_heard(host, where), *_try_store(case, host, tools)]
    if seconds > SLOW_SECONDS:
        found.append(
            warning(
                "slow-start",
                where,
                f"It took {seconds:.1f} s from the start to the list of tools; the host gives up "
                f"after {profile.initialize_seconds:.0f} s.",
                "Install it once (python3 start.py install) and give the path of the command.",
            )
        )
    if profile.mcpl is not None and not wakes:
        text = f"No wake will reach the agent: {why_not}."
        found.append(error("no-wakes", where, text, "Mend what is reported here, and check again."))
    try:
        host.close()
    except Failure as failure:
        text = f"{_capital(str(failure))}."
        found.append(warning("stop", where, text, "A host will kill it; see what keeps it."))
    return outcome, found


def _greet(
    case: Case, profile: Profile, host: _Host, limit: float | None
) -> tuple[dict[str, Any], str]:
    """Shake hands; return the answer to ``initialize``, and why no wake will come (or "")."""
    experimental = {} if profile.mcpl is None else {"experimental": {"mcpl": profile.mcpl}}
    answer = host.request(
        "initialize",
        {
            "protocolVersion": profile.protocol,
            "clientInfo": profile.client,
            "capabilities": experimental,
        },
        limit or profile.initialize_seconds,
    )
    if profile.mcpl is not None and answer.get("protocolVersion") != profile.protocol:
        raise Failure(
            f"asked for protocol {profile.protocol} the server answered "
            f"{answer.get('protocolVersion')}, and this host refuses that for good"
        )
    host.notify("notifications/initialized")
    capabilities = _object(answer.get("capabilities"))
    mcpl = _object(_object(capabilities.get("experimental")).get("mcpl"))
    if profile.mcpl is None:
        return answer, f"{profile.title} speaks no MCPL, so nothing can wake its agent"
    if not mcpl:
        return answer, "the server offers no MCPL"
    return answer, _negotiate(case, profile, host, (capabilities, mcpl), limit)


def _negotiate(
    case: Case,
    profile: Profile,
    host: _Host,
    offered: tuple[dict[str, Any], dict[str, Any]],
    limit: float | None,
) -> str:
    """Send the policy as the host does; return why no wake comes, or "" when one may."""
    capabilities, mcpl = offered
    # Every path the server advertises with true or an object, and tools where it has some.
    advertised = {path for path in VOCABULARY if _object_or_true(mcpl.get(path.split(".")[0]))}
    advertised -= {"tools"}
    if capabilities.get("tools") is not None:
        advertised.add("tools")
    update = policy(case.host, case.entry, frozenset(advertised))
    declared = mcpl.get("featureSets")
    if not isinstance(declared, dict):
        declared = {str(_object(one).get("name")): one for one in as_list(declared)}
    host.declared = frozenset(declared)
    host.policy = update
    host.granted = frozenset(update.granted)
    receipt = host.request("featureSets/update", update.params(), limit or profile.policy_seconds)
    if receipt.get("accepted") is False:
        host.granted = frozenset()
        return f"the server refused the policy: {receipt.get('reason')}"
    notes = [str(text) for text in as_list(receipt.get("notes"))]
    off = as_list(receipt.get("unavailableFeatures"))
    unavailable = {_object(entry).get("featureSet") for entry in off}
    usable = host.declared - unavailable
    host.watches, host.tasks = "watch" in usable, "tasks" in usable
    if "heartbeat" in unavailable:
        return notes[0].rstrip(".") if notes else "the server reports heartbeat as unavailable"
    return ""


def _trigger(host: _Host) -> tuple[bool, str]:
    text, failed = host.call("heartbeat_trigger", {})
    if failed:
        return False, text.rstrip(".")
    if host.next_wake(5.0) is None:
        return False, f"the host refused the push ({'; '.join(host.refused) or 'none came'})"
    return True, ""


def _try_store(case: Case, host: _Host, tools: tuple[str, ...]) -> list[Finding]:
    """Ask for something of the store, as an agent would; it is an empty one by now."""
    if case.plan.store is None or case.facts.store_trouble or "whoami" not in tools:
        return []
    text, failed = host.call("whoami", {})
    if not failed:
        return []
    return [error("store", case.in_launch(f"env.{STORE}"), text, "Mend what it says.")]


def _heard(host: _Host, where: str) -> list[Finding]:
    found = [note("log", where, f"Its log says: {line}") for line in host.own_warnings()]
    if host.watch.stray:
        found.append(
            warning(
                "stdout",
                where,
                f"It writes to stdout what is no message: {host.watch.stray[0]}",
                "Have whatever prints it print to stderr.",
            )
        )
    if "The content is empty" in host.refused:
        found.append(
            warning(
                "silent",
                where,
                "The host refused the silent wake; each is sent again as a message.",
                "Give the entry the id heartbeat, or set deliveryMode to message.",
            )
        )
    return found


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _object_or_true(value: Any) -> bool:
    return value is True or isinstance(value, dict)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
