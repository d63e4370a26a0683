"""A port for a server that is started later, or started again."""

from __future__ import annotations

import random
import socket

# Below what systems give to sockets that ask for any port: a connection of another test cannot take it meanwhile.
_PORTS = range(10_000, 32_000)


def free_port() -> int:
    """Return a port of the loopback on which nothing listens."""
    while True:
        port = random.choice(_PORTS)  # noqa: S311 - no secret
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
