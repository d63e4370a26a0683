"""Metrics for monitoring, as OpenMetrics: of a lake's nights, and of a sweep while it runs.

Those of nights are read from the published file; nothing is kept between two calls. A scraper runs `nightaudit
metrics`, as for the textfile collector of a node exporter, so no process has to listen. A sweep serves its own on a
port of this machine.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import duckdb
from prometheus_client import Counter as Counted
from prometheus_client import Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import start_http_server
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from pipeline.domain.errors import SettingsError
from pipeline.domain.search import STATUSES, Operation
from pipeline.lake import Lake
from pipeline.lake.database import failed_query, open_published, rows_of
from pipeline.lake.ledger import published_sweeps
from pipeline.night.durations import duration_of
from pipeline.night.overview import Overview, SweepOverview, overview
from pipeline.plan.estimate import TimedStep
from pipeline.supplier.answer import Answer, Ask
from pipeline.supplier.client import SupplierClient
from pipeline.sweep import SweepProgress

logger = logging.getLogger(__name__)

_SWEEP = "FROM mart.sweep WHERE sweep_id = $sweep_id"
_SEARCHES = "SELECT outcome, count(*) FROM lake.search WHERE sweep_id = $sweep_id GROUP BY ALL ORDER BY ALL"
_LATENCY = (
    "SELECT quantile_disc(latency_ms, [0.5, 0.9, 0.99]), sum(greatest(attempts - 1, 0)), sum(body_bytes) "
    "FROM lake.search WHERE sweep_id = $sweep_id"
)
_FLAGS = "SELECT severity, count(*) FROM report.flag GROUP BY ALL ORDER BY ALL"
_PACED = "Total seconds that requests have waited for the rate limit, in the run that completed the night's sweep."
_LAG = "Seconds from the night's last answer until it was published: how old its prices were when they could be read."
_QUANTILES = ("0.5", "0.9", "0.99")
_COUNTS = {
    "offers": "Offers that were stored.",
    "rejects": "Answers, or parts of them, that could not be read.",
    "requests": "Requests sent, counting every attempt.",
    "price_changes": "Offers on sale on both nights, this and the one before, whose price changed.",
}


def metrics(lake: Lake, now: datetime) -> str:
    """Return the metrics of a lake as OpenMetrics text. Raises LakeError if it cannot be read."""
    text: bytes = generate_latest(_Nights(lake, now))  # type: ignore[no-untyped-call]
    return text.decode()


class _Nights(Collector):
    def __init__(self, lake: Lake, now: datetime) -> None:
        self._lake = lake
        self._now = now

    def collect(self) -> Iterator[Metric]:
        held = overview(self._lake)
        states = Counter(sweep.state for sweep in held.sweeps)
        yield _gauge("sweeps", "Sweeps of the lake by state.", "state", sorted(states.items()))
        yield _value("free_bytes", "Bytes free on the lake's disk.", held.free_bytes)
        night = self._readable(held)
        if held.latest_published or held.fault:
            is_readable = not held.fault and night is not None
            yield _value("published_readable", "1: the published file can be read; 0: it cannot.", is_readable)
        yield from night or ()

    def _readable(self, held: Overview) -> list[Metric] | None:
        """Return the metrics of the last published night; None: there is none, or what the file reads is damaged."""
        if held.latest_published is None or held.fault:
            return None
        try:
            return list(self._of_night(held.latest_published))
        except duckdb.Error as error:
            logger.warning("%s", failed_query(self._lake.published_file, error))
            return None

    def _of_night(self, sweep: SweepOverview) -> Iterator[Metric]:
        age = _seconds(sweep.started_at, self._now)
        yield _value("published_age_seconds", "Seconds since the last published night began.", age)
        begun = sweep.started_at.timestamp()
        yield _value("published_timestamp_seconds", "When the last published night began, in Unix time.", begun)
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
        found = dict.fromkeys(("high", "low", "medium"), 0) | dict(flags)
        yield _gauge("findings", "Open findings by severity.", "severity", found.items())
        for name, meaning in _COUNTS.items():
            yield _value(f"night_{name}", meaning, row[name] or 0)
        yield _value("night_retries", "Attempts beyond the first.", retries or 0)
        yield _value("night_wire_bytes", "Bytes of the night's answers as they were sent.", row["wire_bytes"] or 0)
        yield _value("night_body_bytes", "Bytes of the night's answers, decompressed.", body_bytes or 0)
        took = {step: duration_of(self._lake, sweep.sweep_id, step) for step in TimedStep}
        if (swept := took[TimedStep.SWEEP]) is not None:
            yield _value("night_paced_seconds", _PACED, swept.paced_seconds)
        known = [(str(step), duration.seconds) for step, duration in took.items() if duration is not None]
        yield _gauge("night_step_seconds", "Seconds that each step of the night took.", "step", known)
        first_to_last = _seconds(row["started_at"], row["finished_at"])
        yield _value("night_sweep_seconds", "Seconds from the night's first search to its last.", first_to_last)
        begun_at = [entry.published_at for entry in published_sweeps(self._lake) if entry.sweep_id == sweep.sweep_id]
        # The ledger notes when publishing began; readers see the night when it has ended.
        if begun_at and (publishing := took[TimedStep.PUBLISH]) is not None:
            published_at = begun_at[0] + timedelta(seconds=publishing.seconds)
            yield _value("night_lag_seconds", _LAG, _seconds(row["finished_at"], published_at))


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


_HOST = "127.0.0.1"
_LATENCIES = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class SweepMetrics:
    """The counts of a sweep as its answers come in."""

    def __init__(self, sweep_id: str) -> None:
        self.registry = CollectorRegistry()
        given: dict[str, Any] = {"namespace": "nightaudit_sweep", "registry": self.registry}
        self._requests = Counted("requests", "Requests sent, including retries.", **given)
        self._retries = Counted("retries", "Requests beyond the first one of a search.", **given)
        self._answers = Counted(
            "answers", "Searches by the result of their last request: HTTP status or failure.", ["outcome"], **given
        )
        self._latency = Histogram("latency_seconds", "Duration of the last request.", buckets=_LATENCIES, **given)
        self._bytes = Counted("wire_bytes", "Bytes of answers as they were sent.", **given)
        self._waited = Gauge("paced_seconds", "Total seconds that requests have waited for the rate limit.", **given)
        self._searches = Gauge("searches", "Planned searches by progress.", ["state"], **given)
        self._cells = Gauge("cells", "Normalised cells, by status.", ["status"], **given)
        self._planned = Gauge("planned_cells", "Cells of the plan.", **given)
        self._offers = Gauge("offers", "Offers that were normalised.", **given)
        Gauge("info", "The running sweep.", ["sweep_id"], **given).labels(sweep_id).set(1)

    def counted(self, ask: Ask) -> Ask:
        """Return a function that sends searches like `ask` and counts their results."""

        async def ask_and_count(operation: Operation, body: bytes, *, attempts: int | None = None) -> Answer:
            answer = await ask(operation, body, attempts=attempts)
            self._requests.inc(answer.attempts)
            self._retries.inc(max(answer.attempts - 1, 0))
            self._answers.labels(str(answer.failure or answer.http_status)).inc()
            self._latency.observe(max((answer.ended_at - answer.started_at).total_seconds(), 0.0))
            self._bytes.inc(len(answer.body))
            return answer

        return ask_and_count

    def watching(
        self, watch: Callable[[SweepProgress], None], client: SupplierClient
    ) -> Callable[[SweepProgress], None]:
        """Return a function that watches a sweep like `watch` and records its progress."""

        def watch_and_note(now: SweepProgress) -> None:
            self._waited.set(client.paced_seconds)
            for state, count in (
                ("planned", now.planned_searches),
                ("answered", now.answered_searches),
                ("landed", now.landed_searches),
            ):
                self._searches.labels(state).set(count)
            for status, count in now.normalised.items():
                self._cells.labels(status).set(count)
            self._planned.set(now.planned_cells)
            self._offers.set(now.offers)
            watch(now)

        return watch_and_note


@contextmanager
def served(port: int, sweep_id: str) -> Iterator[SweepMetrics]:
    """Serve the metrics of a sweep within. Raises SettingsError if the port cannot be used."""
    metrics = SweepMetrics(sweep_id)
    try:
        server, thread = start_http_server(port, _HOST, metrics.registry)
    except OSError as error:
        raise SettingsError(
            f"The port {port} of NIGHTAUDIT_METRICS_PORT cannot be used: {error.strerror}.",
            kept="Nothing was sent.",
            hint="Choose another port, or unset it.",
        ) from None
    try:
        yield metrics
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
