"""A process beside the night's own: it judges the sweep and draws charts.

Both need libraries that take seconds to start. It starts them while answers are awaited, and draws while the pages are
computed. A night without it, or one that loses it, does the same work itself.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Self, TypeVar

from pipeline.audit.judge import Judged, failed_among, start
from pipeline.process.child import begun, run_tracker
from pipeline.process.draw import draw
from pipeline.process.draw import start as start_drawing
from pipeline.sweep.normalisers import processes

logger = logging.getLogger(__name__)

# The process was killed, perhaps before it had begun: see `Normalisers.normalise`.
_IS_GONE = (BrokenProcessPool, EOFError, ConnectionError)

T = TypeVar("T")


class Aside:
    """One process that does what it is given, in the order given."""

    def __init__(self) -> None:
        # Starting a process takes as long as the fork server's imports, and the event loop must not wait for them.
        self._starter = ThreadPoolExecutor(1)
        self._pool: Executor | None = None
        self._is_gone = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._starter.shutdown(wait=True, cancel_futures=True)
        if self._pool is not None:
            run_tracker()
            # Otherwise its thread would end together with the interpreter, and write to a pipe that it has just closed.
            self._pool.shutdown(wait=True, cancel_futures=True)

    def warm(self) -> None:
        """Start the libraries."""
        for begin in (start, start_drawing):
            self._submit(begin)

    def judge(self, judged: Judged) -> set[tuple[str, str, str]]:
        """Judge measures; see `failed_among`."""
        return self._submit(failed_among, judged)()

    def draw(self, spec: Mapping[str, Any]) -> Callable[[], str]:
        """Begin to draw a chart, and return what waits for it; see `draw`."""
        return self._submit(draw, spec)

    def _submit(self, do: Callable[..., T], *args: object) -> Callable[[], T]:
        submitted: Future[Future[T]] = self._starter.submit(self._begin, do, *args)

        def result() -> T:
            try:
                return submitted.result().result()
            except _IS_GONE:
                if not self._is_gone:
                    self._is_gone = True
                    logger.warning("The process that judges and draws was killed; the night does that work itself.")
                return do(*args)

        return result

    def _begin(self, do: Callable[..., T], *args: object) -> Future[T]:
        if self._pool is None:
            self._pool = processes(1)
        return begun(self._pool, do, *args)
