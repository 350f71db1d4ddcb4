"""The routes under /v1: bodies, secrets, and one shape for whatever goes wrong."""

import json

import msgspec
import pytest

from mcpl_heartbeat.shell.http.app import application
from mcpl_heartbeat.shell.http.replies import MAX_BODY
from mcpl_heartbeat.shell.http.routes import PATHS
from mcpl_heartbeat.watch.failures import STATUS, failure, unavailable
from mcpl_heartbeat.watch.results import LeaseResult
from mcpl_heartbeat.watch.tools import TOOLS
from tests.http.support import ADDRESS, NOW, SECRET, WHO, NotingDesk, bearer, client

pytestmark = pytest.mark.trio

BODIES = {
    "/v1/heartbeat": {"scope": "s", "expect_within_seconds": 300},
    "/v1/switches": {},
    "/v1/register": {"label": "worker"},
    "/v1/whoami": {},
    "/v1/send": {"to": ADDRESS, "objective": "Look."},
    "/v1/inbox/poll": {},
    "/v1/inbox/ack": {"task_id": "t"},
    "/v1/inbox/nack": {"task_id": "t"},
    "/v1/lease": {"key": "k", "holder": "h"},
    "/v1/lease/renew": {"key": "k", "holder": "h", "fence": "f"},
    "/v1/lease/release": {"key": "k", "holder": "h", "fence": "f"},
    "/v1/checkpoint": {"scope": "s", "objective": "o", "next_action": "n"},
    "/v1/resume": {"scope": "s"},
}


def shape(response) -> dict:
    """Check that a failure has the one shape, and give it."""
    body = response.json()
    assert response.headers["content-type"] == "application/json"
    assert {"code", "message", "status", "next"} <= set(body)
    assert set(body) <= {
        "code", "message", "status", "next", "problems", "server_time", "acquired",
    }  # fmt: skip
    assert body["status"] == response.status_code == STATUS[body["code"]]
    return body


@pytest.mark.requirement("watch.http.routes")
@pytest.mark.parametrize("path", PATHS)
async def test_each_route_is_the_door_of_one_tool(path: str) -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        response = await http.post(path, json=BODIES[path], headers=bearer())
    assert response.status_code == 200
    assert response.json() == json.loads(msgspec.json.encode(WHO))
    [(tool, arguments, secret)] = desk.calls
    assert (tool, secret) == (PATHS[path], None if path == "/v1/register" else SECRET)
    for name, value in BODIES[path].items():
        assert getattr(arguments, name) == value


@pytest.mark.requirement("watch.http.routes")
async def test_every_tool_has_a_route() -> None:
    assert sorted(PATHS.values()) == sorted(tool.name for tool in TOOLS)
    assert set(BODIES) == set(PATHS)


@pytest.mark.requirement("watch.http.body")
@pytest.mark.parametrize("body", [b"", b"{}", b"  \n"])
async def test_an_empty_body_is_an_empty_object(body: bytes) -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        response = await http.post("/v1/whoami", content=body, headers=bearer())
    assert response.status_code == 200
    assert len(desk.calls) == 1


@pytest.mark.requirement("watch.http.body")
@pytest.mark.parametrize(
    "body",
    [b"null", b"[]", b'"x"', b"5", b"{", b'{"scope":"s"} x', b"\xff\xfe", b"[" * 100_000, b"NaN"],
)
async def test_what_is_no_object_is_refused(body: bytes) -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        failed = shape(await http.post("/v1/whoami", content=body, headers=bearer()))
    assert failed["code"] == "invalid_arguments"
    assert failed["problems"][0].startswith("body: ")
    assert "params" not in json.dumps(failed)
    assert not desk.calls


@pytest.mark.requirement("watch.http.every-problem")
async def test_every_problem_is_named_at_once() -> None:
    desk = NotingDesk()
    body = {"scope": 5, "expect_within_second": 300, "on_expiry": ["explode"], "nudge_seconds": 0}
    async with client(desk) as http:
        failed = shape(await http.post("/v1/heartbeat", json=body, headers=bearer()))
    named = [problem.partition(":")[0] for problem in failed["problems"]]
    for name in ("scope", "expect_within_second", "on_expiry", "nudge_seconds"):
        assert name in named
    assert not desk.calls


@pytest.mark.requirement("watch.http.secret")
async def test_the_secret_may_come_as_an_argument() -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        await http.post("/v1/whoami", json={"agent_key": SECRET})
        await http.post("/v1/whoami", json={"agent_key": SECRET}, headers=bearer())
        await http.post("/v1/whoami", json={})
        await http.post("/v1/whoami", headers={"authorization": f"bEARER   {SECRET} "})
    assert [secret for _, _, secret in desk.calls] == [SECRET, SECRET, None, SECRET]


@pytest.mark.requirement("watch.http.secret")
@pytest.mark.parametrize("coding", ["utf-8", "latin-1"])
async def test_a_secret_of_other_letters_is_the_same_in_header_and_argument(coding: str) -> None:
    desk = NotingDesk()
    secret = "ü" * 40
    async with client(desk) as http:
        sent = {"authorization": f"Bearer {secret}".encode(coding)}
        response = await http.post("/v1/whoami", json={"agent_key": secret}, headers=sent)
    assert response.status_code == 200
    assert [secret for _, _, secret in desk.calls] == [secret]


@pytest.mark.requirement("watch.http.secret")
async def test_two_different_secrets_are_refused() -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        response = await http.post("/v1/whoami", json={"agent_key": "o" * 43}, headers=bearer())
    failed = shape(response)
    assert failed["code"] == "invalid_arguments"
    assert "agent_key" in failed["problems"][0]
    assert SECRET not in response.text
    assert "o" * 43 not in response.text
    assert not desk.calls


@pytest.mark.requirement("watch.http.secret")
@pytest.mark.parametrize("sent", ["Basic dTpw", "Bearer", "Bearer ", SECRET])
async def test_another_kind_of_authorization_is_no_secret(sent: str) -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        response = await http.post(
            "/v1/whoami", json={"agent_key": SECRET}, headers={"authorization": sent}
        )
    assert shape(response)["code"] == "unauthorized"
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert not desk.calls


@pytest.mark.requirement("watch.http.secret")
async def test_register_asks_for_no_secret_whatever_a_proxy_sends() -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        await http.post("/v1/register", json={}, headers={"authorization": "Basic dTpw"})
    assert [secret for _, _, secret in desk.calls] == [None]


@pytest.mark.requirement("watch.http.statuses")
@pytest.mark.parametrize("code", ["unauthorized", "not_registered", "mailbox_full", "internal"])
async def test_a_failure_has_its_own_status(code: str) -> None:
    desk = NotingDesk(failure(code, "It is so.", "Do that.", server_time=NOW))
    async with client(desk) as http:
        response = await http.post("/v1/whoami", headers=bearer())
    assert shape(response) == {
        "code": code, "message": "It is so.", "status": STATUS[code], "next": "Do that.",
        "server_time": NOW,
    }  # fmt: skip
    assert ("www-authenticate" in response.headers) == (code == "unauthorized")


@pytest.mark.requirement("watch.http.unavailable")
async def test_an_unusable_store_is_503_and_says_not_to_proceed() -> None:
    desk = NotingDesk(unavailable("lease", "the disk is full"))
    async with client(desk) as http:
        response = await http.post("/v1/lease", json=BODIES["/v1/lease"], headers=bearer())
    failed = shape(response)
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) > 0
    assert "do not proceed" in failed["next"]
    assert failed["acquired"] is None


@pytest.mark.requirement("watch.http.statuses")
async def test_an_ordinary_refusal_is_200_with_its_flag() -> None:
    desk = NotingDesk(LeaseResult(server_time=NOW, acquired=False, reason="held"))
    async with client(desk) as http:
        response = await http.post("/v1/lease", json=BODIES["/v1/lease"], headers=bearer())
    assert response.status_code == 200
    assert response.json()["acquired"] is False


@pytest.mark.requirement("watch.http.unknown")
@pytest.mark.parametrize("path", ["/", "/v1", "/v1/heartbeat/", "/v1/heartbeats", "/v2/send", "/x"])
async def test_an_unknown_path_is_404(path: str) -> None:
    async with client(NotingDesk()) as http:
        assert shape(await http.post(path))["code"] == "not_found"
        assert shape(await http.get(path))["code"] == "not_found"


@pytest.mark.requirement("watch.http.unknown")
@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/heartbeat", {"POST"}),
        ("DELETE", "/v1/lease/release", {"POST"}),
        ("OPTIONS", "/v1/send", {"POST"}),
        ("BREW", "/v1/send", {"POST"}),
        ("POST", "/healthz", {"GET", "HEAD"}),
        ("PUT", "/openapi.json", {"GET", "HEAD"}),
        ("POST", "/metrics", {"GET", "HEAD"}),
    ],
)
async def test_a_wrong_method_is_405_and_names_the_right_one(method, path, allowed) -> None:
    async with client(NotingDesk()) as http:
        response = await http.request(method, path)
    assert shape(response)["code"] == "method_not_allowed"
    assert {each.strip() for each in response.headers["allow"].split(",")} == allowed


@pytest.mark.requirement("watch.http.too-large")
async def test_a_body_over_the_limit_is_413() -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        response = await http.post("/v1/whoami", content=b" " * (MAX_BODY + 1), headers=bearer())
        assert shape(response)["code"] == "too_large"
        assert not desk.calls
        response = await http.post("/v1/whoami", content=b" " * MAX_BODY, headers=bearer())
    assert response.status_code == 200


@pytest.mark.requirement("watch.http.too-large")
async def test_a_body_without_a_length_is_read_no_further_than_the_limit() -> None:
    # The application alone, since a client's transport would first gather the whole body.
    given = 0
    sent = []

    async def receive():
        nonlocal given
        given += 65_536
        return {"type": "http.request", "body": b" " * 65_536, "more_body": True}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "path": "/v1/whoami",
        "raw_path": b"/v1/whoami", "query_string": b"", "root_path": "", "scheme": "http",
        "headers": [(b"host", b"127.0.0.1")],
    }  # fmt: skip
    await application(NotingDesk(), "127.0.0.1")(scope, receive, send)
    assert sent[0]["status"] == 413
    assert given <= MAX_BODY + 65_536


@pytest.mark.requirement("watch.http.content-type")
@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 200),
        ("application/jsonp", 415),
        (None, 200),
    ],
)
async def test_only_a_stated_other_type_is_refused(sent: str | None, status: int) -> None:
    headers = bearer() | ({"content-type": sent} if sent else {})
    async with client(NotingDesk()) as http:
        response = await http.post("/v1/whoami", content=b"{}", headers=headers)
    assert response.status_code == status
    if status == 415:
        assert shape(response)["code"] == "unsupported_media_type"


@pytest.mark.requirement("watch.http.own-fault")
async def test_our_own_fault_is_500_and_tells_nothing_of_it(caplog) -> None:
    async with client(NotingDesk(RuntimeError("secret thing"))) as http:
        response = await http.post("/v1/whoami", headers=bearer())
    assert shape(response)["code"] == "internal"
    assert "secret thing" not in response.text
    assert "Traceback" not in response.text
    assert "secret thing" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.requirement("watch.http.web-pages")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://localhost:3000"}, 200),
        ({"origin": "http://127.0.0.1"}, 200),
        ({"origin": "http://[::1]:8000"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://127.0.0.1.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://[::1"}, 403),
        ({"host": "localhost:8765"}, 200),
        ({"host": "[::1]:8765"}, 200),
        ({"host": "rebound.example:8765"}, 403),
        ({"host": "127.0.0.1@evil.example"}, 403),
    ],
)
async def test_web_pages_of_other_hosts_are_not_answered(headers, status) -> None:
    async with client(NotingDesk()) as http:
        response = await http.post("/v1/whoami", headers=bearer() | headers)
    assert response.status_code == status
    if status == 403:
        assert shape(response)["code"] == "forbidden"


@pytest.mark.requirement("watch.http.web-pages")
async def test_a_remote_listen_host_is_its_own_origin_and_any_name_is_taken() -> None:
    async with client(NotingDesk(), host="watch.example") as http:
        for headers, status in (
            ({"origin": "https://watch.example"}, 200),
            ({"host": "alias.example"}, 200),
            ({"origin": "https://other.example"}, 403),
        ):
            response = await http.post("/v1/whoami", headers=bearer() | headers)
            assert response.status_code == status


@pytest.mark.requirement("watch.http.health")
async def test_health_is_200_or_503_with_the_reason() -> None:
    desk = NotingDesk()
    async with client(desk) as http:
        response = await http.get("/healthz")
        assert (response.status_code, response.json()["status"]) == (200, "ok")
        desk.trouble = "the database is gone"
        response = await http.get("/healthz")
    assert response.status_code == 503
    assert response.json()["reason"] == "the database is gone"


@pytest.mark.requirement("watch.http.newline")
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/whoami", 200),
        ("POST", "/v1/heartbeat", 400),
        ("GET", "/v1/heartbeat", 405),
        ("GET", "/nowhere", 404),
        ("GET", "/healthz", 200),
        ("GET", "/openapi.json", 200),
    ],
)
async def test_each_body_ends_with_one_newline(method: str, path: str, status: int) -> None:
    async with client(NotingDesk()) as http:
        response = await http.request(method, path, headers=bearer())
    assert response.status_code == status
    assert response.content.endswith(b"}\n")
    assert int(response.headers["content-length"]) == len(response.content)


@pytest.mark.requirement("words.refused-reads")
@pytest.mark.parametrize(
    ("method", "path", "refused"),
    [
        ("POST", "/v1/switches", "switch_status was refused: nope: "),
        ("POST", "/v1/whoami", "whoami was refused: nope: "),
        ("GET", "/v1/agent-tasks", "list_agent_tasks was refused: nope: "),
        ("GET", "/v1/agent-tasks/t", "get_agent_task was refused: task_id: "),
        ("POST", "/v1/heartbeat", "heartbeat was refused and changed nothing: nope: "),
    ],
)
async def test_only_of_a_change_it_is_said_that_nothing_changed(
    method: str, path: str, refused: str
) -> None:
    async with client(NotingDesk()) as http:
        if method == "GET":
            response = await http.get(path, params={"nope": "1"}, headers=bearer())
        else:
            response = await http.post(path, json={"nope": 1}, headers=bearer())
    assert shape(response)["message"].startswith(refused)


@pytest.mark.requirement("words.sentences")
async def test_a_question_at_the_end_has_no_stop_behind_it() -> None:
    body = {"scope": "s", "expect_within_seconds": 60, "on_expire": ["mark_failed"]}
    async with client(NotingDesk()) as http:
        response = await http.post("/v1/heartbeat", json=body, headers=bearer())
    assert shape(response)["message"].endswith("did you mean on_expiry?")
