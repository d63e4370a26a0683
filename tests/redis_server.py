"""A separate Redis server for a test, which can be restarted."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from free_port import free_port


class RedisServer:
    """A running server, which keeps nothing on disk."""

    def __init__(self, program: str, folder: Path) -> None:
        self._port = free_port()
        self._command = [program, "--port", str(self._port), "--save", "", "--dir", str(folder)]
        self._process = self._start()

    @property
    def address(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def restart(self, seconds_away: float) -> None:
        """Kill it with all it held, and start an empty one after a while."""
        self.end()
        time.sleep(seconds_away)
        self._process = self._start()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(self._command, stdout=subprocess.PIPE)
        for line in process.stdout:
            if b"Ready to accept" in line:
                break
        return process


@contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    """Run a separate Redis server; skips the test if there is none."""
    program = os.environ.get("REDIS_SERVER") or shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no redis-server: apt-get install redis-server, or name it in REDIS_SERVER")
    server = RedisServer(program, folder)
    try:
        yield server
    finally:
        server.end()
