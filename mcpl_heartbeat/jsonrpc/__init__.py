"""JSON-RPC 2.0: bytes to messages and back, replies and answers to their places. Knows no MCP."""
