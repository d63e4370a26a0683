"""The files that computing a range of properties reads: a worker on another machine must have them."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pipeline.domain.tables import SIDE_TABLES, TABLES
from pipeline.lake.mark import MARK
from pipeline.lake.sweep_files import paths_below, sweep_of
from pipeline.publish.range_session import RangeJob


def files_read(jobs: Sequence[RangeJob], _: Callable[..., object], reads: Sequence[str] = ()) -> Iterator[str]:
    """Give the files of the lake that a session over ranges of one night reads.

    No other property's state, and of earlier nights only the tables among the relations `reads`: all
    nights of a large lake would not fit on a worker.
    """
    job, lake = jobs[0], jobs[0].lake
    yield MARK
    yield lake.path_of(Path(job.file))
    for file in job.state:
        if any(each.within.meets(file.first_property_id, file.last_property_id) for each in jobs):
            yield file.path
    for name in TABLES:
        root = lake.table_root(name)
        yield from paths_below(lake, root / "_delta_log")
        for folder in root.glob("*"):
            sweep_id = sweep_of(folder.name)
            if sweep_id == job.sweep_id or (f"lake.{name}" in reads and sweep_id in job.published):
                yield from paths_below(lake, folder)
    for name in SIDE_TABLES:
        yield from paths_below(lake, lake.table_root(name))
