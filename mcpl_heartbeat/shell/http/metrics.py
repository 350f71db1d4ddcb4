"""``/metrics``: counts for operators, in the Prometheus text format.

What is counted per process (beats, fires, sweeps) starts at 0 with it; what the store holds (armed
switches, waiting mail) is the same from every server on it, and left out while it cannot be used.
"""

from collections.abc import Iterable

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from mcpl_heartbeat.shell.counters import Histogram
from mcpl_heartbeat.shell.http import replies
from mcpl_heartbeat.shell.http.health import Watched
from mcpl_heartbeat.shell.http.replies import Receive, Reply, Scope, Send
from mcpl_heartbeat.storage.store.ports import Stats

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
PREFIX = "mcpl_heartbeat_"


class Traffic(msgspec.Struct):
    """How many requests are being answered, the one that asks included."""

    running: int = 0


class Metrics:
    """The ASGI endpoint of ``/metrics``."""

    def __init__(self, desk: Watched, traffic: Traffic) -> None:
        self._desk = desk
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count, and give the counts."""
        stats = await self._desk.stats()
        registry = CollectorRegistry()
        registry.register(_Counts(self._desk, stats, self._traffic.running))
        body = generate_latest(registry)
        await replies.send_reply(Reply(200, body, ((b"content-type", CONTENT_TYPE),)), send)


class _Counts(Collector):
    """The counts of one moment."""

    def __init__(self, desk: Watched, stats: Stats | None, running: int) -> None:
        self._desk = desk
        self._stats = stats
        self._running = running

    def collect(self) -> Iterable[Metric]:
        counters, stats, up = self._desk.counters, self._stats, self._desk.trouble is None
        yield _gauge("store_up", "Whether this server can use the store: 1 or 0.", up)
        if stats is not None:
            yield _gauge("switches_armed", "Switches that are armed in the store.", stats.armed)
            yield _gauge("mail_waiting", "Envelopes in the store that wait.", stats.mail_waiting)
            yield _gauge(
                "tasks_available",
                "Agent tasks in the store that wait to be claimed.",
                stats.tasks_available,
            )
            yield _gauge(
                "tasks_claimed",
                "Agent tasks in the store that are claimed, those with a lapsed lease included.",
                stats.tasks_claimed,
            )
            yield _gauge("watch_gaps", "Times in which nobody watched the store.", stats.gaps)
        yield _gauge("requests_running", "Requests being answered, this included.", self._running)
        yield _counter("beats", "Beats that this server has kept.", counters.beats)
        yield _counter("fires", "Switches that this server has fired.", counters.fires)
        yield _histogram(
            "late_notice_seconds",
            "How long after its deadline a switch that this server fired was noticed.",
            counters.late,
        )
        yield _histogram("sweep_seconds", "How long this server's sweeps took.", counters.sweeps)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, text, value=float(value))


def _counter(name: str, text: str, value: int) -> Metric:
    return CounterMetricFamily(PREFIX + name, text, value=value)


def _histogram(name: str, text: str, found: Histogram) -> Metric:
    total, buckets = 0, []
    bounds = [*(str(bound) for bound in found.bounds), "+Inf"]
    for bound, count in zip(bounds, found.counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return HistogramMetricFamily(PREFIX + name, text, buckets=buckets, sum_value=found.total)
