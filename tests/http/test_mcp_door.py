"""MCP over HTTP: the transport's rules, and the same tools as on the routes."""

import json

import msgspec
import pytest

from mcpl_heartbeat.catalogue import TOOLS, text_of
from mcpl_heartbeat.mcp import lifecycle
from mcpl_heartbeat.shell.http.mcp_door import MAX_BATCH_REPLY, VERSIONS
from mcpl_heartbeat.watch.failures import failure
from tests.http.support import ADDRESS, NOW, SECRET, WHO, NotingDesk, bearer, client

pytestmark = pytest.mark.trio

ACCEPT = {"accept": "application/json, text/event-stream"}
WHOAMI = {"name": "whoami", "arguments": {}}


def message(method: str, params: object = None, id: object = 1) -> dict:
    made = {"jsonrpc": "2.0", "id": id, "method": method}
    return made if params is None else made | {"params": params}


async def post(http, body, version: str | None = "2025-06-18", **headers):
    chosen = ACCEPT | bearer() | headers
    if version:
        chosen["mcp-protocol-version"] = version
    if isinstance(body, bytes):
        return await http.post("/mcp", content=body, headers=chosen)
    return await http.post("/mcp", json=body, headers=chosen)


async def ask(http, method, params=None, version: str | None = "2025-06-18", **headers):
    response = await post(http, message(method, params), version, **headers)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    answer = response.json()
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", 1)
    return answer


@pytest.mark.requirement("watch.mcp.handshake")
@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        *((each, each) for each in VERSIONS),
        ("2024-11-05", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ],
)
async def test_initialize_agrees_on_a_version_that_has_this_transport(asked, answered) -> None:
    params = {
        "protocolVersion": asked,
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    async with client(NotingDesk()) as http:
        answer = await ask(http, "initialize", params, version=None)
        result = answer["result"]
    assert result["protocolVersion"] == answered
    assert result["capabilities"] == {"tools": {}}, "no push path, so nothing experimental"
    assert result["serverInfo"]["name"] == "mcpl-heartbeat"
    assert "register" in result["instructions"]


@pytest.mark.requirement("watch.mcp.handshake")
async def test_no_session_is_needed_or_given() -> None:
    async with client(NotingDesk()) as http:
        response = await post(http, message("ping"), version=None)
    assert response.json()["result"] == {}
    assert "mcp-session-id" not in response.headers


@pytest.mark.requirement("watch.mcp.tools")
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_tools_are_those_of_the_routes(version: str) -> None:
    async with client(NotingDesk()) as http:
        listed = (await ask(http, "tools/list", version=version))["result"]["tools"]
    assert [tool["name"] for tool in listed] == [tool.name for tool in TOOLS]
    assert all(("outputSchema" in tool) == (version >= "2025-06-18") for tool in listed)


@pytest.mark.requirement("watch.mcp.tools")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_call_gives_the_text_and_the_values(version: str) -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        result = (await ask(http, "tools/call", WHOAMI, version))["result"]
    assert result["content"][0]["text"] == text_of("whoami", desk.outcome)
    assert "isError" not in result
    if version >= "2025-06-18":
        assert result["structuredContent"] == json.loads(msgspec.json.encode(WHO))
    else:
        assert "structuredContent" not in result
    assert desk.calls[0][2] == SECRET


@pytest.mark.requirement("watch.mcp.failures")
async def test_a_failure_is_an_error_result_in_the_one_shape() -> None:
    failed = failure("mailbox_full", "It is full.", "Wait.", server_time=NOW)
    params = {"name": "send", "arguments": {"to": ADDRESS, "objective": "Look."}}
    async with client(NotingDesk(failed)) as http:
        result = (await ask(http, "tools/call", params))["result"]
    assert result["isError"] is True
    assert result["structuredContent"]["code"] == "mailbox_full"
    assert result["structuredContent"]["status"] == 409
    assert result["content"][0]["text"] == text_of("send", failed)


@pytest.mark.requirement("watch.mcp.failures")
async def test_wrong_arguments_name_every_problem() -> None:
    desk = NotingDesk()
    params = {"name": "heartbeat", "arguments": {"scop": "s", "expect_within_seconds": 1}}
    async with client(desk) as http:
        result = (await ask(http, "tools/call", params))["result"]
    assert result["isError"] is True
    named = [each.partition(":")[0] for each in result["structuredContent"]["problems"]]
    assert set(named) == {"scop", "expect_within_seconds", "scope"} or set(named) == {
        "scop", "expect_within_seconds",
    }  # fmt: skip
    for name in named:
        assert name in result["content"][0]["text"]
    assert not desk.calls


@pytest.mark.requirement("watch.mcp.failures")
async def test_two_different_secrets_are_refused() -> None:
    desk = NotingDesk()
    params = {"name": "whoami", "arguments": {"agent_key": "o" * 43}}
    async with client(desk) as http:
        result = (await ask(http, "tools/call", params))["result"]
        assert result["structuredContent"]["code"] == "invalid_arguments"
        assert not desk.calls
        await http.post("/mcp", json=message("tools/call", params), headers=ACCEPT)
    assert desk.calls[0][2] == "o" * 43


@pytest.mark.requirement("watch.mcp.failures")
@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", {"name": "reminder_add"}, -32602),
        ("tools/call", {"name": "whoami", "arguments": []}, -32602),
        ("tools/call", None, -32602),
        ("resources/list", None, -32601),
        ("mcpl/manifest", None, -32601),
        ("initialize", {"protocolVersion": 5}, -32602),
    ],
)
async def test_protocol_errors_are_json_rpc_errors(method, params, code) -> None:
    async with client(NotingDesk()) as http:
        assert (await ask(http, method, params))["error"]["code"] == code


@pytest.mark.requirement("watch.mcp.failures")
async def test_our_own_fault_is_an_internal_error(caplog) -> None:
    async with client(NotingDesk(RuntimeError("secret thing"))) as http:
        answer = await ask(http, "tools/call", WHOAMI)
    assert answer["error"]["code"] == -32603
    assert "secret thing" not in json.dumps(answer)
    assert "secret thing" in caplog.text


@pytest.mark.requirement("watch.mcp.posts")
@pytest.mark.parametrize(
    ("body", "code"),
    [(b"", -32700), (b"{", -32700), (b"[]", -32600), (b"5", -32600), (b'{"id":1}', -32600)],
)
async def test_what_is_no_message_is_400(body: bytes, code: int) -> None:
    async with client(NotingDesk()) as http:
        response = await post(http, body)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == code


@pytest.mark.requirement("watch.mcp.posts")
@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"a":"\\ud800"'])
async def test_what_is_no_json_is_called_what_it_is(body: bytes) -> None:
    async with client(NotingDesk()) as http:
        response = await post(http, body)
    assert response.json()["error"]["message"].startswith("The body is not ")


@pytest.mark.requirement("watch.http.newline")
@pytest.mark.parametrize(
    "body", [message("ping"), message("nope"), b"{", [message("ping"), message("ping", id=2)], {}]
)
async def test_each_body_ends_with_one_newline(body) -> None:
    async with client(NotingDesk()) as http:
        response = await post(http, body, "2025-03-26")
        wrong = await post(http, body, "1999-01-01")
    for each in (response, wrong):
        assert each.content.endswith(b"}\n") or each.content.endswith(b"}]\n")
        assert int(each.headers["content-length"]) == len(each.content)


@pytest.mark.requirement("watch.mcp.posts")
@pytest.mark.parametrize(
    "body",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 7, "result": {}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": WHOAMI},
    ],
)
async def test_what_wants_no_reply_is_202_without_a_body(body) -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        response = await post(http, body)
    assert (response.status_code, response.content) == (202, b"")
    assert not desk.calls


@pytest.mark.requirement("watch.mcp.batches")
@pytest.mark.parametrize("version", ["2025-03-26", None])
async def test_a_batch_is_answered_in_one(version) -> None:
    batch = [
        message("ping", id=1),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        message("tools/call", WHOAMI, id="two"),
        5,
        message("initialize", {"protocolVersion": "2025-03-26"}, id=3),
    ]
    async with client(NotingDesk()) as http:
        answers = (await post(http, batch, version)).json()
        assert [answer["id"] for answer in answers] == [1, "two", None, 3]
        assert answers[2]["error"]["code"] == answers[3]["error"]["code"] == -32600
        response = await post(http, [batch[1]], version)
    assert (response.status_code, response.content) == (202, b"")


@pytest.mark.requirement("watch.mcp.batch-bound")
async def test_a_batch_is_carried_out_until_its_replies_are_long_enough() -> None:
    batch = [message("tools/list", id=number) for number in range(997)]
    batch += [message("tools/call", WHOAMI, id=997), message("nope", id=998)]
    batch.append({"jsonrpc": "2.0", "method": "notifications/initialized"})
    desk = NotingDesk()
    async with client(desk) as http:
        response = await post(http, batch, "2025-03-26")
        few = (await post(http, batch[-3:], "2025-03-26")).json()
    answers = response.json()
    assert [answer["id"] for answer in answers] == list(range(999))
    refused = [answer["id"] for answer in answers if "error" in answer]
    assert refused == list(range(refused[0], 999))
    listed = len(json.dumps(answers[0], separators=(",", ":")))
    assert MAX_BATCH_REPLY < refused[0] * listed < MAX_BATCH_REPLY + 2 * listed
    assert len(response.content) < MAX_BATCH_REPLY * 1.1
    for answer in answers[refused[0] :]:
        assert answer["error"]["code"] == -32600
        assert "Not carried out" in answer["error"]["message"]
    assert "result" in few[0]
    assert len(desk.calls) == 1, "of the two calls of whoami only the second"


@pytest.mark.requirement("watch.mcp.batches")
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_later_versions_have_no_batches(version: str) -> None:
    async with client(NotingDesk()) as http:
        response = await post(http, [message("ping")], version)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == -32600


@pytest.mark.requirement("watch.mcp.headers")
@pytest.mark.parametrize("version", ["2024-11-05", "2099-01-01", "newest"])
async def test_a_version_without_this_transport_is_400(version: str) -> None:
    async with client(NotingDesk()) as http:
        response = await post(http, message("ping"), version)
    assert response.status_code == 400
    assert set(lifecycle.VERSIONS[1:]) == set(VERSIONS)
    assert all(each in response.json()["message"] for each in VERSIONS)


@pytest.mark.requirement("watch.mcp.headers")
@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json", 200),
        ("text/event-stream, application/json;q=0.5", 200),
        ("*/*", 200),
        ("APPLICATION/*", 200),
        ("text/event-stream", 406),
        ("application/json;q=0, text/html", 406),
        ("application/jsonp", 406),
    ],
)
async def test_a_client_has_to_take_json(accept: str, status: int) -> None:
    async with client(NotingDesk()) as http:
        response = await post(http, message("ping"), accept=accept)
    assert response.status_code == status
    if status == 406:
        assert response.json()["code"] == "not_acceptable"


@pytest.mark.requirement("watch.mcp.headers")
async def test_another_type_of_body_is_415() -> None:
    async with client(NotingDesk()) as http:
        response = await post(http, b"{}", **{"content-type": "text/plain"})
    assert response.status_code == 415


@pytest.mark.requirement("watch.mcp.posts")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_there_is_no_stream_and_no_session_to_end(method: str) -> None:
    async with client(NotingDesk()) as http:
        response = await http.request(method, "/mcp", headers={"accept": "text/event-stream"})
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"


@pytest.mark.requirement("watch.mcp.origin")
async def test_a_web_page_of_another_host_is_refused() -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        for headers in ({"origin": "https://evil.example"}, {"host": "rebound.example"}):
            response = await post(http, message("tools/call", WHOAMI), **headers)
            assert response.status_code == 403
        response = await post(http, message("ping"), origin="http://localhost:6274")
        assert response.status_code == 200
    assert not desk.calls
