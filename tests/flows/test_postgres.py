"""Prefect's server on PostgreSQL, which is restarted in the middle of a night."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from free_port import free_port
from night_machine import SPEC, Machine, assert_same, contents, night
from postgres_server import postgres_server
from prefect_runs import ROOT, await_ends, begin_run, call
from test_dead_machine import await_true, kill, run_prefect, worker

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
_SECONDS_AWAY = 10.0


def test_a_night_continues_while_prefects_database_is_restarted(tmp_path):
    port = free_port()
    spec = SPEC.format(properties="sandbox = 24", days=9)
    alone = Machine(tmp_path / "alone", None, NIGHTAUDIT_LAKE="lake")
    (alone.folder / "sweep.toml").write_text(spec)
    alone.run("nightly", **night(1))

    one = Machine(tmp_path / "one", None)
    (one.folder / "sweep.toml").write_text(spec)
    given = one.environment | night(1)
    given |= {
        "NIGHTAUDIT_LAKE": str(one.folder / "lake"),
        "NIGHTAUDIT_SPEC": str(one.folder / "sweep.toml"),
        "NIGHTAUDIT_REQUESTS_PER_SECOND": "20",
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    }
    with postgres_server() as database:
        given["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = database.address
        with prefect_server(given, port, tmp_path) as address:
            call(address, "work_pools/", {"name": "nightaudit", "type": "process"})
            run_prefect(given, "--no-prompt", "deploy", "--prefect-file", "flows/prefect.yaml", "--name", "nightly")
            run = begin_run(address)
            working = worker(given, one.folder)
            try:
                await_true(lambda: list((one.folder / "lake" / "raw").glob("*/*.parquet")))
                database.restart(_SECONDS_AWAY)
                assert await_ends(address, [run], 700) == ["COMPLETED"], (one.folder / "log").read_text()
            finally:
                kill(working)
            assert call(address, f"flow_runs/{run}", method="GET")["run_count"] == 1
    assert_same(
        contents(one.folder / "lake/published/nightaudit.duckdb"),
        contents(alone.root / "published/nightaudit.duckdb"),
    )


@contextmanager
def prefect_server(given: dict[str, str], port: int, folder):
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=ROOT, env=given, stdout=log, stderr=log, start_new_session=True)
    try:
        ends_at = time.monotonic() + 180
        while True:
            try:
                call(given["PREFECT_API_URL"], "health", method="GET")
                break
            except Exception:
                assert server.poll() is None, (folder / "server.log").read_text()
                assert time.monotonic() < ends_at
                time.sleep(0.5)
        yield given["PREFECT_API_URL"]
    finally:
        kill(server)
