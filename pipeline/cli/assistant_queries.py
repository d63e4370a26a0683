"""The queries of an assistant: each ends when its call is cancelled, or when the server ends."""

import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps

from pipeline.lake.user_query import query_process


class Queries:
    """The processes of running queries, of the server or of one call: they end with it."""

    def __init__(self) -> None:
        self._running = set[subprocess.Popen[bytes]]()
        self._is_ended = False

    @contextmanager
    def one(self) -> Iterator[subprocess.Popen[bytes]]:
        """Give a process for a query."""
        holders = (self, _of_call.get(self))
        with query_process() as process:
            for holder in holders:
                holder.hold(process)
            try:
                yield process
            finally:
                for holder in holders:
                    holder.release(process)

    def hold(self, process: subprocess.Popen[bytes]) -> None:
        """End a process with the others."""
        self._running.add(process)
        if self._is_ended:
            process.kill()

    def release(self, process: subprocess.Popen[bytes]) -> None:
        """Leave a process that has ended."""
        self._running.discard(process)

    def end(self) -> None:
        """End all of them, and any that start later."""
        self._is_ended = True
        for process in list(self._running):
            process.kill()


# The queries of the call that a thread works for.
_of_call: ContextVar[Queries] = ContextVar("of_call")


def ending_with_its_call(tool: Callable[..., str]) -> Callable[..., Awaitable[str]]:
    """Return a tool whose query ends when the assistant cancels the call, not at its limit of time."""
    from anyio import to_thread

    @wraps(tool)
    async def called(**given: object) -> str:
        queries = Queries()
        _of_call.set(queries)
        try:
            return await to_thread.run_sync(partial(tool, **given), abandon_on_cancel=True)
        finally:
            queries.end()

    return called
