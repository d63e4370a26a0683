"""Every page of a Parquet file that nightaudit writes has a checksum, which other programs can verify as well."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from nights import started_at

from pipeline.domain.tables import CASE_NOTE
from pipeline.lake import Lake
from pipeline.lake.delta import commit_rows, committed_files
from pipeline.lake.raw import RawRecord, encode_shard
from pipeline.normalise.parquet import encode_table

ROWS = 200


def committed(folder):
    lake = Lake(str(folder / "lake"))
    rows = [
        {"case_id": f"case-{n}", "noted_at": started_at(n), "action": "note", "value": f"seen {n * n}"}
        for n in range(ROWS)
    ]
    commit_rows(lake, CASE_NOTE, pa.Table.from_pylist(rows, schema=CASE_NOTE.schema), "run", "0", "0")
    (file,) = committed_files(lake, CASE_NOTE)
    return file.read_bytes()


def segment(_):
    columns = {"property_id": [n * n for n in range(ROWS)], "market": ["DE", "GB"] * (ROWS // 2)}
    return encode_table(pa.table(columns | {"size": [n / 7 for n in range(ROWS)]}))


def shard(_):
    record = dict.fromkeys((field.name for field in fields(RawRecord)), "")
    record |= {"http_status": 200, "attempts": 1, "is_split": False, "own_property_id": None}
    return encode_shard(
        [
            RawRecord(
                **record
                | {"search_id": n, "request": b"{}", "body": b"[%d]" % n * 9}
                | {"started_at": started_at(n), "ended_at": started_at(n) + timedelta(seconds=n)}
            )
            for n in range(ROWS)
        ]
    )


@pytest.mark.parametrize("written", [committed, segment, shard])
def test_a_bit_that_changes_in_a_page_is_found_by_any_reader_that_verifies(written, tmp_path):
    data = written(tmp_path)
    whole = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    assert whole.read().num_rows == ROWS
    group = whole.metadata.row_group(0)
    ends = [
        (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size
        for column in map(group.column, range(group.num_columns))
    ]
    for end in ends:
        for bit in range(8):
            flipped = bytearray(data)
            flipped[end - 1] ^= 1 << bit
            with pytest.raises(OSError, match="CRC checksum verification failed"):
                pq.ParquetFile(pa.BufferReader(bytes(flipped)), page_checksum_verification=True).read()
