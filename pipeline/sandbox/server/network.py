"""The network edge: the application on granian, on a port of the loopback, until it is stopped.

What it answers below `/sandbox/` is not part of the contract, needs no token, and is meant for the loopback only:

GET  health · served · planted · properties · rates · faults
POST faults (replaces all; `{}` clears) · night (`{"night": 7, "today": "2031-05-01"}`, each optional; `clock` is the
     instant that answers of that night are dated with)
"""

import asyncio
import gc
import os
import signal
import socket
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from pipeline.sandbox.faults.faults import FaultError, read_faults
from pipeline.sandbox.server.app import SandboxApp
from pipeline.sandbox.server.options import LOOPBACK, Options
from pipeline.sandbox.world.fx import MARKUP, REFERENCE_RATES

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


class _Night(msgspec.Struct, forbid_unknown_fields=True):
    night: int | None = None
    today: date | None = None
    clock: datetime | None = None


def control(app: SandboxApp, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Return status and JSON body of a control request."""
    handlers = _HANDLERS.get(path.removeprefix("/sandbox/"))
    if handlers is None:
        return 404, msgspec.json.encode({"error": f"there is no {path}", "known": sorted(_HANDLERS)})
    handler = handlers.get(method)
    if handler is None:
        return 405, msgspec.json.encode({"error": f"{path} takes {' and '.join(handlers)}"})
    try:
        return 200, msgspec.json.encode(handler(app, body))
    except (FaultError, msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        return 400, msgspec.json.encode({"error": str(error)})


def _health(app: SandboxApp, _body: bytes) -> dict[str, Any]:
    world = app.world
    return {
        "status": "ok",
        "simulated": True,
        "seed": world.seed,
        "night": world.night,
        "today": world.today,
        "properties": world.properties,
    }


def _properties(app: SandboxApp, _body: bytes) -> dict[str, Any]:
    pairs = [{"branded": branded, "unbranded": unbranded} for branded, unbranded in app.world.opaque_pairs()]
    return {"property_ids": app.world.property_ids(), "opaque_pairs": pairs}


def _set_faults(app: SandboxApp, body: bytes) -> object:
    faults = read_faults(body)
    if faults.expire_tokens:
        app.tokens.issued.clear()
    app.faults.set(faults)
    return faults


def _set_night(app: SandboxApp, body: bytes) -> dict[str, Any]:
    asked = msgspec.json.decode(body, type=_Night)
    world = app.world
    night = world.night if asked.night is None else asked.night
    app.turn_to(world.at(night, asked.today or world.today), asked.clock)
    return _health(app, b"")


_Handler = Callable[[SandboxApp, bytes], object]
_HANDLERS: Final[dict[str, dict[str, _Handler]]] = {
    "health": {"GET": _health},
    "served": {"GET": lambda app, _body: {**app.served.as_form(), "tokens": app.tokens.count}},
    "planted": {"GET": lambda app, _body: {"anomalies": app.world.planted()}},
    "properties": {"GET": _properties},
    "rates": {"GET": lambda _app, _body: {"base": "EUR", "rates": REFERENCE_RATES, "markup": MARKUP}},
    "faults": {"GET": lambda app, _body: app.faults.faults, "POST": _set_faults},
    "night": {"POST": _set_night},
}
