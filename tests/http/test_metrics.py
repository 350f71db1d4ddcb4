"""/metrics: what an operator's Prometheus reads."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.http.support import NotingDesk, client

pytestmark = pytest.mark.trio


async def scrape(desk: NotingDesk) -> dict[tuple[str, str], float]:
    async with client(desk) as http:
        response = await http.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name.removeprefix("mcpl_heartbeat_"), sample.labels.get("le", "")): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


@pytest.mark.requirement("watch.http.metrics")
async def test_the_counts_of_store_and_server_are_there() -> None:
    desk = NotingDesk()
    desk.counters.beats = 7
    desk.counters.fires = 2
    for late in (0.2, 0.4, 99.0):
        desk.counters.late.observe(late)
    desk.counters.sweeps.observe(0.0004)
    found = await scrape(desk)
    assert found["store_up", ""] == 1
    assert found["requests_running", ""] == 1
    assert found["switches_armed", ""] == 3
    assert found["mail_waiting", ""] == 2
    assert found["watch_gaps", ""] == 1
    assert found["beats_total", ""] == 7
    assert found["fires_total", ""] == 2
    assert found["late_notice_seconds_bucket", "0.1"] == 0
    assert found["late_notice_seconds_bucket", "0.25"] == 1
    assert found["late_notice_seconds_bucket", "0.5"] == 2
    assert found["late_notice_seconds_bucket", "60.0"] == 2
    assert (
        found["late_notice_seconds_bucket", "+Inf"] == found["late_notice_seconds_count", ""] == 3
    )
    assert found["late_notice_seconds_sum", ""] == pytest.approx(99.6)
    assert found["sweep_seconds_count", ""] == 1


@pytest.mark.requirement("watch.http.metrics")
async def test_an_unusable_store_is_down_and_not_empty() -> None:
    desk = NotingDesk()
    desk.trouble = "the disk is full"
    found = await scrape(desk)
    assert found["store_up", ""] == 0
    assert ("switches_armed", "") not in found
    assert found["beats_total", ""] == 0
