"""Prefect's server and its workers, as processes that can lose their power."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from prefect_runs import ROOT, call


class PrefectServer:
    """A separate server, which can lose its power."""

    def __init__(self, given: dict[str, str], port: int, folder: Path) -> None:
        self.address = given["PREFECT_API_URL"]
        self._given, self._port, self._log = given, port, folder / "server.log"
        self._process = self._start()

    def restart(self, seconds_away: float) -> None:
        """Kill it, and start it again after a while."""
        self.end()
        time.sleep(seconds_away)
        self._process = self._start()

    def end(self) -> None:
        kill(self._process)

    def _start(self) -> subprocess.Popen[bytes]:
        at = ("--host", "127.0.0.1", "--port", str(self._port))
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "prefect", "server", "start", *at],
                cwd=ROOT,
                env=self._given,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        ends_at = time.monotonic() + 180
        while True:
            try:
                call(self.address, "health", method="GET")
            except Exception:
                assert process.poll() is None, self._log.read_text()
                assert time.monotonic() < ends_at
                time.sleep(0.5)
            else:
                return process


@contextmanager
def prefect_server(given: dict[str, str], port: int, folder: Path) -> Iterator[PrefectServer]:
    server = PrefectServer(given, port, folder)
    try:
        yield server
    finally:
        server.end()


def run_prefect(given: dict[str, str], *arguments: str) -> None:
    called = [sys.executable, "-m", "prefect", *arguments]
    reported = subprocess.run(called, cwd=ROOT, env=given, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    assert reported.returncode == 0, reported.stdout + reported.stderr


def worker(given: dict[str, str], folder) -> subprocess.Popen[bytes]:
    called = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "nightaudit", "--install-policy", "never"]
    with (folder / "log").open("a") as out:
        return subprocess.Popen(called, cwd=folder, env=given, stdout=out, stderr=out, start_new_session=True)


def kill(machine: subprocess.Popen[bytes]) -> None:
    """Kill a worker and everything that it has started without notice, as a power failure does."""
    if machine.poll() is None:
        children = psutil.Process(machine.pid).children(recursive=True)
        for process in [psutil.Process(machine.pid), *children]:
            process.suspend()
        for process in children:
            process.kill()
        os.kill(machine.pid, signal.SIGKILL)
        machine.wait()
