"""Nights on S3, on machines that share nothing but the store, give the same result as in a folder."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import polars as pl
import pytest
from ceph_server import ceph_server
from dask_machines import Machines, while_one_works, with_disk_of_its_own
from night_machine import ADDRESS, SPEC, Machine, assert_same, contents, night
from s3_server import KEY_ID, SECRET, S3Server, s3_server
from typer.main import get_command
from waiting import await_true

from pipeline.audit import Spread, audit, stored_audit
from pipeline.cli.commands import app
from pipeline.domain.servers import Cluster, Workforce
from pipeline.lake import Lake
from pipeline.lake.s3.commit_log import CommitLog, Listing
from pipeline.lake.s3.object_store import Store
from pipeline.night.gate import audit_limits
from pipeline.publish import republish_all
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.settings import read_settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module", params=["moto", pytest.param("ceph", marks=pytest.mark.cluster)])
def server(request, tmp_path_factory) -> Iterator[S3Server]:
    with s3_server() if request.param == "moto" else ceph_server(tmp_path_factory.mktemp("ceph")) as server:
        yield server


@pytest.fixture
def store(server, monkeypatch):
    """The store, as this process reads it; empty."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    store = Store(ADDRESS)
    for folder in ("log", "objects", "snapshots", "tables"):
        store.delete(list(store.keys(folder)))
    store.delete(["in-place.json"])
    return store


def test_three_nights_by_two_machines_on_s3_are_those_of_a_folder(tmp_path, server, store):
    alone = Machine(tmp_path / "alone", None, NIGHTAUDIT_LAKE="lake")
    for number in (1, 2, 3):
        alone.run("nightly", **night(number))
    expected = contents(alone.root / "published/nightaudit.duckdb")
    assert expected["report.stay_price"]

    one, other = Machine(tmp_path / "one", server), Machine(tmp_path / "other", server)
    one.run("nightly", **night(1))
    other.run("nightly", **night(2))
    # While the third is made, the store cannot be reached for some seconds.
    process = one.start("nightly", **night(3))
    versions = len(store.list_after("log"))
    await_true(lambda: len(store.list_after("log")) > versions)
    server.go_away()
    said = process.communicate(timeout=600)[0]
    assert process.returncode == 0, said
    other.run("verify", "--deep")
    for machine in (one, other):
        assert_same(contents(machine.root / "published/nightaudit.duckdb"), expected)

    tables = sorted(place.name for place in (other.root / "tables").iterdir())
    assert {"cell", "offer", "sweep"} < set(tables)
    for name in tables:
        # polars reads every table in the bucket, too.
        there, here = pl.read_delta(f"{ADDRESS}/tables/{name}"), pl.read_delta(str(other.root / "tables" / name))
        assert sorted(map(repr, there.rows())) == sorted(map(repr, here.rows()))

    pulled = tmp_path / "pulled"
    assert ", kept 0, " in one.run("pull", ADDRESS, str(pulled))
    assert ", kept 0, " not in one.run("pull", ADDRESS, str(pulled))
    with duckdb.connect(str(pulled / "published/nightaudit.duckdb"), read_only=True) as session:
        rows = session.execute("FROM report.stay_price ORDER BY ALL").fetchall()
    assert len(rows) == len(expected["report.stay_price"])
    assert {name: len(rows) for name, rows in contents(pulled / "published/nightaudit.duckdb").items()} == {
        name: len(rows) for name, rows in expected.items()
    }
    other.run("rebuild", **night(4))
    one.run("verify", "--deep")
    assert_same(contents(one.root / "published/nightaudit.duckdb"), expected)
    said = one.said + other.said
    held = b"".join(place.read_bytes() for place in tmp_path.rglob("*") if place.is_file())
    for secret in (KEY_ID, SECRET):
        assert secret not in said
        assert secret.encode() not in held


@contextmanager
def workers_elsewhere(folder: Path, copy: Path) -> Iterator[tuple[Machines, list[Path]]]:
    """Three workers, each with a disk of its own where the machine of the night has its copy of the lake."""
    pytest.importorskip("distributed", reason="there is no distributed: it is of the extra `cluster`")
    copy.mkdir(parents=True, exist_ok=True)
    (folder / "machines").mkdir()
    machines = Machines(folder / "machines")
    disks = [folder / f"disk-{number}" for number in range(3)]
    try:
        for disk in disks:
            machines.start_worker(by=with_disk_of_its_own(copy, disk))
        machines.wait_for_workers()
        yield machines, disks
    finally:
        machines.end()


@pytest.mark.cluster
@pytest.mark.usefixtures("store")
def test_three_nights_on_s3_with_three_workers_on_other_machines_are_those_of_a_folder(tmp_path, server, monkeypatch):
    alone = Machine(tmp_path / "alone", None, NIGHTAUDIT_LAKE="lake")
    for number in (1, 2, 3):
        alone.run("nightly", **night(number))
    expected = contents(alone.root / "published/nightaudit.duckdb")

    copy = tmp_path / "one" / "copy"
    with workers_elsewhere(tmp_path, copy) as (machines, disks):
        one = Machine(tmp_path / "one", server, NIGHTAUDIT_CLUSTER=machines.address)
        for number in (1, 2, 3):
            one.run("nightly", **night(number))
        assert_same(contents(one.root / "published/nightaudit.duckdb"), expected)
        fetched = [place for disk in disks for place in disk.rglob("*.parquet")]
        assert {place.parts[-3] for place in fetched} >= {"raw", "offer", "cell"}

        monkeypatch.setenv("NIGHTAUDIT_LAKE_COPY", str(copy))
        lake = Lake(ADDRESS)
        with lake.writing("a test"), while_one_works(machines, lambda worker: worker.kill()) as killed:
            republish_all(lake, lambda: None, most_offers=200, workforce=machines.workforce)
        assert len(killed) == 1
        assert len(list((lake.root / "state").glob("*/*/cell-*.parquet"))) > 6
        assert_same(contents(lake.published_file), expected)
        assert [place for disk in disks for place in disk.glob("*/lake/state/*/*/*.parquet")]
        # It takes nothing of the workers.
        other = Machine(tmp_path / "other", server)
        other.run("verify", "--deep")
        assert_same(contents(other.root / "published/nightaudit.duckdb"), expected)


@pytest.mark.usefixtures("store")
def test_an_audit_by_three_workers_on_other_machines_finds_what_one_machine_finds(tmp_path, server, monkeypatch):
    one = Machine(tmp_path / "one", server)
    # A search is never cut by a range, so each asks for one property.
    (one.folder / "sweep.toml").write_text(SPEC.format(properties="sandbox = 6", days=2).replace('"multi", ', ""))
    for number in (1, 2):
        one.run("nightly", **night(number))
    monkeypatch.setenv("NIGHTAUDIT_LAKE_COPY", str(one.folder / "copy"))
    lake = Lake(ADDRESS)
    earlier, last = lake.sweep_ids()
    expected = stored_audit(lake, last)
    with workers_elsewhere(tmp_path, one.folder / "copy") as (machines, disks):
        limits = audit_limits(read_settings())
        spread = Spread(Workforce(cluster=Cluster(machines.address)), most_rows=1)
        with lake.writing("a test"), while_one_works(machines, lambda worker: worker.kill()) as killed:
            found = audit(lake, last, [earlier], limits, expected.audited_at, spread)
        assert len(killed) == 1
        assert (found.is_new, found.findings, found.quarantined) == (False, expected.findings, expected.quarantined)
        # Of the copy, each has what was listed for it.
        fetched = {place.relative_to(disk).parts[2] for disk in disks for place in disk.rglob("*.parquet")}
        assert fetched == {"tables"}


def asking(sandbox: SandboxProcess) -> dict[str, str]:
    """Return the settings of a machine that asks a sandbox with these credentials."""
    return {
        "NIGHTAUDIT_BASE_URL": sandbox.base_url,
        "NIGHTAUDIT_CLIENT_ID": "shop",
        "NIGHTAUDIT_CLIENT_SECRET": "s",
    }


def served(sandbox: SandboxProcess) -> int:
    return sum(sum(outcomes.values()) for outcomes in sandbox.control("served")["requests"].values())


def test_another_machine_resumes_a_sweep_without_repeating_committed_requests(tmp_path, server, store):
    with SandboxProcess(properties=60, client_id="shop", client_secret="s") as sandbox:
        ids = sandbox.control("properties")["property_ids"][:20]
        # The other machine looks within this time, however slowly its command starts.
        usual = asking(sandbox) | {"NIGHTAUDIT_LAKE_CLAIM_SECONDS": "30"}
        dead, other = Machine(tmp_path / "dead", server, **usual), Machine(tmp_path / "other", server, **usual)
        for machine in (dead, other):
            (machine.folder / "sweep.toml").write_text(SPEC.format(properties=f"ids = {ids}", days=30))
        process = dead.start("sweep", NIGHTAUDIT_REQUESTS_PER_SECOND="40", NIGHTAUDIT_CONCURRENCY="4")

        def committed() -> dict[str, str]:
            held = CommitLog(store).read(Listing()).files
            return {path: name for path, (name, _) in held.items() if path.startswith("raw/") and "parquet" in path}

        await_true(lambda: len(committed()) >= 2)
        process.kill()
        process.communicate()
        there, before = committed(), served(sandbox)
        assert "is being written to by a sweep" in other.run("resume", code=5)
        time.sleep(31)
        other.run("resume", NIGHTAUDIT_REQUESTS_PER_SECOND="500")
        asked = served(sandbox) - before
        after = committed()
        assert {path: after[path] for path in there} == there
        rows = {path: _rows(other.root / path) for path in after}
        assert asked == sum(count for path, count in rows.items() if path not in there)
        assert asked < sum(rows.values())
        # What the dead machine had not committed is put aside, and its copy is as the store is.
        dead.run("status")
        assert sorted(after) == sorted(
            place.relative_to(dead.root).as_posix() for place in dead.root.glob("raw/*/*.parquet")
        )


@pytest.mark.usefixtures("store")
def test_machines_that_share_a_lake_share_the_calls_of_the_day(tmp_path, server):
    cap = 150
    with SandboxProcess(properties=60, client_id="shop", client_secret="s") as sandbox:
        ids = sandbox.control("properties")["property_ids"][:20]
        usual = asking(sandbox) | {"NIGHTAUDIT_REQUESTS_PER_SECOND": "500", "NIGHTAUDIT_DAILY_CALLS": str(cap)}
        one, other = Machine(tmp_path / "one", server, **usual), Machine(tmp_path / "other", server, **usual)
        for machine, command in ((one, "sweep"), (other, "resume")):
            (machine.folder / "sweep.toml").write_text(SPEC.format(properties=f"ids = {ids}", days=30))
            sent = served(sandbox)
            assert "NIGHTAUDIT_DAILY_CALLS" in machine.run(command, code=1)
        assert 100 < sent == served(sandbox) <= cap


def _rows(place: Path) -> int:
    with duckdb.connect(":memory:") as session:
        return session.execute("SELECT count(*) FROM read_parquet(?)", [str(place)]).fetchall()[0][0]


@pytest.mark.usefixtures("store")
def test_of_two_nights_of_one_spec_on_two_machines_one_runs_and_the_other_is_refused(tmp_path, server):
    alone = Machine(tmp_path / "alone", None, NIGHTAUDIT_LAKE="lake")
    alone.run("nightly", **night(1))
    machines = [Machine(tmp_path / name, server) for name in ("one", "other")]
    processes = [machine.start("nightly", **night(1)) for machine in machines]
    said = [process.communicate(timeout=600)[0] for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 5], said
    assert "is being written to by the nightly run" in said[[process.returncode for process in processes].index(5)]
    expected = contents(alone.root / "published/nightaudit.duckdb")
    for machine in machines:
        machine.run("status")
        assert_same(contents(machine.root / "published/nightaudit.duckdb"), expected)


@pytest.mark.cluster
def test_a_machine_that_was_cut_off_in_mid_night_stops_and_the_other_ones_night_is_the_one(tmp_path, server, store):
    alone = Machine(tmp_path / "alone", None, NIGHTAUDIT_LAKE="lake")
    alone.run("nightly", **night(1))
    expected = contents(alone.root / "published/nightaudit.duckdb")
    cut_off, other = (
        Machine(tmp_path / name, server, NIGHTAUDIT_LAKE_CLAIM_SECONDS="6") for name in ("cut off", "other")
    )
    process = cut_off.start("nightly", **night(1))
    await_true(lambda: any(path.startswith("raw/") for path in CommitLog(store).read(Listing()).files))
    process.send_signal(signal.SIGSTOP)
    time.sleep(8)
    other.run("nightly", **night(1))
    process.send_signal(signal.SIGCONT)
    said = process.communicate(timeout=600)[0]
    assert process.returncode == 5, said
    assert "has taken over the lake" in said
    cut_off.run("status")
    other.run("status")
    for machine in (cut_off, other):
        assert_same(contents(machine.root / "published/nightaudit.duckdb"), expected)
        machine.run("verify", "--deep")


@pytest.mark.cluster
@pytest.mark.parametrize("step", ["raw", "published"])
def test_a_store_that_is_away_for_half_a_minute_costs_a_night_this_time(tmp_path, server, store, step):
    alone = Machine(tmp_path / "alone", None, NIGHTAUDIT_LAKE="lake")
    alone.run("nightly", **night(1))
    one = Machine(tmp_path / "one", server)
    process = one.start("nightly", **night(1))
    if step == "raw":
        await_true(lambda: any(path.startswith("raw/") for path in CommitLog(store).read(Listing()).files))
    else:
        await_true(lambda: any((one.folder / "copy").glob("*/lake/published/.nightaudit.*")))
    server.go_away(30)
    said = process.communicate(timeout=600)[0]
    assert process.returncode == 0, said
    # Of what this machine holds nothing is missing in the store.
    other = Machine(tmp_path / "other", server)
    other.run("verify", "--deep")
    assert_same(
        contents(other.root / "published/nightaudit.duckdb"), contents(alone.root / "published/nightaudit.duckdb")
    )


@pytest.mark.cluster
@pytest.mark.usefixtures("store")
def test_every_command_does_on_s3_what_it_does_in_a_folder(tmp_path, server):
    one, other = Machine(tmp_path / "one", server), Machine(tmp_path / "other", server)
    folder = Machine(tmp_path / "folder", None, NIGHTAUDIT_LAKE="lake")
    for machine in (one, folder):
        machine.run("nightly", **night(1))
        machine.run("nightly", **night(2))
    session = duckdb.connect(str(folder.root / "published/nightaudit.duckdb"), read_only=True)
    flag = session.execute("SELECT flag_id FROM report.flag ORDER BY ALL LIMIT 1").fetchone()
    case = session.execute("SELECT case_id FROM report.finding_case ORDER BY ALL LIMIT 1").fetchone()
    raw = session.execute("SELECT raw_address FROM lake.search ORDER BY ALL LIMIT 1").fetchone()
    session.close()
    commands = {
        "alerts": ["--rehearse"],
        "audit": [],
        "case": [case[0], "--note", "seen"] if case else [],
        "cases": [],
        "confirm": [],
        "docs": [],
        "doctor": [],
        "drift": [],
        "explain": [flag[0]] if flag else [],
        "export": ["all.duckdb"],
        "health": ["--older-than", "100000"],
        "lake": ["--apply"],
        "load": [],
        "metrics": [],
        "nightly": [],
        "plan": [],
        "publish": [],
        "pull": [ADDRESS, "pulled"],
        "query": ["SELECT count(*) FROM mart.offer_latest"],
        "rebuild": [],
        "report": [],
        "settings": [],
        "show": [raw[0]] if raw else [],
        "spec": [],
        "status": [],
        "verify": ["--deep"],
        "sweep": [],
        "resume": [],
        "quote": [],
    }
    # These serve until they are ended, fill an empty lake, or have a test of their own here.
    assert set(get_command(app).commands) - commands.keys() == {"demo", "mcp", "sandbox", "serve"}
    codes = {}
    for name, arguments in commands.items():
        at = night(3 if name in {"nightly", "sweep", "resume", "publish", "rebuild"} else 2)
        ended = []
        for machine in (other, folder):
            given = ["lake", "pulled"] if name == "pull" and machine is folder else arguments
            process = machine.start(name, *given, **at)
            machine.said = process.communicate(timeout=600)[0]
            ended.append(process.returncode)
        codes[name] = ended
        assert ended[0] == ended[1], (name, other.said, folder.said)
        assert "Traceback" not in other.said, other.said
    assert_same(
        contents(one_up_to_date(one) / "published/nightaudit.duckdb"),
        contents(folder.root / "published/nightaudit.duckdb"),
    )
    assert codes["verify"] == codes["query"] == codes["nightly"] == [0, 0]


def one_up_to_date(machine: Machine) -> Path:
    machine.run("status")
    return machine.root


@pytest.mark.usefixtures("store")
def test_a_copy_is_a_lake_that_needs_no_store(tmp_path, server):
    one = Machine(tmp_path / "one", server)
    one.run("nightly", **night(1))
    lake = Lake(str(one.root))
    assert lake.sweep_ids()
    one.run("verify", "--deep", NIGHTAUDIT_LAKE=str(one.root))
