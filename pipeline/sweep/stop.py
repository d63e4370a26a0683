"""Stopping a sweep: in good order at the first signal, at once at the second."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from pipeline.domain.errors import SweepStopped
from pipeline.process.signals import STOP_SIGNALS, handlers_kept

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Stopping:
    """Whether a user asked to stop, once open shards and segments have finished or at once."""

    task: asyncio.Task[object]
    is_asked: bool = False
    is_given_up: bool = False
    signal_number: int | None = None
    _reported: list[Callable[[], int]] = field(default_factory=list)

    def tell(self, stop: Callable[[], int]) -> None:
        """Call `stop` at the first signal, or now if there was one. It returns how many searches it waits for."""
        self._reported.append(stop)
        if self.is_asked:
            stop()

    def on_signal(self, number: int) -> None:
        """Handle one more signal."""
        self.signal_number = number
        if self.is_asked:
            self.is_given_up = True
            self.task.cancel()
            return
        self.is_asked = True
        left = sum(stop() for stop in self._reported)
        # Logged at once, because finishing may take minutes.
        logger.warning(
            "Stopping after %s; press Ctrl-C again to stop at once.",
            f"{left} open searches" if left else "the current step",
        )

    def raise_if_asked(self) -> None:
        """Raise SweepStopped if a user asked to stop."""
        if self.is_asked:
            raise SweepStopped("Stopped as requested.", signal_number=self.signal_number)


@contextmanager
def stopping_on_signals() -> Iterator[Stopping]:
    """Handle SIGINT and SIGTERM instead of their present handlers."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101 - called from a coroutine
    stopping = Stopping(task)
    # Removing a handler from the loop restores the system's default, not the previous handler.
    with handlers_kept():
        # Outside the main thread, and on systems without such handlers, the signals keep their usual meaning.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            for number in STOP_SIGNALS:
                loop.add_signal_handler(number, stopping.on_signal, number)
        try:
            yield stopping
        finally:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                for number in STOP_SIGNALS:
                    loop.remove_signal_handler(number)
