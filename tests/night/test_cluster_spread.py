"""A sweep whose searches the workers of a Dask cluster send is the sweep that one machine sends."""

from __future__ import annotations

import hashlib
import re
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pytest
from ceph_server import ceph_server
from dask_machines import SECONDS_CUT_OFF, Machines, client_of, cut_off, while_one_works, with_disk_of_its_own
from night_machine import ADDRESS, SPEC, Machine, assert_same, contents_but_when
from redis import Redis
from s3_server import s3_server
from waiting import await_true

from pipeline.domain.addresses import host_and_port
from pipeline.domain.shards import SEARCHES_PER_SHARD
from pipeline.lake import Lake
from pipeline.lake.s3.object_store import Store
from pipeline.night.outlook import cost_history
from pipeline.plan.estimate import TimedStep
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.settings import OUTSIDE_CONCURRENCY
from pipeline.sweep.open_shards import EXTRA_OPEN_SHARDS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

PROPERTIES, DAYS, RATE = 30, 9, 60
# Of the workers that the first run has left behind, and of the run that continues.
IN_FLIGHT = 2 * OUTSIDE_CONCURRENCY
PUBLISHED = "published/nightaudit.duckdb"
UNFINISHED = "SELECT count(*) FILTER (WHERE status IN ('failed', 'not_swept')) FROM mart.cell_latest"


@pytest.fixture
def supplier():
    """A supplier on its own."""
    with SandboxProcess(seed=3, properties=PROPERTIES) as sandbox:
        yield sandbox


@pytest.fixture
def given(supplier, redis) -> dict[str, str]:
    return {
        "NIGHTAUDIT_BASE_URL": supplier.base_url,
        "NIGHTAUDIT_CLIENT_ID": supplier.client_id,
        "NIGHTAUDIT_CLIENT_SECRET": supplier.client_secret,
        "NIGHTAUDIT_REQUESTS_PER_SECOND": str(RATE),
        "NIGHTAUDIT_RATE_STORE": redis,
        # A worker that is cut off for a while then finds the answers to what it had in flight, after one attempt each.
        "NIGHTAUDIT_READ_TIMEOUT_SECONDS": str(2 * SECONDS_CUT_OFF),
        "NIGHTAUDIT_CONNECT_TIMEOUT_SECONDS": str(2 * SECONDS_CUT_OFF),
    }


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    """Ceph's gateway; where Ceph is missing, moto's server."""
    with ExitStack() as running:
        try:
            server = running.enter_context(ceph_server(tmp_path_factory.mktemp("ceph")))
        except pytest.skip.Exception:
            server = running.enter_context(s3_server())
        yield server


@pytest.fixture(params=["folder", "S3"])
def server(request, monkeypatch):
    """The store of the lake, which is empty; None: it is in a folder that all machines share."""
    if request.param == "folder":
        return None
    server = request.getfixturevalue("s3")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    store = Store(ADDRESS)
    for folder in ("log", "objects", "snapshots", "landed"):
        store.delete(list(store.keys(folder)))
    return server


@pytest.fixture
def cluster(request, tmp_path, given, server):
    """Three workers with the supplier's settings; with a store, they share nothing else with `spread`."""
    of_workers = given | getattr(request, "param", {})
    pytest.importorskip("distributed", reason="there is no distributed: it is of the extra `cluster`")
    (tmp_path / "machines").mkdir()
    made, copy = Machines(tmp_path / "machines"), tmp_path / "spread" / "copy"
    copy.mkdir(parents=True)
    try:
        for number in range(3):
            by = with_disk_of_its_own(copy, tmp_path / f"disk-{number}") if server is not None else ()
            made.start_worker(by=by, **of_workers)
        made.wait_for_workers()
        yield made
    finally:
        made.end()


def machine(folder: Path, supplier, server=None, **given: str) -> Machine:
    made = Machine(folder, server, **({"NIGHTAUDIT_LAKE": "lake"} if server is None else {}), **given)
    ids = supplier.control("properties")["property_ids"]
    (folder / "sweep.toml").write_text(SPEC.format(properties=f"ids = {ids}", days=DAYS))
    return made


@pytest.fixture
def spread(tmp_path, supplier, server, cluster, given) -> Machine:
    """The machine of the night: it would be refused a token if it sent a search itself."""
    settings = given | {"NIGHTAUDIT_CLUSTER": cluster.address, "NIGHTAUDIT_CLIENT_SECRET": "another"}
    return machine(tmp_path / "spread", supplier, server, **settings)


@pytest.fixture
def alone(tmp_path, supplier, given) -> Machine:
    """A machine that has run the same night by itself, in a folder."""
    made = machine(tmp_path / "alone", supplier, **given)
    made.run("nightly")
    made.searches = searches(supplier)
    return made


def searches(supplier) -> dict[str, int]:
    """How many searches the supplier answered or refused, by operation and status."""
    counts = supplier.control("served")["requests"]
    return {f"{name} {status}": number for name, said in counts.items() for status, number in said.items()}


def sent_since(alone: Machine, supplier) -> dict[str, int]:
    return {name: number - alone.searches.get(name, 0) for name, number in searches(supplier).items()}


def rows(one: Machine, query: str) -> list[tuple]:
    with duckdb.connect(str(one.root / PUBLISHED), read_only=True) as session:
        return session.execute(query).fetchall()


def assert_same_night(found: Machine, expected: Machine) -> None:
    """Every relation is the same, but for when and by which request it was seen."""
    there = contents_but_when(expected.root / PUBLISHED)
    assert there["mart.offer_latest"]
    assert_same(contents_but_when(found.root / PUBLISHED), there)
    assert rows(found, UNFINISHED) == [(0,)]


def landed(one: Machine) -> dict[str, str]:
    """Name and SHA-256 of all shards that have landed, wherever that is."""
    found = {
        place.name: hashlib.sha256(place.read_bytes()).hexdigest()
        for place in one.root.glob("raw/*/*.parquet")
        if not place.name.startswith(".")
    }
    if "AWS_ENDPOINT_URL" in one.environment:
        store = Store(ADDRESS)
        for key in store.keys("landed"):
            if key.endswith(".parquet"):
                found.setdefault(Path(key).name, store.get(key).decode().split('"')[1])
    return found


def test_workers_send_what_one_machine_sends(alone, spread, supplier):
    said = spread.run("nightly")
    assert sent_since(alone, supplier) == alone.searches
    assert_same_night(spread, alone)
    assert landed(spread).keys() == landed(alone).keys()
    assert "from this machine alone" not in said
    assert max(map(int, re.findall(r"(\d+) requests/s on average", said)), default=0) <= RATE
    (swept,) = cost_history(Lake(str(spread.root))).durations[TimedStep.SWEEP]
    assert swept.is_spread
    assert swept.paced_seconds > 0


def test_an_expiry_costs_one_token_request_a_worker(spread, supplier):
    process = spread.start("nightly")
    await_true(lambda: len(landed(spread)) >= 3)
    supplier.control("faults", {"expire_tokens": True})
    before = supplier.control("served")["tokens"]
    said = process.communicate(timeout=600)[0]
    assert process.returncode == 0, said
    assert 1 <= supplier.control("served")["tokens"] - before <= 3
    assert rows(spread, UNFINISHED) == [(0,)]


@pytest.mark.parametrize(
    "lose_it",
    [
        pytest.param(subprocess.Popen.kill, id="killed"),
        pytest.param(subprocess.Popen.terminate, id="ended"),
        pytest.param(cut_off, id="cut off for a while"),
    ],
)
def test_a_worker_that_is_lost_while_it_sends_costs_its_open_searches(alone, spread, cluster, supplier, lose_it):
    """What it had landed is not requested again; another worker sends its open searches."""
    before: dict[str, str] = {}

    def lose(worker: subprocess.Popen[bytes]) -> None:
        await_true(lambda: landed(spread))
        before.update(landed(spread))
        lose_it(worker)

    with while_one_works(cluster, lose) as lost:
        spread.run("nightly")
    assert len(lost) == 1
    after = landed(spread)
    assert {name: after[name] for name in before} == before
    assert_same_night(spread, alone)
    # Those of its open shards, and what was in flight as the other worker landed them.
    assert searches_twice(alone, supplier) <= EXTRA_OPEN_SHARDS * SEARCHES_PER_SHARD + IN_FLIGHT


def test_a_machine_that_is_killed_while_workers_send_finds_what_they_landed(alone, spread, supplier):
    process = spread.start("nightly")
    await_true(lambda: len(landed(spread)) >= 3)
    process.kill()
    process.communicate()
    before = landed(spread)
    spread.run("nightly")
    after = landed(spread)
    assert {name: after[name] for name in before} == before
    assert_same_night(spread, alone)
    assert searches_twice(alone, supplier) <= IN_FLIGHT


def searches_twice(alone: Machine, supplier) -> int:
    """How many searches were answered more often than where one machine sends them all; none is left out."""
    sent = sent_since(alone, supplier)
    assert all(sent.get(name, 0) >= number for name, number in alone.searches.items() if name.endswith(" 200"))
    return sum(sent.values()) - sum(alone.searches.values())


def test_a_night_that_continues_while_workers_of_a_lost_cluster_send_sends_what_they_do_not(
    alone, spread, cluster, supplier, given
):
    """Only searches that are in flight on both sides as a shard lands may be sent twice."""
    # Slow enough that the workers are in the middle of their shards when the night continues.
    spread.environment["NIGHTAUDIT_REQUESTS_PER_SECOND"] = "10"
    process = spread.start("nightly")
    await_true(lambda: landed(spread))
    cluster.scheduler.kill()
    said = process.communicate(timeout=600)[0]
    assert process.returncode == 1, said
    del spread.environment["NIGHTAUDIT_CLUSTER"]
    spread.environment["NIGHTAUDIT_CLIENT_SECRET"] = given["NIGHTAUDIT_CLIENT_SECRET"]
    spread.run("nightly")
    assert_same_night(spread, alone)
    assert searches_twice(alone, supplier) <= IN_FLIGHT


def test_a_rate_store_that_is_restarted_while_workers_send_costs_seconds(alone, spread, supplier, redis_machine):
    process = spread.start("nightly")
    await_true(lambda: landed(spread))
    redis_machine.restart(3)
    said = process.communicate(timeout=600)[0]
    assert process.returncode == 0, said
    # No search was sent twice, and none was left out.
    assert sent_since(alone, supplier) == alone.searches
    assert_same_night(spread, alone)


def test_a_store_that_is_away_while_workers_send_costs_seconds(alone, spread, supplier, server):
    if server is None:
        pytest.skip("the lake is in a folder")
    process = spread.start("nightly")
    await_true(lambda: landed(spread))
    server.go_away(30)
    said = process.communicate(timeout=600)[0]
    assert process.returncode == 0, said
    assert sent_since(alone, supplier) == alone.searches
    assert_same_night(spread, alone)


def test_the_calls_of_a_day_hold_for_workers_also_if_the_rate_store_has_lost_its_count(spread, supplier, redis_machine):
    cap = 200
    for _ in range(2):
        process = spread.start("nightly", NIGHTAUDIT_DAILY_CALLS=str(cap))
        said = process.communicate(timeout=600)[0]
        assert "NIGHTAUDIT_DAILY_CALLS" in said
        assert "Traceback" not in said
        assert sum(searches(supplier).values()) <= cap
        redis_machine.restart(0)


def test_workers_keep_what_they_leased_of_the_days_calls_for_their_next_block(spread, supplier, redis):
    cap = 20_000
    spread.run("nightly", NIGHTAUDIT_DAILY_CALLS=str(cap))
    with Redis.from_url(redis) as store:
        (used,) = (int(store.hget(key, "used")) for key in store.keys("nightaudit:calls:*"))
    # A lease is a hundredth. Each worker, and the machine of the night, has at most one left.
    assert used <= sum(searches(supplier).values()) + 4 * cap // 100


def test_a_night_whose_workers_run_out_of_calls_is_closed_and_published(spread, supplier, redis):
    cap, left = 1000, 300
    with Redis.from_url(redis) as store:
        used = {"day": int(time.time() // 86400), "used": cap - left}
        store.hset(f"nightaudit:calls:{host_and_port(supplier.base_url)}", mapping=used)
    said = spread.run("nightly", NIGHTAUDIT_DAILY_CALLS=str(cap))
    assert "The sweep is closed; the answers that have landed are published" in said
    assert sum(searches(supplier).values()) <= left
    assert rows(spread, "SELECT count(*) > 0 FROM mart.offer_latest") == [(True,)]


@pytest.mark.parametrize("cluster", [{"NIGHTAUDIT_CLIENT_SECRET": "wrong"}], indirect=True)
def test_an_error_of_a_worker_is_reported_like_one_of_this_machine(spread):
    said = spread.run("nightly", code=1)
    assert "Traceback" not in said
    assert "The token endpoint" in said
    assert "searches have landed and are kept" in said


def test_workers_that_cannot_send_are_named_by_the_doctor_and_by_the_night_which_sends_from_its_own_machine(
    tmp_path, supplier, given, machines
):
    """One has none of the settings, one names another supplier, and two could send."""
    machines.start_worker(**given | {"NIGHTAUDIT_BASE_URL": "http://127.0.0.1:9"})
    machines.start_worker(**given)
    machines.wait_for_workers()
    with client_of(machines) as client:
        by_name = {w["name"]: address for address, w in client.scheduler_info(n_workers=-1)["workers"].items()}
    without, other = by_name["worker-0"], by_name[f"worker-{len(machines.workers) - 2}"]
    lacks = f"{without} has no NIGHTAUDIT_BASE_URL and no NIGHTAUDIT_RATE_STORE, so it cannot send searches"
    differs = (
        f"{other} names the supplier 127.0.0.1:9 in NIGHTAUDIT_BASE_URL (here: {host_and_port(supplier.base_url)})"
    )
    one = machine(tmp_path / "one", supplier, NIGHTAUDIT_CLUSTER=machines.address, **given)
    examined = one.run("doctor", code=1)
    assert lacks in examined
    assert differs in examined
    assert by_name[f"worker-{len(machines.workers) - 1}"] not in examined
    said = one.run("nightly")
    assert "Searches are sent from this machine alone: The worker tcp://" in said
    assert f"The worker {lacks}." in said
    assert f"The worker {differs}." in said
    assert rows(one, UNFINISHED) == [(0,)]


@pytest.mark.parametrize("command", ["nightly", "doctor"])
def test_a_worker_with_another_rate_store_is_refused_by_name_before_anything_is_sent(
    tmp_path, supplier, given, machines, command
):
    """It would send at a rate of its own."""
    machines.start_worker(**given | {"NIGHTAUDIT_RATE_STORE": given["NIGHTAUDIT_RATE_STORE"].removesuffix("/0") + "/1"})
    machines.wait_for_workers()
    one = machine(tmp_path / "one", supplier, NIGHTAUDIT_CLUSTER=machines.address, **given)
    said = one.run(command, code=2 if command == "nightly" else 1)
    assert "names another Redis server or database in NIGHTAUDIT_RATE_STORE" in said
    assert "tcp://127.0.0.1:" in said
    assert "Traceback" not in said
    # The doctor's own probe is one.
    assert sum(searches(supplier).values()) <= (command == "doctor")
