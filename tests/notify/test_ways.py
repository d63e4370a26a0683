"""A receiver that answers byte by byte never meets a socket's timeout, and must not hold up a night."""

from __future__ import annotations

import socketserver
import threading
from contextlib import contextmanager, suppress

import pytest

from pipeline.notify import ways
from pipeline.notify.ways import NotDelivered, mail, webhook


@contextmanager
def dripping(begin):
    """A server that begins to answer, then sends a byte now and then, and hangs up in the end; yields its address."""
    released = threading.Event()

    class Drip(socketserver.BaseRequestHandler):
        def handle(self):
            with suppress(OSError):
                self.request.sendall(begin)
                while not released.wait(0.05):
                    self.request.sendall(b"x")

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Drip) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        threading.Timer(10, released.set).start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            released.set()
            server.shutdown()


@pytest.mark.parametrize(
    ("way", "begin", "address"),
    [
        (webhook, b"HTTP/1.1 200 OK\r\nx: ", "http://{}/hidden-part"),
        (mail, b"220 ", "smtp://{}/?from=a@hotel.example&to=b@hotel.example"),
    ],
)
def test_a_receiver_that_answers_byte_by_byte_is_given_up(monkeypatch, way, begin, address):
    monkeypatch.setattr(ways, "_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(ways, "_MAIL_SECONDS", 0.2)
    with dripping(begin) as host, pytest.raises(NotDelivered, match="no complete answer within"):
        way(address.format(host))("a subject", "a text")
