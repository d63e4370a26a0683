"""The raw zone gives back what was put into it, or says that it cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nights import finish, sweep_id
from raw_answers import SWEEP, record

from pipeline.domain.errors import CorruptObject, UnknownSweep
from pipeline.lake import Lake
from pipeline.lake.raw import encode_shard, landed, raw_address, read_ending, read_manifest, read_shard

NAME = "multi-GB-000000"


def put(lake: Lake, data: bytes) -> None:
    lake.put(lake.shard_path(SWEEP, NAME), data)


@given(st.lists(st.binary(max_size=200), max_size=4))
@settings(max_examples=30, deadline=None)
def test_bodies_come_back_byte_for_byte(tmp_path_factory, bodies):
    lake = Lake(str(tmp_path_factory.getbasetemp() / "bytes"))
    records = [record(number, body) for number, body in enumerate(bodies)]
    put(lake, encode_shard(records))
    assert read_shard(lake, SWEEP, NAME) == records


def test_a_record_without_an_answer_comes_back_whole(lake):
    records = [record(0, b"", http_status=None, failure="timeout", failure_detail="60 s", attempts=4, is_split=True)]
    put(lake, encode_shard(records))
    assert read_shard(lake, SWEEP, NAME) == records


def test_equal_answers_make_equal_bytes_in_whatever_order_they_came():
    records = [record(number, b"{}") for number in range(5)]
    assert encode_shard(records) == encode_shard(records[::-1])


def test_no_byte_of_a_shard_can_change_unnoticed(lake):
    records = [record(number, {"properties": [{"propertyId": number}]}) for number in range(3)]
    data = encode_shard(records)
    noticed = 0
    for place in range(0, len(data), 3):
        put(lake, data[:place] + bytes([data[place] ^ 0x41]) + data[place + 1 :])
        try:
            assert read_shard(lake, SWEEP, NAME) == records, place
        except CorruptObject:
            noticed += 1
    assert noticed > len(data) / 3 / 2


@pytest.mark.parametrize("cut", [0, 1, 100, -1, -10])
def test_a_shard_that_was_cut_is_reported(lake, cut):
    put(lake, encode_shard([record()])[:cut])
    with pytest.raises(CorruptObject, match="is damaged") as reported:
        read_shard(lake, SWEEP, NAME)
    assert "nightaudit resume" in reported.value.hint


def test_a_missing_shard_is_file_not_found(lake):
    with pytest.raises(FileNotFoundError):
        read_shard(lake, SWEEP, NAME)


def test_only_whole_shards_have_landed(lake):
    put(lake, encode_shard([record()]))
    lake.put(f"raw/{SWEEP}/sweep.json", b"{}")
    # A write that was killed leaves its bytes under another name.
    lake.local(f"raw/{SWEEP}/multi-GB-000001.parquet#1").write_bytes(b"half")
    assert landed(lake, SWEEP) == {NAME}


def test_an_address_names_object_and_row():
    assert raw_address("s", NAME, 3) == f"raw/s/{NAME}.parquet#3"


def test_an_unknown_sweep_is_reported_with_the_latest(lake):
    finish(lake, 1)
    with pytest.raises(UnknownSweep) as reported:
        read_manifest(lake, "nonsense")
    assert sweep_id(1) in reported.value.hint
    assert reported.value.exit_code == 2


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b"{", b'{"sweep_id": 5}'])
def test_a_damaged_manifest_or_ending_is_reported(lake, text):
    finish(lake, 1)
    lake.put(lake.manifest_path(sweep_id(1)), text)
    lake.put(lake.ending_path(sweep_id(1)), text)
    for read in (read_manifest, read_ending):
        with pytest.raises(CorruptObject, match=r"cannot be read"):
            read(lake, sweep_id(1))


def test_a_split_batch_is_kept_beside_its_halves(lake):
    whole = record(0, b"{}", is_split=True)
    records = [whole, replace(whole, search_id=2, is_split=False), replace(whole, search_id=3, is_split=False)]
    put(lake, encode_shard(records))
    assert [(r.search_id, r.is_split) for r in read_shard(lake, SWEEP, NAME)] == [(1, True), (2, False), (3, False)]
