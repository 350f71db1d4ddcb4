"""The routes of tasks: what is in the path, in the query and in the body, weighed together."""

import json
from typing import Any

import msgspec
import pytest

from mcpl_heartbeat.shell.http.replies import MAX_BODY
from mcpl_heartbeat.shell.http.routes import MAX_QUERY, ROUTES
from mcpl_heartbeat.tasks.tools import TOOLS
from mcpl_heartbeat.watch.failures import failure
from tests.http.support import NOW, SECRET, WHO, NotingDesk, bearer, client

pytestmark = pytest.mark.trio

ID = "3f2a9c1e-5b7d-4e8f-9a01-2b3c4d5e6f70"
TASK = f"/v1/agent-tasks/{ID}"
REQUESTS: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "create_agent_task": (
        "POST", "/v1/agent-tasks", {"input_snapshot": {"a": 1}, "output_contract": []}
    ),
    "list_agent_tasks": ("GET", "/v1/agent-tasks", None),
    "get_agent_task": ("GET", TASK, None),
    "claim_agent_task": ("POST", f"{TASK}/claim", None),
    "heartbeat_agent_task": ("POST", f"{TASK}/heartbeat", {"execution_epoch": 2}),
    "submit_agent_task": ("POST", f"{TASK}/submit", {"execution_epoch": 2, "outputs": {}}),
    "release_agent_task": ("POST", f"{TASK}/release", {"execution_epoch": 2}),
}  # fmt: skip


def problems_of(response) -> list[str]:
    body = response.json()
    assert response.status_code == body["status"] == 400
    assert body["code"] == "invalid_arguments"
    problems: list[str] = body["problems"]
    return problems


@pytest.mark.requirement("tasks.http.routes")
@pytest.mark.parametrize("tool", REQUESTS)
async def test_each_route_is_the_door_of_one_tool(tool: str) -> None:
    desk = NotingDesk()
    method, path, body = REQUESTS[tool]
    async with client(desk) as http:
        response = await http.request(method, path, json=body, headers=bearer())
    assert response.status_code == 200
    assert response.json() == json.loads(msgspec.json.encode(WHO))
    [(called, arguments, secret)] = desk.calls
    assert (called, secret) == (tool, SECRET)
    if ID in path:
        assert arguments.task_id == ID
    if body and "execution_epoch" in body:
        assert arguments.execution_epoch == 2


@pytest.mark.requirement("tasks.http.routes")
async def test_every_tool_has_a_route() -> None:
    assert set(REQUESTS) == {tool.name for tool in TOOLS}
    assert {(route.method, route.tool.name) for route in ROUTES if "agent-tasks" in route.path} == {
        (method, tool) for tool, (method, _, _) in REQUESTS.items()
    }


@pytest.mark.requirement("tasks.http.path")
@pytest.mark.parametrize("id", ["7", f"{ID}0", "%00", "a%20b", "%E2%82%AC", "%ff", "{task_id}"])
@pytest.mark.parametrize("tool", ["get_agent_task", "claim_agent_task", "submit_agent_task"])
async def test_a_path_without_a_uuid_is_refused(tool: str, id: str) -> None:
    desk = NotingDesk()
    method, path, body = REQUESTS[tool]
    async with client(desk) as http:
        response = await http.request(method, path.replace(ID, id), json=body, headers=bearer())
    (problem,) = problems_of(response)
    assert problem.startswith("task_id: ")
    assert not desk.calls


@pytest.mark.requirement("tasks.http.path")
@pytest.mark.parametrize("body", [b"", b"{}", b" {\n} "])
async def test_the_path_alone_is_enough_where_nothing_else_is_required(body: bytes) -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        response = await http.post(f"{TASK}/claim", content=body, headers=bearer())
    assert response.status_code == 200
    assert len(desk.calls) == 1


@pytest.mark.requirement("tasks.http.path")
async def test_the_id_is_sent_in_one_place() -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        response = await http.post(f"{TASK}/claim", json={"task_id": ID}, headers=bearer())
    assert problems_of(response) == ["task_id: sent 2 times; send it once"]
    assert not desk.calls


@pytest.mark.requirement("tasks.http.path")
@pytest.mark.parametrize(
    "body", [b"null", b"[]", b"5", b"{", b"{,}", b'{"note":1', b'"x"', b"\xff", b"{}{}", b"NaN"]
)
async def test_what_is_no_object_is_refused_beside_a_path_too(body: bytes) -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        response = await http.post(f"{TASK}/claim", content=body, headers=bearer())
    assert problems_of(response)[0].startswith("body: ")
    assert not desk.calls


@pytest.mark.requirement("tasks.http.path", "watch.http.every-problem")
async def test_problems_of_the_path_and_the_body_are_named_together() -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        response = await http.post(
            "/v1/agent-tasks/7/heartbeat", json={"executionEpoch": 2}, headers=bearer()
        )
    named = {problem.partition(":")[0] for problem in problems_of(response)}
    assert {"task_id", "executionEpoch"} <= named


@pytest.mark.requirement("tasks.http.query")
async def test_a_query_has_the_arguments_of_a_list() -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        url = "/v1/agent-tasks?status=timed_out&limit=7&cursor=a%2Bb%3D+c"
        assert (await http.get(url, headers=bearer())).status_code == 200
    [(tool, arguments, _)] = desk.calls
    assert tool == "list_agent_tasks"
    assert msgspec.to_builtins(arguments) == {
        "status": "timed_out",
        "limit": 7,
        "cursor": "a+b= c",
    }


@pytest.mark.requirement("tasks.http.query")
@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("limit=0", "limit: must be from 1 to 100, not 0"),
        ("limit=101", "limit: must be from 1 to 100, not 101"),
        ("limit=2.5", "limit: must be a whole number, not 2.5"),
        ("limit=ten", 'limit: must be a whole number, not the string "ten"'),
        ("limit=", 'limit: must be a whole number, not the string ""'),
        ("limit=" + "9" * 5000, "limit: must be from 1 to 100, not "),
        ("limit=1&limit=2", "limit: sent 2 times; send it once"),
        ("status=open", 'status: must be "available" or '),
        ("status", 'status: must be "available" or '),
        ("cursor=", "cursor: must not be empty"),
        ("cursor=%00", "cursor: must not hold the character U+0000"),
        ("Status=failed", "Status: list_agent_tasks does not take this; did you mean status?"),
        ("colour=red", "colour: list_agent_tasks does not take this"),
        (f"agent_key={SECRET}", "agent_key: a secret does not belong into a URL"),
        ("&".join(["x=1"] * (MAX_QUERY + 1)), f"arguments: sends more than {MAX_QUERY} param"),
    ],
)
async def test_a_query_is_held_to_the_same_rules(query: str, problem: str) -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        response = await http.get(f"/v1/agent-tasks?{query}", headers=bearer())
    (found,) = problems_of(response)
    assert found.startswith(problem)
    assert SECRET not in response.text
    assert not desk.calls


@pytest.mark.requirement("tasks.http.query")
async def test_a_query_beside_a_path_is_no_place_for_anything() -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        twice = await http.get(f"{TASK}?task_id={ID}", headers=bearer())
        other = await http.get(f"{TASK}?limit=5", headers=bearer())
    assert problems_of(twice) == ["task_id: sent 2 times; send it once"]
    assert problems_of(other)[0].startswith("limit: get_agent_task does not take this")
    assert not desk.calls


@pytest.mark.requirement("tasks.http.query")
@pytest.mark.parametrize("path", [f"{TASK}/claim", "/v1/agent-tasks", "/v1/whoami"])
async def test_a_post_with_a_query_is_refused(path: str) -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        response = await http.post(f"{path}?agent_id=worker-3", headers=bearer())
    assert problems_of(response) == ["query: a POST has its arguments in the body alone"]
    assert not desk.calls


@pytest.mark.requirement("tasks.http.methods")
async def test_a_path_says_which_methods_it_takes() -> None:
    async with client(NotingDesk()) as http:
        both = await http.put("/v1/agent-tasks", headers=bearer())
        one = await http.post(TASK, headers=bearer())
        other = await http.get(f"{TASK}/claim", headers=bearer())
        head = await http.head(TASK, headers=bearer())
        nowhere = await http.post(f"{TASK}/steal", headers=bearer())
    assert both.status_code == one.status_code == other.status_code == 405
    assert {"GET", "POST"} <= set(both.headers["allow"].split(", "))
    assert "GET" in one.headers["allow"]
    assert other.headers["allow"] == "POST"
    assert head.status_code == 200
    assert nowhere.status_code == 404


@pytest.mark.requirement("tasks.http.methods", "watch.http.content-type", "watch.http.too-large")
async def test_types_and_sizes_of_bodies_are_held_to() -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        text = await http.post(
            f"{TASK}/claim", content=b"{}", headers={**bearer(), "content-type": "text/plain"}
        )
        long = await http.post("/v1/agent-tasks", content=b" " * (MAX_BODY + 1), headers=bearer())
        asked = await http.get(TASK, headers={**bearer(), "content-type": "text/plain"})
    assert (text.status_code, long.status_code, asked.status_code) == (415, 413, 200)
    assert "input_snapshot" in long.json()["next"]


@pytest.mark.requirement("tasks.http.failures")
@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("stale_epoch", 409),
        ("lease_expired", 409),
        ("already_claimed", 409),
        ("task_closed", 409),
        ("unknown_task", 404),
        ("invalid_outputs", 422),
    ],
)
async def test_a_refused_worker_is_told_by_status_and_code(code: str, status: int) -> None:
    stands = {"execution_epoch": 3, "holder": "worker-4", "lease_expires_at": NOW}
    failed = failure(code, "No.", "Stop: discard the work, list again.", **stands)
    async with client(NotingDesk(failed)) as http:
        response = await http.post(
            f"{TASK}/heartbeat", json={"execution_epoch": 2}, headers=bearer()
        )
        over_mcp = await http.post(
            "/mcp",
            headers={**bearer(), "mcp-protocol-version": "2025-11-25"},
            json={
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {
                    "name": "heartbeat_agent_task",
                    "arguments": {"task_id": ID, "execution_epoch": 2},
                },
            },
        )
    assert response.status_code == status
    body = response.json()
    assert (body["code"], body["execution_epoch"], body["holder"]) == (code, 3, "worker-4")
    result = over_mcp.json()["result"]
    assert result["isError"] is True
    assert result["structuredContent"] == body
    assert "No." in result["content"][0]["text"]


@pytest.mark.requirement("tasks.http.secret")
async def test_the_secret_may_come_in_a_body_and_never_in_a_url() -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        await http.post(f"{TASK}/claim", json={"agent_key": SECRET})
        await http.post(f"{TASK}/claim")
        await http.get(TASK, headers=bearer())
    assert [secret for _, _, secret in desk.calls] == [SECRET, None, SECRET]
