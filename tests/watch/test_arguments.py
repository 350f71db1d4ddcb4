"""What the watch tools take: every bound, every example, the rules between arguments."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from mcpl_heartbeat.mcp.arguments import Accepted, check
from mcpl_heartbeat.mcp.tools import Tool, schema
from mcpl_heartbeat.wake.tools import TOOLS as WAKE
from mcpl_heartbeat.watch.tools import BY_NAME, TOOLS
from tests.mcp.declared import problems, taken

ADDRESS = "agent:abcdefghijklmnop"
HEARTBEAT = BY_NAME["heartbeat"]
BEAT: dict[str, Any] = {"scope": "s", "expect_within_seconds": 300}
NEEDED: dict[str, dict[str, Any]] = {
    "heartbeat": BEAT,
    "send": {"to": ADDRESS, "objective": "o"},
    "inbox_ack": {"task_id": "t"},
    "inbox_nack": {"task_id": "t"},
    "lease": {"key": "k", "holder": "h"},
    "lease_renew": {"key": "k", "holder": "h", "fence": "f"},
    "lease_release": {"key": "k", "holder": "h", "fence": "f"},
    "checkpoint_put": {"scope": "s", "objective": "o", "next_action": "n"},
    "resume_packet": {"scope": "s"},
}


# --- each argument -----------------------------------------------------------------------------


@pytest.mark.requirement("watch.args.required")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_what_is_required_suffices_and_is_needed(tool: Tool) -> None:
    needed = NEEDED.get(tool.name, {})
    arguments = taken(tool.name, **needed)
    for name, value in needed.items():
        assert getattr(arguments, name) == value
        rest = {other: each for other, each in needed.items() if other != name}
        assert problems(tool.name, **rest) == {name: "is required and was not sent"}


@pytest.mark.requirement("watch.args.defaults")
def test_what_is_left_out_has_the_default_that_is_stated() -> None:
    assert taken("inbox_poll").box == "inbox"
    assert taken("inbox_poll").visibility_timeout_seconds == 300
    assert taken("inbox_ack", task_id="t").status == "done"
    assert taken("inbox_nack", task_id="t").delay_seconds == 0
    assert taken("lease", **NEEDED["lease"]).ttl_seconds == 60
    assert taken("lease_renew", **NEEDED["lease_renew"]).ttl_seconds == 60
    assert taken("resume_packet", scope="s").tail == 20
    assert taken("resume_packet", scope="s").box == "inbox"
    assert taken("switch_status").limit == 50
    assert taken("heartbeat", **BEAT).disarm is False
    assert taken("heartbeat", **BEAT).on_expiry is UNSET


def _numbers() -> list[Any]:
    return [
        pytest.param(tool.name, name, rule["minimum"], rule["maximum"], id=f"{tool.name}-{name}")
        for tool in TOOLS
        for name, rule in schema(tool.arguments)["properties"].items()
        if rule.get("type") == "integer"
    ]


@pytest.mark.requirement("watch.args.bounds", "seed.args.out-of-range")
@pytest.mark.parametrize(("tool", "name", "low", "high"), _numbers())
def test_each_number_is_held_to_its_bounds(tool: str, name: str, low: int, high: int) -> None:
    window = {"expect_within_seconds": 2_592_000} if name == "nudge_seconds" else {}
    needed = {**NEEDED.get(tool, {}), **window}
    for value in (low, high):
        assert getattr(taken(tool, **{**needed, name: value}), name) == value
    for value in (low - 1, high + 1):
        found = problems(tool, **{**needed, name: value})
        assert found[name] == f"must be from {low} to {high}, not {value}"


def _strings() -> list[Any]:
    return [
        pytest.param(tool.name, name, rule, id=f"{tool.name}-{name}")
        for tool in TOOLS
        for name, rule in schema(tool.arguments)["properties"].items()
        if rule.get("type") == "string" and "enum" not in rule
    ]


@pytest.mark.requirement("watch.args.bounds", "watch.args.least-length")
@pytest.mark.parametrize(("tool", "name", "rule"), _strings())
def test_each_string_has_a_most_and_a_least(tool: str, name: str, rule: dict[str, Any]) -> None:
    needed = NEEDED.get(tool, {})
    assert "maxLength" in rule or rule["pattern"].endswith("$"), "nothing is without an end"
    if "pattern" in rule:
        return
    longest = "é" * rule["maxLength"]
    if (tool, name) == ("checkpoint_put", "workflow_id"):
        needed = {other: value for other, value in needed.items() if other != "scope"}
    assert getattr(taken(tool, **{**needed, name: longest}), name) == longest
    assert problems(tool, **{**needed, name: f"{longest}x"}) == {
        name: f"must have at most {rule['maxLength']} characters, not {rule['maxLength'] + 1}"
    }
    if least := rule.get("minLength"):
        assert name in problems(tool, **{**needed, name: "x" * (least - 1)})


@pytest.mark.requirement("watch.args.bounds")
def test_the_bounds_are_those_that_were_promised() -> None:
    def rule(tool: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = schema(BY_NAME[tool].arguments)["properties"][name]
        return found

    def bounds(tool: str, name: str) -> tuple[int, int]:
        return rule(tool, name)["minimum"], rule(tool, name)["maximum"]

    assert bounds("heartbeat", "expect_within_seconds") == (2, 2_592_000)
    assert bounds("inbox_poll", "visibility_timeout_seconds") == (5, 86_400)
    assert bounds("lease", "ttl_seconds") == bounds("lease_renew", "ttl_seconds") == (1, 3600)
    assert rule("heartbeat", "agent_id")["maxLength"] == 64
    assert rule("register", "agent_id")["maxLength"] == 64
    assert rule("register", "agent_secret")["minLength"] == 32
    assert rule("send", "objective")["maxLength"] == 2048


@pytest.mark.requirement("watch.args.form", "words.for-models")
@pytest.mark.parametrize("tool", ["send", "heartbeat"])
@pytest.mark.parametrize(
    "address",
    [
        "",
        "agent:",
        "agent:ABCDEFGHIJKLMNOP",
        "agent:abcdefghijklmno",
        "agent:abcdefghijklmnopq",
        "agent:abcdefghijklmno1",
        f"{ADDRESS}/",
        f"{ADDRESS}/a/b",
        f"{ADDRESS}/{'b' * 65}",
        f"{ADDRESS}/a b",
        f"{ADDRESS}\n",
        f" {ADDRESS}",
        "mailto:abcdefghijklmnop",
    ],
)
def test_an_address_has_one_form(tool: str, address: str) -> None:
    name = {"send": "to", "heartbeat": "notify_address"}[tool]
    alert = {"on_expiry": ["queue_alert"]} if tool == "heartbeat" else {}
    found = problems(tool, **{**NEEDED[tool], **alert, name: address})
    assert list(found) == [name]
    assert found[name].startswith('must have the form of "agent:7k2pq4m3x5w6y7zb/')
    for box in ("", "/a", f"/{'b' * 64}", "/A.b_c-1"):
        right = {**NEEDED[tool], **alert, name: ADDRESS + box}
        assert getattr(taken(tool, **right), name) == ADDRESS + box


@pytest.mark.requirement("watch.args.form", "words.for-models")
@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("2030-01-31T09:00:00Z", True),
        ("2030-01-31 09:00+02:00", True),
        ("2030-01-31T09:00:00.125-0800", True),
        ("2030-01-31T09:00:00+00:00 [UTC]", True),
        ("2030-01-31T09:00:00", False),
        ("2030-01-31", False),
        ("tomorrow", False),
        ("", False),
    ],
)
def test_a_moment_has_an_offset(text: str, fits: bool) -> None:
    if fits:
        assert taken("send", **NEEDED["send"], due_at=text).due_at == text
    else:
        found = problems("send", **NEEDED["send"], due_at=text)
        assert found["due_at"].startswith('must have the form of "2030-01-31T09:00:00Z", not ')


@pytest.mark.requirement("watch.args.examples")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_each_example_is_one_that_is_taken(tool: Tool) -> None:
    for name, rule in schema(tool.arguments)["properties"].items():
        for example in rule.get("examples", ()):
            extra: dict[str, Any] = {name: example}
            if name in {"on_expiry", "notify_address"}:
                extra = {"on_expiry": ["queue_alert"], "notify_address": ADDRESS, **extra}
            arguments = taken(tool.name, **{**NEEDED.get(tool.name, {}), **extra})
            assert getattr(arguments, name) == example


@pytest.mark.requirement("watch.args.any-json")
@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("send", "context"),
        ("send", "history"),
        ("inbox_ack", "result"),
        ("checkpoint_put", "body"),
        ("checkpoint_put", "state"),
        ("checkpoint_put", "provider_extras"),
    ],
)
def test_what_is_opaque_is_any_json(tool: str, name: str) -> None:
    value = {"b": [1.0, None], "a": "x"}
    kept = getattr(taken(tool, **NEEDED[tool], **{name: value}), name)
    assert bytes(kept) == json.dumps(value).encode()
    assert list(problems(tool, **NEEDED[tool], **{name: "x" * 65_535})) == [name]


@pytest.mark.requirement("watch.args.unknown-refused", "words.for-models")
@pytest.mark.parametrize(
    ("tool", "name", "text"),
    [
        ("heartbeat", "interval_seconds", "heartbeat does not take this; heartbeat_configure "),
        ("heartbeat", "expectWithinSeconds", "heartbeat does not take this; did you mean expect_"),
        ("heartbeat", "on_expire", "heartbeat does not take this; did you mean on_expiry?"),
        ("heartbeat", "zz", "heartbeat does not take this"),
        ("lease", "ttl", "lease does not take this; did you mean ttl_seconds?"),
        ("whoami", "scope", "whoami does not take this; heartbeat and switch_status and send "),
        ("whoami", "_meta", "whoami does not take this"),
        ("register", "agent_key", "register does not take this; heartbeat and "),
    ],
)
def test_another_name_is_refused_and_a_slip_named(tool: str, name: str, text: str) -> None:
    found = problems(tool, **NEEDED.get(tool, {}), **{name: 1})
    assert found[name].startswith(text)


@pytest.mark.requirement("watch.args.lenient-apart", "host.37")
@pytest.mark.parametrize("tool", WAKE, ids=lambda tool: tool.name)
def test_the_wake_tools_ignore_what_they_ignored_before(tool: Tool) -> None:
    sent = {"state": {}, "checkpoint": None, "_meta": 1, "scope": "x", "agent_key": "k"}
    needed = {"message": "m", "inSeconds": 1, "id": "r", "paused": True, "offset": 0}
    own = schema(tool.arguments)["properties"]
    body = {**sent, **{name: value for name, value in needed.items() if name in own}}
    alone = check(tool, msgspec.Raw(json.dumps(body).encode()), WAKE)
    beside = check(tool, msgspec.Raw(json.dumps(body).encode()), (*WAKE, *TOOLS))
    assert isinstance(beside, Accepted)
    assert beside == alone
    assert set(beside.ignored) == set(sent)


# --- between arguments -------------------------------------------------------------------------


@pytest.mark.requirement("watch.args.forgiven")
def test_a_window_is_not_asked_of_who_disarms() -> None:
    assert taken("heartbeat", scope="s", disarm=True).expect_within_seconds is UNSET
    assert taken("heartbeat", **BEAT, disarm=True).expect_within_seconds == 300
    assert list(problems("heartbeat", scope="s", disarm=False)) == ["expect_within_seconds"]
    assert "expect_within_seconds" in schema(HEARTBEAT.arguments)["required"], "as the seed has it"


@pytest.mark.requirement("watch.args.alert-address", "seed.args.contradiction")
def test_an_alert_needs_an_address_and_an_address_an_alert() -> None:
    assert problems("heartbeat", **BEAT, on_expiry=["queue_alert"]) == {
        "notify_address": "is required with queue_alert in on_expiry; send the address that is to "
        'be told, such as "agent:<id>"'
    }
    assert problems("heartbeat", **BEAT, on_expiry=["mark_failed"], notify_address=ADDRESS) == {
        "on_expiry + notify_address": "contradict each other; add queue_alert to on_expiry, or "
        "leave notify_address out"
    }
    both = taken("heartbeat", **BEAT, on_expiry=["queue_alert"], notify_address=ADDRESS)
    assert (both.on_expiry, both.notify_address) == (["queue_alert"], ADDRESS)
    # Without on_expiry it depends on the list in force, which only the store knows.
    assert taken("heartbeat", **BEAT, notify_address=ADDRESS).notify_address == ADDRESS


@pytest.mark.requirement("watch.args.alert-address", "seed.args.all-problems")
def test_what_is_wrong_by_itself_is_not_called_missing_too() -> None:
    beat = {**BEAT, "on_expiry": ["queue_alert"]}
    assert list(problems("heartbeat", **beat, notify_address="me")) == ["notify_address"]
    assert list(problems("heartbeat", **BEAT, on_expiry=["alert"], notify_address=ADDRESS)) == [
        "on_expiry"
    ]
    assert list(problems("heartbeat", **beat, disarm="true")) == ["disarm"]


@pytest.mark.requirement("watch.args.json-text", "words.for-models")
def test_the_list_of_actions_is_no_json_text() -> None:
    found = problems("heartbeat", **BEAT, on_expiry='["release_leases","queue_alert"]')
    assert list(found) == ["on_expiry"]
    assert found["on_expiry"].startswith(
        'must be a list such as ["release_leases","queue_alert"], not the string '
    )
    twice = problems("heartbeat", **BEAT, on_expiry=["mark_failed", "mark_failed"])
    assert twice == {"on_expiry": "item 2 repeats item 1"}


@pytest.mark.requirement("watch.args.nudge", "seed.args.contradiction")
@pytest.mark.parametrize(("nudge", "right"), [(1, True), (299, True), (300, False), (301, False)])
def test_a_nudge_comes_after_the_beat(nudge: int, right: bool) -> None:
    if right:
        assert taken("heartbeat", **BEAT, nudge_seconds=nudge).nudge_seconds == nudge
    else:
        assert list(problems("heartbeat", **BEAT, nudge_seconds=nudge)) == [
            "expect_within_seconds + nudge_seconds"
        ]


@pytest.mark.requirement("watch.args.forgiven")
def test_nothing_is_held_against_who_disarms() -> None:
    sent = {"on_expiry": ["queue_alert"], "nudge_seconds": 300}
    assert taken("heartbeat", **BEAT, disarm=True, **sent).disarm is True


@pytest.mark.requirement("watch.args.two-names")
def test_two_names_of_one_thing_say_the_same() -> None:
    differ = "are two names of one thing and differ; send one of them"
    assert problems("register", label="a", agent_id="b") == {"label + agent_id": differ}
    assert taken("register", label="a", agent_id="a").label == "a"
    put = {"objective": "o", "next_action": "n"}
    assert problems("checkpoint_put", **put, scope="a", workflow_id="b") == {
        "scope + workflow_id": differ
    }
    assert taken("checkpoint_put", **put, scope="a", workflow_id="a").scope == "a"
    assert taken("checkpoint_put", **put, workflow_id="a").workflow_id == "a"
    assert problems("checkpoint_put", **put) == {"scope": "is required and was not sent"}
    assert list(problems("checkpoint_put", **put, scope=5)) == ["scope"]


@pytest.mark.requirement("seed.args.all-problems", "watch.args.all-problems")
def test_every_problem_comes_in_one_refusal() -> None:
    found = problems(
        "heartbeat",
        scope="",
        expect_within_seconds=1,
        on_expiry=["queue_alert", "page"],
        notify_address=7,
        agent_id="x" * 65,
        disarm="false",
        nudge_seconds=0.5,
        agent_kee="k",
        zz=1,
    )
    assert list(found) == [
        "scope",
        "expect_within_seconds",
        "on_expiry",
        "notify_address",
        "agent_id",
        "disarm",
        "nudge_seconds",
        "agent_kee",
        "zz",
    ]


@pytest.mark.requirement("watch.args.secrets-unsaid")
def test_no_refusal_repeats_a_secret() -> None:
    short, long = "a-secret-of-mine", "s" * 300
    for found in (
        problems("register", agent_secret=short),
        problems("register", agent_secret=long),
        problems("whoami", agent_key=long),
        problems("whoami", agent_key="k\0" + short),
    ):
        assert not any(secret in text for text in found.values() for secret in (short, long[:20]))
