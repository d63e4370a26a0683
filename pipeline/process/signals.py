"""What SIGINT and SIGTERM do: they stop the work in hand, and say what was kept and how to continue."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pipeline.domain.errors import LakeFull, NightauditError, OutOfResources, SweepStopped

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_STOPPED = "Stopped as requested."

# By then, the finaliser or callback that dropped the error has ended.
_AGAIN_SECONDS = 0.05


class _Stop(SystemExit):
    """Asked to stop. A SystemExit, as asyncio, click and Prefect convert a KeyboardInterrupt."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


def end_at_once_until_stoppable() -> None:
    """Make a stop signal, before work begins and after it is done, end the process with its exit code."""

    def end(number: int, _: object) -> None:
        os.write(sys.stderr.fileno(), f"{_STOPPED}\n".encode())
        os._exit(128 + number)

    for number in STOP_SIGNALS:
        # An ignored signal, as in a shell's background, stays ignored.
        if signal.getsignal(number) in {signal.default_int_handler, signal.SIG_DFL}:
            signal.signal(number, end)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Restore the handlers of stop signals afterwards, such as Prefect's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def handlers_in_force() -> dict[int, Any]:
    """The handlers of stop signals by number. Ignored signals stay ignored; handlers unknown to Python stay too."""
    before = {int(number): signal.getsignal(number) for number in STOP_SIGNALS}
    return {number: handler for number, handler in before.items() if handler not in {None, signal.SIG_IGN}}


@contextmanager
def finished_first() -> Iterator[None]:
    """Finish what is within before a stop signal takes effect; a second one takes effect at once.

    For a message and a reservation, which cannot be taken back, together with the record of it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held = handlers_in_force()
    heard: list[int] = []

    def hear(number: int, _: object) -> None:
        heard.append(number)
        if len(heard) > 1:
            heard.clear()
            signal.signal(number, held[number])
            signal.raise_signal(number)
            return
        # Not by way of a buffer, which the signal may have interrupted.
        os.write(2, b"Stopping once what was begun is finished; press Ctrl-C again to stop at once.\n")

    with handlers_kept():
        for number in held:
            signal.signal(number, hear)
        try:
            yield
        finally:
            for number, handler in held.items():
                signal.signal(number, handler)
            if heard:
                signal.raise_signal(heard[0])


@contextmanager
def said_to_the_end() -> Iterator[None]:
    """Keep a second Ctrl-C from cutting off the message about the first one."""
    with handlers_kept():
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        yield


@contextmanager
def stoppable(kept: str, next_step: str) -> Iterator[None]:
    """Do work that may be stopped: whatever ends it early says what was `kept`, and names the `next_step`.

    SIGINT and SIGTERM raise SweepStopped; a full disk, lack of memory and the like raise LakeFull or OutOfResources.
    If contexts are nested, the inner one applies. Signals are only handled in the main thread.
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
        # Imported here, as it imports slow libraries for their errors.
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
        raise _Stop(number)

    with handlers_kept(), _heard_again():
        for number in STOP_SIGNALS:
            signal.signal(number, stop)
        try:
            yield
        except BaseException:
            # Not only _Stop: DuckDB raises an error of its own for whatever interrupts a query.
            if not asked:
                raise
        if asked:
            stopped = SweepStopped(_STOPPED, signal_number=asked[0])
            stopped.at_step(kept, next_step)
            raise stopped


@contextmanager
def _heard_again() -> Iterator[None]:
    """Send a signal again that arrived in a finaliser or a callback, where Python prints errors and drops them."""
    before, timers = sys.unraisablehook, list[threading.Timer]()

    def hear_again(dropped: "sys.UnraisableHookArgs") -> None:
        if not isinstance(dropped.exc_value, _Stop):
            before(dropped)
            return
        main = threading.main_thread().ident
        if main is not None:
            timers.append(threading.Timer(_AGAIN_SECONDS, signal.pthread_kill, (main, dropped.exc_value.number)))
            timers[-1].start()

    sys.unraisablehook = hear_again
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in timers:
            timer.cancel()
