"""A user's query in its own process, which is ended if it exceeds its limits of time or memory.

An interrupt is not enough: DuckDB checks for it between parts of its work, and a function over one huge value, or the
planning of nested views, may never end. A process can always be ended without harm to ours.
"""

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import IO, Any, Self

from pipeline.domain.errors import InputError, NightauditError, QueryStopped
from pipeline.lake import query_child
from pipeline.process.limits import FEW_ARENAS
from pipeline.settings import Settings

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a user's query: seconds of work, and megabytes of memory."""

    seconds: float = 300
    memory_mb: int = 2000

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the limits of the settings."""
        return cls(settings.query_seconds, settings.query_memory_mb)


@dataclass(frozen=True, slots=True)
class Condition:
    """The rows of a published relation that meet a user's condition, in a fixed order."""

    relation: str
    where: str
    order: str


class Answer:
    """Names and rows of a query, as they come from its process."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        file: Path,
        asked: str | Condition,
        bounds: Bounds,
        spill: str,
        *,
        as_arrow: bool,
    ) -> None:
        self._process, self._file, self._bounds, self._left = process, file, bounds, bounds.seconds
        self._is_late = False
        assert self._process.stdin is not None  # noqa: S101 - asked for above
        assert self._process.stdout is not None  # noqa: S101 - asked for above
        self._output: IO[bytes] = self._process.stdout
        wanted = asked if isinstance(asked, str) else asdict(asked)
        # It may have ended already, which shows when the answer is read.
        with contextlib.suppress(BrokenPipeError):
            pickle.dump((str(file), wanted, asdict(bounds), spill, as_arrow), self._process.stdin)
            # It stays open: when it closes, the child knows that this process has ended.
            self._process.stdin.flush()
        self.columns: list[str] = self._next()

    def rows(self) -> Iterator[Row]:
        """Yield the rows that are left, one by one."""
        while batch := self._next():
            yield from batch

    def arrow(self) -> Iterator[bytes]:
        """Yield an Arrow stream in parts: the schema, then batches of rows. For queries with `as_arrow`."""
        while part := self._next():
            yield from part

    def _next(self) -> list[Any]:
        """Return the next part of the answer; an empty one is the last. Raises the failure of the query."""
        timer = threading.Timer(self._left, self._too_late)
        timer.daemon = True
        begun = monotonic()
        timer.start()
        try:
            part = pickle.load(self._output)  # noqa: S301 - written by our own module
        except (EOFError, pickle.UnpicklingError):
            self._process.wait()
            raise self._stopped() from None
        finally:
            timer.cancel()
            # Time in which the output is not read, as in a pager, does not count.
            self._left = max(0.0, self._left - (monotonic() - begun))
        if isinstance(part, list):
            return part
        raise self._failure(*part)

    def _too_late(self) -> None:
        self._is_late = True
        self._process.kill()

    def _stopped(self) -> QueryStopped:
        if self._is_late:
            return QueryStopped(
                f"The query was stopped: it took more than {self._bounds.seconds:g} seconds.",
                hint="Narrow the query, or allow more time: NIGHTAUDIT_QUERY_SECONDS (for one query: --seconds).",
            )
        return self._too_large(f"its process ended with code {self._process.returncode}")

    def _too_large(self, why: str) -> QueryStopped:
        return QueryStopped(
            f"The query was stopped: {why}. It may use {self._bounds.memory_mb:,} MB of memory.",
            hint="Narrow the query, or allow more memory: NIGHTAUDIT_QUERY_MEMORY_MB.",
        )

    def _failure(self, kind: str, message: str, hint: str) -> NightauditError:
        if kind == query_child.DAMAGED:
            # DuckDB is slow to import, and this process needs it for this alone.
            from pipeline.lake.database import damaged

            return damaged(self._file, message)
        if kind == query_child.UNFORESEEN:
            raise RuntimeError(f"The query process failed:\n{message}")
        return self._too_large(message) if kind == query_child.TOO_LARGE else InputError(message, hint=hint)


@contextmanager
def query_process() -> Iterator[subprocess.Popen[bytes]]:
    """Start the process of one query before the query is known, so that it imports its libraries meanwhile."""
    process = _started()
    try:
        yield process
    finally:
        _end(process)


@contextmanager
def user_query(
    file: Path,
    asked: str | Condition,
    bounds: Bounds,
    *,
    as_arrow: bool = False,
    process: subprocess.Popen[bytes] | None = None,
) -> Iterator[Answer]:
    """Run a user's query, or the rows of a condition, over the published file, and give its answer.

    `as_arrow` gives the answer as an Arrow stream, with the types of its columns, instead of rows. `process` comes from
    `query_process`; None: it is started now.
    Raises InputError if nothing is published or the query cannot be run, QueryStopped if it exceeds `bounds`, and
    CorruptObject if the file is damaged; also while the answer is read.
    """
    if not file.is_file():
        # This import is slow.
        from pipeline.lake.database import refuse_no_file

        refuse_no_file(file)
    with tempfile.TemporaryDirectory(prefix="nightaudit-", ignore_cleanup_errors=True) as spill:
        process = process or _started()
        try:
            yield Answer(process, file, asked, bounds, spill, as_arrow=as_arrow)
        finally:
            _end(process)


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own interpreter, our own module
        [sys.executable, "-m", query_child.__name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # It needs no secrets of ours.
        env={name: it for name, it in os.environ.items() if not name.startswith(("NIGHTAUDIT_", "AWS_"))} | FEW_ARENAS,
        # Ctrl-C is for us: we end it.
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
