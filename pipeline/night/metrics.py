"""Metrics of a lake's nights for monitoring: OpenMetrics, read from the published file.

Each call reads the last published night; nothing is kept between two calls. A scraper runs `nightaudit metrics`, as for
the textfile collector of a node exporter, so no process has to listen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from pipeline.domain.search import STATUSES
from pipeline.lake import Lake
from pipeline.lake.database import open_published, rows_of
from pipeline.night.overview import SweepOverview, overview

_SWEEP = "FROM mart.sweep WHERE sweep_id = $sweep_id"
_SEARCHES = "SELECT outcome, count(*) FROM lake.search WHERE sweep_id = $sweep_id GROUP BY ALL ORDER BY ALL"
_LATENCY = (
    "SELECT quantile_disc(latency_ms, [0.5, 0.9, 0.99]), sum(greatest(attempts - 1, 0)), sum(body_bytes) "
    "FROM lake.search WHERE sweep_id = $sweep_id"
)
_FLAGS = "SELECT severity, count(*) FROM report.flag GROUP BY ALL ORDER BY ALL"
_QUANTILES = ("0.5", "0.9", "0.99")
_COUNTS = {
    "offers": "Offers that were stored.",
    "rejects": "Answers, or parts of them, that could not be read.",
    "requests": "Requests sent, counting every attempt.",
    "price_changes": "Offers whose price changed since the night before.",
}


def metrics(lake: Lake, now: datetime) -> str:
    """Return the metrics of a lake as OpenMetrics text. Raises LakeError if it cannot be read."""
    registry = CollectorRegistry()
    registry.register(_Nights(lake, now))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


class _Nights(Collector):
    def __init__(self, lake: Lake, now: datetime) -> None:
        self._lake = lake
        self._now = now

    def describe(self) -> list[Metric]:
        """Return nothing, as the lake would be read twice otherwise."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        held = overview(self._lake)
        states = Counter(sweep.state for sweep in held.sweeps)
        yield _gauge("sweeps", "Sweeps of the lake by state.", "state", sorted(states.items()))
        yield _value("free_bytes", "Bytes free on the lake's disk.", held.free_bytes)
        if held.latest_published and not held.fault:
            yield from self._of_night(held.latest_published)

    def _of_night(self, sweep: SweepOverview) -> Iterator[Metric]:
        age = _seconds(sweep.started_at, self._now)
        yield _value("published_age_seconds", "Seconds since the last published night began.", age)
        with open_published(self._lake.published_file) as session:
            given = {"sweep_id": sweep.sweep_id}
            (row,) = rows_of(session.execute(_SWEEP, given))
            outcomes = session.execute(_SEARCHES, given).fetchall()
            ((latencies, retries, body_bytes),) = session.execute(_LATENCY, given).fetchall()
            flags = session.execute(_FLAGS).fetchall()
        cells = [(status, row[status]) for status in STATUSES]
        yield _gauge("night_cells", "Planned cells of the night by status.", "status", cells)
        yield _gauge("night_searches", "Searches of the night by outcome.", "outcome", outcomes)
        seconds = zip(_QUANTILES, (max(milliseconds, 0) / 1000 for milliseconds in latencies or ()), strict=False)
        yield _gauge("night_latency_seconds", "Latency of a search, by quantile.", "quantile", seconds)
        yield _gauge("findings", "Open findings by severity.", "severity", flags)
        for name, meaning in _COUNTS.items():
            yield _value(f"night_{name}", meaning, row[name] or 0)
        yield _value("night_retries", "Attempts beyond the first.", retries or 0)
        yield _value("night_wire_bytes", "Bytes of the night's answers as they were sent.", row["wire_bytes"] or 0)
        yield _value("night_body_bytes", "Bytes of the night's answers, inflated.", body_bytes or 0)
        took = _seconds(row["started_at"], row["finished_at"])
        yield _value("night_sweep_seconds", "Seconds from the night's first search to its last.", took)


def _seconds(begin: datetime, end: datetime) -> float:
    """Return the seconds between two instants; 0 if the clock was set back in between."""
    return max((end - begin).total_seconds(), 0.0)


def _gauge(name: str, meaning: str, label: str, values: Iterable[tuple[str, float]]) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(f"nightaudit_{name}", meaning, labels=[label])
    for of, value in values:
        gauge.add_metric([of], value)
    return gauge


def _value(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"nightaudit_{name}", meaning, value=value)
