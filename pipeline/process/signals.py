"""What SIGINT and SIGTERM mean: the work in hand is given up, and it is told what was kept and how to go on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.domain.errors import SweepStopped

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
def told_when_stopped(kept: str, hint: str) -> Iterator[None]:
    """Give up what is done within on SIGINT or SIGTERM, and raise SweepStopped with `kept` and `hint`.

    Within another one, the inner one tells. Outside the main thread, signals are not for us to hear.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []

    def stop(number: int, _: object) -> None:
        asked.append(number)
        raise _Stop(SweepStopped.exit_code)

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
            raise SweepStopped("Stopped as asked.", kept=kept, hint=hint)
