"""What the tests of reminders share: a world without heartbeats, and short hands for it."""

from typing import Any

from tests.world import World

MINUTE = 60_000
HOUR = 3_600_000
BLOCKED = {"effectiveCapabilities": ["tools"]}


def ready(**keywords: Any) -> World:
    world = World(**keywords)
    world.connect()
    world.call("heartbeat_configure", paused=True)
    return world


def add(world: World, message: str = "x", **when: Any) -> str:
    result = world.call("reminder_add", message=message, **when)
    assert not result.get("isError"), result
    id: str = result["structuredContent"]["reminder"]["id"]
    return id


def texts(world: World) -> list[str]:
    return [push["payload"]["content"][0]["text"] for push in world.pushes]
