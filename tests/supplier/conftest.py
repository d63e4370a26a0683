"""A supplier that does as a test tells it, over a real socket."""

from __future__ import annotations

import asyncio
import json
import selectors
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from pipeline.supplier.auth import ClientCredentials
from pipeline.supplier.client import SupplierClient
from pipeline.supplier.exchange import Limits
from pipeline.supplier.pacer import Pacer, Slot
from pipeline.supplier.retries import Backoff

CLIENT_ID = "partner:one"
SECRET = "s3cret/+ äö%"
TOKEN_PATH = "/auth/oauth/token"


@dataclass(frozen=True)
class Reply:
    """What the server sends, and what it does to the connection afterwards: keep, close, reset, hang or drip."""

    data: bytes
    then: str = "keep"


def reply(
    status: int, body: bytes = b"", *, headers: tuple[str, ...] = (), length: int | None = None, then: str = "keep"
) -> Reply:
    given = "".join(f"{line}\r\n" for line in headers)
    if not any(line.lower().startswith("content-type:") for line in headers):
        given += "Content-Type: application/json\r\n"
    size = len(body) if length is None else length
    return Reply(f"HTTP/1.1 {status} Text\r\n{given}Content-Length: {size}\r\n\r\n".encode() + body, then)


def token_reply(value: str, **fields) -> Reply:
    return reply(200, json.dumps({"access_token": value, "token_type": "bearer", **fields}).encode())


@dataclass
class Received:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class ScriptedSupplier:
    """Answers searches and token requests from two scripts, one reply each; the last reply of a script is repeated."""

    searches: list[Reply] = field(default_factory=lambda: [reply(200, b'{"properties":[]}')])
    tokens: list[Reply] = field(default_factory=lambda: [token_reply("token-1", expires_in=3600)])
    decide: Callable[[Received], Reply] | None = None
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    delay_seconds: float = 0.0
    port: int = 0
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[Received]:
        return [request for request in self.received if request.path != TOKEN_PATH]

    @property
    def token_requests(self) -> list[Received]:
        return [request for request in self.received if request.path == TOKEN_PATH]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").rstrip().split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                request = Received(first.split()[1], headers, body)
                self.received.append(request)
                if request.path != TOKEN_PATH:
                    self.was_asked.set()
                if not await self._send(self._next(request), writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _next(self, request: Received) -> Reply:
        if self.decide and request.path != TOKEN_PATH:
            return self.decide(request)
        script = self.tokens if request.path == TOKEN_PATH else self.searches
        return script.pop(0) if len(script) > 1 else script[0]

    async def _send(self, answer: Reply, writer: asyncio.StreamWriter) -> bool:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(self.delay_seconds)
        self.in_flight -= 1
        if answer.then == "drip":
            for byte in answer.data:
                writer.write(bytes((byte,)))
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.write(answer.data)
        await writer.drain()
        if answer.then == "hang":
            await asyncio.sleep(30)
        if answer.then == "reset":
            # Let the bytes arrive first; a lingering time of 0 makes the close a reset.
            await asyncio.sleep(0.02)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        return answer.then == "keep"


@asynccontextmanager
async def running(supplier: ScriptedSupplier) -> AsyncIterator[ScriptedSupplier]:
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(supplier.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    supplier.port = server.sockets[0].getsockname()[1]
    try:
        yield supplier
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Jumps(selectors.DefaultSelector):
    """A selector that waits for nothing: its time jumps to when the next timer is due."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list:
        assert timeout is not None, "all tasks wait, and nothing is due"
        self.now += max(timeout, 0)
        return super().select(0)


class Waits:
    """Stands in for asyncio.sleep: records how long it was to wait, and gives all other tasks a turn."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


class NotedPacer(Pacer):
    """A pacer that is never in the way and notes what was asked of it."""

    def __init__(self) -> None:
        super().__init__(1e6)
        self.slots = 0
        self.taken: list[Slot] = []
        self.pauses: list[float] = []

    async def slot(self) -> Slot:
        self.slots += 1
        await asyncio.sleep(0)
        self.taken.append(slot := Slot(time.monotonic))
        return slot

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


def client_of(supplier_url: str, *, auth_url: str | None = None, limits: Limits | None = None, **given):
    auth = ClientCredentials(f"{auth_url or supplier_url}{TOKEN_PATH}", CLIENT_ID, SECRET)
    defaults = {"pacer": NotedPacer(), "sleep": Waits(), "backoff": Backoff(0.001), "concurrency": 8}
    return SupplierClient(supplier_url, auth, limits=limits or Limits(60, 60, 100_000), **(defaults | given))


@pytest.fixture
def wire() -> SimpleNamespace:
    """The parts above, handed to tests: pytest's import mode knows no sibling modules."""
    return SimpleNamespace(
        Supplier=ScriptedSupplier,
        running=running,
        reply=reply,
        Reply=Reply,
        token_reply=token_reply,
        client=client_of,
        Pacer=NotedPacer,
        Waits=Waits,
        secret=SECRET,
        client_id=CLIENT_ID,
        token_path=TOKEN_PATH,
    )


@pytest.fixture(scope="session")
def virtual_time():
    """Run a coroutine in a loop whose waiting takes no time, and return what it returns."""

    def run(coroutine):
        selector = _Jumps()
        loop = asyncio.SelectorEventLoop(selector)
        loop.time = lambda: selector.now
        try:
            return loop.run_until_complete(coroutine)
        finally:
            loop.close()

    return run
