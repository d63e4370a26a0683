"""Loading: the files of normalised segments become rows of the lake's Delta tables, each exactly once.

The commit of a table carries an application transaction named after sweep and partition (operation and market), so that
a repeated or racing load finds it done.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.shards import Partition, segments
from pipeline.domain.tables import SEGMENT_TABLES, TABLES
from pipeline.lake import Lake
from pipeline.lake.delta import commit_files, is_committed


def load_partitions(lake: Lake, sweep_id: str, partitions: Sequence[Partition]) -> None:
    """Commit the files of all segments of some partitions, once a table. Loading them again changes nothing."""
    for name in SEGMENT_TABLES:
        loads = {}
        for partition in partitions:
            paths = [lake.table_file(name, sweep_id, segment.name) for segment in segments(partition)]
            if held := [path for path in paths if lake.exists(path)]:
                loads[f"{sweep_id}/{partition.name}"] = held
        if loads:
            commit_files(lake, TABLES[name], loads)


def is_loaded(lake: Lake, sweep_id: str, partition: Partition) -> bool:
    """Whether a partition's cells, which are loaded last, are in the lake's tables."""
    return is_committed(lake, TABLES["cell"], f"{sweep_id}/{partition.name}")


def is_sweep_loaded(lake: Lake, sweep_id: str) -> bool:
    """Whether a sweep has ended and all its rows are in the lake's tables."""
    return is_committed(lake, TABLES["sweep"], sweep_id)
