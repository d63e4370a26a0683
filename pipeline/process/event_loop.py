"""An event loop for a command that may be stopped while the loop is still being made."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from pipeline.process.signals import handlers_in_force, handlers_kept

T = TypeVar("T")


def run_in_loop(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `work` as asyncio.run does, but let a stop signal wait for the few milliseconds until there is a loop.

    A loop that is half made when a signal raises an error is torn down in a finaliser, which prints a traceback.
    """
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(work())
    # Where Python's own handler is in force, asyncio replaces it with one that cancels the work.
    held = {number: each for number, each in handlers_in_force().items() if each is not signal.default_int_handler}
    heard: list[int] = []

    async def begun() -> T:
        for number, handler in held.items():
            signal.signal(number, handler)
        for number in heard[:1]:
            signal.raise_signal(number)
        return await work()

    with handlers_kept():
        for number in held:
            signal.signal(number, lambda number, _: heard.append(number))
        return asyncio.run(begun())
