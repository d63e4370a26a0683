"""What SIGINT and SIGTERM mean: the work in hand is given up, with what was kept and how to go on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.domain.errors import LakeFull, NightauditError, OutOfResources, SweepStopped

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Stop(SystemExit):
    """Asked to stop. A SystemExit, for asyncio, click and Prefect make something else of a KeyboardInterrupt."""


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Give the signals back the handlers that they had before, Prefect's own among them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stoppable(kept: str, next_step: str) -> Iterator[None]:
    """Do work within that may be stopped: whatever ends it early says what was `kept`, and names the `next_step`.

    SIGINT and SIGTERM raise SweepStopped; a full disk, want of memory and the like raise LakeFull or OutOfResources.
    Where one lies within another, the inner one speaks. Outside the main thread, signals are not for us to hear.
    """
    try:
        with _stopped_by_signals(kept, next_step):
            yield
    except (LakeFull, OutOfResources) as error:
        error.at_step(kept, next_step)
        raise
    except NightauditError:
        raise
    except Exception as error:
        # It knows errors of slow imports.
        from pipeline.process.failures import as_ours

        ours = as_ours(error)
        if ours is None:
            raise
        ours.at_step(kept, next_step)
        raise ours from None


@contextmanager
def _stopped_by_signals(kept: str, next_step: str) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []

    def stop(number: int, _: object) -> None:
        asked.append(number)
        raise _Stop(128 + number)

    with handlers_kept():
        for number in STOP_SIGNALS:
            signal.signal(number, stop)
        try:
            yield
        except BaseException:
            # Not only _Stop: DuckDB makes an error of its own of whatever interrupts a query.
            if not asked:
                raise
        if asked:
            raise SweepStopped(
                "Stopped as requested.", kept=kept, hint=f"Continue with: {next_step}", signal_number=asked[0]
            )
