"""Work done on a Dask cluster gives the same bytes as local processes, whatever happens to its workers."""

from __future__ import annotations

import asyncio
import hashlib
import platform
import shutil
import signal
import threading
from pathlib import Path

import pytest
from certificates import self_signed
from dask_machines import Machines, client_of, cut_off, while_one_works
from distributed import Client
from night_machine import assert_same, contents
from two_markets import NOW, publish_night, settings_of_two_markets
from waiting import await_true

from pipeline.cli.doctor import _cluster
from pipeline.domain.errors import ClusterAway, SettingsError
from pipeline.domain.servers import Cluster
from pipeline.lake import Lake
from pipeline.lake.database import connect
from pipeline.night.rebuild import rebuild
from pipeline.process.cluster_pool import _task, open_pool
from pipeline.process.cluster_workers import Wanted
from pipeline.process.made_of import made_of
from pipeline.publish import republish_all
from pipeline.settings import Settings
from pipeline.sweep import SweepOptions

ROOT = Path(__file__).parents[2]
MOST_OFFERS = 2500
MAX_BODY_BYTES = 64_000_000
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def home(once_a_run):
    """Two nights of the sandbox, normalised and published by this machine, in ranges."""

    def make(home):
        settings = settings_of_two_markets(home, workers=2)
        for number in range(2):
            publish_night(settings, number)
        republish_all(Lake(settings.lake), lambda: None, most_offers=MOST_OFFERS)
        return home

    return once_a_run("two-nights-in-ranges", make)


@pytest.fixture
def lake(home, tmp_path):
    """A copy of that lake in which everything but the raw answers is still to be rebuilt."""
    shutil.copytree(home / "lake", tmp_path / "lake")
    return Lake(str(tmp_path / "lake"))


def files_below(folder: Path) -> dict[str, str]:
    return {
        str(place.relative_to(folder)): hashlib.sha256(place.read_bytes()).hexdigest()
        for place in folder.rglob("*.parquet")
    }


def latest_state(lake) -> Path:
    return max((lake.root / "state").iterdir(), key=lambda folder: int(folder.name))


@pytest.mark.cluster
def test_a_worker_killed_in_mid_publish_costs_nothing_and_every_file_is_as_processes_write_it(home, lake, machines):
    with while_one_works(machines, lambda worker: worker.kill()) as killed:
        assert republish_all(lake, lambda: None, most_offers=MOST_OFFERS, workforce=machines.workforce)
    assert len(killed) == 1
    assert machines.workers[killed[0]].wait() == -signal.SIGKILL
    with client_of(machines) as client:
        assert len(client.nthreads()) == 2
    ours = Lake(str(home / "lake"))
    assert len(list(latest_state(lake).glob("*/cell-*.parquet"))) > 3
    finished = {name: held for name, held in files_below(latest_state(lake)).items() if "/." not in name}
    assert finished == files_below(latest_state(ours))
    assert_same(contents(lake.published_file), contents(ours.published_file))
    assert not list((lake.root / ".spill").glob("cluster-*"))


@pytest.mark.cluster
def test_a_worker_cut_off_for_a_minute_in_mid_publish_costs_its_time(home, lake, machines):
    with while_one_works(machines, cut_off) as stopped:
        assert republish_all(lake, lambda: None, most_offers=MOST_OFFERS, workforce=machines.workforce)
    assert len(stopped) == 1
    ours = Lake(str(home / "lake"))
    finished = {name: held for name, held in files_below(latest_state(lake)).items() if "/." not in name}
    assert finished == files_below(latest_state(ours))
    assert_same(contents(lake.published_file), contents(ours.published_file))


@pytest.mark.cluster
def test_a_worker_given_up_in_mid_publish_may_come_back_when_it_is_all_over(home, lake, machines):
    """A lost worker that lives on writes its part a second time, after another one has, and changes nothing."""
    with while_one_works(machines, lambda worker: worker.send_signal(signal.SIGSTOP)) as stopped:

        def give_up() -> None:
            await_true(lambda: stopped)
            with client_of(machines) as client:
                by_name = {w["name"]: address for address, w in client.scheduler_info(n_workers=-1)["workers"].items()}
                gone = {"address": by_name[stopped[0]], "stimulus_id": "cut off", "close": False}
                client.sync(client.scheduler.unregister, **gone)

        giver = threading.Thread(target=give_up)
        giver.start()
        assert republish_all(lake, lambda: None, most_offers=MOST_OFFERS, workforce=machines.workforce)
        giver.join()
    written = files_below(latest_state(lake))
    given_up = machines.workers[stopped[0]]
    given_up.send_signal(signal.SIGCONT)
    # It ends its task, learns that the scheduler no longer counts it, and ends too.
    given_up.wait(120)
    again = files_below(latest_state(lake))
    assert {name: again[name] for name in written if "/." not in name} == {
        name: held for name, held in written.items() if "/." not in name
    }
    assert_same(contents(lake.published_file), contents(Lake(str(home / "lake")).published_file))


@pytest.mark.cluster
def test_segments_that_workers_normalise_are_those_of_processes(home, lake, machines):
    before = files_below(lake.root / lake.tables_folder)
    options = SweepOptions(4, MAX_BODY_BYTES, machines.workforce)
    with while_one_works(machines, lambda worker: worker.kill()) as killed:
        made = asyncio.run(rebuild(lake, options, now=lambda: NOW))
    assert len(killed) == 1
    after = files_below(made.tables)
    normalised = [name for name in before if name.startswith(("offer/", "cell/", "search/"))]
    assert normalised
    assert {name: after.get(name) for name in normalised} == {name: before[name] for name in normalised}
    assert_same(contents(Lake(str(lake.root)).published_file), contents(Lake(str(home / "lake")).published_file))


@pytest.mark.cluster
def test_without_its_scheduler_a_publication_fails_and_the_next_one_makes_the_same(home, lake, machines):
    before = contents(lake.published_file)
    with (
        while_one_works(machines, lambda _: machines.scheduler.kill()),
        pytest.raises(ClusterAway, match=r"was lost|cannot be reached"),
    ):
        republish_all(lake, lambda: None, most_offers=MOST_OFFERS, workforce=machines.workforce)
    assert_same(contents(lake.published_file), before)
    with pytest.raises(ClusterAway, match="cannot be reached"):
        republish_all(lake, lambda: None, most_offers=MOST_OFFERS, workforce=machines.workforce)
    republish_all(lake, lambda: None, most_offers=MOST_OFFERS)
    assert_same(contents(lake.published_file), contents(Lake(str(home / "lake")).published_file))


@pytest.mark.cluster
def test_workers_of_another_version_are_refused_by_name_before_anything_is_begun(lake, machines, tmp_path):
    given = Settings(lake=str(lake.root), cluster=machines.address, _env_file=None)
    found = f"{machines.address}, in clear text: 3 tasks at once, on workers that see this lake; "
    assert (
        _cluster(given) == found + "this machine sends all searches, as the bundled sandbox answers this machine alone"
    )
    other = tmp_path / "other"
    shutil.copytree(ROOT / "pipeline", other / "pipeline")
    shutil.copytree(ROOT / "sql", other / "sql")
    with (other / "sql" / "mart" / "market_parity.sql").open("a") as file:
        file.write("-- another version\n")
    for _ in range(2):
        machines.start_worker(PYTHONPATH=str(other))
    with client_of(machines) as client:
        client.wait_for_workers(5, timeout=120)
        by_name = {w["name"]: address for address, w in client.scheduler_info(n_workers=-1)["workers"].items()}
    with pytest.raises(SettingsError, match=r"has nightaudit .* \(here: "):
        republish_all(lake, lambda: None, most_offers=MOST_OFFERS, workforce=machines.workforce)
    with pytest.raises(SettingsError, match="2 of 5 workers of NIGHTAUDIT_CLUSTER cannot be used") as refused:
        _cluster(given)
    named = {name for name, address in by_name.items() if f"{address} has nightaudit" in refused.value.message}
    assert named == {"worker-3", "worker-4"}


@pytest.mark.cluster
def test_a_cluster_without_workers_is_refused(tmp_path):
    pytest.importorskip("distributed", reason="there is no distributed: it is of the extra `cluster`")
    machines = Machines(tmp_path)
    try:
        with pytest.raises(ClusterAway, match="has no worker"):
            open_pool(Cluster(machines.address), tmp_path, lambda: None)
    finally:
        machines.end()


@pytest.mark.cluster
def test_over_tls_only_those_with_a_certificate_get_in(tmp_path):
    pytest.importorskip("distributed", reason="there is no distributed: it is of the extra `cluster`")
    file, key_file = self_signed(tmp_path)
    tls = ("--tls-ca-file", str(file), "--tls-cert", str(file), "--tls-key", str(key_file))
    machines = Machines(tmp_path, *tls)
    try:
        machines.start_worker()
        assert machines.address.startswith("tls://")
        cluster = Cluster(machines.address, file, file, key_file)

        def has_worker() -> bool:
            try:
                pool = open_pool(cluster, tmp_path, lambda: None)
            except ClusterAway:
                # The worker is not there yet.
                return False
            with pool:
                assert pool.submit(sum, [1, 2]).result(60) == 3
            return True

        await_true(has_worker)
        (tmp_path / "stranger").mkdir()
        stranger = self_signed(tmp_path / "stranger")
        for others in (Cluster(machines.address, stranger[0], *stranger), Cluster(machines.address, file, *stranger)):
            with pytest.raises(ClusterAway, match="cannot be reached"):
                open_pool(others, tmp_path, lambda: None)
    finally:
        machines.end()


@pytest.mark.cluster
def test_a_result_that_is_lost_with_its_worker_is_computed_again(tmp_path, machines, monkeypatch):
    fetch, killed = Client._gather_remote, []
    with client_of(machines) as client:
        name_of = {address: w["name"] for address, w in client.scheduler_info(n_workers=-1)["workers"].items()}

    async def with_its_worker_killed(self, *options):
        if not killed:
            held = await self.scheduler.who_has(keys=list(self._gather_keys))
            killed.extend(name_of[address] for holders in held.values() for address in holders)
            for name in killed:
                machines.workers[name].kill()
                machines.workers[name].wait()
        return await fetch(self, *options)

    monkeypatch.setattr(Client, "_gather_remote", with_its_worker_killed)
    (tmp_path / "lake").mkdir()
    with open_pool(Cluster(machines.address), tmp_path / "lake", lambda: None) as pool:
        assert pool.submit(len, "abc").result(60) == 3
    assert len(killed) == 1


@pytest.mark.cluster
def test_an_error_of_a_task_is_not_taken_for_a_lost_result(tmp_path, machines):
    (tmp_path / "lake").mkdir()
    with (
        open_pool(Cluster(machines.address), tmp_path / "lake", lambda: None) as pool,
        pytest.raises(ValueError, match="invalid literal"),
    ):
        pool.submit(int, "abc").result(60)


def test_a_worker_that_does_not_see_the_lake_does_no_task(tmp_path):
    gone = Wanted(str(tmp_path / "lake" / ".spill" / "cluster-1"), made_of())
    with pytest.raises(SettingsError, match=r"does not see the lake's folder .*lake"):
        _task(gone, None, sum, ([1, 2],), {})
    Path(gone.folder).mkdir(parents=True)
    assert _task(gone, None, sum, ([1, 2],), {}) == 3
    other = Wanted(gone.folder, {**made_of(), "duckdb": "1.0.0"})
    with pytest.raises(SettingsError, match=r"has duckdb .* \(here: 1.0.0\)"):
        _task(other, None, sum, ([1, 2],), {})


def test_what_a_worker_spills_lies_in_a_folder_of_its_machine(tmp_path):
    """Process ids are alike in two containers, and DuckDB names its files by them."""
    lake = Lake(str(tmp_path / "lake"))
    folder = lake.root / ".spill" / "cluster-1"
    folder.mkdir(parents=True)

    def spills_to() -> Path:
        with connect(lake) as session:
            return Path(session.execute("SELECT current_setting('temp_directory')").fetchall()[0][0])

    assert spills_to() == lake.root / ".spill"
    assert _task(Wanted(str(folder), made_of()), None, spills_to, (), {}) == lake.root / ".spill" / platform.node()
