"""Killed anywhere and resumed, a night gives the tables of an undisturbed one, and asks nothing twice that landed."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from datetime import date
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
import sweep_child
from sweep_child import CELLS, SEARCHES

from pipeline.domain.tables import TABLES
from pipeline.lake import Lake
from pipeline.lake.raw import landed, read_manifest
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.sweep.progress import progress_of

# Each test stops a night of its own and runs it to its end.
pytestmark = pytest.mark.slow

DAY = "2030-01-01"
# When things happened is all that a disturbed night may differ in.
TIMES = {"searched_at", "started_at", "ended_at", "finished_at", "latency_ms", "answered_at", "published_at"}


@pytest.fixture(scope="module")
def sandbox():
    with SandboxProcess(seed=1, night=0, today=date(2030, 1, 1), properties=60) as process:
        yield process


@pytest.fixture(scope="module")
def nights(sandbox):
    """Starts nights in processes of their own, from one that has imported all that they need."""
    context = multiprocessing.get_context("forkserver")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(sweep_child.__file__).parent))
        context.set_forkserver_preload(["sweep_child"])
        yield lambda folder, place=None: Night(context, str(folder), sandbox.base_url, place)


class Night:
    def __init__(self, context, *given) -> None:
        self._reported, far_end = context.Pipe(duplex=False)
        folder, base_url, place = given
        self.process = context.Process(target=sweep_child.main, args=(folder, base_url, DAY, place, far_end))
        self.process.start()
        far_end.close()

    def finish(self, code=0) -> str:
        """Wait for its end, and return its output."""
        self.process.join(240)
        said = self._said()
        assert self.process.exitcode == code, said
        return said

    def _said(self) -> str:
        try:
            return self._reported.recv()
        except EOFError:
            return ""


def served(sandbox) -> int:
    counts = sandbox.control("served")["requests"]
    return sum(sum(outcomes.values()) for outcomes in counts.values())


def tables_of(lake: Lake):
    """Every row of the lake's committed tables and of the published file, without the times."""
    (sweep_id,) = lake.sweep_ids()
    found = {}
    for name in TABLES:
        files = sorted((lake.table_root(name) / sweep_id).glob("*.parquet"))
        rows = [row for file in files for row in pq.read_table(file).to_pylist()]
        found[name] = sorted(repr([(key, row[key]) for key in sorted(row.keys() - TIMES)]) for row in rows)
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH '{lake.published_file}' AS p (READ_ONLY)")
        for name in ("state.offer_open", "state.cell", "mart.sweep"):
            relation = session.sql(f"FROM p.{name}")
            rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
            found[name] = sorted(repr([(key, row[key]) for key in sorted(row.keys() - TIMES)]) for row in rows)
    return found


def landed_searches(lake: Lake) -> int:
    sweep_ids = lake.sweep_ids()
    return progress_of(lake, read_manifest(lake, sweep_ids[0])).landed_searches if sweep_ids else 0


@pytest.fixture(scope="module")
def undisturbed(sandbox, nights, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "lake"
    before = served(sandbox)
    assert nights(folder).finish() == ""
    assert served(sandbox) - before == SEARCHES
    found = tables_of(Lake(str(folder)))
    assert len(found["cell"]) == CELLS
    assert found["offer"]
    assert found["penalty"]
    assert found["offer_change"]
    return found


# What happens within publishing alone is tested there.
POINTS = {
    "just after a shard has landed": "pipeline.lake.objects:Objects.put_new:3:after",
    "between two files of a segment": "pipeline.lake.objects:Objects.put:3:after",
    "between the commits of two tables": "pipeline.sweep.load:commit_files:3:after",
    "after the changes are loaded": "pipeline.publish.night_build:commit_files:1:after",
    "between ledger and rename": "pipeline.publish.publish:enter:1:after",
}


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_night_is_resumed_to_the_same_tables(sandbox, nights, undisturbed, tmp_path, point):
    lake = Lake(str(tmp_path / "lake"))
    nights(lake.root, POINTS[point]).finish(-signal.SIGKILL)
    had_landed, before = landed_searches(lake), served(sandbox)
    if point == "just after a shard has landed":
        assert had_landed < SEARCHES
    elif point in {"after the changes are loaded", "between ledger and rename"}:
        # Normalising and loading continue alongside the collection; publishing comes after it.
        assert had_landed == SEARCHES
    assert nights(lake.root).finish() == ""
    assert served(sandbox) - before == SEARCHES - had_landed
    found = tables_of(lake)
    for name, rows in undisturbed.items():
        assert found[name] == rows, name
    names = {path.name for path in lake.published_file.parent.iterdir()}
    assert names == {"nightaudit.duckdb", "ledger"}


FULL = {
    "raw": "pipeline.lake.objects:Objects.put_new:3:full",
    "segment": "pipeline.lake.objects:Objects.put:2:full",
    "table": "pipeline.sweep.load:commit_files:2:full",
    "changes": "pipeline.publish.night_build:commit_files:1:full",
    "published file": "pipeline.publish.publish:_build:1:full",
}


@pytest.mark.parametrize("what", FULL)
def test_a_full_disk_is_reported_and_the_resumed_night_makes_the_same_tables(
    sandbox, nights, undisturbed, tmp_path, what
):
    lake = Lake(str(tmp_path / "lake"))
    reported = nights(lake.root, FULL[what]).finish()
    assert reported.startswith(("LakeFull", "LakeError")), reported
    assert "nightaudit" in reported
    had_landed, before = landed_searches(lake), served(sandbox)
    assert nights(lake.root).finish() == ""
    assert served(sandbox) - before == SEARCHES - had_landed
    found = tables_of(lake)
    for name, rows in undisturbed.items():
        assert found[name] == rows, name


def test_running_again_changes_nothing_and_tables_built_again_from_raw_are_the_same(
    sandbox, nights, undisturbed, tmp_path
):
    lake = Lake(str(tmp_path / "lake"))
    assert nights(lake.root).finish() == ""
    before, files, everything = served(sandbox), data_files(lake), contents(lake)
    assert nights(lake.root).finish() == ""
    assert contents(lake) == everything, "running again changed something"
    shutil.rmtree(lake.root / "tables")
    shutil.rmtree(lake.root / "published")
    assert nights(lake.root).finish() == ""
    assert served(sandbox) == before
    assert tables_of(lake) == undisturbed
    # The normalised files not only hold the same: they are the same, byte for byte.
    assert data_files(lake) == files


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_sweep_lands_open_requests_and_names_how_to_continue(sandbox, nights, undisturbed, tmp_path, number):
    lake = Lake(str(tmp_path / "lake"))
    sandbox.control("faults", {"latency_ms": 25})
    try:
        night = nights(lake.root)
        while not list(lake.root.rglob("multi-GB-000000.parquet")):
            time.sleep(0.02)
            assert night.process.is_alive()
        os.kill(night.process.pid, number)
        reported = night.finish()
    finally:
        sandbox.control("faults", {})
    (sweep_id,) = lake.sweep_ids()
    assert reported.startswith("SweepStopped")
    assert f"nightaudit resume {sweep_id}" in reported
    had_landed, before = landed_searches(lake), served(sandbox)
    assert 32 <= had_landed < SEARCHES
    assert f"{had_landed} of {SEARCHES} searches have landed" in reported
    assert nights(lake.root).finish() == ""
    assert served(sandbox) - before == SEARCHES - had_landed
    assert tables_of(lake) == undisturbed
    assert landed(lake, sweep_id)


def test_a_sweep_stopped_while_it_normalises_names_how_to_continue(nights, undisturbed, tmp_path):
    lake = Lake(str(tmp_path / "lake"))
    assert nights(lake.root).finish() == ""
    shutil.rmtree(lake.root / "tables")
    shutil.rmtree(lake.root / "published")
    reported = nights(lake.root, "pipeline.sweep.normalisers:normalise_segment:1:stop").finish()
    assert reported.startswith("SweepStopped Stopped as requested.")
    assert f"nightaudit resume {lake.sweep_ids()[0]}" in reported
    assert not lake.published_file.exists()
    assert nights(lake.root).finish() == ""
    assert tables_of(lake) == undisturbed


STOPPED = {
    "counting": ("pipeline.sweep.run:load_sweep:1:stop", "is loaded", "audit"),
    "publishing": ("pipeline.publish.publish:_build:1:stop", "stays loaded", "publish"),
}


@pytest.mark.parametrize("step", STOPPED)
def test_a_night_stopped_after_its_sweep_names_the_next_step(nights, undisturbed, tmp_path, step):
    lake = Lake(str(tmp_path / "lake"))
    place, kept, next_step = STOPPED[step]
    reported = nights(lake.root, place).finish()
    assert reported.startswith("SweepStopped Stopped as requested.")
    assert kept in reported
    assert f"nightaudit {next_step} {lake.sweep_ids()[0]}" in reported
    assert not lake.published_file.exists()
    assert nights(lake.root).finish() == ""
    assert tables_of(lake) == undisturbed


def test_a_second_signal_stops_at_once_and_still_says_how_to_go_on(sandbox, nights, undisturbed, tmp_path):
    lake = Lake(str(tmp_path / "lake"))
    # A test that waited for these answers would be stopped by pytest.
    sandbox.control("faults", {"latency_ms": 600_000})
    try:
        night = nights(lake.root)
        while not lake.sweep_ids():
            time.sleep(0.02)
        time.sleep(0.5)
        os.kill(night.process.pid, signal.SIGINT)
        # Two signals of one kind are one to a process that has not run in between.
        time.sleep(2)
        os.kill(night.process.pid, signal.SIGINT)
        reported = night.finish()
    finally:
        sandbox.control("faults", {})
    assert reported.startswith("SweepStopped Stopped at once")
    assert f"nightaudit resume {lake.sweep_ids()[0]}" in reported
    assert nights(lake.root).finish() == ""
    assert tables_of(lake) == undisturbed


def test_a_second_process_is_refused_while_a_sweep_runs(sandbox, nights, tmp_path):
    lake = Lake(str(tmp_path / "lake"))
    sandbox.control("faults", {"latency_ms": 30})
    try:
        night = nights(lake.root)
        while not lake.sweep_ids():
            time.sleep(0.02)
        reported = nights(lake.root).finish()
    finally:
        sandbox.control("faults", {})
    assert reported.startswith("LakeBusy")
    assert "a test (process" in reported
    assert night.finish() == ""


def contents(lake: Lake):
    inside = lake.root.rglob("*")
    return {path: path.read_bytes() for path in inside if path.is_file() and not path.name.startswith(".lock")}


def data_files(lake: Lake):
    names = ("search", "offer", "penalty", "promotion", "reject", "drift", "cell")
    return {path: path.read_bytes() for name in names for path in lake.table_root(name).rglob("multi-*.parquet")}
