"""A sweep whose searches the workers of a Dask cluster send is the sweep that one machine sends."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import threading
from pathlib import Path

import duckdb
import pytest
from dask_machines import Machines, await_true, while_one_works
from night_machine import SPEC, Machine

from pipeline.sandbox.server.launch import SandboxProcess

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

PROPERTIES, DAYS, RATE = 30, 9, 60
_SECONDS_CUT_OFF = 60.0
# Everything but when it was asked, which no two sweeps share.
OFFERS = "SELECT * EXCLUDE (sweep_id, searched_at) FROM lake.offer ORDER BY ALL"
CELLS = "SELECT property_id, market, check_in, operation, status FROM mart.cell_latest ORDER BY ALL"


@pytest.fixture
def supplier():
    """A supplier on its own."""
    with SandboxProcess(seed=3, properties=PROPERTIES) as sandbox:
        yield sandbox


def settings_of(supplier, redis) -> dict[str, str]:
    return {
        "NIGHTAUDIT_BASE_URL": supplier.base_url,
        "NIGHTAUDIT_CLIENT_ID": supplier.client_id,
        "NIGHTAUDIT_CLIENT_SECRET": supplier.client_secret,
        "NIGHTAUDIT_REQUESTS_PER_SECOND": str(RATE),
        "NIGHTAUDIT_RATE_STORE": redis,
    }


@pytest.fixture
def cluster(tmp_path, supplier, redis):
    """Three workers with the supplier's settings."""
    pytest.importorskip("distributed", reason="there is no distributed: it is of the extra `cluster`")
    (tmp_path / "machines").mkdir()
    made = Machines(tmp_path / "machines")
    try:
        for _ in range(3):
            made.start_worker(**settings_of(supplier, redis))
        made.wait_for_workers()
        yield made
    finally:
        made.end()


def machine(folder: Path, supplier, **given: str) -> Machine:
    made = Machine(folder, None, NIGHTAUDIT_LAKE="lake", **given)
    ids = supplier.control("properties")["property_ids"]
    (folder / "sweep.toml").write_text(SPEC.format(properties=f"ids = {ids}", days=DAYS))
    return made


def searches(supplier) -> dict[str, int]:
    """How many searches the supplier answered or refused, by operation and status."""
    counts = supplier.control("served")["requests"]
    return {f"{name} {status}": number for name, said in counts.items() for status, number in said.items()}


def rows(one: Machine, query: str) -> list[tuple]:
    with duckdb.connect(str(one.root / "published/nightaudit.duckdb"), read_only=True) as session:
        return session.execute(query).fetchall()


def landed(root: Path) -> dict[str, str]:
    return {
        place.name: hashlib.sha256(place.read_bytes()).hexdigest()
        for place in root.glob("raw/*/*.parquet")
        if not place.name.startswith(".")
    }


def test_workers_send_what_one_machine_sends(tmp_path, supplier, redis, cluster):
    given = settings_of(supplier, redis)
    alone = machine(tmp_path / "alone", supplier, **given)
    alone.run("nightly")
    by_one = searches(supplier)
    # It would be refused a token if it sent a search itself.
    given |= {"NIGHTAUDIT_CLUSTER": cluster.address, "NIGHTAUDIT_CLIENT_SECRET": "another"}
    spread = machine(tmp_path / "spread", supplier, **given)
    said = spread.run("nightly")
    by_three = {name: number - by_one[name] for name, number in searches(supplier).items()}
    assert by_three == by_one
    assert rows(spread, OFFERS) == rows(alone, OFFERS)
    assert rows(spread, CELLS) == rows(alone, CELLS)
    assert landed(spread.root).keys() == landed(alone.root).keys()
    assert "from this machine alone" not in said


def cut_off(worker: subprocess.Popen[bytes]) -> None:
    worker.send_signal(signal.SIGSTOP)
    threading.Timer(_SECONDS_CUT_OFF, worker.send_signal, [signal.SIGCONT]).start()


@pytest.mark.parametrize(
    "lose_it",
    [
        pytest.param(subprocess.Popen.kill, id="killed"),
        pytest.param(subprocess.Popen.terminate, id="ended"),
        pytest.param(cut_off, id="cut off for a while"),
    ],
)
def test_a_worker_that_is_lost_while_it_sends_costs_its_open_searches(tmp_path, supplier, redis, cluster, lose_it):
    """What it had landed is not requested again; another worker sends its open searches."""
    given = settings_of(supplier, redis)
    one = machine(tmp_path / "one", supplier, NIGHTAUDIT_CLUSTER=cluster.address, **given)
    before: dict[str, str] = {}

    def lose(worker: subprocess.Popen[bytes]) -> None:
        before.update(landed(one.root))
        lose_it(worker)

    with while_one_works(cluster, lose) as lost:
        one.run("nightly")
    assert len(lost) == 1
    after = landed(one.root)
    assert {name: after[name] for name in before} == before
    assert rows(one, "SELECT count(*) FILTER (WHERE status IN ('failed', 'not_swept')) FROM mart.cell_latest") == [(0,)]


def test_a_rate_store_that_is_restarted_while_workers_send_costs_seconds(
    tmp_path, supplier, redis, redis_machine, cluster
):
    given = settings_of(supplier, redis) | {"NIGHTAUDIT_CLUSTER": cluster.address}
    alone = machine(tmp_path / "alone", supplier, **settings_of(supplier, redis))
    alone.run("nightly")
    by_one = searches(supplier)
    spread = machine(tmp_path / "spread", supplier, **given)
    process = spread.start("nightly")
    await_true(lambda: landed(spread.root))
    redis_machine.restart(3)
    said = process.communicate(timeout=600)[0]
    assert process.returncode == 0, said
    # No search was sent twice, and none was left out.
    assert {name: number - by_one[name] for name, number in searches(supplier).items()} == by_one
    assert rows(spread, OFFERS) == rows(alone, OFFERS)
    assert rows(spread, CELLS) == rows(alone, CELLS)


def test_without_the_suppliers_settings_at_the_workers_the_night_sends_from_its_own_machine(
    tmp_path, supplier, redis, machines
):
    one = machine(tmp_path / "one", supplier, NIGHTAUDIT_CLUSTER=machines.address, **settings_of(supplier, redis))
    said = one.run("nightly")
    assert "Searches are sent from this machine alone: A worker has no NIGHTAUDIT_RATE_STORE" in said
    assert rows(one, "SELECT count(*) FILTER (WHERE status IN ('failed', 'not_swept')) FROM mart.cell_latest") == [(0,)]
