"""The SDK people use, in an environment of its own, against ``serve`` at ``/mcp``."""

import pytest

from mcpl_heartbeat.catalogue import TOOLS
from tests.http.server import server

pytestmark = pytest.mark.requirement("watch.mcp.clients")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("way", ["session", "client"])
def test_the_python_sdk(python_client, tmp_path, way, backend) -> None:
    with server(tmp_path, "--store", f"sqlite:///{tmp_path}/store.db") as started:
        said = python_client("mcp", "sdk_http.py", f"{started.url}/mcp", way, backend)
        assert started.stop()[0] == 0
    assert said["tools"] == [tool.name for tool in TOOLS]
    assert said["armed"]["state"] == "armed"
    assert said["text"].startswith("Armed")
    is_error, text = said["refused"]
    assert is_error is True
    assert "did you mean scope?" in text
    assert said["nobody"] == [True, "unauthorized"]
    assert said["header"]["switches"]["armed"] == 1
