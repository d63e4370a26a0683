"""A separate Redis server for a test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from free_port import free_port


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Return the address of a separate Redis server; skips the test if there is none."""
    program = os.environ.get("REDIS_SERVER") or shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no redis-server: apt-get install redis-server, or name it in REDIS_SERVER")
    port = free_port()
    server = subprocess.Popen([program, "--port", str(port), "--save", "", "--dir", str(folder)], stdout=-1)
    try:
        for line in server.stdout:
            if b"Ready to accept" in line:
                break
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.kill()
        server.wait()
