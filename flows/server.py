"""The Prefect server that flows report to: the configured one, or one on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import httpx
from prefect.settings import PREFECT_API_URL, get_current_settings, temporary_settings

from pipeline.domain.errors import NightauditError

_LOOPBACK = "127.0.0.1"
_READY_SECONDS = 120.0
_STOP_SECONDS = 10.0
_LOOK_SECONDS = 5.0
# A busy server answers late, but one of many attempts succeeds.
_SILENT_SECONDS = 300.0


class PrefectServerFailed(NightauditError):
    """The Prefect server of this machine did not start."""


@contextmanager
def prefect_server() -> Iterator[str]:
    """Give the address of the configured Prefect server, or of one on this machine, started if none answers there.

    Raises PrefectServerFailed if it does not start.
    """
    current = get_current_settings()
    if current.api.url:
        yield str(current.api.url)
        return
    address = f"http://{_LOOPBACK}:{current.server.api.port}/api"
    log = Path(current.home) / "server.log"
    with (
        nullcontext() if answers(address) else _own_server(address, current.server.api.port, log),
        temporary_settings({PREFECT_API_URL: address}),
    ):
        # Runs are separate processes, which find the address in their environment.
        os.environ["PREFECT_API_URL"] = address
        yield address


@contextmanager
def _own_server(address: str, port: int, log: Path) -> Iterator[None]:
    """Run a server, and start it again if it ends by itself or no longer answers."""
    servers, has_ended = [_start(port, log)], threading.Event()

    def keep() -> None:
        answered_at = time.monotonic()
        while not has_ended.wait(_LOOK_SECONDS):
            if answers(address):
                answered_at = time.monotonic()
            elif servers[-1].poll() is not None or time.monotonic() - answered_at > _SILENT_SECONDS:
                _stop(servers[-1])
                servers.append(_start(port, log))
                answered_at = time.monotonic()

    keeper = threading.Thread(target=keep, name="Prefect server", daemon=True)
    try:
        _await_answer(servers[0], address, log)
        keeper.start()
        yield
    finally:
        has_ended.set()
        if keeper.is_alive():
            keeper.join()
        _stop(servers[-1])


def _start(port: int, log: Path) -> subprocess.Popen[bytes]:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603 - our own interpreter, Prefect's own command
            [sys.executable, "-m", "prefect", "server", "start", "--host", _LOOPBACK, "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={
                **os.environ,
                # Slots of running flows are kept on disk, so that a slot left by a crash is free within minutes.
                "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
            },
            # On Ctrl-C the run needs the server for its last report.
            start_new_session=True,
        )


def _await_answer(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    ends_at = time.monotonic() + _READY_SECONDS
    while not answers(address):
        if server.poll() is not None or time.monotonic() > ends_at:
            raise PrefectServerFailed(
                f"The Prefect server did not start. It wrote:\n{log.read_text(errors='replace')[-1500:].strip()}",
                kept="Nothing was started.",
                hint=f"Its full output is in {log}. To run a night without Prefect: nightaudit nightly",
            )
        time.sleep(0.2)


def answers(address: str) -> bool:
    """Return whether a Prefect server answers at an address."""
    try:
        return httpx.get(f"{address}/health", timeout=2, trust_env=False).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
