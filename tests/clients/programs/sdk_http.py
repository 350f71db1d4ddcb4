"""MCP's Python SDK against ``serve``: ``sdk_http.py COMMAND URL session|client asyncio|trio``.

Runs in the SDK's own environment. ``session`` is its plain session, ``client`` the newer one, which
probes with ``server/discover`` before it shakes hands the older way.
"""

import json
import sys

import anyio
from mcp import Client, ClientSession
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

_, url, way, backend = sys.argv[1:]


async def use(session):
    tools = (await session.list_tools()).tools
    registered = await session.call_tool("register", {"label": "sdk"})
    secret = registered.structured_content["agent_secret"]
    armed = await session.call_tool(
        "heartbeat", {"scope": "job", "expect_within_seconds": 300, "agent_key": secret}
    )
    refused = await session.call_tool("heartbeat", {"scop": "job"})
    nobody = await session.call_tool("whoami", {})
    print(
        json.dumps(
            {
                "tools": [tool.name for tool in tools],
                "armed": armed.structured_content,
                "text": armed.content[0].text,
                "refused": [refused.is_error, refused.content[0].text],
                "nobody": [nobody.is_error, nobody.structured_content["code"]],
                "header": await with_header(secret),
            }
        )
    )


async def with_header(secret):
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {secret}"})
    async with (
        http,
        streamable_http_client(url, http_client=http) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        return (await session.call_tool("whoami", {})).structured_content


async def session():
    async with (
        streamable_http_client(url) as (read, write),
        ClientSession(read, write) as plain,
    ):
        await plain.initialize()
        await plain.send_ping()
        await use(plain)


async def client():
    async with Client(url) as newest:
        await use(newest)


anyio.run({"session": session, "client": client}[way], backend=backend)
