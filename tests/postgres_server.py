"""A separate PostgreSQL server for a test, from Debian's package, which can be restarted."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from free_port import free_port

_PACKAGE = "apt-get install --no-install-recommends postgresql"


class PostgresServer:
    """A running server with a database `prefect` of the user `prefect`."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._data = programs, folder / "data"
        self._port = free_port()
        self._run("initdb", "--pgdata", self._data, "--username", "prefect", "--auth", "trust", "--no-sync")
        self._process = self._start()
        self._run("createdb", *self._to_server, "prefect")

    @property
    def address(self) -> str:
        return f"postgresql+asyncpg://prefect@127.0.0.1:{self._port}/prefect"

    def restart(self, seconds_away: float) -> None:
        """Drop every connection, and accept new ones after a while."""
        self.end()
        time.sleep(seconds_away)
        self._process = self._start()

    def end(self) -> None:
        # Fast: it does not wait for those who are connected.
        self._process.send_signal(signal.SIGINT)
        self._process.wait(60)

    @property
    def _to_server(self) -> tuple[str, ...]:
        return ("--host", "127.0.0.1", "--port", str(self._port), "--username", "prefect")

    def _start(self) -> subprocess.Popen[bytes]:
        command = (self._programs / "postgres", "-D", self._data, "-h", "127.0.0.1", "-p", self._port, "-k", self._data)
        with (self._data / "log").open("ab") as log:
            process = subprocess.Popen(_called(command), stdout=log, stderr=log, **_AS_USER)
        ends_at = time.monotonic() + 60
        while subprocess.run([self._programs / "pg_isready", *self._to_server], stdout=subprocess.DEVNULL).returncode:
            assert time.monotonic() < ends_at, (self._data / "log").read_text()
            time.sleep(0.1)
        return process

    def _run(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            _called((self._programs / program, *arguments)), capture_output=True, text=True, timeout=120, **_AS_USER
        )
        assert done.returncode == 0, done.stdout + done.stderr


# It refuses to run as root.
_AS_USER: dict[str, str] = {"user": "postgres", "group": "postgres", "cwd": "/"} if os.geteuid() == 0 else {}


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server, or skip the test if it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip(f"there is no PostgreSQL: {_PACKAGE}")
    # Not below a folder of pytest's, into which another user may not look.
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        if _AS_USER:
            user = pwd.getpwnam(_AS_USER["user"])
            os.chown(folder, user.pw_uid, user.pw_gid)
        server = PostgresServer(found[-1].parent, folder)
        try:
            yield server
        finally:
            server.end()
    finally:
        shutil.rmtree(folder)


def _called(command: Sequence[object]) -> list[str]:
    return [str(part) for part in command]
