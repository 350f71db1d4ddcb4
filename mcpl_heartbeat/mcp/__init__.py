"""MCP on the server's side: the handshake, tools, the rules for arguments. Knows no MCPL."""
