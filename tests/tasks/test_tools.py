"""The seven task tools: what they say of themselves, and the shape of their results."""

from typing import Any

import pytest
from msgspec import Raw

from mcpl_heartbeat import catalogue
from mcpl_heartbeat.mcp.lifecycle import VERSIONS
from mcpl_heartbeat.mcp.tools import Tool, schema, tools_list
from mcpl_heartbeat.policy.manifest import HEARTBEAT, TASKS, WATCH, manifest
from mcpl_heartbeat.tasks import results as r
from mcpl_heartbeat.tasks.tools import BY_NAME, READS, TOOLS
from mcpl_heartbeat.tasks.wing import TASKS_WING
from mcpl_heartbeat.wake.tools import TOOLS as WAKE
from mcpl_heartbeat.watch.failures import STATUS, failure, unavailable
from mcpl_heartbeat.watch.results import Result
from mcpl_heartbeat.watch.tools import TOOLS as WATCH_TOOLS
from tests.mcp.declared import fits, hints, names, no_host_drops, unsaid

KEY = "agent_key"
NOW = "2026-12-01T12:00:00.000Z"
ID = "3f2a9c1e-5b7d-4e8f-9a01-2b3c4d5e6f70"


@pytest.mark.requirement("tasks.tools.list")
def test_the_seven_tools_and_their_arguments() -> None:
    assert {tool.name: names(tool) - {KEY} for tool in TOOLS} == {
        "create_agent_task": {
            "input_snapshot",
            "output_contract",
            "instructions",
            "lease_seconds",
            "timeout_seconds",
            "timeout_fallthrough",
            "dedupe_key",
            "cancel_task_id",
            "reason",
        },
        "list_agent_tasks": {"status", "limit", "cursor"},
        "get_agent_task": {"task_id"},
        "claim_agent_task": {"task_id", "idempotency_key", "agent_id", "scope", "guard"},
        "heartbeat_agent_task": {"task_id", "execution_epoch", "note", "step"},
        "submit_agent_task": {"task_id", "execution_epoch", "outputs", "summary"},
        "release_agent_task": {"task_id", "execution_epoch", "final", "reason", "note", "step"},
    }
    assert all(KEY in names(tool) for tool in TOOLS)


@pytest.mark.requirement("tasks.tools.catalogue")
def test_the_doors_have_the_tools_of_both_wings_under_names_of_their_own() -> None:
    every = (*WAKE, *catalogue.TOOLS)
    assert (*WATCH_TOOLS, *TOOLS) == catalogue.TOOLS
    assert len({tool.name for tool in every}) == len(every)
    assert {tool.name for tool in catalogue.TOOLS} - {"register"} == catalogue.REQUIRES_SECRET
    assert {tool.name for tool in catalogue.TOOLS if tool.read_only} == catalogue.READS
    assert {"list_agent_tasks", "get_agent_task"} == READS


@pytest.mark.requirement("tasks.tools.catalogue")
@pytest.mark.parametrize("tool", catalogue.TOOLS, ids=lambda tool: tool.name)
def test_every_tool_has_words_for_a_failure(tool: Tool) -> None:
    text = catalogue.text_of(tool.name, unavailable(tool.name, "it is full"))
    assert "it is full" in text


@pytest.mark.requirement("tasks.tools.as-b")
def test_the_five_tools_take_what_the_seed_takes() -> None:
    required = {tool.name: schema(tool.arguments).get("required", []) for tool in TOOLS}
    assert required == {
        "create_agent_task": [],
        "list_agent_tasks": [],
        "get_agent_task": ["task_id"],
        "claim_agent_task": ["task_id"],
        "heartbeat_agent_task": ["task_id", "execution_epoch"],
        "submit_agent_task": ["task_id", "execution_epoch", "outputs"],
        "release_agent_task": ["task_id", "execution_epoch"],
    }


@pytest.mark.requirement("tasks.tools.schema", "mcp.tools-schema")
@pytest.mark.parametrize("version", VERSIONS)
def test_no_schema_makes_a_host_drop_the_tool(version: str) -> None:
    no_host_drops(TOOLS, version)


@pytest.mark.requirement("tasks.tools.schema")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_unknown_names_are_forbidden_and_every_argument_is_described(tool: Tool) -> None:
    root = schema(tool.arguments)
    assert root["additionalProperties"] is False
    for rule in root["properties"].values():
        assert rule["description"].endswith(".")
        for part in (rule, rule.get("items", {})):
            if "properties" in part:
                assert part["additionalProperties"] is False
                assert all(inner["description"] for inner in part["properties"].values())


@pytest.mark.requirement("tasks.tools.annotations", "mcp.tools-annotations", "mcp.tools-class")
def test_hints_and_classes() -> None:
    assert {tool.name: hints(tool) for tool in TOOLS} == {
        "create_agent_task": (False, False, True, False),
        "list_agent_tasks": (True, True, False, False),
        "get_agent_task": (True, True, False, False),
        "claim_agent_task": (False, False, False, False),
        "heartbeat_agent_task": (False, True, False, False),
        "submit_agent_task": (False, True, False, False),
        "release_agent_task": (False, False, True, False),
    }
    for listed in tools_list(TOOLS, "2024-11-05")["tools"]:
        assert listed["_meta"]["mcpl/class"] == ["control"]
        assert listed["annotations"]["title"]


@pytest.mark.requirement("tasks.tools.words", "mcp.tools-rules-stated")
@pytest.mark.parametrize(
    ("tool", "argument", "words"),
    [
        ("heartbeat_agent_task", None, ["Renews your claim", "neither the beat of your own"]),
        ("heartbeat_agent_task", None, ["dead-man switch (heartbeat)", "heartbeat_status"]),
        ("heartbeat_agent_task", None, ["lease_expires_at", "never moves timeout_at"]),
        ("heartbeat_agent_task", None, ["stop, discard the work, list again", "stale_epoch"]),
        ("create_agent_task", None, ["cancel_task_id", "withdraws", "dedupe_key"]),
        ("list_agent_tasks", None, ["claimable true", "empty list is normal"]),
        ("get_agent_task", None, ["Claims nothing", "data to judge"]),
        ("claim_agent_task", None, ["execution_epoch", "already_claimed", "task_closed"]),
        ("claim_agent_task", None, ["handover", "data to judge"]),
        ("submit_agent_task", None, ["invalid_outputs", "claim stays", "replayed true"]),
        ("release_agent_task", None, ["final true", "failed"]),
        ("create_agent_task", "lease_seconds", ["30 to 3600", "default 300"]),
        ("create_agent_task", "timeout_seconds", ["2592000 (30 days)", "default 86400"]),
        ("create_agent_task", "timeout_seconds", ["not less than lease_seconds", "whoever"]),
        ("create_agent_task", "timeout_fallthrough", ["route_to_review (default", "once"]),
        ("create_agent_task", "input_snapshot", ["262144", "Required for a new task"]),
        ("create_agent_task", "output_contract", ["up to 100", "Required for a new task"]),
        ("create_agent_task", "instructions", ["16000"]),
        ("create_agent_task", "dedupe_key", ["1 to 256", "created false"]),
        ("create_agent_task", "cancel_task_id", ["only reason"]),
        ("create_agent_task", "reason", ["1 to 1000", "only with cancel_task_id"]),
        ("list_agent_tasks", "limit", ["1 to 100", "default 50"]),
        ("list_agent_tasks", "status", ["lease of a claim ran out"]),
        ("claim_agent_task", "idempotency_key", ["same reply", "1 to 256"]),
        ("claim_agent_task", "agent_id", ["1 to 64", "Proves nothing"]),
        ("claim_agent_task", "scope", ["1 to 256", "given back"]),
        ("claim_agent_task", "guard", ["dead-man switch", "submit and release disarm"]),
        ("heartbeat_agent_task", "execution_epoch", ["1 to 2147483647"]),
        ("heartbeat_agent_task", "note", ["4000"]),
        ("submit_agent_task", "outputs", ["0 to 1", "4000", "262144", "undeclared"]),
        ("submit_agent_task", "summary", ["4000"]),
        ("release_agent_task", "final", ["reason is required", "Default false"]),
        ("release_agent_task", "reason", ["1 to 2000", "final true"]),
    ],
)
def test_every_rule_is_stated(tool: str, argument: str | None, words: list[str]) -> None:
    assert unsaid(tool, argument, words) == []


@pytest.mark.requirement("tasks.tools.words")
def test_the_three_heartbeats_are_told_apart() -> None:
    by_name = {tool.name: tool.description for tool in (*WAKE, *catalogue.TOOLS)}
    assert "wake that comes to you" in by_name["heartbeat_agent_task"]
    assert "dead-man switch" in by_name["heartbeat"].lower()
    opening = by_name["heartbeat_agent_task"].partition(".")[0]
    assert "claim of a task" in opening


# --- results -----------------------------------------------------------------------------------

RECORD: dict[str, Any] = {
    "id": ID,
    "status": "claimed",
    "claimable": False,
    "execution_epoch": 2,
    "claimed_at": NOW,
    "lease_expires_at": NOW,
    "timeout_at": NOW,
    "submitted_at": None,
    "created_at": NOW,
    "updated_at": NOW,
    "agent_id": "worker-3",
    "lease_seconds": 300,
    "timeout_fallthrough": "fail",
}
NEVER_CLAIMED = {
    **RECORD,
    "status": "available",
    "claimable": True,
    "execution_epoch": 1,
    "claimed_at": None,
    "lease_expires_at": None,
    "agent_id": None,
}
TOLD: dict[str, Any] = {**RECORD, "server_time": NOW, "seconds_left": 299.5}
EPOCH = r.EpochView(
    execution_epoch=2,
    agent_id=None,
    claimed_at=NOW,
    beats=3,
    ended_at=None,
    cause=None,
    note="n",
    step=None,
)
HANDOVER = r.HandoverView(
    epoch=2,
    agent_id="worker-1",
    cause="lapsed",
    note="page 4",
    step=None,
    note_epoch=2,
    noted_at=NOW,
)
WHOLE: dict[str, Any] = {
    **TOLD,
    "input_snapshot": Raw(b'{"pages":3}'),
    "output_contract": ({"key": "total", "dataType": "number", "required": True},),
    "instructions": None,
    "handover": HANDOVER,
}
RESULTS = [
    ("create_agent_task", r.CreateAgentTaskResult(**TOLD, created=True)),
    (
        "create_agent_task",
        r.CreateAgentTaskResult(**{**TOLD, **NEVER_CLAIMED, "seconds_left": None}, cancelled=True),
    ),
    (
        "list_agent_tasks",
        r.ListAgentTasksResult(
            server_time=NOW,
            data=(r.RecordView(**RECORD), r.RecordView(**NEVER_CLAIMED)),
            pagination=r.PaginationView(has_more=True, next_cursor="c"),
        ),
    ),
    (
        "list_agent_tasks",
        r.ListAgentTasksResult(
            server_time=NOW,
            data=(),
            pagination=r.PaginationView(has_more=False, next_cursor=None),
        ),
    ),
    ("get_agent_task", r.GetAgentTaskResult(**WHOLE, outputs=None, epochs=(EPOCH,))),
    (
        "get_agent_task",
        r.GetAgentTaskResult(
            **{**WHOLE, "handover": None},
            outputs=Raw(b'{"total":{"value":1}}'),
            summary="s",
            reason=None,
        ),
    ),
    ("claim_agent_task", r.ClaimAgentTaskResult(**WHOLE, guard_scope=None, replayed=False)),
    ("heartbeat_agent_task", r.HeartbeatAgentTaskResult(**TOLD)),
    ("submit_agent_task", r.SubmitAgentTaskResult(**TOLD, replayed=True)),
    ("release_agent_task", r.ReleaseAgentTaskResult(**TOLD)),
]


@pytest.mark.requirement("tasks.tools.results", "mcp.structured-content")
@pytest.mark.parametrize(("tool", "result"), RESULTS)
def test_results_fit_their_schema(tool: str, result: Result) -> None:
    assert type(result) is BY_NAME[tool].result
    fits(BY_NAME[tool], result)


@pytest.mark.requirement("tasks.tools.results")
def test_every_result_is_shown_here() -> None:
    assert {tool for tool, _ in RESULTS} == set(BY_NAME)
    for tool in TOOLS:
        assert issubclass(tool.result, Result)
        assert schema(tool.result).get("required", []) == [], "a failure has none of them"


@pytest.mark.requirement("tasks.tools.results", "mcp.structured-content")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_failure_fits_the_schema_of_every_result(tool: Tool) -> None:
    for code in STATUS:
        fits(tool, failure(code, "m", "n"))
        fits(tool, failure(code, "m", "n", problems=("a: b",), server_time=NOW))
    fits(tool, unavailable(tool.name, "it is full"))


@pytest.mark.requirement("tasks.tools.results")
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.name != "list_agent_tasks"])
def test_what_a_refused_worker_is_told_of_the_claim_fits_too(tool: Tool) -> None:
    stands = {"execution_epoch": 3, "holder": "worker-4", "lease_expires_at": NOW}
    fits(tool, failure("stale_epoch", "m", "n", **stands))
    fits(tool, failure("lease_expired", "m", "n", **{**stands, "holder": None}))


# --- the feature set ---------------------------------------------------------------------------


@pytest.mark.requirement("tasks.tools.feature-set", "policy.manifest")
def test_the_manifest_can_hold_all_three_feature_sets() -> None:
    built = manifest((HEARTBEAT, WATCH, TASKS))
    assert built["featureSets"]["tasks"]["uses"] == ["pushEvents", "tools"]
    assert set(built["featureSets"]) == {"heartbeat", "watch", "tasks"}
    assert built["revision"] != manifest((HEARTBEAT, WATCH))["revision"]
    assert "list_agent_tasks" in TASKS.consequence


@pytest.mark.requirement("tasks.tools.feature-set")
def test_the_wing_is_declared_with_its_tools() -> None:
    assert (TASKS_WING.feature_set, TASKS_WING.tools) == (TASKS, TOOLS)
    assert "claim_agent_task" in TASKS_WING.instructions
