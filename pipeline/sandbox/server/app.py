"""The ASGI application: reads requests, asks the pure parts, and sends answers or faults."""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final

from pipeline.sandbox.faults import garbage
from pipeline.sandbox.faults.faults import GARBAGE_KINDS, FaultDesk, Faults
from pipeline.sandbox.server import answers
from pipeline.sandbox.server.answers import Answer
from pipeline.sandbox.server.options import Options
from pipeline.sandbox.server.replies import Headers, Reply, ReplyCache, Served, negotiated, reply
from pipeline.sandbox.server.tokens import TokenDesk
from pipeline.sandbox.server.validation import understand
from pipeline.sandbox.world import documented
from pipeline.sandbox.world.documented import Operation, Search
from pipeline.sandbox.world.world import World

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Control = Callable[["SandboxApp", str, str, bytes], tuple[int, bytes]]

_MAX_REQUEST_BYTES: Final = 1 << 20
_BROKEN_TRANSFERS: Final = frozenset({"reset", "reset_midway", "truncate", "truncate_chunked"})
# Time for the server to notice that its socket was closed, before the next request.
_RESET_SETTLES_S: Final = 0.2


class SandboxApp:
    """The supplier as an ASGI application.

    `reset` closes a client's connection abruptly (False if it cannot); `control` answers below `/sandbox/`. Both are
    handed in, as only the network edge knows sockets and control is not part of the contract.
    """

    def __init__(
        self,
        options: Options,
        reset: Callable[[tuple[str, int | str] | None], bool],
        control: Control,
    ) -> None:
        self.options = options
        self.world = options.world()
        self.tokens = TokenDesk(options.client_id, options.client_secret, options.expires_in_s)
        self.faults = FaultDesk(options.seed, options.faults)
        self.served = Served()
        self._cache = ReplyCache(options.cache_mb << 20)
        self._reset = reset
        self._control = control
        self._quotes = 0

    def turn_to(self, world: World, clock: datetime | None = None) -> None:
        """Answer from another world (another night) from now on, dated with `clock` if given."""
        self.world = world
        if clock is not None:
            self.options = replace(self.options, clock=clock)
        self._cache.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        # The body is always read: a server that still waits for it does not notice a reset.
        path, method, body = scope["path"], scope["method"], await _body(receive)
        if path.startswith("/sandbox/"):
            made = reply(*self._control(self, method, path, body))
        elif self.faults.faults.down:
            made = _RESET
        elif path != documented.TOKEN_PATH and path not in documented.PATHS:
            made = reply(404, b'{"error":"no such address"}')
        elif method != "POST":
            made = reply(405, b'{"error":"only POST is possible"}', ((b"allow", b"POST"),))
        elif path == documented.TOKEN_PATH:
            made = self._token(scope, body)
        else:
            await self._operate(scope, send, documented.PATHS[path], body)
            return
        await self._send(scope, send, made)

    def _token(self, scope: Scope, body: bytes) -> Reply:
        if self.faults.token_fails():
            return reply(500, answers.server_error().body)
        authorization = _header(scope, b"authorization")
        content_type = _header(scope, b"content-type") or ""
        return self.tokens.issue(authorization, content_type, body, time.monotonic())

    async def _operate(self, scope: Scope, send: Send, operation: Operation, body: bytes) -> None:
        now = time.monotonic()
        refusal = self.tokens.check(_header(scope, b"authorization"), documented.SCOPE_OF[operation], now)
        if refusal is not None:
            await self._send(scope, send, refusal)
            self.served.count(operation, refusal.status)
            return
        verdict = self.faults.judge(body, now)
        if verdict.delay_s:
            await asyncio.sleep(verdict.delay_s)
        made, answer = self._answered(scope, operation, body, verdict.kind)
        await self._send(scope, send, made)
        if made.ending == "whole":
            self.served.count(operation, made.status, answer)
        else:
            self.served.count(operation, made.ending)

    def _answered(
        self, scope: Scope, operation: Operation, body: bytes, kind: str | None
    ) -> tuple[Reply, Answer | None]:
        """Return the reply, and its answer if it is sent complete and readable."""
        early = self._failed(kind)
        if early is not None:
            return early, None
        faults = self.faults.faults
        accept = _header(scope, b"accept-encoding") or ""
        key = (operation, accept, body)
        plain = kind is None and not faults.poisoned_property_ids and not faults.unreadable_property_ids
        kept = self._cache.get(key) if plain else None
        if kept is not None:
            return kept
        search = understand(operation, body, self.world.today, self.options.rate_type_required)
        if not isinstance(search, Search):
            answer = answers.refused(search)
        elif not _disjoint(search, faults.poisoned_property_ids):
            answer = answers.server_error()
        else:
            kind = kind if _disjoint(search, faults.unreadable_property_ids) else "cut_json"
            self._quotes += search.operation == "quote"
            answer = answers.answer(self.world, search, self._quotes)
        if kind in GARBAGE_KINDS and answer.status == 200:
            return _spoiled(kind, answer, scope["path"], faults)
        made = negotiated(answer.status, answer.body, accept)
        if kind in _BROKEN_TRANSFERS:
            return made._replace(ending=kind), None
        if plain and answer.products and operation != "quote":
            self._cache.put(key, made, answer)
        return made, answer

    def _failed(self, kind: str | None) -> Reply | None:
        """Return the reply of a fault that needs no answer, None for any other kind."""
        if kind == "status_500":
            return reply(500, answers.server_error().body)
        if kind in {"status_503", "status_429"}:
            now = self.options.clock or datetime.now(UTC)
            return reply(int(kind[-3:]), b'{"error":"please slow down"}', _retry_after(self.faults.faults, now))
        return _RESET if kind == "reset" else None

    async def _send(self, scope: Scope, send: Send, made: Reply) -> None:
        if made.ending == "reset":
            await self._break_off(scope)
            return
        length = made.length
        headers = list(made.headers)
        if self.options.clock:
            # Without this header, the server sends the real time.
            headers.append((b"date", _http_date(self.options.clock)))
        if length is not None and made.ending != "truncate_chunked":
            headers.append((b"content-length", str(length).encode()))
        await send({"type": "http.response.start", "status": made.status, "headers": headers})
        if made.ending in _BROKEN_TRANSFERS:
            half = b"".join(made.chunks())[: (length or 0) // 2]
            await send({"type": "http.response.body", "body": half, "more_body": True})
            # Returning without the rest makes the server close the connection mid-body.
            await asyncio.sleep(_RESET_SETTLES_S / 4)
            if made.ending == "reset_midway":
                await self._break_off(scope)
            return
        for chunk in made.chunks():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _break_off(self, scope: Scope) -> None:
        self._reset(scope.get("client"))
        await asyncio.sleep(_RESET_SETTLES_S)


async def _body(receive: Receive) -> bytes:
    """Return the request's body; of one far too long only the beginning, which is not JSON."""
    parts: list[bytes] = []
    size = 0
    while size <= _MAX_REQUEST_BYTES:
        message = await receive()
        if message["type"] != "http.request":
            break
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if not message.get("more_body"):
            break
    return b"".join(parts)


def _header(scope: Scope, name: bytes) -> str | None:
    values = [value.decode("latin-1") for key, value in scope["headers"] if key == name]
    return ", ".join(values) if values else None


def _disjoint(search: Search, property_ids: tuple[int, ...]) -> bool:
    return set(search.property_ids).isdisjoint(property_ids)


_RESET: Final = Reply(0, (), lambda: iter(()), None, "reset")


def _spoiled(kind: str, answer: Answer, path: str, faults: Faults) -> tuple[Reply, Answer | None]:
    spoiled = garbage.spoil(kind, answer.body, path, faults)
    headers: Headers = ((b"content-type", spoiled.content_type), *spoiled.headers)
    if spoiled.encoding:
        headers = (*headers, (b"content-encoding", spoiled.encoding))
    made = Reply(spoiled.status, headers, spoiled.chunks, spoiled.length)
    return made, answer if kind in garbage.READABLE else None


def _http_date(moment: datetime) -> bytes:
    return format_datetime(moment, usegmt=True).encode()


def _retry_after(faults: Faults, now: datetime) -> Headers:
    if faults.retry_after_s is None:
        return ()
    if faults.retry_after_as_date:
        return ((b"retry-after", _http_date(now + timedelta(seconds=faults.retry_after_s))),)
    return ((b"retry-after", str(faults.retry_after_s).encode()),)
