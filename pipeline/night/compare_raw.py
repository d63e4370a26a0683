"""Compares tables with the raw answers: a part of a sweep is normalised again, outside the lake.

Checksums show that a file is what was written; this shows that its rows match the answers, value by value. The part is
one segment of each operation, chosen by the sweep's id, so that over many nights all markets are compared.
"""

import tempfile
from collections.abc import Iterator
from zlib import crc32

import duckdb

from pipeline.domain.search import NODES_PER_SEARCH, Operation
from pipeline.domain.shards import Segment, segments
from pipeline.domain.tables import SEGMENT_TABLES, TABLES
from pipeline.lake import Lake
from pipeline.lake.database import connect, select_kept
from pipeline.lake.delta import is_committed
from pipeline.lake.raw import Manifest, is_retired, landed, second_look
from pipeline.lake.sweep_files import files_of_sweep, quarantine_file, retirement
from pipeline.night.overview import sweep_rows
from pipeline.normalise.segment import RULES_VERSION, normalise_segment


def compare_with_raw(lake: Lake, manifest: Manifest, max_body_bytes: int) -> dict[str, str]:
    """Return how tables differ from the raw answers of a loaded sweep, by table; empty: they do not.

    Nothing is compared if the answers are not kept, or if other rules made the rows. The lake is not changed. Raises
    LakeError, CorruptObject and DuckDB's errors if files cannot be read.
    """
    found: dict[str, str] = {}
    row = sweep_rows(lake).get(manifest.sweep_id)
    if row is None or row["rules_version"] != RULES_VERSION or is_retired(lake, manifest.sweep_id):
        return found
    for segment in _part(lake, manifest):
        with tempfile.TemporaryDirectory(prefix="nightaudit-") as folder:
            beside = Lake(folder)
            for shard in segment.shards:
                for name in (shard.name, second_look(shard.name)):
                    path = lake.shard_path(manifest.sweep_id, name)
                    if lake.exists(path):
                        beside.put_new(path, lake.get(path))
            normalise_segment(beside, manifest.sweep_id, segment, max_body_bytes, {})
            with connect(beside) as session:
                for table, lacking, extra in _differences(session, lake, beside, manifest.sweep_id, segment):
                    found.setdefault(
                        table,
                        f"lacks {lacking:,} rows that raw answers of {segment.name} give, and has {extra:,} that they "
                        "do not give",
                    )
    return found


def _part(lake: Lake, manifest: Manifest) -> Iterator[Segment]:
    """Yield a segment of each operation whose answers have all landed."""
    there, number = landed(lake, manifest.sweep_id), crc32(manifest.sweep_id.encode())
    complete: dict[Operation, list[Segment]] = {}
    for partition in manifest.partitions:
        for segment in segments(partition):
            if all(shard.name in there for shard in segment.shards):
                complete.setdefault(partition.operation, []).append(segment)
    for candidates in complete.values():
        yield candidates[number % len(candidates)]


def _differences(
    session: duckdb.DuckDBPyConnection, lake: Lake, beside: Lake, sweep_id: str, segment: Segment
) -> Iterator[tuple[str, int, int]]:
    """Yield the tables that differ, with the number of rows that the lake lacks and has in excess."""
    first, stop = segment.shards[0].start, segment.shards[-1].stop
    quarantine = quarantine_file(lake, sweep_id)
    for name in SEGMENT_TABLES:
        if is_committed(lake, TABLES[name], retirement(sweep_id)):
            continue
        selects = []
        for source in (beside, lake):
            files = [file for file in files_of_sweep(source, TABLES[name], sweep_id) if file != quarantine]
            selects.append(select_kept(name, files, [quarantine]))
        within = f"search_id >= {first * NODES_PER_SEARCH} AND search_id < {stop * NODES_PER_SEARCH}"
        if name == "drift":
            part = segment.partition
            within = f"operation = '{part.operation}' AND market = '{part.market}' AND segment = {segment.number}"
        given, held = (f"(SELECT * FROM ({select}) WHERE {within})" for select in selects)  # noqa: S608 - our own names
        lacking, extra = (
            session.execute(f"SELECT count(*) FROM ({one} EXCEPT ALL {other})").fetchall()[0][0]  # noqa: S608 - our own names
            for one, other in ((given, held), (held, given))
        )
        if lacking or extra:
            yield name, lacking, extra
