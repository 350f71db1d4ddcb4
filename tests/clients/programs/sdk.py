"""MCP's Python SDK against a server: ``sdk.py COMMAND session|client asyncio|trio``.

Runs in the SDK's own environment. ``session`` is its plain session, ``client`` the newer one, which
probes with ``server/discover`` before it shakes hands the older way.
"""

import json
import os
import sys

import anyio
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

command, way, backend = sys.argv[1:]
server = StdioServerParameters(
    command=command,
    args=["--stdio"],
    env={name: value for name, value in os.environ.items() if name.startswith("HEARTBEAT_")},
)


async def use(session):
    tools = (await session.list_tools()).tools
    added = await session.call_tool("reminder_add", {"message": "Look.", "inHours": 1})
    refused = await session.call_tool("reminder_add", {"message": "Look.", "inHour": 1})
    status = await session.call_tool("heartbeat_status", {})
    print(
        json.dumps(
            {
                "tools": [tool.name for tool in tools],
                "added": added.content[0].text,
                "structured": added.structured_content,
                "refused": [refused.is_error, refused.content[0].text],
                "status": status.content[0].text,
            }
        )
    )


async def session():
    async with stdio_client(server) as (read, write), ClientSession(read, write) as plain:
        await plain.initialize()
        await plain.send_ping()
        await use(plain)


async def client():
    async with Client(stdio_client(server)) as newest:
        await use(newest)


anyio.run({"session": session, "client": client}[way], backend=backend)
