"""Calls to a Prefect server as its users make them, and an environment without the user's own settings."""

from __future__ import annotations

import os
import time
from pathlib import Path

import httpx
import psutil

ROOT = Path(__file__).parents[2]


def environment(tmp_path: Path, spec: Path, **others: str) -> dict[str, str]:
    """Nothing of the user's own: a folder for Prefect, a lake, a spec, no .env."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "NIGHTAUDIT_"))}
    return {
        **kept,
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "NIGHTAUDIT_LAKE": str(tmp_path / "lake"),
        "NIGHTAUDIT_SPEC": str(spec),
        "NIGHTAUDIT_WORKERS": "1",
        **others,
    }


def call(address: str, path: str, body: object = None, method: str = "POST") -> object:
    """Call the server as Prefect's client does: again if it answers 503, as it does while its SQLite is locked.

    Where both cores are busy it may not answer in a minute; reading is asked once more then.
    """
    for tried in range(20):
        try:
            answer = httpx.request(method, f"{address}/{path}", json=body, timeout=60, trust_env=False)
        except httpx.TimeoutException:
            if method != "GET" or tried:
                raise
            continue
        if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
            break
        time.sleep(float(answer.headers.get("Retry-After", 1)))
    return answer.raise_for_status().json()


def begin_run(address: str) -> str:
    deployment = call(address, "deployments/name/nightly/nightly", method="GET")
    return call(address, f"deployments/{deployment['id']}/create_flow_run", {})["id"]


def await_ends(address: str, runs: list[str], seconds: float = 600) -> list[str]:
    ends_at = time.monotonic() + seconds
    while True:
        states = [call(address, f"flow_runs/{run}", method="GET")["state"]["type"] for run in runs]
        if all(state in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"} for state in states):
            return states
        assert time.monotonic() < ends_at, states
        time.sleep(0.3)


def await_environment_of_run(parent: int) -> dict[str, str]:
    """Wait until the process has started a flow run, and return what that run found in its environment."""
    ends_at = time.monotonic() + 240
    while time.monotonic() < ends_at:
        for process in psutil.Process(parent).children(recursive=True):
            try:
                found = process.environ()
            except psutil.Error:
                continue
            if "PREFECT__FLOW_RUN_ID" in found:
                return found
        time.sleep(0.1)
    raise AssertionError("no run was started")


def loggers_of(address: str, run: str) -> set[str]:
    """Name the loggers whose messages are in the run's log in Prefect."""
    wanted = {"logs": {"flow_run_id": {"any_": [run]}}, "limit": 200}
    return {line["name"] for line in call(address, "logs/filter", wanted)}
