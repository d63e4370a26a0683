"""The web application of a lake, served as `nightaudit serve` does, on a free port."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import uvicorn

from pipeline.report.serve import application


@contextmanager
def served(lake):
    """Yield the address; the server is a thread of this process, so notebooks read the settings of its environment."""
    server = uvicorn.Server(uvicorn.Config(application(lake), host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
