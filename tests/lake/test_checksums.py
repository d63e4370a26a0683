"""What is recorded of files that several machines write: each in a file of its own, and read as one."""

from __future__ import annotations

import os
import platform
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.domain.errors import CorruptObject
from pipeline.lake.checksums import FOLDER, Recorded, note_gone, note_there, record, sum_of


@pytest.fixture
def on(monkeypatch):
    """Be a machine of this name from here on."""
    return lambda name: monkeypatch.setattr(platform, "node", lambda: name)


def test_each_machine_records_in_its_own_file_and_all_files_are_read(tmp_path, on):
    place = tmp_path / "tables" / "offer" / "of-both"
    recorded = Recorded(tmp_path)
    for name in ("worker-1", "worker-2", "a/../b c", ""):
        on(name)
        record(tmp_path, place, sum_of(name.encode()))
        # Read again as others add to it.
        assert sum_of(name.encode()) in recorded.of(place)
    assert recorded.of(place) == {sum_of(data) for data in (b"worker-1", b"worker-2", b"a/../b c", b"")}
    sums = sorted(file.name for file in (tmp_path / "checksums" / "tables" / "offer").iterdir())
    assert sums == ["sums-.txt", "sums-a_.._b_c.txt", "sums-worker-1.txt", "sums-worker-2.txt"]
    assert recorded.damaged() == {}


def test_what_an_earlier_version_recorded_for_all_machines_still_holds(tmp_path, on):
    old, new = tmp_path / "raw" / "old", tmp_path / "raw" / "new"
    on("worker-1")
    record(tmp_path, old, sum_of(b"old"))
    folder = tmp_path / "checksums" / "raw"
    (folder / "sums-worker-1.txt").rename(folder / "sums.txt")
    record(tmp_path, new, sum_of(b"new"))
    recorded = Recorded(tmp_path)
    recorded.refuse(old, sum_of(b"old"))
    recorded.refuse(new, sum_of(b"new"))
    for place in (old, new):
        with pytest.raises(CorruptObject):
            recorded.refuse(place, sum_of(b"other"))


def test_damage_is_named_in_the_file_that_has_it(tmp_path, on):
    for name in ("worker-1", "worker-2"):
        on(name)
        record(tmp_path, tmp_path / "raw" / name, sum_of(b"1"))
    place = tmp_path / "checksums" / "raw" / "sums-worker-2.txt"
    place.write_bytes(place.read_bytes().replace(b"worker-2", b"worker-3"))
    assert Recorded(tmp_path).damaged() == {place: "1 of its lines cannot be read"}
    place.write_bytes(place.read_bytes()[:-3])
    assert Recorded(tmp_path).damaged() == {place: "1 of its lines cannot be read"}


def test_a_file_that_another_process_puts_in_place_meanwhile_is_not_missing(tmp_path, monkeypatch):
    place = tmp_path / "tables" / "offer" / "late"
    place.parent.mkdir(parents=True)
    recorded, there = Recorded(tmp_path), Recorded.there

    def and_meanwhile(self, folder):
        record(tmp_path, place, sum_of(b"late"))
        place.write_bytes(b"late")
        note_there(tmp_path, place)
        return there(self, folder)

    monkeypatch.setattr(Recorded, "there", and_meanwhile)
    assert recorded.missing(place.parent) == []
    place.unlink()
    monkeypatch.setattr(Recorded, "there", there)
    assert recorded.missing(place.parent) == [place]


def test_a_folder_that_another_process_makes_meanwhile_misses_nothing(tmp_path, monkeypatch):
    folder = tmp_path / "log"

    def scan_too_early(found):
        found.mkdir()
        raise FileNotFoundError(2, "No such file or directory", str(found))

    monkeypatch.setattr(os, "scandir", scan_too_early)
    assert Recorded(tmp_path).missing(folder) == []


def test_a_list_that_was_cut_at_the_end_of_any_line_is_known_by_its_first_line(tmp_path):
    files = [tmp_path / "raw" / name for name in ("a", "b", "c with blanks")]
    for place in files:
        record(tmp_path, place, sum_of(b"1"))
        note_there(tmp_path, place)
    (sums,) = (tmp_path / "checksums" / "raw").iterdir()
    whole = sums.read_bytes()
    assert Recorded(tmp_path).damaged() == {}
    lines = whole.splitlines(keepends=True)
    for kept in range(1, len(lines)):
        sums.write_bytes(b"".join(lines[:kept]))
        assert Recorded(tmp_path).damaged() == {sums: "its last lines are gone"}
    sums.write_bytes(whole)
    note_gone(tmp_path, files)
    assert Recorded(tmp_path).damaged() == {}
    assert Recorded(tmp_path).names(tmp_path / "raw") == {place.name for place in files}


def test_a_list_of_an_earlier_version_has_no_first_line_and_is_read_and_added_to(tmp_path):
    place = tmp_path / "raw" / "a"
    record(tmp_path, place, sum_of(b"1"))
    (sums,) = (tmp_path / "checksums" / "raw").iterdir()
    sums.write_bytes(b"".join(sums.read_bytes().splitlines(keepends=True)[1:]))
    record(tmp_path, place, sum_of(b"2"))
    assert Recorded(tmp_path).of(place) == {sum_of(b"1"), sum_of(b"2")}
    assert Recorded(tmp_path).damaged() == {}
    assert sums.read_bytes().count(b"\n") == 2


def test_files_recorded_at_the_same_time_are_all_found_and_none_is_damaged(tmp_path):
    places = [tmp_path / "raw" / f"{number}" for number in range(400)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda place: record(tmp_path, place, sum_of(b"1")), places))
    assert Recorded(tmp_path).damaged() == {}
    assert Recorded(tmp_path).names(tmp_path / "raw") == {place.name for place in places}


@pytest.mark.parametrize("become", [os.mkdir, os.mkfifo])
def test_sums_that_are_no_file_stop_a_write_with_their_name(tmp_path, become):
    note_there(tmp_path, tmp_path / "one")
    (sums,) = (tmp_path / FOLDER).glob("sums*.txt")
    sums.unlink()
    become(sums)
    with pytest.raises(CorruptObject, match=f"{sums} is not a file"):
        note_there(tmp_path, tmp_path / "two")
