"""The process of one user's query: reads the question from stdin, and writes the answer in parts, as pickles.

The parts are the names of the columns, batches of rows, and an empty list; or at any point a failure: one of four
kinds, a message and a hint.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.domain.errors import InputError

_BATCH, _ARROW_BATCH = 2_000, 20_000
_ONLY_THE_LAKE = "Queries read this lake alone, and no other file."
# Memory of a process without a query, and of each of its threads.
_OVERHEAD_MB, _THREAD_MB = 1_000, 32

REFUSED, DAMAGED, TOO_LARGE, UNFORESEEN = "refused", "damaged", "too large", "unforeseen"
_NO_MEMORY = "there is not enough memory for it"


def main() -> None:
    """Answer the query on stdin."""
    # Output of libraries must not mix with the answer.
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    # Imported ahead, while the question is put together.
    import duckdb  # noqa: F401 - loaded ahead of its use

    import pipeline.lake.user_condition  # noqa: F401 - loaded ahead of its use

    file, asked, bounds, spill, as_arrow = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by our own module
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _bound(**bounds)
    try:
        for part in parts_of(Path(file), asked, Path(spill), bounds["memory_mb"], as_arrow=as_arrow):
            pickle.dump(part, answer, protocol=pickle.HIGHEST_PROTOCOL)
            answer.flush()
    except BrokenPipeError:
        pass
    # A regular exit could be held up by a session that is still working.
    os._exit(0)


def parts_of(
    file: Path, asked: str | dict[str, str], spill: Path, memory_mb: int, *, as_arrow: bool
) -> Iterator[list[Any] | tuple[str, str, str]]:
    """Yield the names, batches of rows and an empty batch, or at any point a failure."""
    import duckdb

    from pipeline.lake.query_texts import run, run_with_texts
    from pipeline.lake.user_condition import rows_where
    from pipeline.lake.user_sql import CANNOT_RUN, LIST_RELATIONS, locked_session, question

    # If a query names no file, a file that fails belongs to the published file or its views.
    names_files = False
    try:
        session = locked_session(file, spill, memory_mb)
    except duckdb.Error as error:
        yield DAMAGED, str(error), ""
        return
    try:
        with session:
            wanted = question(session, asked) if isinstance(asked, str) else rows_where(session, **asked)
            names_files = wanted.names_files
            yield run(session, wanted.sql) if as_arrow else run_with_texts(session, wanted.sql)
            if as_arrow:
                reader: Any = session.to_arrow_reader(_ARROW_BATCH)
                yield [reader.schema.serialize().to_pybytes()]
                for batch in reader:
                    yield [batch.serialize().to_pybytes()]
            else:
                while rows := session.fetchmany(_BATCH):
                    yield rows
            yield []
    except InputError as error:
        yield REFUSED, error.message, error.hint
    except (duckdb.OutOfMemoryException, MemoryError):
        yield TOO_LARGE, _NO_MEMORY, ""
    except (duckdb.FatalException, duckdb.SerializationException) as error:
        yield DAMAGED, str(error), ""
    except (duckdb.IOException, duckdb.PermissionException) as error:
        refused = (REFUSED, f"{CANNOT_RUN}{error}", _ONLY_THE_LAKE)
        yield refused if names_files else (DAMAGED, str(error), "")
    except duckdb.Error as error:
        yield REFUSED, f"{CANNOT_RUN}{error}", LIST_RELATIONS
    except OverflowError as error:
        # DuckDB's times and dates reach further than Python's.
        yield REFUSED, f"The query returns a value that is out of range: {error}", "Cast that column to VARCHAR."
    except Exception:
        # Our own mistake; the output of the process is not shown otherwise.
        yield UNFORESEEN, traceback.format_exc(), ""


def _bound(seconds: float, memory_mb: int) -> None:
    """Let the system end this process if it exceeds its limits."""
    if sys.platform == "win32":
        return
    import resource

    processors = os.cpu_count() or 1
    data = (memory_mb + _OVERHEAD_MB + _THREAD_MB * processors) * 1_000_000
    _lower(resource.RLIMIT_DATA, data)
    _lower(resource.RLIMIT_CPU, int(seconds * processors) + 10)
    # No core dump after a crash.
    _lower(resource.RLIMIT_CORE, 0)


def _lower(which: int, wanted: int) -> None:
    import resource

    _, hard = resource.getrlimit(which)
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(which, (limit, limit))


def _end_with_parent() -> None:
    while sys.stdin.buffer.read(1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
