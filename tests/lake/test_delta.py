"""The content of a table is read from its log once, and again as soon as the log has changed."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from nights import started_at

from pipeline.domain.errors import CorruptObject, LakeError
from pipeline.domain.tables import CASE_NOTE
from pipeline.lake import Lake, table_log
from pipeline.lake.checksums import Recorded
from pipeline.lake.delta import commit_rows, committed_files, is_committed
from pipeline.lake.table_log import existing
from pipeline.night.verify import verify


def note(lake, number):
    rows = [{"case_id": f"case-{number}", "noted_at": started_at(0), "action": "note", "value": "seen"}]
    commit_rows(lake, CASE_NOTE, pa.Table.from_pylist(rows, schema=CASE_NOTE.schema), "run", f"{number}", f"{number}")


def test_what_is_committed_here_is_there_at_once(lake):
    assert not is_committed(lake, CASE_NOTE, "0")
    for number in range(3):
        note(lake, number)
        assert is_committed(lake, CASE_NOTE, f"{number}")
        assert [file.stem for file in committed_files(lake, CASE_NOTE)] == [f"{each}" for each in range(number + 1)]


def test_what_another_process_commits_is_there_at_once(lake):
    note(lake, 0)
    assert not is_committed(lake, CASE_NOTE, "theirs")
    theirs = CommitProperties(app_transactions=[Transaction("theirs", 1)])
    other = DeltaTable(lake.table_root(CASE_NOTE.name))
    other.create_write_transaction([], mode="append", schema=CASE_NOTE.schema, commit_properties=theirs)
    assert is_committed(lake, CASE_NOTE, "theirs")


def test_a_log_that_is_damaged_or_gone_since_it_was_read_is_not_taken_for_what_it_was(lake):
    note(lake, 0)
    log = lake.table_root(CASE_NOTE.name) / "_delta_log"
    for entry in log.glob("*.json"):
        entry.write_text("{")
    with pytest.raises(LakeError, match="cannot be read"):
        is_committed(lake, CASE_NOTE, "0")
    shutil.rmtree(log)
    assert not is_committed(lake, CASE_NOTE, "0")
    assert committed_files(lake, CASE_NOTE) == []


def test_a_log_whose_bits_change_while_it_is_in_use_is_reported(lake):
    """A failing disk changes no time of a file, so the log is taken for what was read."""
    note(lake, 0)
    assert existing(lake, CASE_NOTE) is not None
    entry = max((lake.table_root(CASE_NOTE.name) / "_delta_log").glob("*.json"))
    times = entry.stat()
    entry.write_bytes(entry.read_bytes().replace(b'":', b'"z'))
    os.utime(entry, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(LakeError, match="cannot be read") as caught:
        is_committed(lake, CASE_NOTE, "0")
    assert caught.value.hint == "List the damage and its repairs: nightaudit verify --deep"


@pytest.mark.slow
def test_a_checkpoint_with_any_bit_flipped_is_damage_and_no_panic_of_the_library(lake, monkeypatch):
    """Of every hundredth bit, some once ended `verify --deep` in a panic, and some were read as other values."""
    for number in range(table_log.CHECKPOINT_EVERY):
        note(lake, number)
    (checkpoint,) = (lake.table_root(CASE_NOTE.name) / "_delta_log").glob("*.checkpoint.parquet")
    whole = checkpoint.read_bytes()
    for bit in range(3, 8 * len(whole), 101):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        checkpoint.write_bytes(flipped)
        os.utime(checkpoint, ns=(bit, bit))
        with pytest.raises(CorruptObject, match="is damaged"):
            existing(lake, CASE_NOTE)
        if bit % 20 == 3:
            (damage,) = verify(lake, is_deep=True).damages
            assert damage.path == checkpoint.relative_to(lake.root).as_posix()
        # A lake of an earlier version has no checksum of it.
        with monkeypatch.context() as without, suppress(LakeError):
            without.setattr(table_log, "refuse_damaged", lambda *_: None)
            existing(lake, CASE_NOTE)
    checkpoint.write_bytes(whole)
    assert is_committed(lake, CASE_NOTE, "0")


def test_what_was_returned_is_the_readers_own(lake):
    note(lake, 0)
    committed_files(lake, CASE_NOTE).clear()
    assert len(committed_files(lake, CASE_NOTE)) == 1


def test_an_entry_that_another_process_is_writing_is_not_recorded_under_its_passing_name(lake):
    note(lake, 0)
    log = lake.table_root(CASE_NOTE.name) / "_delta_log"
    passing = log / f"{1:020}.json#1"
    passing.write_text("{}")
    note(lake, 1)
    assert passing.name not in Recorded(lake.root).names(log)


@pytest.mark.parametrize("earlier", [0, 1, 8, 9, 18])
def test_a_kill_between_a_commit_and_its_checksum_is_no_damage(lake, monkeypatch, earlier):
    # Every tenth commit adds a checkpoint.
    for number in range(earlier):
        note(lake, number)

    def kill(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pipeline.lake.delta.record_log", kill)
    with pytest.raises(KeyboardInterrupt):
        note(lake, earlier)
    assert is_committed(lake, CASE_NOTE, f"{earlier}")
    for is_deep in (False, True):
        assert verify(Lake(str(lake.root)), is_deep=is_deep).damages == ()
