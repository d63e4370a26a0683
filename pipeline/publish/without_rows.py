"""A published file without rows, in which names of a user's condition can be looked up before the first night."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from pipeline.domain.analysis import Analysis
from pipeline.lake import Lake
from pipeline.publish.catalogue import write_reference, write_views
from pipeline.publish.state import NATIVE, attach, create, prepare, write_view_macros
from pipeline.publish.state_files import write_state_views
from pipeline.publish.summaries import write_summaries


@contextmanager
def published_without_rows() -> Iterator[Path]:
    """Give a file, for as long as the context lasts, with every relation that this version publishes, all empty."""
    with tempfile.TemporaryDirectory(prefix="nightaudit-", ignore_cleanup_errors=True) as folder:
        lake = Lake(folder)
        lake.published_file.parent.mkdir()
        with duckdb.connect(":memory:") as session:
            attach(session, lake.published_file)
            prepare(session)
            for name, table in NATIVE.items():
                session.execute(create(name, table))
            write_reference(session, Analysis())
            write_state_views(session, lake, [])
            write_views(session, lake, [])
            write_summaries(session)
            write_view_macros(session)
        yield lake.published_file
