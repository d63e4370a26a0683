"""The web application of a lake, served as `nightaudit serve` does, on a free port."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from pipeline.report.guard import Key
from pipeline.report.serve import application


@dataclass(frozen=True)
class Served:
    """The address, and the key that opens it."""

    port: int
    key: Key

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def printed(self, path: str = "/reports/") -> str:
        return self.key.address(self.address + path)


@contextmanager
def served(lake):
    """Yield the served application, a thread of this process; its notebooks read this process's environment."""
    key = Key()
    server = uvicorn.Server(uvicorn.Config(application(lake, key), host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Served(server.servers[0].sockets[0].getsockname()[1], key)
    finally:
        server.should_exit = True
        thread.join()
