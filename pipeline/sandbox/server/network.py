"""The network edge: the application on granian, on a port of the loopback, until it is stopped."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pipeline.sandbox.server.app import SandboxApp
from pipeline.sandbox.server.control import control
from pipeline.sandbox.server.options import LOOPBACK, Options

_OPEN_FILES: Final = Path("/dev/fd")
_CLOSE_WITH_RESET: Final = struct.pack("ii", 1, 0)


def serve(
    options: Options, host: str = LOOPBACK, port: int = 8787, announce: Callable[[str], None] | None = None
) -> None:
    """Serve until SIGINT or SIGTERM. Port 0 takes a free one; `announce` gets the base address before the start.

    Raises OSError if the address is taken or does not exist.
    """
    # Answers are large trees without cycles, and searching them for cycles takes a quarter of the time.
    gc.set_threshold(100_000, 50, 50)
    with _held_address(host, port) as held:
        port = held.getsockname()[1]
        if announce is not None:
            announce(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        _run(_serve(SandboxApp(options, reset_connection, control), host, port))


def _run(serving: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(serving)
    else:
        uvloop.run(serving)


async def _serve(app: SandboxApp, host: str, port: int) -> None:
    # Granian is slow to import, and not needed for the world or the ids alone.
    from granian.constants import HTTPModes, Interfaces
    from granian.server.embed import Server

    server = Server(
        app,
        address=host,
        port=port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        backlog=1024,
        log_enabled=False,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, server.stop)
    await server.serve()


def _held_address(host: str, port: int) -> socket.socket:
    """Return a socket that reserves host and port, without listening, until the server takes them.

    Granian shares its port with any other socket of this user that asks to share. So a fixed port is first bound
    exclusively; otherwise a second sandbox on it would silently get half of the connections.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if port:
        with socket.socket(family, socket.SOCK_STREAM) as alone:
            alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            alone.bind((host, port))
    held = socket.socket(family, socket.SOCK_STREAM)
    if hasattr(socket, "SO_REUSEPORT"):
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind((host, port))
    return held


def reset_connection(client: tuple[str, int | str] | None) -> bool:
    """Close a client's connection with a TCP reset; False if its socket cannot be found.

    The server does not expose its sockets, so the open files are searched for the one to this peer. A linger time of 0
    turns the close into a reset, and shutting down the receiving side makes the server close.
    """
    if not client:
        return False
    peer = (client[0], int(client[1]))
    for entry in _OPEN_FILES.iterdir():
        with suppress(OSError):
            found = socket.socket(fileno=os.dup(int(entry.name)))
            with found:
                if found.getpeername()[:2] == peer:
                    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_WITH_RESET)
                    found.shutdown(socket.SHUT_RD)
                    return True
    return False
