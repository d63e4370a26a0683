"""Raw answers, normalised again to the rows of their sweeps, without the offers that their audit removed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.domain.search import Operation
from pipeline.domain.tables import REJECT
from pipeline.lake import Lake
from pipeline.lake.checksums import refuse_damaged
from pipeline.lake.database import OF_OFFERS
from pipeline.lake.raw_answer import Evidence
from pipeline.lake.sweep_files import quarantine_file
from pipeline.normalise.segment import rows_of_answers
from pipeline.replay.answers import Answers
from pipeline.replay.republish import ReplayedNight


def nights_of(lake: Lake, answers: Answers, max_body_bytes: int) -> list[ReplayedNight]:
    """Return the sweeps of some answers, oldest first, with the rows of these answers."""
    by_sweep: dict[str, dict[tuple[str, str], list[Evidence]]] = defaultdict(lambda: defaultdict(list))
    for (sweep_id, _), (search, evidence) in sorted(answers.items(), key=lambda answer: answer[0]):
        by_sweep[sweep_id][search["operation"], search["market"]].append(evidence)
    return [
        ReplayedNight(
            sweep_table(lake, sweep_id),
            _without_quarantine(lake, sweep_id, normalised(sweep_id, parts, max_body_bytes)),
        )
        for sweep_id, parts in by_sweep.items()
    ]


def normalised(
    sweep_id: str, parts: Mapping[tuple[str, str], Sequence[Evidence]], max_body_bytes: int
) -> dict[str, list[pa.Table]]:
    """Return the rows, by table, of answers by operation and market."""
    rows: dict[str, list[pa.Table]] = defaultdict(list)
    for (operation, market), evidence in parts.items():
        records = ((each.address, each.record) for each in evidence)
        for name, table in rows_of_answers(sweep_id, Operation(operation), market, records, max_body_bytes).items():
            rows[name].append(table)
    return rows


def sweep_table(lake: Lake, sweep_id: str) -> pa.Table:
    """Return a sweep's row of the table `sweep`."""
    file = lake.local(lake.table_file("sweep", sweep_id, "sweep"))
    refuse_damaged(lake.root, [file])
    return pq.read_table(file)


def _without_quarantine(lake: Lake, sweep_id: str, rows: dict[str, list[pa.Table]]) -> dict[str, list[pa.Table]]:
    """Return the rows with the offers that the audit removed as rejects."""
    file = quarantine_file(lake, sweep_id)
    if not file.exists():
        return rows
    searches = pa.concat_tables(rows["cell"])["search_id"].combine_chunks()
    refuse_damaged(lake.root, [file])
    quarantine = pq.read_table(file, schema=REJECT.schema)
    taken = quarantine.filter(pc.is_in(quarantine["search_id"], value_set=searches))
    keys = set(zip(taken["search_id"].to_pylist(), taken["offer_no"].to_pylist(), strict=True))
    kept = {name: [_but(table, keys) for table in rows[name]] for name in OF_OFFERS if name in rows}
    return rows | kept | {"reject": [*rows.get("reject", ()), taken]}


def _but(table: pa.Table, keys: Collection[tuple[int, int | None]]) -> pa.Table:
    held = zip(table["search_id"].to_pylist(), table["offer_no"].to_pylist(), strict=True)
    return table.filter(pa.array([key not in keys for key in held], pa.bool_()))
