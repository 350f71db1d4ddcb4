"""Silent heartbeats: the marker, and what happens where a host refuses it."""

import re
from typing import Any

import pytest

from tests.session.heartbeats import MINUTE, every_minute
from tests.world import ACCEPTED, START, accept, refuse

EMPTY = {"error": {"code": -32602, "message": "payload.content is empty"}}


@pytest.mark.requirement("seed.silent.marker", "host.24", "seed.configure.silent-mode-empty")
def test_a_silent_tick_is_the_marker_to_the_letter() -> None:
    world = every_minute()
    world.call("heartbeat_configure", deliveryMode="silent")
    world.pass_time(MINUTE)
    (push,) = world.pushes
    assert set(push) == {"featureSet", "eventId", "timestamp", "origin", "payload"}
    assert push["featureSet"] == "heartbeat"
    assert push["origin"] == {"source": "heartbeat", "reason": "schedule", "silent": True}
    assert push["payload"] == {"content": []}
    assert " | mode=silent | " in world.text("heartbeat_status")


@pytest.mark.requirement(
    "seed.silent.fallback",
    "seed.silent.one-warning",
    "seed.silent.status",
    "seed.silent.tries-first",
    "schedule.silent-origin",
    "host.25",
)
@pytest.mark.parametrize(
    "refusal", [EMPTY, {"result": {"accepted": False, "reason": "Empty content"}}]
)
def test_a_refused_silent_tick_goes_out_as_a_message_each_time_and_is_warned_of_once(
    refusal: dict[str, Any],
) -> None:
    world = every_minute(answer=lambda push: ACCEPTED if push["payload"]["content"] else refusal)
    world.call("heartbeat_configure", deliveryMode="silent")
    world.pass_time(2 * MINUTE)
    silent, message, again, _ = world.pushes
    assert silent["origin"]["silent"] is again["origin"]["silent"] is True
    assert message["origin"] == {
        "source": "heartbeat",
        "reason": "schedule",
        "silentFallback": True,
    }
    assert message["payload"]["content"][0]["text"].startswith("[current time: ")
    assert message["eventId"] != silent["eventId"]
    assert re.fullmatch(rf"heartbeat_{START + MINUTE}_\w+", message["eventId"])
    assert sum("the host refused a silent wake" in line for line in world.logs) == 1
    assert "mode=silent (the host refused a silent wake, " in world.text("heartbeat_status")
    world.answer = accept
    world.pass_time(MINUTE)
    assert " | mode=silent | " in world.text("heartbeat_status")


@pytest.mark.requirement("seed.silent.fallback")
def test_other_refusals_of_a_silent_tick_are_not_papered_over() -> None:
    world = every_minute(answer=refuse(-32603))
    world.call("heartbeat_configure", deliveryMode="silent")
    world.pass_time(MINUTE)
    assert len(world.pushes) == 1
