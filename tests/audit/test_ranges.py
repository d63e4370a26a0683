"""A night may be audited in one range of properties or in many: what is found is the same."""

from __future__ import annotations

import multiprocessing
import shutil
import threading
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

import duckdb
import pyarrow.parquet as pq
import pytest
from another_machine import AnotherMachine
from audited_nights import STAYS, audited, clean_night, load, passed, settings_of
from dask_machines import Machines, while_one_works
from nights import started_at, sweep_id

from pipeline.audit import Spread, audit, spread
from pipeline.audit.spread import AuditedNight, choose_ranges, files_read, open_night
from pipeline.domain.errors import LakeError
from pipeline.domain.servers import Cluster, Workforce
from pipeline.lake import Lake
from pipeline.lake.sweep_files import quarantine_file
from pipeline.night.gate import audit_limits
from pipeline.process import range_pool

pytestmark = pytest.mark.slow

NIGHTS = 6
SEARCHES = 2 * STAYS * 256


def wide_night(night):
    """A clean night three times over: 90 properties, of which no search requests more than a third."""
    rows = {name: [] for name in clean_night(night)}
    for part in range(3):
        for name, held in clean_night(night, seed=part + 1).items():
            more = {"search_id": part * SEARCHES, "property_id": part * 100}
            rows[name] += [row | {key: row[key] + n for key, n in more.items() if row.get(key)} for row in held]
    return rows


def broken_night(night):
    """A wide night in which offers of each third break rules of each kind, more than examples are given of."""
    rows = wide_night(night)
    faults = [
        {"total": Decimal(0)},
        {"total": Decimal(99_999)},
        {"discount_pct": 55.0},
        {"available_rooms": 20_000},
        {"board_id": 77},
        {"currency": "euro"},
        {"total": None},
        {"source": "other"},
        {"floor": Decimal(-1)},
    ]
    for place in range(0, len(rows["offer"]), 7):
        rows["offer"][place] |= faults[place // 7 % len(faults)]
    for row in rows["offer"]:
        if row["property_id"] in {1, 101, 201}:
            row["floor"] = None
    for place in range(0, len(rows["penalty"]), 11):
        rows["penalty"][place] |= [{"penalty_pct": 101.0}, {"penalty_pct": 5.0}, {"start_at": started_at(400)}][
            place % 3
        ]
    rows["offer"] += [rows["offer"][place] for place in (0, 500, -1)]
    rows["penalty"] += [rows["penalty"][place] for place in (1, -1)]
    rows["penalty"] += [rows["penalty"][place] | {"offer_no": 9_000} for place in (0, -1)]
    rows["promotion"] += [rows["promotion"][place] | {"offer_no": 9_000} for place in (0, -1)]
    for row in rows["search"]:
        if row["search_id"] == 1:
            row["check_in"] = started_at(0).date()
    return rows


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Nights that bound what is plausible, and a broken one that is not audited yet."""
    home = tmp_path_factory.mktemp("ranges")
    lake = Lake(str(home / "lake"))
    for night in range(NIGHTS):
        audited(lake, night, wide_night(night))
        passed(lake, night)
    load(lake, NIGHTS, broken_night(NIGHTS))
    return home


def found_in(home, place, most_rows, cluster=None):
    """What an audit in ranges of `most_rows` finds in a copy of the lake, and what it puts in quarantine."""
    shutil.copytree(home / "lake", place / "lake")
    lake = Lake(str(place / "lake"))
    nights = [sweep_id(night) for night in range(NIGHTS)]
    now = started_at(NIGHTS) + timedelta(hours=2)
    spread = Spread(Workforce(cluster=cluster), most_rows)
    found = audit(lake, sweep_id(NIGHTS), nights, audit_limits(settings_of(lake)), now, spread)
    taken = pq.read_table(quarantine_file(lake, sweep_id(NIGHTS))).to_pylist()
    assert not list((lake.root / ".spill").glob("audit-*"))
    return found, taken


def ranges_of(lake, night, most_rows):
    audited = AuditedNight(lake, sweep_id(night), None)
    with open_night(audited) as session:
        return [(job.within.first, job.within.last) for job in choose_ranges(session, audited, most_rows)]


def test_many_ranges_find_what_one_range_finds(home, tmp_path):
    expected, quarantine = found_in(home, tmp_path / "one", 10**9)
    failed = {finding.check_name for finding in expected.findings if finding.is_failed}
    assert {"key", "null_total", "value_source", "price_jump", "floor_vanished", "penalty_order_reversed"} <= failed
    assert {"total_not_positive", "penalty_without_offer", "offers_not_balanced", "stay_not_ahead"} <= failed
    assert expected.quarantined > 50
    for number, most_rows in ((2, 7_000), (3, 1)):
        assert len(ranges_of(Lake(str(home / "lake")), NIGHTS, most_rows)) == number
        found, taken = found_in(home, tmp_path / str(number), most_rows)
        assert found == expected
        assert taken == quarantine


@pytest.mark.cluster
def test_a_worker_killed_in_mid_audit_costs_its_time(home, tmp_path):
    pytest.importorskip("distributed", reason="there is no distributed: it is of the extra `cluster`")
    expected = found_in(home, tmp_path / "one", 10**9)
    machines = Machines(tmp_path)
    try:
        for _ in range(2):
            machines.start_worker()
        machines.wait_for_workers()
        with while_one_works(machines, lambda worker: worker.kill()) as killed:
            found = found_in(home, tmp_path / "many", 1, Cluster(machines.address))
        assert len(killed) == 1
        assert found == expected
    finally:
        machines.end()


def test_a_range_needs_the_files_of_both_nights_and_no_others(home, tmp_path, monkeypatch):
    expected, quarantine = found_in(home, tmp_path / "one", 10**9)
    machines = []

    def machine(*_):
        machines.append(AnotherMachine(Lake(str(tmp_path / "there" / "lake")), files_read))
        return machines[-1]

    monkeypatch.setattr(range_pool, "open_pool", machine)
    assert found_in(home, tmp_path / "there", 1) == (expected, quarantine)
    ((*tasks,),) = [machine.tasks for machine in machines]
    assert len(tasks) == 3
    of_offers = {path.split("/")[2] for _, given in tasks for path in given if path.startswith("tables/offer/2")}
    assert of_offers == {sweep_id(NIGHTS), sweep_id(NIGHTS - 1)}


def test_a_search_is_never_cut_and_a_row_without_a_property_leaves_one_range(tmp_path):
    lake = Lake(str(tmp_path / "lake"))
    for night, change in enumerate(({}, {"property_id": 205}, {"property_id": None})):
        rows = wide_night(night)
        rows["offer"][0] |= change
        load(lake, night, rows)
    cut = [ranges_of(lake, night, 1) for night in range(3)]
    # An offer of the third block in a search of the first holds all together.
    assert [len(each) for each in cut] == [3, 1, 0]
    assert [first for first, _ in cut[0]] == [-(2**63), 101, 201]


def test_a_range_that_needs_too_much_memory_is_split(home, tmp_path, monkeypatch):
    expected = found_in(home, tmp_path / "one", 10**9)
    lake = Lake(str(tmp_path / "halves" / "lake"))
    machine = AnotherMachine(lake, files_read)
    counts = spread.count_range

    def too_large(session, folder, name):
        blocks = session.execute("SELECT count(DISTINCT property_id // 100) FROM sweep_files.offer").fetchall()[0][0]
        if blocks > 1:
            raise duckdb.OutOfMemoryException
        return counts(session, folder, name)

    monkeypatch.setattr(spread, "count_range", too_large)
    monkeypatch.setattr(range_pool, "open_pool", lambda *_: machine)
    assert found_in(home, tmp_path / "halves", 7_000) == expected
    assert len(machine.tasks) == 4


@contextmanager
def killing(processes):
    """Kill worker processes of this one as soon as they start, up to a number."""
    ended = threading.Event()
    killed = []
    # Earlier tests may have left processes of theirs.
    others = {child.pid for child in multiprocessing.active_children()}

    def watch():
        while len(killed) < processes and not ended.wait(0.05):
            for child in multiprocessing.active_children():
                if child.pid not in {*others, *killed} and len(killed) < processes:
                    child.kill()
                    killed.append(child.pid)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


class BreaksAtTheSecondTask(Executor):
    """A pool one of whose processes is killed while the pool is still given work."""

    def __init__(self, pool):
        self.pool, self.given = pool, 0

    def submit(self, fn, /, *args):
        self.given += 1
        if self.given >= 2:
            raise BrokenProcessPool("A child process terminated abruptly")
        return self.pool.submit(fn, *args)

    def shutdown(self, **options):
        self.pool.shutdown(**options)


def test_a_process_that_is_killed_while_work_is_given_out_costs_its_time(home, tmp_path, monkeypatch, caplog):
    expected = found_in(home, tmp_path / "one", 10**9)
    pools = []

    def opened(*given):
        pools.append(given[2]())
        return BreaksAtTheSecondTask(pools[-1]) if len(pools) == 1 else pools[-1]

    monkeypatch.setattr(range_pool, "open_pool", opened)
    assert found_in(home, tmp_path / "once", 1) == expected
    assert len(pools) == 2
    assert caplog.text.count("A worker process of the audit was killed; its part of the night is computed again.") == 2


def test_a_process_that_is_killed_costs_its_time_and_one_that_always_is_ends_the_audit(home, tmp_path, caplog):
    expected = found_in(home, tmp_path / "one", 10**9)
    with killing(1) as killed:
        found = found_in(home, tmp_path / "once", 1)
    assert killed
    assert found == expected
    assert "A worker process of the audit was killed; its part of the night is computed again." in caplog.text
    with killing(1000), pytest.raises(LakeError, match="A worker process of the audit was killed") as error:
        found_in(home, tmp_path / "always", 1)
    assert f"nightaudit audit {sweep_id(NIGHTS)}" in str(error.value.hint)
