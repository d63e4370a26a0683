"""A lake on S3: what one machine writes others read, one writes at a time, and nothing is lost that was committed."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable
from copy import copy
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import obstore
import pytest
from s3_server import KEY_ID, SECRET
from waiting import await_true

from pipeline.domain.errors import (
    CorruptObject,
    LakeBusy,
    LakeError,
    LakeFull,
    LakeTooNew,
    SettingsError,
    StoreAway,
    UnknownLake,
)
from pipeline.lake import Lake
from pipeline.lake.checksums import Recorded
from pipeline.lake.files import note_touched
from pipeline.lake.raw import Ending, write_ending
from pipeline.lake.s3 import commit_log, object_store, parcels
from pipeline.lake.s3.claim import Section
from pipeline.lake.s3.commit_log import Act, Claim, CommitLog, Entry, Listing
from pipeline.lake.s3.copy import Copy
from pipeline.lake.s3.copy_files import fetch_file, is_sums
from pipeline.lake.s3.hand_over import HandOver
from pipeline.lake.s3.object_store import Store
from pipeline.lake.s3.parcels import Parcel, StoreProbe
from pipeline.night.verify import verify
from pipeline.process.carrier import Brought
from pipeline.sweep import close
from pipeline.sweep.left_workers import may_have_workers, note_workers


@pytest.fixture
def machine(address, monkeypatch, tmp_path):
    """Open the lake on a machine of that name: with a copy of its own."""

    def on(name: str, claim_seconds: float = 180) -> Lake:
        monkeypatch.setenv("NIGHTAUDIT_LAKE_COPY", str(tmp_path / name))
        monkeypatch.setenv("NIGHTAUDIT_LAKE_CLAIM_SECONDS", str(claim_seconds))
        return Lake(address)

    return on


def killed_in_a_section(lake: Lake, *paths: str) -> None:
    """Write objects in a section that commits nothing and never ends, as a process that is killed at once."""
    copy = lake.copy
    copy.bring_up(is_to_write=True)
    assert copy.begin(Claim("of-the-dead", copy.id, "a dead process", "a sweep", copy.claim_seconds))
    for path in paths:
        lake.put_new(path, path.encode())


def files(lake: Lake) -> dict[str, bytes]:
    places = (place for place in lake.root.rglob("*") if place.is_file() and not place.name.startswith("."))
    return {place.relative_to(lake.root).as_posix(): place.read_bytes() for place in places}


def test_what_one_machine_writes_changes_and_removes_another_reads(machine):
    with machine("a").writing("a test") as _, pytest.raises(UnknownLake):
        machine("b").refuse_missing()
    lake = machine("a")
    with lake.writing("a test"):
        lake.put_new("raw/x/one", b"one")
        lake.put("lists/two", b"two")
        lake.put("lists/three", b"three")
    assert files(machine("b")) == files(lake)
    with lake.writing("a test"):
        lake.put("lists/two", b"other")
        lake.remove("lists/three")
        lake.remove_folder("raw/x")
    other = machine("b")
    assert files(other) == files(lake)
    assert other.get("lists/two") == b"other"
    assert not (other.root / "raw").exists()


def test_an_empty_address_is_no_lake_until_it_is_written(machine, address):
    with pytest.raises(UnknownLake, match=address):
        machine("a").refuse_missing()
    assert not machine("a").root.exists()
    with machine("a").writing("a test"):
        pass
    machine("b").refuse_missing()


def test_two_machines_never_write_at_once_and_the_second_reads_who_does(machine):
    with machine("a").writing("the nightly run"):
        for _ in range(2):
            with pytest.raises(LakeBusy, match="to by the nightly run") as busy, machine("b").writing("a sweep"):
                pass
        assert busy.value.exit_code == 5
        with pytest.raises(LakeBusy), machine("a").writing("a sweep"):
            pass
    with machine("b").writing("a sweep"):
        pass


def test_of_writers_that_begin_at_once_the_store_lets_one_in(machine):
    with machine("0").writing("a test"):
        pass
    lakes = [machine(str(number)) for number in range(1, 5)]
    came_in, refused, ready, done = [], [], threading.Barrier(len(lakes)), threading.Barrier(len(lakes))

    def write(lake: Lake) -> None:
        ready.wait()
        try:
            with lake.writing("a race"):
                came_in.append(lake)
                done.wait(60)
        except LakeBusy:
            refused.append(lake)
            done.wait(60)

    threads = [threading.Thread(target=write, args=(lake,)) for lake in lakes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(came_in), len(refused)) == (1, 3)


def test_answers_are_in_the_store_soon_after_they_have_landed(machine):
    lake = machine("a", claim_seconds=6)
    with lake.writing("a sweep"):
        lake.put_new("raw/x/one.parquet", b"one")
        lake.put("tables/half", b"half")
        await_true(lambda: machine("b").exists("raw/x/one.parquet"))
        other = machine("b")
        assert not other.exists("tables/half")
        assert other.get("raw/x/one.parquet") == b"one"
        assert not Recorded(other.root).missing(other.root / "raw/x")


def test_an_answer_that_lands_after_the_checksums_were_read_waits_for_the_next_commit(machine, monkeypatch):
    """Committed without its line, damage to it would never be noticed: another machine may continue from there."""
    lake, keep, late = machine("a", claim_seconds=6), Copy._keep, []

    def keep_and_land(copy, path):
        kept = keep(copy, path)
        if is_sums(path) and "raw/x" in path and not late:
            late.append(path)
            lake.put_new("raw/x/two.parquet", b"two")
        return kept

    monkeypatch.setattr(Copy, "_keep", keep_and_land)
    seen = set()
    with lake.writing("a sweep"):
        lake.put_new("raw/x/one.parquet", b"one")
        while not {"one.parquet", "two.parquet"} <= seen:
            other = machine("b")
            held = {place.name for place in (other.root / "raw/x").glob("*.parquet")}
            assert held == {name for name in Recorded(other.root).names(other.root / "raw/x") if name in held}
            assert not Recorded(other.root).missing(other.root / "raw/x")
            seen |= held
    assert late


def test_the_intent_of_a_quote_is_in_the_store_before_the_quote_is_asked(machine):
    lake = machine("a")
    with lake.writing("a quote check"):
        lake.put_new("quotes/x/intent.json", b"{}")
        assert machine("b").exists("quotes/x/intent.json")


def test_that_workers_may_send_is_in_the_store_before_they_do(machine):
    lake = machine("a")
    with lake.writing("a sweep"):
        assert not may_have_workers(machine("b"), SWEEP)
        note_workers(lake, SWEEP)
        assert may_have_workers(machine("b"), SWEEP)


def test_a_step_is_committed_as_one(machine):
    lake = machine("a")
    with lake.writing("the nightly run"):
        lake.put("tables/one", b"1")
        lake.commit()
        lake.put("tables/two", b"2")
        assert set(files(machine("b"))) >= {"tables/one"}
        assert not machine("b").exists("tables/two")


def test_the_machine_of_a_killed_process_continues_at_once_with_its_uncommitted_files(machine):
    killed_in_a_section(machine("a"), "raw/x/one")
    lake = machine("a")
    assert lake.exists("raw/x/one")
    with pytest.raises(LakeBusy), machine("b").writing("a resumed sweep"):
        pass
    with lake.writing("a resumed sweep"):
        pass
    assert machine("b").get("raw/x/one") == b"raw/x/one"


@pytest.mark.slow
def test_after_silence_another_machine_takes_over_and_the_former_owner_is_refused(machine, caplog):
    lake = machine("a", claim_seconds=3)
    with lake.writing("a test"):
        lake.put_new("raw/x/one", b"one")
    killed_in_a_section(lake, "raw/x/two", "tables/two")
    log, listing = lake.copy.log, lake.copy.listing
    await_true(lambda: log.silent_seconds(listing) > 3)
    with machine("b").writing("a resumed sweep") as _:
        machine("b")
        with pytest.raises(LakeBusy, match="taken over"):
            lake.copy.commit(Act.COMMIT, lake.copy.listing.claim)
    other = machine("b")
    with other.writing("a resumed sweep"):
        other.put_new("raw/x/two", b"of b")
    again = machine("a")
    assert files(again) == files(other)
    aside = [place for place in tmp_of(again).glob("aside-*/*/**/*") if place.is_file() and "sums" not in place.name]
    assert sorted(place.read_bytes() for place in aside) == [b"raw/x/two", b"tables/two"]
    assert "were in no commit; they were moved to" in caplog.text


def tmp_of(lake: Lake) -> Path:
    return lake.root.parent


def test_a_section_whose_claim_is_lost_stops_at_its_next_object(machine):
    lake = machine("a", claim_seconds=3)
    with pytest.raises(LakeBusy, match="taken over"), lake.writing("a sweep"):  # noqa: PT012 - it is to stop in there
        listing = CommitLog(lake.copy._store).read(Listing())
        taker = Claim("another", "another", "another machine", "a sweep", 180)
        while not CommitLog(lake.copy._store).append(listing, Entry.of(Act.BEGIN, taker, {}, [])):
            listing = CommitLog(lake.copy._store).read(Listing())
        await_true(lambda: lake._section._is_lost)
        lake.put_new("raw/x/late", b"late")
    assert not machine("b").exists("raw/x/late")


def test_a_machine_that_was_cut_off_learns_with_its_next_answer_that_another_has_taken_over(machine, monkeypatch):
    """It may have been cut off from the store alone: it would send searches that the other one sends too."""
    monkeypatch.setattr(Section, "_keep", lambda section: section._ended.wait())
    lake = machine("a", claim_seconds=3)
    with pytest.raises(LakeBusy, match="taken over"), lake.writing("a sweep"):  # noqa: PT012 - it is to stop in there
        lake.put_new("raw/x/early", b"early")
        time.sleep(3)
        listing = CommitLog(lake.copy._store).read(Listing())
        taker = Claim("another", "another", "another machine", "a sweep", 180)
        assert CommitLog(lake.copy._store).append(listing, Entry.of(Act.BEGIN, taker, {}, []))
        lake.put_new("raw/x/late", b"late")
        pytest.fail("it has sent more")


def test_a_flipped_object_is_refused_and_the_rest_is_fetched_once_it_is_restored(machine, address):
    with machine("a").writing("a test"):
        machine_a = machine("a")
        machine_a.put("lists/one", b"one")
    store = Store(address)
    name = CommitLog(store).read(Listing()).files["lists/one"][0]
    obstore.put(store._store, f"objects/{name}", b"onf")
    with pytest.raises(CorruptObject, match="its name is not the SHA-256 of its content"):
        machine("b")
    obstore.put(store._store, f"objects/{name}", b"one")
    assert machine("b").get("lists/one") == b"one"


def test_a_file_that_is_gone_or_changed_in_the_copy_is_fetched_again_and_not_committed(machine):
    lake = machine("a")
    with lake.writing("a test"):
        lake.put("lists/one", b"one")
        lake.put("lists/two", b"two")
    (lake.root / "lists/one").unlink()
    (lake.root / "lists/two").write_bytes(b"")
    with machine("a").writing("a test"):
        assert (lake.get("lists/one"), lake.get("lists/two")) == (b"one", b"two")
    assert machine("b").get("lists/two") == b"two"


@pytest.mark.parametrize("when", ["before", "within", "after a kill"])
def test_a_file_that_the_lake_has_not_removed_is_never_removed_from_the_store(machine, when):
    lake = machine("a")
    with lake.writing("a test"):
        lake.put("lists/one", b"one")
    if when == "before":
        (lake.root / "lists/one").unlink()
    if when == "after a kill":
        killed_in_a_section(lake, "raw/x/one")
        (lake.root / "lists/one").unlink()
    with machine("a").writing("a test"):
        (lake.root / "lists/one").unlink(missing_ok=when == "within")
    assert machine("b").get("lists/one") == b"one"
    assert machine("a").get("lists/one") == b"one"


def test_verify_says_how_a_damaged_file_of_a_copy_comes_back(machine):
    lake = machine("a")
    with lake.writing("a test"):
        lake.put("lists/one", b"one")
    place = lake.root / "lists/one"
    times = place.stat()
    place.write_bytes(b"onf")
    os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))
    (damage,) = verify(machine("a"), is_deep=True).damages
    assert (damage.path, damage.repair) == ("lists/one", "delete it, then: nightaudit status")
    place.unlink()
    assert machine("a").get("lists/one") == b"one"
    assert not verify(machine("a"), is_deep=True).damages


def test_pages_that_were_written_without_the_lock_stay_and_are_committed_by_the_next_writer(machine):
    with machine("a").writing("a test"):
        pass
    lake = machine("a")
    lake.put("reports/x/page.html", b"page")
    with machine("b").writing("a test"):
        pass
    assert machine("a").exists("reports/x/page.html")
    with machine("a").writing("a test"):
        pass
    assert machine("b").get("reports/x/page.html") == b"page"


def objects(address: str) -> dict[str, bytes]:
    store = Store(address)
    return {
        f"{folder}/{name}": store.get(f"{folder}/{name}")
        for folder in ("log", "objects", "landed", "snapshots")
        for name in store.list_after(folder)
    }


@pytest.mark.parametrize("others", [0, 3], ids=["the copy is ahead", "others have passed its version"])
def test_a_store_that_was_restored_from_a_backup_is_the_lake_also_for_a_copy_that_is_ahead(
    machine, address, caplog, others
):
    with machine("a").writing("a test"):
        machine("a").put_new("raw/x/one", b"one")
    backup = objects(address)
    with (lake := machine("a")).writing("a test"):
        lake.put_new("raw/x/two", b"two")
    store = Store(address)
    store.delete(list(objects(address)))
    for name, data in backup.items():
        store.put_new(name, data)
    for number in range(others):
        with machine("b").writing("a test"):
            machine("b").put_new(f"raw/y/{number}", b"later")
    lake = machine("a")
    assert files(lake) == files(machine("b"))
    assert not lake.exists("raw/x/two")
    assert "was restored from a backup" in caplog.text
    assert [place.read_bytes() for place in lake.root.parent.glob("aside-*/raw/x/two")] == [b"two"]
    with (lake := machine("a")).writing("a test"):
        lake.put_new("raw/x/three", b"three")
    assert files(machine("b")) == files(machine("a"))
    assert machine("b").get("raw/x/three") == b"three"


def test_a_large_file_goes_and_comes_in_parts(machine, monkeypatch):
    monkeypatch.setattr(object_store, "PART_BYTES", 5 << 20)
    data = b"0123456789abcdef" * (700 << 10)
    lake = machine("a")
    with lake.writing("a test"):
        lake.put("lists/large", data)
    assert machine("b").get("lists/large") == data


def test_a_new_copy_reads_a_snapshot_and_what_came_after(machine, monkeypatch, address):
    monkeypatch.setattr(commit_log, "SNAPSHOT_EVERY", 5)
    lake = machine("a")
    for number in range(6):
        with lake.writing("a test"):
            lake.put_new(f"lists/{number}", b"%d" % number)
    store = Store(address)
    early = [f"log/{name}" for name in store.list_after("log")][:4]
    store.delete(early)
    assert files(machine("b")) == files(lake)


def test_objects_that_no_file_has_any_more_are_removed_after_a_grace(machine, address):
    lake = machine("a")
    with lake.writing("a test"):
        lake.put("lists/one", b"first")
    with lake.writing("lake maintenance"):
        lake.put("lists/one", b"second")
        lake.drop_unused(1)
        before = set(Store(address).list_after("objects"))
        # Some stores' clocks tell seconds alone.
        await_true(lambda: lake.drop_unused(0) or set(Store(address).list_after("objects")) < before)
    assert machine("b").get("lists/one") == b"second"


SWEEP = "20261001T020000Z"
SHARD = Lake.shard_path(SWEEP, "multi-GB-000000")


def begun(lake: Lake) -> None:
    lake.put_new(lake.manifest_path(SWEEP), b"{}")


def test_of_two_workers_that_hand_over_one_shard_the_store_takes_the_first(machine, address):
    lake, another = machine("a"), Lake.shard_path(SWEEP, "multi-GB-000001")
    first, second = HandOver(address), copy(HandOver(address))
    assert not second.exists(SHARD)
    assert first.put_new(SHARD, b"first")
    assert second.exists(SHARD)
    assert not second.put_new(SHARD, b"second")
    with lake.writing("a sweep"):
        begun(lake)
        lake.put_new(another, b"sent from here")
        first.put_new(another, b"sent by a worker as well")
        lake.receive(SWEEP)
    # It is in the log like all that the machine has landed itself, with its checksum.
    other = machine("b")
    assert (other.get(SHARD), other.get(another)) == (b"first", b"sent from here")
    assert other.names(other.raw_folder(SWEEP), ".parquet") == {"multi-GB-000000", "multi-GB-000001"}
    assert Recorded(other.root).names(other.local(SHARD).parent) >= {"multi-GB-000000.parquet"}


def test_what_was_handed_over_while_a_machine_died_is_fetched_by_the_next_one(machine, address):
    killed_in_a_section(machine("a"), Lake.manifest_path(SWEEP))
    HandOver(address).put_new(SHARD, b"landed")
    lake = machine("a")
    with lake.writing("a resumed sweep"):
        lake.receive(SWEEP, [SHARD, Lake.shard_path(SWEEP, "multi-GB-000007")])
        assert lake.get(SHARD) == b"landed"


def test_workers_begin_no_shard_of_a_sweep_that_has_ended(machine, address):
    lake, handed = machine("a"), HandOver(address)
    manifest = Mock(sweep_id=SWEEP)
    with lake.writing("a sweep"):
        begun(lake)
        handed.put_new(SHARD, b"landed before")
        assert not handed.has_ended(SWEEP)
        close(lake, manifest, datetime(2026, 10, 1, tzinfo=UTC))
    assert handed.has_ended(SWEEP)
    assert handed.paths(SWEEP) == [SHARD]
    # What landed before the end is part of the sweep.
    assert lake.get(SHARD) == b"landed before"


def test_a_handed_over_answer_stays_until_the_lake_has_it_or_its_sweep_has_ended(machine, address):
    lake, handed, store = machine("a"), HandOver(address), Store(address)
    late = Lake.shard_path(SWEEP, "multi-GB-000001")
    with lake.writing("lake maintenance"):
        begun(lake)
        handed.put_new(SHARD, b"landed")
        time.sleep(1.1)
        lake.drop_unused(0)
        lake.receive(SWEEP)
        assert lake.get(SHARD) == b"landed"
        lake.drop_unused(1)
        assert handed.exists(SHARD)
        # Some stores' clocks tell seconds alone.
        await_true(lambda: lake.drop_unused(0) or not handed.exists(SHARD))
        write_ending(lake, SWEEP, Ending(datetime(2026, 10, 1, tzinfo=UTC), is_complete=True))
        handed.put_new(late, b"of a worker that was cut off")
        await_true(lambda: lake.drop_unused(0) or not handed.exists(late))
    assert set(store.list_after("objects")) == {name for name, _ in lake.copy.listing.files.values()}
    assert machine("b").get(SHARD) == b"landed"


def test_a_handed_over_answer_that_is_lost_is_named_and_can_be_requested_again(machine, address):
    lake, handed, store = machine("a"), HandOver(address), Store(address)
    with lake.writing("a sweep"):
        begun(lake)
        handed.put_new(SHARD, b"landed")
        name, _ = handed.object_of(SHARD)
        store.delete([f"objects/{name}"])
        with pytest.raises(CorruptObject, match="is missing") as lost:
            lake.receive(SWEEP)
        assert f"delete {address}/landed/{SHARD}" in lost.value.hint
        # A sweep that cannot be closed yet is open, for its workers too.
        with pytest.raises(CorruptObject, match="is missing"):
            close(lake, Mock(sweep_id=SWEEP), datetime(2026, 10, 1, tzinfo=UTC))
        assert not handed.has_ended(SWEEP)
        store.delete([f"landed/{SHARD}"])
        lake.receive(SWEEP)
        assert not lake.exists(SHARD)
        for record in (b"not a record", b'["../../lake.json", 3]'):
            store.put_new(f"landed/{SHARD}", record)
            with pytest.raises(CorruptObject, match="cannot be read"):
                lake.receive(SWEEP)
            store.delete([f"landed/{SHARD}"])
        close(lake, Mock(sweep_id=SWEEP), datetime(2026, 10, 1, tzinfo=UTC))
        assert handed.has_ended(SWEEP)


def test_an_entry_whose_answer_was_lost_is_known_as_our_own(address):
    log = CommitLog(Store(address))
    entry = Entry.of(Act.BEGIN, Claim("a", "a", "a", "a", 1), {}, [])
    assert log.append(Listing(), entry)
    assert log.append(Listing(), entry)
    assert not log.append(Listing(), Entry.of(Act.BEGIN, Claim("b", "b", "b", "b", 1), {}, []))


def test_a_writer_whose_commit_arrived_after_it_had_given_up_goes_on(machine, monkeypatch):
    """A store that was frozen still does what it was asked meanwhile, when no one waits for its answer any longer."""
    lake = machine("a")
    put_new = Store.put_new
    given_up = []

    def put_new_unheard(store: Store, key: str, data: bytes) -> bool:
        put_new(store, key, data)
        given_up.append(key)
        raise StoreAway("The store does not answer.")

    with lake.writing("a sweep"):
        lake.put_new("tables/one", b"one")
        with monkeypatch.context() as frozen, pytest.raises(StoreAway):  # noqa: PT012 - the store is frozen within
            frozen.setattr(
                Store, "put_new", lambda *it: (put_new_unheard if it[1].startswith("log/") else put_new)(*it)
            )
            lake.commit()
        assert given_up
        lake.put_new("tables/two", b"two")
        lake.remove("tables/one")
        lake.commit()
    assert sorted(path for path in files(machine("b")) if path.startswith("tables/")) == ["tables/two"]


def test_a_log_of_a_newer_version_is_read_by_none_of_the_older(machine, address):
    with machine("a").writing("a test"):
        pass
    store = Store(address)
    version = len(store.list_after("log")) + 1
    store.put_new(f"log/{version:020}.json", json.dumps({"format": 2}).encode())
    with pytest.raises(LakeTooNew):
        machine("b")


@pytest.mark.parametrize("path", ["../out", "/out", "raw/../../out", "raw//out", ""])
def test_an_entry_that_names_a_place_outside_the_lake_is_refused(machine, address, path):
    claim = Claim("a", "a", "a", "a", 1)
    assert CommitLog(Store(address)).append(Listing(), Entry.of(Act.END, claim, {path: ("0" * 64, 0)}, []))
    with pytest.raises(CorruptObject, match="not a path in a lake"):
        machine("b")


@pytest.mark.slow
def test_a_store_that_is_away_for_some_seconds_costs_these_seconds(machine, server):
    lake = machine("a")
    with lake.writing("a test"):
        lake.put_new("raw/x/one", b"one")
        server.go_away()
    assert machine("b").get("raw/x/one") == b"one"


def test_a_store_that_is_away_is_one_line_of_the_log_for_all_threads_that_wait(address, monkeypatch, caplog):
    put, failed, seen = obstore.put, set(), threading.Barrier(4)

    def put_later(store, key, *given, **named):
        if key not in failed:
            failed.add(key)
            seen.wait(10)
            raise OSError(errno.ECONNREFUSED, "Connection refused")
        return put(store, key, *given, **named)

    monkeypatch.setattr(object_store.obstore, "put", put_later)
    store = Store(address)
    threads = [threading.Thread(target=store.put, args=(f"away/{number}", b"")) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [record.message for record in caplog.records if "does not answer" in record.message][1:] == []
    assert all(store.exists(f"away/{number}") for number in range(4))


@pytest.mark.parametrize(
    "wrong", ["s3://u", "s3://UPPER/x", "s3://bucket/../y", "s3://bucket/a b", "s3://u:p@bucket/x"]
)
def test_an_address_that_is_none_is_refused_and_not_repeated(wrong):
    with pytest.raises(SettingsError, match="not the address of a lake") as refused:
        Store(wrong)
    assert wrong not in str(refused.value)


def test_http_is_used_only_where_it_is_allowed(address, monkeypatch):
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(SettingsError, match="AWS_ALLOW_HTTP"):
        Store(address)


def on_a_disk_of_its_own(here: Path, parcel: Parcel, work: Callable[[], object], own: Path) -> Brought:
    """Do a task as a machine does that has another folder at the same path."""
    aside = here.rename(here.with_name("aside"))
    try:
        if own.exists():
            own.rename(here)
        return parcel.do(work)
    finally:
        here.rename(own)
        aside.rename(here)


def test_a_task_of_another_machine_reads_what_it_was_given_and_its_files_are_committed_here(machine, tmp_path):
    lake = machine("a")
    with lake.writing("a test"):
        for name in ("read", "removed", "unread"):
            lake.put_new(f"tables/offer/{name}", name.encode())
        lake.commit()
        carrier = lake.carrier(lambda *paths: ["lake.json", *paths])
        parcel = carrier.parcel(("tables/offer/read", "tables/offer/removed"))

        def work() -> list[str]:
            there = Lake(str(lake.root))
            found = sorted(there.names("tables/offer"))
            there.put_new("tables/offer/new", there.get("tables/offer/read") * 2)
            there.put("tables/offer/read", b"other")
            there.remove("tables/offer/removed")
            spilled = there.root / ".spill" / ".part"
            spilled.parent.mkdir(exist_ok=True)
            spilled.write_bytes(b"passing")
            note_touched([spilled])
            return found

        here, own = tmp_path / "a", tmp_path / "of-the-worker"
        brought = on_a_disk_of_its_own(here, parcel, work, own)
        assert brought.result == ["read", "removed"]
        assert lake.get("tables/offer/read") == b"read"
        carrier.land(brought)
        assert sorted(lake.names("tables/offer")) == ["new", "read", "unread"]
        assert (lake.root / ".spill" / ".part").read_bytes() == b"passing"
        assert not list(own.rglob(".part"))
        # It has them now, and what has changed since is fetched again.
        lake.put("tables/offer/new", b"changed")
        later = carrier.parcel(("tables/offer/new", "tables/offer/unread"))
        seen = on_a_disk_of_its_own(here, later, lambda: Lake(str(lake.root)).get("tables/offer/new"), own)
        assert (seen.result, seen.files) == (b"changed", {})
    other = machine("b")
    assert {name: other.get(f"tables/offer/{name}") for name in other.names("tables/offer")} == {
        "new": b"changed",
        "read": b"other",
        "unread": b"unread",
    }
    assert verify(other, is_deep=True).damages == ()


def test_a_worker_keeps_what_tasks_read_within_the_hour_and_no_more(machine, monkeypatch, tmp_path):
    lake, here, own = machine("a"), tmp_path / "a", tmp_path / "of-the-worker"
    real = time.time
    with lake.writing("a test"):
        for name in ("first", "second", "third"):
            lake.put_new(f"tables/offer/{name}", name.encode())
        lake.commit()
        carrier = lake.carrier(lambda *paths: paths)

        def kept_after(seconds, *names):
            monkeypatch.setattr(time, "time", lambda: real() + seconds)
            on_a_disk_of_its_own(here, carrier.parcel(tuple(f"tables/offer/{name}" for name in names)), list, own)
            return sorted(place.name for place in own.rglob("lake/tables/offer/*"))

        assert kept_after(0, "first", "second") == ["first", "second"]
        assert kept_after(3500, "second") == ["first", "second"]
        assert kept_after(3700, "third") == ["second", "third"]


def test_a_worker_keeps_no_more_bytes_than_it_may_but_all_that_running_tasks_read(machine, monkeypatch, tmp_path):
    lake, here, own = machine("a"), tmp_path / "a", tmp_path / "of-the-worker"
    monkeypatch.setenv("NIGHTAUDIT_WORKER_COPY_MB", "1")
    with lake.writing("a test"):
        for name in ("first", "second", "third", "fourth"):
            lake.put_new(f"tables/offer/{name}", name.encode() * 80_000)
        lake.commit()
        carrier = lake.carrier(lambda *paths: paths)

        def parcel(*names: str) -> Parcel:
            return carrier.parcel(tuple(f"tables/offer/{name}" for name in names))

        def kept() -> list[str]:
            return sorted(place.name for place in own.rglob("lake/tables/offer/*"))

        on_a_disk_of_its_own(here, parcel("first"), list, own)
        on_a_disk_of_its_own(here, parcel("second"), list, own)
        assert kept() == ["first", "second"]
        on_a_disk_of_its_own(here, parcel("first"), list, own)
        # Of what no task reads, the one that was not read for longest.
        on_a_disk_of_its_own(here, parcel("third"), list, own)
        assert kept() == ["first", "third"]

        another = parcel("second", "fourth")

        def while_another_runs() -> list[str]:
            another.do(list)
            return sorted(place.name for place in here.rglob("lake/tables/offer/*"))

        begun = on_a_disk_of_its_own(here, parcel("first", "third"), while_another_runs, own)
        assert begun.result == ["first", "fourth", "second", "third"]
        # A task that was killed reads nothing.
        (noted,) = own.rglob("tasks")
        (noted / "dead.lock").touch()
        (noted / "dead.json").write_bytes(b'["tables/offer/first", "tables/offer/third"]')
        on_a_disk_of_its_own(here, another, list, own)
        assert kept() == ["fourth", "second"]
        assert not list(noted.iterdir())


@pytest.fixture
def tasks_elsewhere(machine, monkeypatch, tmp_path):
    """Tasks of the machine `a`, done on another one that keeps at most a megabyte, and what that has on its disk."""
    monkeypatch.setenv("NIGHTAUDIT_WORKER_COPY_MB", "1")
    lake, here, own = machine("a"), tmp_path / "a", tmp_path / "of-the-worker"
    with lake.writing("a test"):
        for name in ("a1", "a2", "a3", "b1", "b2"):
            lake.put_new(f"tables/offer/{name}", name.encode() * 250_000)
        lake.commit()
        carrier = lake.carrier(lambda *paths: paths)

        def parcel(*names: str) -> Parcel:
            return carrier.parcel(tuple(f"tables/offer/{name}" for name in names))

        def do(*names: str, work: Callable[[], object] = list) -> Brought:
            return on_a_disk_of_its_own(here, parcel(*names), work, own)

        def kept() -> list[str]:
            return sorted(place.name for place in own.rglob("lake/tables/offer/[a-z]*"))

        yield SimpleNamespace(lake=lake, carrier=carrier, parcel=parcel, do=do, kept=kept, own=own)


def with_disk_of(most_bytes: int) -> Callable[..., object]:
    one_at_a_time = threading.Lock()

    def fetch(store, root, path, it):
        with one_at_a_time:
            if sum(place.stat().st_size for place in root.rglob("tables/offer/*")) + it[1] > most_bytes:
                raise OSError(errno.ENOSPC, "No space left on device")
            return fetch_file(store, root, path, it)

    return fetch


def test_a_worker_whose_disk_is_full_makes_room_before_it_gives_up(tasks_elsewhere, monkeypatch):
    monkeypatch.setenv("NIGHTAUDIT_WORKER_COPY_MB", "50000")
    tasks_elsewhere.do("a1", "a2")
    monkeypatch.setattr(parcels, "fetch_file", with_disk_of(1_200_000))
    tasks_elsewhere.do("b1")
    assert tasks_elsewhere.kept() == ["b1"]
    with pytest.raises(LakeFull, match="No space left"):
        tasks_elsewhere.do("a1", "a2", "a3")


def failing_at(name: str) -> Callable[..., object]:
    def fetch(store, root, path, it):
        if path.endswith(name):
            raise OSError(errno.ENOSPC, "No space left on device")
        return fetch_file(store, root, path, it)

    return fetch


@pytest.mark.parametrize("fetch", [with_disk_of(1_200_000), failing_at("a1"), failing_at("a3")])
def test_what_a_worker_fetched_before_it_failed_or_lost_its_index_is_removed_like_all_else(
    tasks_elsewhere, monkeypatch, fetch
):
    monkeypatch.setattr(parcels, "fetch_file", fetch)
    with pytest.raises(LakeFull):
        tasks_elsewhere.do("a1", "a2", "a3")
    monkeypatch.setattr(parcels, "fetch_file", fetch_file)
    tasks_elsewhere.do("b1")
    tasks_elsewhere.do("b2")
    assert tasks_elsewhere.kept() == ["b1", "b2"]
    (index,) = tasks_elsewhere.own.rglob("fetched.json")
    index.unlink()
    tasks_elsewhere.do("a1")
    tasks_elsewhere.do("a2")
    assert not {"b1", "b2"} & set(tasks_elsewhere.kept())


def test_what_a_task_has_written_again_is_sent_though_others_need_room(tasks_elsewhere):
    def write() -> None:
        Lake(str(tasks_elsewhere.lake.root)).put("tables/offer/out", b"out" * 200_000)

    tasks_elsewhere.do("a1", work=write)
    another = tasks_elsewhere.parcel("b1")

    def write_again() -> None:
        write()
        another.do(list)

    assert tasks_elsewhere.do("a1", work=write_again).files["tables/offer/out"] is not None


def test_a_worker_removes_nothing_from_a_lake_that_its_machine_writes_meanwhile(machine, monkeypatch, tmp_path):
    """A task of an earlier night may still run on the machine that has taken the lake over."""
    monkeypatch.setenv("NIGHTAUDIT_WORKER_COPY_MB", "1")
    lake = machine("a")
    with lake.writing("a test"):
        for name in ("first", "second", "third"):
            lake.put_new(f"tables/offer/{name}", name.encode() * 120_000)
        lake.commit()
        carrier = lake.carrier(lambda *paths: ["lake.json", *paths])
        earlier = carrier.parcel(("tables/offer/first",))
        stale = carrier.parcel(("tables/offer/second", "tables/offer/third"))
    on_a_disk_of_its_own(tmp_path / "a", earlier, list, tmp_path / "of-the-worker")
    (tmp_path / "a").rename(tmp_path / "gone")
    (tmp_path / "of-the-worker").rename(tmp_path / "a")
    taken_over = machine("a")
    with taken_over.writing("the night of the worker's machine"):
        stale.do(list)
    assert sorted(machine("b").names("tables/offer")) == ["first", "second", "third"]


def test_a_worker_that_cannot_use_the_store_says_so_before_it_gets_work(machine, address, tmp_path):
    lake = machine("a")
    assert lake.carrier(list).probe()() == ""
    assert not Store(address).list_after("clock")
    assert (
        StoreProbe("s3://bucket/../lake", str(lake.root))()
        == "cannot use the lake on S3: This is not the address of a lake on S3."
    )
    (tmp_path / "file").touch()
    assert str(tmp_path) in StoreProbe(address, str(tmp_path / "file" / "lake"))()


def test_a_task_whose_object_is_gone_says_so(machine, tmp_path):
    lake = machine("a")
    with lake.writing("a test"):
        lake.put_new("tables/offer/read", b"read")
        parcel = lake.carrier(lambda *paths: paths).parcel(("tables/offer/read",))
        Store(lake.address).delete([f"objects/{name}" for name, _ in parcel.files.values()])
        with pytest.raises(LakeError, match="that a task reads is missing"):
            on_a_disk_of_its_own(tmp_path / "a", parcel, list, tmp_path / "of-the-worker")
        lake.put("tables/offer/read", b"again")


def test_no_credential_is_in_the_copy_the_store_or_an_error(machine, address, monkeypatch, tmp_path):
    with machine("a").writing("a test"):
        machine("a")
    store = Store(address)
    held = [store.get(f"{folder}/{name}") for folder in ("log", "objects") for name in store.list_after(folder)]
    held += [place.read_bytes() for place in tmp_path.rglob("*") if place.is_file()]
    assert not [data for data in held if KEY_ID.encode() in data or SECRET.encode() in data]

    class Refuses(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = f"<Error><Code>InvalidAccessKeyId</Code><AWSAccessKeyId>{KEY_ID}</AWSAccessKeyId></Error>".encode()
            self.send_response(403)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None: ...

    refusing = HTTPServer(("127.0.0.1", 0), Refuses)
    thread = threading.Thread(target=refusing.serve_forever)
    thread.start()
    try:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{refusing.server_port}")
        with pytest.raises(LakeError, match="The store refuses") as refused:
            machine("c")
    finally:
        refusing.shutdown()
        thread.join()
        refusing.server_close()
    assert KEY_ID not in str(refused.value)
