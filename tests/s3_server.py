"""A server that speaks S3, in a process of its own: moto's, which honours create-only puts, one request at a time.

It holds its objects in memory. On SIGUSR1 it cannot be reached for some seconds: nothing listens at its address.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from free_port import free_port

KEY_ID, SECRET = "AKIANEVERTOBESEEN000", "never-to-be-seen-5c1d"
SECONDS_AWAY = 4


class S3Server:
    """A running server, and what a process needs to use it."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process = process
        self.address = f"http://127.0.0.1:{port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """The usual variables."""
        return {
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ALLOW_HTTP": "true",
        }

    def go_away(self, seconds: float = SECONDS_AWAY) -> None:
        """Be unreachable for some seconds, from now on."""
        self._process.send_signal(signal.SIGUSR1)
        threading.Timer(seconds, self._process.send_signal, [signal.SIGUSR2]).start()
        while self._is_there():
            time.sleep(0.01)

    def _is_there(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", int(self.address.rpartition(":")[2]))).close()
        except OSError:
            return False
        return True


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run a server that has one bucket, `bucket`."""
    command = [sys.executable, str(Path(__file__).resolve())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        try:
            assert process.stdout is not None
            yield S3Server(process, int(process.stdout.readline()))
        finally:
            process.kill()


def _serve() -> None:
    import logging

    from moto.s3.models import s3_backends
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import BaseWSGIServer, make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    s3_backends["123456789012"]["aws"].create_bucket("bucket", "us-east-1")
    application, port = DomainDispatcherApplication(create_backend_app), free_port()
    running: list[BaseWSGIServer] = []
    # Shut down from a thread: the server's own would wait for itself.
    signal.signal(signal.SIGUSR1, lambda *_: threading.Thread(target=running[-1].shutdown).start())
    is_back = threading.Event()
    signal.signal(signal.SIGUSR2, lambda *_: is_back.set())
    while True:
        server = make_server("127.0.0.1", port, application, threaded=False)
        running.append(server)
        if len(running) == 1:
            print(port, flush=True)  # noqa: T201 - what the parent waits for
        server.serve_forever()
        server.server_close()
        is_back.wait()
        is_back.clear()


if __name__ == "__main__":
    _serve()
