"""/openapi.json: what it says, and that a real server does as it says."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi import checks

from mcpl_heartbeat.catalogue import REQUIRES_SECRET, TOOLS
from mcpl_heartbeat.mcp.tools import schema
from mcpl_heartbeat.shell.http.openapi import description
from mcpl_heartbeat.shell.http.routes import ROUTES, Route
from mcpl_heartbeat.tasks.arguments import CreateAgentTaskArguments
from mcpl_heartbeat.watch.failures import STATUS
from tests.http.served import served
from tests.http.support import NotingDesk, client


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A server with one agent on it: its URL, and the agent's secret."""
    folder: Path = tmp_path_factory.mktemp("api")
    with served(f"sqlite:///{folder}/store.db") as url:
        registered = httpx.post(f"{url}/v1/register", json={}).json()
        yield url, registered["agent_secret"]


BEYOND = {
    "/v1/heartbeat": {
        "expect_within_seconds + nudge_seconds", "notify_address", "on_expiry + notify_address",
    },
    "/v1/switches": {"cursor"},
    "/v1/register": {"label + agent_id"},
    "/v1/send": {"due_at"},
    "/v1/checkpoint": {"scope", "scope + workflow_id"},
    "/v1/agent-tasks": {
        "cursor", "input_snapshot", "output_contract", "reason", "lease_seconds + timeout_seconds",
        *(f"cancel_task_id + {name}" for name in CreateAgentTaskArguments.__struct_fields__),
    },
    "/v1/agent-tasks/{task_id}/claim": {"guard"},
    "/v1/agent-tasks/{task_id}/release": {"reason", "final + reason"},
}  # fmt: skip
"""What rules name that no schema says: those between arguments, of moments, and of cursors."""
ZERO = "must not hold the character U+0000"


@pytest.fixture(params=sorted(description()["paths"]))
def one_path(request: pytest.FixtureRequest) -> schemathesis.BaseSchema:
    """The description of one path: to think out calls is long work, done where they are made."""
    if not hasattr(request.node, "_nodeid"):
        # What schemathesis wants to find and to set; pytest has it by another name since 9.2.
        request.node._nodeid = request.node.nodeid
    found = description()
    return schemathesis.openapi.from_dict(
        {**found, "paths": {request.param: found["paths"][request.param]}}
    )


calls = schemathesis.pytest.from_fixture("one_path")


# A request by the schema can still break a rule between arguments, which no schema says, and is
# then 400 with or without a secret: the test judges those itself.
JUDGED_HERE = [checks.positive_data_acceptance, checks.missing_required_header]


@pytest.mark.requirement("watch.http.openapi")
@calls.parametrize()
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_the_server_does_as_its_description_says(case: schemathesis.Case, api) -> None:
    url, secret = api
    if isinstance(case.body, dict):
        key = case.body.get("agent_key")
        if isinstance(key, str) and len(key) <= 256:
            del case.body["agent_key"]  # nobody's key, beside the header's
    response = case.call_and_validate(
        base_url=url,
        headers={"Authorization": f"Bearer {secret}"},
        excluded_checks=JUDGED_HERE,
    )
    assert response.status_code < 500
    if response.status_code == 400 and case.meta.generation.mode.is_positive:
        problems = response.json()["problems"]
        beyond = BEYOND.get(case.path, set())
        for problem in problems:
            assert problem.partition(":")[0] in beyond or ZERO in problem, problem


@pytest.mark.requirement("watch.http.openapi")
def test_the_description_names_every_route_and_what_can_be_answered() -> None:
    found = description()
    assert found["openapi"].startswith("3.1.")
    paths = {route.path for route in ROUTES}
    assert set(found["paths"]) == {*paths, "/healthz", "/metrics", "/openapi.json"}
    for route in ROUTES:
        operation = found["paths"][route.path][route.method.lower()]
        name = route.tool.name
        expected = {"200", "400", "403", "500", "503"}
        expected |= {"413", "415"} if route.method == "POST" else set()
        expected |= {"401"} if name in REQUIRES_SECRET else set()
        assert expected <= set(operation["responses"])
        assert ("security" in operation) == (name in REQUIRES_SECRET)
        assert ("requestBody" in operation) == (route.method == "POST")
    assert "409" in found["paths"]["/v1/send"]["post"]["responses"]
    task = "/v1/agent-tasks/{task_id}"
    for path in ("claim", "heartbeat", "submit", "release"):
        assert {"404", "409"} <= set(found["paths"][f"{task}/{path}"]["post"]["responses"])
    assert "422" in found["paths"][f"{task}/submit"]["post"]["responses"]


def in_request(route: Route) -> tuple[set[str], set[str]]:
    """Where the arguments of a route are: those in the path and the query, those in the body."""
    operation = description()["paths"][route.path][route.method.lower()]
    outside = {parameter["name"] for parameter in operation.get("parameters", ())}
    if route.method == "GET":
        return outside, set()
    body = description()["components"]["schemas"][f"{route.tool.name}_arguments"]
    return outside, set(body["properties"])


@pytest.mark.requirement("watch.http.openapi", "tasks.http.openapi")
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.tool.name)
def test_each_argument_is_described_in_the_one_place_where_it_is_sent(route: Route) -> None:
    outside, inside = in_request(route)
    assert outside.isdisjoint(inside)
    arguments = set(schema(route.tool.arguments)["properties"])
    assert outside | inside == (arguments if inside else arguments - {"agent_key"})
    assert ("task_id" in outside) == ("{task_id}" in route.path)


@pytest.mark.requirement("watch.http.openapi")
def test_the_description_is_made_of_the_tools_own_schemas() -> None:
    parts = description()["components"]["schemas"]
    for tool in TOOLS:
        body = parts.get(f"{tool.name}_arguments", {"properties": {}})
        of_tool = schema(tool.arguments)["properties"]
        assert body["properties"].items() <= of_tool.items()
        assert "code" not in parts[f"{tool.name}_result"]["properties"]
    assert set(parts["failure"]["properties"]["code"]["enum"]) == set(STATUS)


@pytest.mark.trio
@pytest.mark.requirement("watch.http.openapi")
async def test_the_description_is_served() -> None:
    async with client(NotingDesk()) as http:
        response = await http.get("/openapi.json")
    assert response.headers["content-type"] == "application/json"
    assert response.json() == json.loads(msgspec.json.encode(description()))
