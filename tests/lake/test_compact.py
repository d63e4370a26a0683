"""Many files of a table become few, with the same rows: of every table that a segment writes."""

from __future__ import annotations

import duckdb
import pyarrow.parquet as pq
import pytest
from nights import filled, load_night, sweep_id

from pipeline.domain.tables import DAY, TABLES
from pipeline.domain.texts import literal
from pipeline.lake import Lake, compact
from pipeline.lake.delta import commit_files, committed_files
from pipeline.sweep.load import SEGMENT_TABLES

ROWS = 40


@pytest.mark.parametrize("wanted", [1, 2])
@pytest.mark.parametrize("name", SEGMENT_TABLES)
def test_the_files_of_a_night_become_few_with_the_same_rows(tmp_path, monkeypatch, name, wanted):
    lake, table = Lake(str(tmp_path / "lake")), TABLES[name]
    numbered = [column.name for column in table.columns if column.name in {"property_id", "search_id", "segment"}]
    dated = {column.name: filled(table, {})[column.name] for column in table.columns if column.type == DAY}
    load_night(lake, 0, **{name: [dated | dict.fromkeys(numbered, number) for number in range(ROWS)]})
    (first,) = lake.table_root(name).glob("*/*.parquet")
    files = [first, *(first.with_name(f"multi-GB-0000{segment}.parquet") for segment in (1, 2))]
    for file in files[1:]:
        pq.write_table(pq.read_table(first), file)
    commit_files(lake, table, {"multi-GB": [file.relative_to(lake.root).as_posix() for file in files]})
    before = rows(committed_files(lake, table))
    assert len(before) == len(files) * ROWS
    monkeypatch.setattr(compact, "_FILE_BYTES", sum(file.stat().st_size for file in files) // wanted + 1)

    compact.compact(lake, table, sweep_id(0), files)

    after = committed_files(lake, table)
    assert len(after) == wanted
    assert not set(after) & set(files)
    assert rows(after) == before


def rows(files):
    names = ", ".join(literal(str(file)) for file in files)
    return sorted(duckdb.connect().execute(f"FROM read_parquet([{names}])").fetchall(), key=repr)
