"""Loading: the files of normalised segments become rows of the lake's Delta tables, each exactly once.

The commit of a table carries an application transaction named after sweep and partition (operation and market), so that
a repeated or racing load finds it done. The sweep's own row comes last, counted from the tables.
"""

from collections.abc import Sequence

import pyarrow as pa

from pipeline.domain.errors import LakeError
from pipeline.domain.shards import Partition, segments
from pipeline.domain.tables import SEGMENT_TABLES, SWEEP, TABLES
from pipeline.lake import Lake
from pipeline.lake.database import connect, rows_of, view_sweep_files
from pipeline.lake.delta import commit_files, commit_rows, is_committed
from pipeline.lake.raw import Manifest, read_ending
from pipeline.lake.relations import relation
from pipeline.normalise.segment import RULES_VERSION


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


def load_sweep(lake: Lake, manifest: Manifest) -> None:
    """Count a sweep that has ended and load its row. Loading it again changes nothing.

    Raises LakeError if the statuses do not add up to the planned cells: nothing of such a sweep may be published.
    """
    ending = read_ending(lake, manifest.sweep_id)
    if ending is None:
        raise LakeError(
            f"The sweep {manifest.sweep_id} has not ended, so it cannot be loaded.",
            kept="Answers that have landed are kept.",
            hint=f"Resume it: nightaudit resume {manifest.sweep_id}",
        )
    with connect(lake) as session:
        view_sweep_files(session, lake, manifest.sweep_id, "sweep_files")
        (counts,) = rows_of(session.execute(relation("staging", "sweep_summary").sql))
    if counts["planned"] != manifest.cells:
        raise LakeError(
            f"The sweep {manifest.sweep_id} planned {manifest.cells} cells, but its tables hold {counts['planned']}.",
            kept="The raw answers are untouched; nothing was published.",
            hint="See whether a file is missing: nightaudit verify. If none is, please report this.",
        )
    row = {
        "sweep_id": manifest.sweep_id,
        "snapshot_date": manifest.snapshot_date,
        "started_at": manifest.started_at,
        "finished_at": ending.finished_at,
        "state": "complete" if ending.is_complete else "closed",
        "is_simulated": manifest.is_simulated,
        "supplier": manifest.supplier,
        "spec": manifest.spec,
        "nightaudit_version": manifest.nightaudit_version,
        "contract_version": manifest.contract_version,
        "rules_version": RULES_VERSION,
        **counts,
    }
    rows = pa.Table.from_pylist([row], schema=SWEEP.schema)
    commit_rows(lake, SWEEP, rows, manifest.sweep_id, "sweep", manifest.sweep_id)
