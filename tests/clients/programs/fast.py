"""fastmcp's client against a server: ``fast.py COMMAND``. Runs in fastmcp's own environment."""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

transport = StdioTransport(
    command=sys.argv[1],
    args=["--stdio"],
    env={name: value for name, value in os.environ.items() if name.startswith("HEARTBEAT_")},
)


async def main():
    async with Client(transport) as client:
        pong = await client.ping()
        tools = await client.list_tools()
        added = await client.call_tool("reminder_add", {"message": "Look.", "inHours": 1})
        wrong = {"message": "Look.", "inHour": 1}
        refused = await client.call_tool("reminder_add", wrong, raise_on_error=False)
        status = await client.call_tool("heartbeat_status", {})
        print(
            json.dumps(
                {
                    "pong": pong,
                    "tools": [tool.name for tool in tools],
                    "added": added.content[0].text,
                    "structured": added.structured_content,
                    "refused": [refused.is_error, refused.content[0].text],
                    "status": status.content[0].text,
                }
            )
        )


asyncio.run(main())
