"""What the tests of the two files share: a reminder, and others like it."""

from typing import Any

import msgspec

from mcpl_heartbeat.wake.files import Reminder

REMINDER = Reminder(
    id="rem_1",
    message="water the plants",
    created_at=1_790_000_000_000,
    fire_at=1_790_000_060_000,
    every_seconds=None,
)


def reminder(id_: str, **changes: Any) -> Reminder:
    return msgspec.structs.replace(REMINDER, id=id_, **changes)
