"""What the task tools take: every bound, every example, the rules between arguments."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from mcpl_heartbeat.mcp.arguments import Accepted, check
from mcpl_heartbeat.mcp.tools import Tool, schema
from mcpl_heartbeat.tasks.arguments import MAX_JSON, FieldArguments, GuardArguments
from mcpl_heartbeat.tasks.tools import BY_NAME, TOOLS
from tests.mcp.declared import problems, taken

ID = "3F2a9c1e-5b7d-4e8f-9a01-2b3c4d5e6f70"
ADDRESS = "agent:abcdefghijklmnop"
TOTAL = {"key": "total", "dataType": "number"}
NEW: dict[str, Any] = {"input_snapshot": {"pages": 3}, "output_contract": [TOTAL]}
CLAIM: dict[str, Any] = {"task_id": ID}
HELD: dict[str, Any] = {"task_id": ID, "execution_epoch": 2}
NEEDED: dict[str, dict[str, Any]] = {
    "create_agent_task": NEW,
    "list_agent_tasks": {},
    "get_agent_task": CLAIM,
    "claim_agent_task": CLAIM,
    "heartbeat_agent_task": HELD,
    "submit_agent_task": {**HELD, "outputs": {"total": {"value": 1}}},
    "release_agent_task": HELD,
}


# --- each argument -----------------------------------------------------------------------------


@pytest.mark.requirement("tasks.args.required")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_what_is_required_suffices_and_is_needed(tool: Tool) -> None:
    needed = NEEDED[tool.name]
    taken(tool.name, **needed)
    for name in needed:
        rest = {other: each for other, each in needed.items() if other != name}
        found = problems(tool.name, **rest)
        assert list(found) == [name]
        assert "is required" in found[name]


@pytest.mark.requirement("tasks.args.defaults")
def test_what_is_left_out_has_the_default_that_is_stated() -> None:
    created = taken("create_agent_task", **NEW)
    assert (created.lease_seconds, created.timeout_seconds) == (300, 86_400)
    assert created.timeout_fallthrough == "route_to_review"
    assert created.output_contract == [
        FieldArguments(key="total", data_type="number", required=True)
    ]
    assert created.dedupe_key is created.instructions is created.cancel_task_id is UNSET
    assert taken("list_agent_tasks").limit == 50
    assert taken("list_agent_tasks").status is UNSET
    assert taken("claim_agent_task", **CLAIM).guard is UNSET
    assert taken("claim_agent_task", **CLAIM, guard={}).guard == GuardArguments()
    assert taken("release_agent_task", **HELD).final is False


def _bounded() -> list[Any]:
    return [
        pytest.param(tool.name, name, rule["minimum"], rule["maximum"], id=f"{tool.name}-{name}")
        for tool in TOOLS
        for name, rule in schema(tool.arguments)["properties"].items()
        if rule.get("type") == "integer"
    ]


@pytest.mark.requirement("tasks.args.bounds", "seed.args.out-of-range")
@pytest.mark.parametrize(("tool", "name", "low", "high"), _bounded())
def test_each_number_is_held_to_its_bounds(tool: str, name: str, low: int, high: int) -> None:
    room = {"timeout_seconds": {"lease_seconds": 30}}.get(name, {})
    needed = {**NEEDED[tool], **room}
    for value in (low, high):
        assert getattr(taken(tool, **{**needed, name: value}), name) == value
    for value in (low - 1, high + 1):
        found = problems(tool, **{**needed, name: value})
        assert found == {name: f"must be from {low} to {high}, not {value}"}


@pytest.mark.requirement("tasks.args.bounds")
def test_the_bounds_are_those_that_were_promised() -> None:
    def rule(tool: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = schema(BY_NAME[tool].arguments)["properties"][name]
        return found

    def bounds(tool: str, name: str) -> tuple[int, int]:
        return rule(tool, name)["minimum"], rule(tool, name)["maximum"]

    assert bounds("create_agent_task", "lease_seconds") == (30, 3600)
    assert bounds("create_agent_task", "timeout_seconds") == (30, 30 * 86_400)
    assert bounds("list_agent_tasks", "limit") == (1, 100)
    for tool in ("heartbeat_agent_task", "submit_agent_task", "release_agent_task"):
        assert bounds(tool, "execution_epoch") == (1, 2_147_483_647)
    assert rule("submit_agent_task", "summary")["maxLength"] == 4000
    assert set(rule("list_agent_tasks", "status")["enum"]) == {
        "available", "claimed", "submitted", "timed_out", "cancelled", "failed",
    }  # fmt: skip
    assert set(rule("create_agent_task", "timeout_fallthrough")["enum"]) == {
        "route_to_review", "continue_without_output", "fail",
    }  # fmt: skip
    field = rule("create_agent_task", "output_contract")["items"]["properties"]
    assert set(field) == {"key", "dataType", "required"}
    assert set(field["dataType"]["enum"]) == {
        "string", "number", "integer", "boolean", "date", "object", "array",
    }  # fmt: skip


def _strings() -> list[Any]:
    return [
        pytest.param(tool.name, name, rule, id=f"{tool.name}-{name}")
        for tool in TOOLS
        for name, rule in schema(tool.arguments)["properties"].items()
        if rule.get("type") == "string" and "enum" not in rule and "pattern" not in rule
    ]


BESIDE: dict[tuple[str, str], dict[str, Any]] = {
    ("create_agent_task", "reason"): {"cancel_task_id": ID},
    ("release_agent_task", "reason"): {**HELD, "final": True},
}


@pytest.mark.requirement("tasks.args.bounds")
@pytest.mark.parametrize(("tool", "name", "rule"), _strings())
def test_each_string_has_a_most_and_a_least(tool: str, name: str, rule: dict[str, Any]) -> None:
    needed = BESIDE.get((tool, name), NEEDED[tool])
    longest = "é" * rule["maxLength"]
    assert getattr(taken(tool, **{**needed, name: longest}), name) == longest
    assert name in problems(tool, **{**needed, name: f"{longest}x"})
    assert "U+0000" in problems(tool, **{**needed, name: "a\0b"})[name]
    if least := rule.get("minLength"):
        assert name in problems(tool, **{**needed, name: "x" * (least - 1)})


@pytest.mark.requirement("tasks.args.task-id", "words.for-models")
@pytest.mark.parametrize(
    "id", ["", "7", ID[:-1], f"{ID}0", f" {ID}", f"{ID}\n", ID.replace("-", ""), f"{{{ID}}}"]
)
@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS if "task_id" in NEEDED[tool.name]])
def test_a_task_id_is_a_uuid(tool: str, id: str) -> None:
    (text,) = problems(tool, **{**NEEDED[tool], "task_id": id}).values()
    assert text.startswith('must have the form of "3f2a9c1e-5b7d-4e8f-9a01-2b3c4d5e6f70", not ')


@pytest.mark.requirement("tasks.args.task-id")
def test_a_task_id_may_be_in_either_case() -> None:
    for id in (ID, ID.lower(), ID.upper()):
        assert taken("get_agent_task", task_id=id).task_id == id


@pytest.mark.requirement("tasks.args.unknown-refused")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_name_that_is_not_taken_is_refused(tool: Tool) -> None:
    assert list(problems(tool.name, **NEEDED[tool.name], colour="red")) == ["colour"]
    needed = dict(NEEDED[tool.name])
    if "task_id" in needed:
        needed["taskId"] = needed.pop("task_id")
        assert "did you mean task_id" in problems(tool.name, **needed)["taskId"]


def _examples() -> list[Any]:
    return [
        pytest.param(tool.name, name, example, id=f"{tool.name}-{name}")
        for tool in TOOLS
        for name, rule in schema(tool.arguments)["properties"].items()
        for example in rule.get("examples", ())
        if name != "agent_key"
    ]


@pytest.mark.requirement("tasks.args.examples")
@pytest.mark.parametrize(("tool", "name", "example"), _examples())
def test_every_example_is_taken(tool: str, name: str, example: Any) -> None:
    needed = {} if name == "cancel_task_id" else NEEDED[tool]
    taken(tool, **{**needed, name: example})


# --- JSON --------------------------------------------------------------------------------------


@pytest.mark.requirement("tasks.args.any-json")
@pytest.mark.parametrize("text", ["null", "5", '"x"', "[]", "{}", '{"a": 1.50, "a": "\\u0000"}'])
def test_a_snapshot_is_any_json_and_kept_to_the_letter(text: str) -> None:
    raw = msgspec.Raw(f'{{"input_snapshot":{text},"output_contract":[]}}'.encode())
    outcome = check(BY_NAME["create_agent_task"], raw, TOOLS)
    assert isinstance(outcome, Accepted)
    assert bytes(outcome.arguments.input_snapshot) == text.encode()


@pytest.mark.requirement("tasks.args.any-json-size")
def test_a_snapshot_and_outputs_hold_a_quarter_of_a_mebibyte() -> None:
    assert MAX_JSON == 262_144
    fits = "a" * (MAX_JSON - 2)
    assert len(taken("create_agent_task", **{**NEW, "input_snapshot": fits}).input_snapshot)
    assert list(problems("create_agent_task", **{**NEW, "input_snapshot": f"{fits}a"})) == [
        "input_snapshot"
    ]
    shell = len(json.dumps({"total": {"value": ""}}))
    fits = "a" * (MAX_JSON - shell)
    taken("submit_agent_task", **HELD, outputs={"total": {"value": fits}})
    over = problems("submit_agent_task", **HELD, outputs={"total": {"value": f"{fits}a"}})
    assert over == {"outputs": "must have at most 262144 bytes, not 262145"}


@pytest.mark.requirement("tasks.args.any-object")
def test_outputs_are_an_object_kept_to_the_letter() -> None:
    text = '{ "total": {"value": 12.50, "confidence":1} }'
    raw = msgspec.Raw(f'{{"task_id":"{ID}","execution_epoch":2,"outputs":{text}}}'.encode())
    outcome = check(BY_NAME["submit_agent_task"], raw, TOOLS)
    assert isinstance(outcome, Accepted)
    assert bytes(outcome.arguments.outputs) == text.encode()
    for wrong in ([], None, "{}", 5):
        assert list(problems("submit_agent_task", **HELD, outputs=wrong)) == ["outputs"]


# --- objects -----------------------------------------------------------------------------------


@pytest.mark.requirement("tasks.args.contract", "words.for-models")
@pytest.mark.parametrize(
    ("contract", "text"),
    [
        ([TOTAL, {"key": "b", "dataType": "float"}], "item 2: dataType must be "),
        ([TOTAL, {"key": "b", "type": "date"}], "item 2: type is not taken here; did you mean"),
        ([{"dataType": "date"}], "item 1: key is required and was not sent"),
        ([{**TOTAL, "required": "yes"}], "item 1: required must be true or false"),
        ([{**TOTAL, "key": ""}], "item 1: key must not be empty"),
        ([{**TOTAL, "key": "k" * 129}], "item 1: key must have at most 128 characters"),
        ([{**TOTAL, "key": "a\0"}], "U+0000"),
        (["total"], "item 1 must be an object"),
        ({"total": "number"}, "must be a list such as"),
        ([{**TOTAL, "key": str(i)} for i in range(101)], "must have at most 100 items, not 101"),
        ([TOTAL, {**TOTAL, "key": "b"}, TOTAL], "item 3 repeats the key of item 1"),
    ],
)
def test_a_contract_names_each_output_once_and_rightly(contract: Any, text: str) -> None:
    found = problems("create_agent_task", input_snapshot=1, output_contract=contract)
    assert list(found) == ["output_contract"]
    assert text in found["output_contract"]


@pytest.mark.requirement("tasks.args.contract")
def test_a_contract_may_ask_for_nothing() -> None:
    assert taken("create_agent_task", input_snapshot=1, output_contract=[]).output_contract == []


@pytest.mark.requirement("tasks.args.guard")
def test_a_guard_says_what_its_switch_does() -> None:
    guard = {"on_expiry": ["queue_alert", "mark_failed"], "notify_address": ADDRESS}
    assert taken("claim_agent_task", **CLAIM, guard=guard).guard == GuardArguments(
        on_expiry=["queue_alert", "mark_failed"], notify_address=ADDRESS
    )


@pytest.mark.requirement("tasks.args.guard", "words.for-models")
@pytest.mark.parametrize(
    ("guard", "text"),
    [
        ({"on_expiry": ["queue_alert"]}, "notify_address is required with queue_alert"),
        ({"notify_address": ADDRESS}, "add queue_alert to on_expiry"),
        ({"on_expiry": ["mark_failed"], "notify_address": ADDRESS}, "add queue_alert to on_exp"),
        ({"on_expiry": []}, "on_expiry must not be empty"),
        ({"on_expiry": ["mark_failed", "mark_failed"]}, "on_expiry: item 2 repeats item 1"),
        ({"on_expiry": ["explode"]}, "on_expiry: item 1 must be "),
        ({"notify_address": "agent:x"}, "notify_address must have the form of "),
        ({"expect_within_seconds": 5}, "expect_within_seconds is not taken here, only on_expiry"),
        (True, "must be an object such as "),
    ],
)
def test_a_guard_that_makes_no_sense_is_refused(guard: Any, text: str) -> None:
    found = problems("claim_agent_task", **CLAIM, guard=guard)
    assert list(found) == ["guard"]
    assert text in found["guard"]


# --- between arguments -------------------------------------------------------------------------


@pytest.mark.requirement("tasks.args.timeout-of-a-lease")
def test_a_task_lasts_as_long_as_one_lease() -> None:
    taken("create_agent_task", **NEW, lease_seconds=60, timeout_seconds=60)
    found = problems("create_agent_task", **NEW, timeout_seconds=299)
    assert list(found) == ["lease_seconds + timeout_seconds"]
    assert "at most 299" in found["lease_seconds + timeout_seconds"]
    assert list(problems("create_agent_task", **NEW, lease_seconds=5, timeout_seconds=60)) == [
        "lease_seconds"
    ]


@pytest.mark.requirement("tasks.args.cancel-alone")
def test_a_call_that_cancels_does_nothing_else() -> None:
    cancelled = taken("create_agent_task", cancel_task_id=ID, reason="withdrawn")
    assert (cancelled.cancel_task_id, cancelled.reason) == (ID, "withdrawn")
    taken("create_agent_task", cancel_task_id=ID, agent_key="k" * 32)
    others = {
        **NEW,
        "instructions": "i",
        "lease_seconds": 300,
        "timeout_seconds": 86_400,
        "timeout_fallthrough": "fail",
        "dedupe_key": "d",
    }
    for name, value in others.items():
        found = problems("create_agent_task", cancel_task_id=ID, **{name: value})
        assert list(found) == [f"cancel_task_id + {name}"]
    assert len(problems("create_agent_task", cancel_task_id=ID, **others)) == len(others)


@pytest.mark.requirement("tasks.args.cancel-alone")
def test_a_cancellation_that_is_wrong_is_not_taken_for_a_new_task() -> None:
    assert list(problems("create_agent_task", cancel_task_id="7")) == ["cancel_task_id"]
    assert list(problems("create_agent_task", cancelTaskId=ID)) == ["cancelTaskId"]
    assert list(problems("create_agent_task", **NEW, reason="r")) == ["reason"]


@pytest.mark.requirement("tasks.args.reason-of-failing")
def test_a_reason_goes_with_failing_for_good() -> None:
    assert taken("release_agent_task", **HELD, final=True, reason="torn").reason == "torn"
    assert taken("release_agent_task", **HELD, note="page 4").note == "page 4"
    assert list(problems("release_agent_task", **HELD, final=True)) == ["reason"]
    assert list(problems("release_agent_task", **HELD, reason="torn")) == ["final + reason"]
    assert list(problems("release_agent_task", **HELD, final=1, reason="torn")) == ["final"]


@pytest.mark.requirement("tasks.args.all-problems")
def test_every_problem_is_named_at_once() -> None:
    found = problems(
        "create_agent_task",
        input_snapshot=None,
        output_contract=[{"key": 1}],
        lease_seconds="300",
        timeout_fallthrough="retry",
        instruction="do it",
        reason="",
    )
    assert set(found) == {
        "output_contract", "lease_seconds", "timeout_fallthrough", "instruction", "reason",
    }  # fmt: skip
