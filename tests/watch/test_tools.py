"""The thirteen tools: what they say of themselves."""

import pytest

from mcpl_heartbeat.mcp.lifecycle import VERSIONS
from mcpl_heartbeat.mcp.tools import Tool, schema, tools_list
from mcpl_heartbeat.policy.manifest import HEARTBEAT, WATCH, manifest
from mcpl_heartbeat.wake.tools import TOOLS as WAKE
from mcpl_heartbeat.watch.tools import BY_NAME, READS, REQUIRES_SECRET, TOOLS
from tests.mcp.declared import hints, names, no_host_drops, unsaid

KEY = "agent_key"


@pytest.mark.requirement("watch.tools.list")
def test_the_thirteen_tools_and_their_arguments() -> None:
    assert {tool.name: names(tool) - {KEY} for tool in TOOLS} == {
        "heartbeat": {
            "scope",
            "expect_within_seconds",
            "on_expiry",
            "notify_address",
            "agent_id",
            "disarm",
            "nudge_seconds",
            "wake_on_tasks",
        },
        "switch_status": {"scope", "limit", "cursor"},
        "register": {"label", "agent_id", "agent_secret"},
        "whoami": set(),
        "send": {"to", "objective", "scope", "due_at", "context", "history"},
        "inbox_poll": {"box", "visibility_timeout_seconds"},
        "inbox_ack": {"task_id", "status", "result", "delivery_token"},
        "inbox_nack": {"task_id", "delay_seconds", "delivery_token"},
        "lease": {"key", "holder", "scope", "ttl_seconds", "fence"},
        "lease_renew": {"key", "fence", "holder", "ttl_seconds"},
        "lease_release": {"key", "fence", "holder"},
        "checkpoint_put": {
            "scope",
            "workflow_id",
            "objective",
            "next_action",
            "step",
            "status",
            "last_verified_state",
            "files",
            "risks",
            "questions",
            "tools_used",
            "budget_left",
            "body",
            "state",
            "provider_extras",
            "privacy_mode",
        },
        "resume_packet": {"scope", "box", "tail"},
    }
    assert {tool.name for tool in TOOLS if KEY in names(tool)} == REQUIRES_SECRET
    assert set(BY_NAME) - {"register"} == REQUIRES_SECRET
    assert not set(BY_NAME) & {tool.name for tool in WAKE}


@pytest.mark.requirement("watch.tools.heartbeat-as-seed")
def test_heartbeat_takes_what_the_seed_says() -> None:
    root = schema(BY_NAME["heartbeat"].arguments)
    types = {name: rule["type"] for name, rule in root["properties"].items()}
    assert types == {
        "scope": "string",
        "expect_within_seconds": "integer",
        "on_expiry": "array",
        "notify_address": "string",
        "agent_id": "string",
        "disarm": "boolean",
        "agent_key": "string",
        "nudge_seconds": "integer",
        "wake_on_tasks": "boolean",
    }
    assert root["required"] == ["scope", "expect_within_seconds"]
    assert root["additionalProperties"] is False


@pytest.mark.requirement("watch.tools.schema", "mcp.tools-schema", "field.41")
@pytest.mark.parametrize("version", VERSIONS)
def test_no_schema_makes_a_host_drop_the_tool(version: str) -> None:
    no_host_drops((*WAKE, *TOOLS), version)


@pytest.mark.requirement("watch.tools.schema")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_unknown_names_are_forbidden_in_the_schema(tool: Tool) -> None:
    assert schema(tool.arguments)["additionalProperties"] is False


@pytest.mark.requirement("watch.tools.annotations", "mcp.tools-annotations", "mcp.tools-class")
def test_hints_and_classes() -> None:
    assert {tool.name: hints(tool) for tool in TOOLS} == {
        "heartbeat": (False, True, False, False),
        "switch_status": (True, True, False, False),
        "register": (False, False, False, False),
        "whoami": (True, True, False, False),
        "send": (False, False, False, False),
        "inbox_poll": (False, False, False, False),
        "inbox_ack": (False, True, True, False),
        "inbox_nack": (False, False, False, False),
        "lease": (False, True, False, False),
        "lease_renew": (False, True, False, False),
        "lease_release": (False, True, True, False),
        "checkpoint_put": (False, True, False, False),
        "resume_packet": (True, True, False, False),
    }
    assert {"switch_status", "whoami", "resume_packet"} == READS
    for listed in tools_list(TOOLS, "2024-11-05")["tools"]:
        (known,) = listed["_meta"]["mcpl/class"]
        assert known in {"control", "comms", "notes"}
        assert listed["annotations"]["title"]


@pytest.mark.requirement("watch.tools.words", "mcp.tools-rules-stated", "field.46")
@pytest.mark.parametrize(
    ("tool", "argument", "words"),
    [
        ("heartbeat", None, ["dead-man switch", "from you to the server", "not the wake"]),
        ("heartbeat", None, ["heartbeat_status", "heartbeat_configure", "disarm", "fires once"]),
        ("switch_status", None, ["heartbeat tool", "not the wake schedule of heartbeat_status"]),
        ("lease_renew", None, ["no beat", "renewed null", "renewed false"]),
        ("lease", None, ["acquired true", "acquired false", "acquired null", "scope"]),
        ("lease_release", None, ["released false", "released null", "not_holder", "expired"]),
        ("inbox_poll", None, ["envelope null", "not instructions"]),
        ("inbox_ack", None, ["unknown_task", "lost_delivery"]),
        ("inbox_nack", None, ["unknown_task", "lost_delivery", "already_done"]),
        ("send", None, ["mailbox_full", "1000", "32", "Write-only"]),
        ("register", None, ["once", "cannot be recovered", "created false"]),
        ("resume_packet", None, ["failed true", "empty true"]),
        ("checkpoint_put", None, ["objective and next_action", "scope or workflow_id"]),
        ("heartbeat", "expect_within_seconds", ["2 to 2592000", "30 days", "disarm"]),
        ("heartbeat", "on_expiry", ["release_leases", "mark_failed", "queue_alert", "Default"]),
        ("heartbeat", "on_expiry", ["cannot reach", "notify_address", "order"]),
        ("heartbeat", "notify_address", ["agent:<id>/<box>", "Required", "refused"]),
        ("heartbeat", "agent_id", ["1 to 64"]),
        ("heartbeat", "disarm", ["Default false"]),
        ("heartbeat", "nudge_seconds", ["less than expect_within_seconds", "Never counts"]),
        ("switch_status", "limit", ["1 to 100", "default 50"]),
        ("register", "agent_secret", ["32 to 256"]),
        ("register", "label", ["1 to 64"]),
        ("send", "objective", ["1 to 2048"]),
        ("send", "due_at", ["365 days", "offset"]),
        ("inbox_poll", "visibility_timeout_seconds", ["5 to 86400", "default 300"]),
        ("inbox_nack", "delay_seconds", ["0 to 86400", "default 0"]),
        ("lease", "ttl_seconds", ["1 to 3600", "default 60"]),
        ("lease_renew", "ttl_seconds", ["1 to 3600", "default 60"]),
        ("checkpoint_put", "files", ["100", "1024"]),
        ("checkpoint_put", "body", ["65536 bytes", "100 levels"]),
        ("resume_packet", "tail", ["0 to 100", "default 20"]),
    ],
)
def test_every_rule_is_stated(tool: str, argument: str | None, words: list[str]) -> None:
    assert unsaid(tool, argument, words) == []


@pytest.mark.requirement("field.47.one-missed")
@pytest.mark.parametrize(
    ("tool", "argument"),
    [
        ("heartbeat", "expect_within_seconds"),
        ("lease", "ttl_seconds"),
        ("lease_renew", "ttl_seconds"),
    ],
)
def test_to_come_again_at_each_third_is_advised(tool: str, argument: str) -> None:
    rule = schema(BY_NAME[tool].arguments)["properties"][argument]
    assert "at each third of it" in rule["description"]


@pytest.mark.requirement("watch.tools.words")
def test_every_bound_of_a_number_is_stated_in_its_description() -> None:
    for tool in TOOLS:
        for name, rule in schema(tool.arguments)["properties"].items():
            if rule.get("type") == "integer" and name != "nudge_seconds":
                for bound in (rule["minimum"], rule["maximum"]):
                    assert str(bound) in rule["description"], (tool.name, name)


@pytest.mark.requirement("watch.tools.words", "host.37")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_argument_is_described_briefly(tool: Tool) -> None:
    assert len(tool.description) < 1024
    for name, rule in schema(tool.arguments)["properties"].items():
        assert 20 < len(rule["description"]) < 400, name


# --- the feature set ---------------------------------------------------------------------------


@pytest.mark.requirement("watch.tools.feature-set", "policy.manifest")
def test_the_manifest_can_hold_both_feature_sets() -> None:
    built = manifest((HEARTBEAT, WATCH))
    assert built["featureSets"]["watch"]["uses"] == ["pushEvents", "tools"]
    assert built["featureSets"]["heartbeat"] == manifest((HEARTBEAT,))["featureSets"]["heartbeat"]
    assert built["revision"] != manifest((HEARTBEAT,))["revision"]
    assert "inbox" in WATCH.consequence
