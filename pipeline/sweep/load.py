"""Loading: the files of normalised segments become rows of the lake's Delta tables, each exactly once.

A partition (operation and market) of a sweep is one commit a table. The commit carries an application transaction
named after sweep and partition, so that a repeated or racing load finds it done.
"""

from __future__ import annotations

from pipeline.domain.shards import Partition, segments
from pipeline.domain.tables import TABLES
from pipeline.lake import Lake
from pipeline.lake.delta import commit_files, is_committed

# What a segment may hold.
SEGMENT_TABLES = ("search", "offer", "penalty", "promotion", "reject", "drift", "cell")


def load_partition(lake: Lake, sweep_id: str, partition: Partition) -> None:
    """Commit the files of all segments of a partition. Loading it again changes nothing."""
    names = [segment.name for segment in segments(partition)]
    for name in SEGMENT_TABLES:
        paths = [lake.table_file(name, sweep_id, segment) for segment in names]
        held = [path for path in paths if lake.exists(path)]
        if held:
            commit_files(lake, TABLES[name], held, f"{sweep_id}/{partition.name}")


def is_loaded(lake: Lake, sweep_id: str, partition: Partition) -> bool:
    """Whether a partition's cells, which are loaded last, are in the lake's tables."""
    return is_committed(lake, TABLES["cell"], f"{sweep_id}/{partition.name}")


def is_sweep_loaded(lake: Lake, sweep_id: str) -> bool:
    """Whether a sweep has ended and all its rows are in the lake's tables."""
    return is_committed(lake, TABLES["sweep"], sweep_id)
