"""A night that the gate blocks, through Prefect and through the command: told once, and the last good one stays."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from prefect_runs import ROOT, environment

from pipeline.domain.errors import GateBlocked
from pipeline.lake import Lake
from pipeline.night import steps
from pipeline.publish import published_sweeps
from pipeline.settings import utc_now


@pytest.fixture
def receiver():
    """A real receiver of POSTs: its address and what it was told."""
    told = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook/s3cret", told
    server.shutdown()
    server.server_close()


def load_doubled(settings) -> str:
    """Ask and load a night, then store a file of it twice: what the gate is there for. Return its sweep."""
    lake = Lake(settings.lake)
    manifest = steps.start(settings, lake, utc_now())
    asyncio.run(steps.collect(settings, lake, manifest))
    file = min((lake.table_root("offer") / manifest.sweep_id).glob("*.parquet"))
    file.with_name(f"{file.stem}9.parquet").write_bytes(file.read_bytes())
    return manifest.sweep_id


def test_a_blocked_night_fails_its_run_is_told_once_and_keeps_the_last_good_night(settings, receiver):
    from prefect.client.orchestration import get_client

    from flows.nightly import run_nightly

    address, told = receiver
    given = settings(notify_webhook=address)
    good = run_nightly(given)
    before = good.file.read_bytes()
    blocked = load_doubled(given)

    for _ in range(2):
        with pytest.raises(GateBlocked, match=r"offer\.key") as caught:
            run_nightly(given)
        assert caught.value.exit_code == 3

    lake = Lake(given.lake)
    assert [entry.sweep_id for entry in published_sweeps(lake)] == [good.sweep_id]
    assert good.file.read_bytes() == before
    causes = [message["subject"].split()[1] for message in told]
    assert "offer.key" in causes
    assert len(causes) == len(set(causes))
    assert all(blocked in message["text"] for message in told)
    with get_client(sync_client=True) as client:
        run = client.request("POST", "/flow_runs/filter", json={"sort": "START_TIME_DESC", "limit": 1}).json()[0]
        artifacts = client.request("POST", "/artifacts/filter", json={"sort": "CREATED_DESC"}).json()
    assert run["state"]["type"] == "FAILED"
    assert "s3cret" not in json.dumps([run, artifacts])
    quality = next(item["data"] for item in artifacts if item["key"] == "nightly-quality")
    assert "Blocked" in quality
    assert "offer.key" in quality.replace("\\", "")


def test_the_command_exits_with_3_and_says_why_and_what_stays(tmp_path, write_spec, receiver):
    address, told = receiver
    spec = write_spec()
    from pipeline.settings import read_settings

    given = read_settings(_env_file=None, lake=str(tmp_path / "lake"), spec=spec, workers=1)
    blocked = load_doubled(given)
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "nightly"],
        env=environment(tmp_path, spec, NIGHTAUDIT_NOTIFY_WEBHOOK=address) | {"PYTHONPATH": os.fspath(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 3, done.stderr
    shown = " ".join((done.stdout + done.stderr).split())
    for said in (blocked, "offer.key", "--override", "quality.html", "Nothing is published"):
        assert said in shown
    assert "Traceback" not in shown
    assert "s3cret" not in shown
    assert "offer.key" in {message["subject"].split()[1] for message in told}
    assert not Lake(given.lake).published_file.exists()
