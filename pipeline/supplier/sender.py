"""`Sender`: single requests, each in its slot, with the pools, the day's calls, and redirects within the origin."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

import httpx

from pipeline.settings import Clock, Settings
from pipeline.supplier.answer import Failure
from pipeline.supplier.auth import TokenUnavailable
from pipeline.supplier.bodies import UnreadableBody, inflate
from pipeline.supplier.connection import SLOT
from pipeline.supplier.exchange import Limits, Reply, exchange
from pipeline.supplier.pacer import Allowance, Pace, Pacer, Slot
from pipeline.supplier.rate_store import RedisLeases
from pipeline.supplier.shared_pace import SharedPacer
from pipeline.supplier.store_away import Patience, RateStoreAway

_TOKEN_BYTES = 64 * 1024

# Redirects that one request follows: 307 and 308, within the supplier's origin.
_MOST_REDIRECTS = 5
_CIRCLE = "HTTP {}, endless redirects; addresses requested: {}"
_KEEPING_REDIRECTS = frozenset({httpx.codes.TEMPORARY_REDIRECT, httpx.codes.PERMANENT_REDIRECT})


class Sent(NamedTuple):
    """The reply to a search. It was sent last at `started_at`, after `requests` requests in all."""

    reply: Reply
    started_at: datetime
    requests: int


class Sender:
    """Sends one request at a time for each caller. `open` it before and `close` it after use."""

    def __init__(
        self,
        pacer: Pace,
        limits: Limits,
        allowance: Allowance,
        *,
        transport: Callable[[str], httpx.AsyncBaseTransport],
        wall_clock: Clock,
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        # Total seconds that searches have waited for their turn.
        self.paced_seconds = 0.0
        self._pacer = pacer
        self._limits = limits
        self._extensions = limits.extensions
        self._allowance = allowance
        self._open_transport = transport
        # By scheme, host and port: a pool for clear text verifies no certificates.
        self._transports: dict[tuple[bytes, bytes], httpx.AsyncBaseTransport] = {}
        self._wall_clock = wall_clock
        self._sleep = sleep

    def open(self, *addresses: str) -> None:
        """Open a pool for the origin of each address."""
        for address in addresses:
            origin = _origin(httpx.URL(address))
            if origin not in self._transports:
                self._transports[origin] = self._open_transport(address)

    async def close(self) -> None:
        """Close the pacer and all pools."""
        await self._pacer.close()
        while self._transports:
            await self._transports.popitem()[1].aclose()

    async def search(self, request: httpx.Request, sent: int, *, may_move: bool) -> Sent:
        """Send a search in its slot, after `sent` requests, and again to where it is redirected if it `may_move`."""
        been_at = {request.url}
        while True:
            sent += 1
            asked_at = time.monotonic()
            slot = await self._pacer.slot()
            self.paced_seconds += time.monotonic() - asked_at
            try:
                await self._take_call()
                started_at = self._wall_clock()
                reply = await self._exchange(request, slot, self._limits.body_bytes)
            finally:
                slot.sent()
            if reply.status not in _KEEPING_REDIRECTS or not may_move:
                break
            target = _within_origin(request.url, reply.location)
            if target is None:
                break
            if target in been_at or len(been_at) > _MOST_REDIRECTS:
                reply = replace(reply, failure=Failure.REDIRECT, detail=_CIRCLE.format(reply.status, len(been_at)))
                break
            been_at.add(target)
            request = httpx.Request("POST", target, headers=request.headers, content=request.content)
        return Sent(reply, started_at, sent)

    async def token(self, request: httpx.Request) -> httpx.Response:
        """Send a request for a token in its slot. The day's allowance counts searches only.

        Raises TokenUnavailable if there is no complete response.
        """
        slot = await self._pacer.slot()
        try:
            reply = await self._exchange(request, slot, _TOKEN_BYTES)
        finally:
            slot.sent()
        if reply.status is None or reply.failure is not None:
            raise TokenUnavailable(reply.detail, is_unreachable=reply.failure is Failure.UNREACHABLE)
        try:
            # Not by httpx, which inflates without a limit.
            body = inflate(reply.body, reply.headers.pop("content-encoding", ""), limit_bytes=_TOKEN_BYTES)
        except UnreadableBody as error:
            if reply.status == httpx.codes.OK:
                raise TokenUnavailable(f"the token endpoint answered 200: {error}") from None
            body = b""
        reply.headers.pop("content-length", None)
        return httpx.Response(reply.status, headers=reply.headers, content=body)

    async def _take_call(self) -> None:
        """Take one of the day's calls, once their store can be reached."""
        while True:
            try:
                return self._allowance.take()
            except RateStoreAway as away:
                if away.again_after_seconds is None:
                    raise
                await self._sleep(away.again_after_seconds)

    async def _exchange(self, request: httpx.Request, slot: Slot, limit_bytes: int) -> Reply:
        request.extensions = {**self._extensions, SLOT: slot}
        transport = self._transports[_origin(request.url)]
        return await exchange(transport, request, seconds=self._limits.exchange_seconds, limit_bytes=limit_bytes)


def _origin(url: httpx.URL) -> tuple[bytes, bytes]:
    return url.raw_scheme, url.netloc


def _within_origin(url: httpx.URL, location: str) -> httpx.URL | None:
    """Return the target of a redirect within the same origin; None: another origin, or no target."""
    try:
        target = url.join(location)
    except (httpx.InvalidURL, ValueError):
        return None
    # As they are written: a host that cannot be shown in its own letters is another one, and no error.
    is_same = (target.raw_scheme, target.raw_host, target.port) == (url.raw_scheme, url.raw_host, url.port)
    return target.copy_with(fragment=None) if location and is_same and target.userinfo == url.userinfo else None


def pace_of(settings: Settings, base_url: str) -> Pace:
    """Return the pacer of this process, or the one shared through a store."""
    if settings.rate_store is None:
        return Pacer(settings.rate)
    address = settings.rate_store.get_secret_value()
    leases = RedisLeases(address, httpx.URL(base_url).netloc.decode())
    return SharedPacer(settings.rate, leases, Patience(address))
