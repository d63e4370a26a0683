"""Prefect's server on PostgreSQL: either is restarted in the middle of a night, and the next night runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from free_port import free_port
from night_machine import SPEC, Machine, assert_same, contents, night
from postgres_server import PostgresServer, postgres_server
from prefect_machines import PrefectServer, kill, prefect_server, run_prefect, worker
from prefect_runs import await_ends, begin_run, call
from waiting import await_true

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]
_SECONDS_AWAY = 10.0
_LEASES_ON_DISK = "prefect.server.concurrency.lease_storage.filesystem"


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory) -> Path:
    """The lake of two nights that nothing disturbed."""
    alone = Machine(tmp_path_factory.mktemp("nights") / "alone", None, NIGHTAUDIT_LAKE="lake")
    (alone.folder / "sweep.toml").write_text(SPEC.format(properties="sandbox = 24", days=9))
    for number in (1, 2):
        alone.run("nightly", **night(number))
    return alone.root


def restart_database(database: PostgresServer, _: PrefectServer) -> None:
    database.restart(_SECONDS_AWAY)


def restart_server(_: PostgresServer, server: PrefectServer) -> None:
    server.restart(_SECONDS_AWAY)


@pytest.mark.parametrize("restart", [restart_database, restart_server])
def test_a_night_continues_while_prefect_is_restarted_and_the_next_one_runs(
    tmp_path, two_nights, restart: Callable[[PostgresServer, PrefectServer], None]
):
    port = free_port()
    one = Machine(tmp_path / "one", None)
    (one.folder / "sweep.toml").write_text(SPEC.format(properties="sandbox = 24", days=9))
    given = one.environment | {
        "NIGHTAUDIT_LAKE": str(one.folder / "lake"),
        "NIGHTAUDIT_SPEC": str(one.folder / "sweep.toml"),
        "NIGHTAUDIT_REQUESTS_PER_SECOND": "20",
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": _LEASES_ON_DISK,
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    }
    with postgres_server() as database:
        given["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = database.address
        with prefect_server(given, port, tmp_path) as server:
            call(server.address, "work_pools/", {"name": "nightaudit", "type": "process"})
            run_prefect(given, "--no-prompt", "deploy", "--prefect-file", "flows/prefect.yaml", "--name", "nightly")
            for number in (1, 2):
                run = begin_run(server.address)
                working = worker(given | night(number), one.folder)
                try:
                    if number == 1:
                        await_true(lambda: list((one.folder / "lake" / "raw").glob("*/*.parquet")))
                        restart(database, server)
                    assert await_ends(server.address, [run], 500) == ["COMPLETED"], (one.folder / "log").read_text()
                finally:
                    kill(working)
                assert call(server.address, f"flow_runs/{run}", method="GET")["run_count"] == 1
    assert_same(
        contents(one.folder / "lake/published/nightaudit.duckdb"),
        contents(two_nights / "published/nightaudit.duckdb"),
    )
