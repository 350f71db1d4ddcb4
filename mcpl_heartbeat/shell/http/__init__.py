"""The HTTP doors of ``mcpl-heartbeat serve``: the routes, MCP over HTTP, and what watches them."""
