"""A Prefect server on this machine for as long as somebody needs it, where none is configured.

Prefect would start a temporary one itself; that one has no scheduler, hears the Ctrl-C that is meant for the run, so
that the run can no longer be reported, and goes on for ever where its user is killed. This one listens on the
loopback only, has its own process group, and ends with the process that started it.

Run as a module, this is the child: `python -m flows.server <parent> <port> <services>`.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from pipeline.domain.errors import NightauditError

LOOPBACK = "127.0.0.1"
READY_SECONDS = 120.0
_STOP_SECONDS = 10.0
_READY = "ready"


class PrefectServerFailed(NightauditError):
    """The Prefect server of our own did not start."""


@contextmanager
def prefect_server(*, has_scheduler: bool = False, ports: tuple[int, ...] = (0,)) -> Iterator[str]:
    """Give the address of the configured Prefect server, or of one that lives as long as this.

    `ports` are tried in order; 0 stands for any free one. The server keeps its records where Prefect's settings say
    (PREFECT_HOME), so the runs of one night are there the next. Raises PrefectServerFailed.
    """
    from prefect.settings import PREFECT_API_URL, get_current_settings, temporary_settings

    configured = get_current_settings().api.url
    if configured:
        yield str(configured)
        return
    with tempfile.TemporaryFile() as log:
        port = _free_port(ports)
        child = _start(port, has_scheduler, log)
        try:
            _await_ready(child, log)
            address = f"http://{LOOPBACK}:{port}/api"
            with temporary_settings({PREFECT_API_URL: address}):
                try:
                    yield address
                finally:
                    _send_what_is_queued()
        finally:
            _stop(child)


def _free_port(ports: tuple[int, ...]) -> int:
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise PrefectServerFailed(f"No port is free for a Prefect server: {', '.join(map(str, ports))} are taken.")


def _start(port: int, has_scheduler: bool, log: IO[bytes]) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "PREFECT_SERVER_API_HOST": LOOPBACK,
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_SERVER_UI_ENABLED": str(has_scheduler).lower(),
        # Slots of running flows are kept on the disk: one that a crash has left taken is free again minutes later.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    }
    services = "all" if has_scheduler else "few"
    return subprocess.Popen(  # noqa: S603 - our own interpreter, our own module
        [sys.executable, "-m", "flows.server", str(os.getpid()), str(port), services],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env=environment,
        start_new_session=True,
    )


def _await_ready(child: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    lines: list[bytes] = []
    reader = threading.Thread(
        target=lambda: lines.append(child.stdout.readline() if child.stdout else b""), daemon=True
    )
    reader.start()
    reader.join(READY_SECONDS)
    if lines and lines[0].strip() == _READY.encode():
        return
    child.kill()
    child.wait()
    log.seek(0)
    last = log.read()[-1500:].decode(errors="replace").strip()
    raise PrefectServerFailed(
        f"Prefect's server did not start within {READY_SECONDS:.0f} s. It wrote:\n{last}",
        kept="Nothing was started.",
        hint="Without Prefect, a night is: nightaudit sweep, then nightaudit publish",
    )


def _send_what_is_queued() -> None:
    # Logs and events of runs wait in threads of this process, which would try for a minute to reach a server that
    # has gone.
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogHandler

    APILogHandler().flush()
    EventsWorker.drain_all(timeout=_STOP_SECONDS)


def _stop(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()


# The child --------------------------------------------------------------------------------------------------


def main() -> None:
    """Serve Prefect's API until the parent is gone or asks to stop."""
    parent, port, services = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()

    import uvicorn
    from prefect.server.api.server import create_app

    class Announcing(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                sys.stdout.write(f"{_READY}\n")
                sys.stdout.flush()

    app = create_app(ephemeral=services == "few", final=True)
    Announcing(uvicorn.Config(app, host=LOOPBACK, port=port, log_level="warning", lifespan="on")).run()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        if sys.platform == "win32":
            time.sleep(0.5)
            continue
        readable, _, _ = select.select([sys.stdin.buffer], [], [], 0.5)
        if readable and not os.read(sys.stdin.fileno(), 1024):
            break
    # Nobody is left to stop the server in good order; what it has recorded is on the disk.
    os._exit(0)


if __name__ == "__main__":
    main()
