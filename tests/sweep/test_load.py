"""Loading: each segment's rows are in the tables once, however often and by how many they are loaded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import polars as pl
import pytest
from deltalake import DeltaTable
from nights import finish, load_night, started_at, sweep_id
from raw_answers import SWEEP, answer, hotel, normalised, product, record, room

from pipeline.domain.errors import LakeError
from pipeline.domain.search import Operation
from pipeline.domain.shards import Partition
from pipeline.domain.tables import TABLES
from pipeline.lake import Lake
from pipeline.lake.delta import commit_files, is_committed
from pipeline.lake.raw import read_manifest
from pipeline.sweep.load import SEGMENT_TABLES, is_loaded, is_sweep_loaded, load_partitions, load_sweep

PARTITION = Partition(Operation.MULTI, "GB", 0, 32)


@pytest.fixture
def segment(lake):
    """A normalised segment with rows in every table but two."""
    first = product(productId=2**53 + 1, charges={"total": 99999999999.9999, "minSellablePrice": 0})
    body = answer(hotel(1, rooms=[room([first, product(charges=5)])], stars=4))
    normalised(lake, [record(body=body)])
    return lake


def rows(lake: Lake, name: str) -> pl.DataFrame:
    return pl.read_delta(str(lake.table_root(name)))


def test_every_table_of_a_segment_is_loaded_with_its_values(segment):
    assert not is_loaded(segment, SWEEP, PARTITION)
    load_partitions(segment, SWEEP, [PARTITION])
    assert is_loaded(segment, SWEEP, PARTITION)
    counts = {name: rows(segment, name).height for name in SEGMENT_TABLES}
    assert counts == {"search": 1, "offer": 1, "penalty": 2, "promotion": 1, "reject": 1, "drift": 1, "cell": 2}
    (offer,) = rows(segment, "offer").to_dicts()
    assert offer["total"] == Decimal("99999999999.9999")
    assert offer["floor"] == Decimal(0)
    assert offer["pre_promo_total"] is None
    assert offer["product_id"] == 2**53 + 1


def test_loading_again_changes_nothing(segment):
    load_partitions(segment, SWEEP, [PARTITION])
    before = {name: DeltaTable(segment.table_root(name)).version() for name in SEGMENT_TABLES}
    load_partitions(segment, SWEEP, [PARTITION])
    assert {name: DeltaTable(segment.table_root(name)).version() for name in SEGMENT_TABLES} == before


def test_a_load_that_stopped_between_two_tables_is_made_whole(segment):
    for name in SEGMENT_TABLES[:3]:
        path = segment.table_file(name, SWEEP, "multi-GB-00000")
        commit_files(segment, TABLES[name], {f"{SWEEP}/{PARTITION.name}": [path]})
    assert not is_loaded(segment, SWEEP, PARTITION)
    load_partitions(segment, SWEEP, [PARTITION])
    assert {name: rows(segment, name).height for name in ("search", "offer", "cell")} == {
        "search": 1,
        "offer": 1,
        "cell": 2,
    }


def test_of_racing_loads_one_wins(segment):
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(load_partitions, segment, SWEEP, [PARTITION]) for _ in range(4)]:
            done.result()
    assert {name: rows(segment, name).height for name in ("offer", "cell")} == {"offer": 1, "cell": 2}


def test_a_table_holds_the_rows_of_all_sweeps(lake):
    for night in range(3):
        sweep = load_night(lake, night, cell=[{"property_id": n} for n in range(night + 1)])
        commit_files(lake, TABLES["cell"], {f"{sweep}/multi-GB": [lake.table_file("cell", sweep, "multi-GB-00000")]})
    assert rows(lake, "cell").height == 6
    assert rows(lake, "sweep").height == 3
    assert all(is_sweep_loaded(lake, sweep_id(night)) for night in range(3))


def test_a_damaged_file_is_not_loaded_and_reported(segment):
    segment.put(segment.table_file("offer", SWEEP, "multi-GB-00000"), b"PAR1 nothing PAR1")
    with pytest.raises(LakeError, match="offer could not be written"):
        load_partitions(segment, SWEEP, [PARTITION])
    assert not is_loaded(segment, SWEEP, PARTITION)


def test_a_damaged_log_is_reported(segment):
    load_partitions(segment, SWEEP, [PARTITION])
    (segment.table_root("cell") / "_delta_log" / f"{1:020}.json").write_text("{")
    with pytest.raises(LakeError, match="cell cannot be read"):
        is_committed(segment, TABLES["cell"], "any")


def test_a_sweep_whose_statuses_do_not_add_up_to_what_was_planned_is_not_loaded(lake):
    finish(lake, 1, cells=3)
    sweep = load_night(lake, 2, cell=[{"property_id": 1}, {"property_id": 2}])
    manifest = read_manifest(lake, sweep_id(1))
    with pytest.raises(LakeError, match="planned 3 cells, but its tables hold 0"):
        load_sweep(lake, manifest)
    load_sweep(lake, read_manifest(lake, sweep))
    assert started_at(2) == read_manifest(lake, sweep).started_at
