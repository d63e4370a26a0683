"""A Dask scheduler and workers, as processes that a test can kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import await_true

from pipeline.domain.servers import Cluster, Workforce

# For how long a test cuts a worker off.
SECONDS_CUT_OFF = 60.0


class Machines:
    """A separate scheduler and workers, as processes that can be killed."""

    def __init__(self, folder: Path, *tls: str) -> None:
        self.folder, self._tls = folder, tls
        self._log = (folder / "log").open("a")
        # Port 0: the scheduler writes down which one it got.
        self._file = folder / "scheduler.json"
        protocol = "tls" if tls else "tcp"
        self.scheduler = self._start(
            "scheduler", "--protocol", protocol, "--host", "127.0.0.1", "--port", "0", "--scheduler-file", self._file
        )
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        await_true(lambda: self._file.exists() and self._file.read_text().endswith("}"))
        self.address = json.loads(self._file.read_text())["address"]

    @property
    def workforce(self) -> Workforce:
        """The workers, as a night is given them."""
        return Workforce(cluster=Cluster(self.address))

    def start_worker(self, *, by: Sequence[str] = (), **others: str) -> None:
        """Start one more; `by` is a command that runs another."""
        name = f"worker-{len(self.workers)}"
        local = self.folder / name
        options = ("--nthreads", "1", "--no-nanny", "--name", name, "--local-directory", local)
        self.workers[name] = self._start("worker", self.address, *options, by=by, **others)

    def wait_for_workers(self) -> None:
        with client_of(self) as client:
            client.wait_for_workers(len(self.workers), timeout=120)

    def _start(self, what: str, *options: object, by: Sequence[str] = (), **others: str) -> subprocess.Popen[bytes]:
        command = [*by, sys.executable, "-m", "dask", what, "--no-dashboard", *self._tls, *map(str, options)]
        return subprocess.Popen(command, cwd=self.folder, env=os.environ | others, stdout=self._log, stderr=self._log)

    def end(self) -> None:
        for process in (*self.workers.values(), self.scheduler):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        self._log.close()


def with_disk_of_its_own(folder: Path, own: Path) -> list[str]:
    """Return the command that runs another where `folder` is a folder of another disk, as on another machine."""
    alone = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    own.mkdir()
    command = [*alone, "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', str(own), str(folder)]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("this machine gives no process a view of its own of the disk (unshare --mount)")
    return command


def cut_off(worker: subprocess.Popen[bytes], seconds: float = SECONDS_CUT_OFF) -> None:
    """Stop a worker for a while, as when its network is down."""
    worker.send_signal(signal.SIGSTOP)
    threading.Timer(seconds, worker.send_signal, [signal.SIGCONT]).start()


@contextmanager
def client_of(machines):
    from distributed import Client

    with Client(machines.address, set_as_default=False) as client:
        yield client


@contextmanager
def while_one_works(machines, what):
    """Do something to a worker in the middle of a task, while this thread waits for the result; returns the worker."""
    met, stopped = [], threading.Event()

    def watch() -> None:
        with client_of(machines) as client:
            while not stopped.wait(0.02):
                info = client.scheduler_info(n_workers=-1)["workers"]
                for address, keys in client.processing().items():
                    if keys and (name := info.get(address, {}).get("name")):
                        what(machines.workers[name])
                        met.append(name)
                        return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield met
    finally:
        stopped.set()
        thread.join()
