"""Metrics of a sweep while it runs, served as OpenMetrics on a port of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.exposition import start_http_server
from prometheus_client.registry import CollectorRegistry

from pipeline.domain.errors import SettingsError
from pipeline.domain.search import Operation
from pipeline.supplier.answer import Answer, Ask
from pipeline.sweep import SweepProgress

_HOST = "127.0.0.1"
_LATENCIES = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Paced(Protocol):
    """What sends requests at a rate."""

    paced_seconds: float


class SweepMetrics:
    """What is counted of a sweep as its answers come in."""

    def __init__(self, sweep_id: str) -> None:
        self.registry = CollectorRegistry()
        given: dict[str, Any] = {"namespace": "nightaudit_sweep", "registry": self.registry}
        self._requests = Counter("requests", "Requests that left, retries included.", **given)
        self._retries = Counter("retries", "Requests beyond the first one of a search.", **given)
        self._answers = Counter(
            "answers", "Searches by what their last request came to: HTTP status or failure.", ["outcome"], **given
        )
        self._latency = Histogram("latency_seconds", "Duration of the last request.", buckets=_LATENCIES, **given)
        self._bytes = Counter("wire_bytes", "Bytes of answers as they were sent.", **given)
        self._waited = Gauge("paced_seconds", "Seconds that requests have waited for their turn, added up.", **given)
        self._searches = Gauge("searches", "Searches of the plan, by how far they are.", ["state"], **given)
        self._cells = Gauge("cells", "Normalised cells, by status.", ["status"], **given)
        self._planned = Gauge("planned_cells", "Cells of the plan.", **given)
        self._offers = Gauge("offers", "Offers that were normalised.", **given)
        Gauge("info", "The sweep that runs.", ["sweep_id"], **given).labels(sweep_id).set(1)

    def counted(self, ask: Ask) -> Ask:
        """Return what sends searches as `ask` does, and counts what becomes of them."""

        async def ask_and_count(operation: Operation, body: bytes, *, attempts: int | None = None) -> Answer:
            answer = await ask(operation, body, attempts=attempts)
            self._requests.inc(answer.attempts)
            self._retries.inc(max(answer.attempts - 1, 0))
            self._answers.labels(str(answer.failure or answer.http_status)).inc()
            self._latency.observe(max((answer.ended_at - answer.started_at).total_seconds(), 0.0))
            self._bytes.inc(len(answer.body))
            return answer

        return ask_and_count

    def watching(self, watch: Callable[[SweepProgress], None], client: Paced) -> Callable[[SweepProgress], None]:
        """Return what watches a sweep as `watch` does, and notes how far it is."""

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
