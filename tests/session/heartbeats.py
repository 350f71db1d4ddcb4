"""What the tests of heartbeats share: a connected world, and one that wakes every minute."""

from typing import Any

from tests.world import World

HOUR = 3_600_000
MINUTE = 60_000


def ready(**keywords: Any) -> World:
    world = World(**keywords)
    world.connect()
    return world


def every_minute(**keywords: Any) -> World:
    world = ready(**keywords)
    world.call("heartbeat_configure", intervalSeconds=60)
    return world
