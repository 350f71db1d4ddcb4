"""``mcpl-heartbeat demo``: the real server and a small host on pipes, every message shown."""
