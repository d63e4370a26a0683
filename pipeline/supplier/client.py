"""`SupplierClient`: one search in, one `Answer` out. It fetches and nothing else: no decoding, no inflating.

It drives the authentication flow over the transport itself instead of through `httpx.AsyncClient`. Each request, a
token's and a repeated one too, then takes its own slot just before it leaves; a body is never read without a limit;
there is nothing that could follow a redirect or keep a cookie; and a request costs about half the CPU time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self, cast

import httpx

from pipeline.domain.errors import SupplierUnreachable, TokenRefused
from pipeline.domain.search import Operation
from pipeline.settings import Settings
from pipeline.supplier.answer import Answer, Failure
from pipeline.supplier.auth import TOKEN_PATH, ClientCredentials, TokenUnavailable
from pipeline.supplier.connection import PooledTransport
from pipeline.supplier.failures import NETWORK_ERRORS, failure_of, failure_of_status
from pipeline.supplier.pacing import Allowance, Pacer, Unlimited
from pipeline.supplier.retrying import RETRIED, Backoff, retry_after_seconds

OPERATION_PATH = "/v1/property/"

# What is worth keeping of an answer's headers: its day, its form, and what a supplier needs to find it in its logs.
HEADERS_OF_INTEREST = {
    name.encode(): name
    for name in (
        "date", "content-type", "content-encoding", "content-length", "retry-after", "request-id", "x-request-id",
        "correlation-id", "x-correlation-id", "x-trace-id", "x-amzn-requestid", "x-amzn-trace-id", "cf-ray", "traceparent",
    )
}  # fmt: skip
_HEADER_CHARACTERS = 200

# A token's answer holds a token and a few words.
_TOKEN_BYTES = 64 * 1024

# An answer may drip in, each part in time; after this many read timeouts it has taken too long all the same.
_READ_TIMEOUTS_AN_ATTEMPT = 5


@dataclass(frozen=True, slots=True)
class Limits:
    """What one attempt may take. Seconds and bytes as they come over the wire."""

    connect_seconds: float = 10.0
    read_seconds: float = 60.0
    body_bytes: int = 64 * 1024 * 1024

    @property
    def attempt_seconds(self) -> float:
        """Seconds that a whole attempt may take, from its request to the last byte."""
        return self.connect_seconds + _READ_TIMEOUTS_AN_ATTEMPT * self.read_seconds


class _BodyTooLarge(Exception):
    """More wire bytes came than the limit."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class SupplierClient:
    """Asks the supplier. One client, one pool and one pacer a process; an async context manager.

    Any number of tasks may call `ask` at once: `concurrency` bounds what is in flight, `pacer` what leaves.
    """

    def __init__(
        self,
        base_url: str,
        auth: ClientCredentials,
        *,
        pacer: Pacer,
        concurrency: int = 4,
        attempts: int = 4,
        limits: Limits = Limits(),
        allowance: Allowance | None = None,
        backoff: Backoff | None = None,
        transport: Callable[[str], httpx.AsyncBaseTransport] = PooledTransport,
        wall_clock: Callable[[], datetime] = _utc_now,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._auth = auth
        self._pacer = pacer
        self._in_flight = asyncio.Semaphore(concurrency)
        self._attempts = attempts
        self._limits = limits
        self._allowance: Allowance = allowance or Unlimited()
        self._backoff = backoff or Backoff()
        self._open_transport = transport
        self._transports: dict[bytes, httpx.AsyncBaseTransport] = {}
        self._wall_clock = wall_clock
        self._sleep = sleep
        self._statuses: dict[int, httpx.Response] = {}
        self._was_ever_answered = False
        self._urls = {operation: httpx.URL(f"{self.base_url}{OPERATION_PATH}{operation}") for operation in Operation}
        self._headers = httpx.Headers(
            {
                "Accept": "application/json",
                "Accept-Encoding": "gzip",
                "Content-Type": "application/json",
                "User-Agent": "nightaudit",
            }
        )
        self._timeouts = {
            "timeout": {"connect": limits.connect_seconds, "read": limits.read_seconds, "write": None, "pool": None}
        }

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        base_url: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        allowance: Allowance | None = None,
    ) -> SupplierClient:
        """Return the client that `settings` describe. What is given beside them stands above them (the sandbox)."""
        base = base_url or settings.base_url or ""
        auth_url = base if base_url else settings.auth_url or base
        secret = settings.client_secret.get_secret_value() if settings.client_secret else ""
        return cls(
            base,
            ClientCredentials(
                auth_url.rstrip("/") + TOKEN_PATH,
                client_id or settings.client_id or "",
                client_secret or secret,
                scopes=settings.scopes,
                credentials=settings.credentials,
            ),
            pacer=Pacer(settings.rate),
            concurrency=settings.in_flight,
            attempts=settings.attempts,
            limits=Limits(
                connect_seconds=settings.connect_timeout_seconds,
                read_seconds=settings.read_timeout_seconds,
                body_bytes=settings.max_body_mb * 1_000_000,
            ),
            allowance=allowance,
        )

    async def __aenter__(self) -> Self:
        for address in (self.base_url, self._auth.address):
            host = httpx.URL(address).netloc
            if host not in self._transports:
                self._transports[host] = self._open_transport(address)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        while self._transports:
            await self._transports.popitem()[1].aclose()

    async def ask(self, operation: Operation, body: bytes, *, attempts: int | None = None) -> Answer:
        """Send `body` and return the answer, or why there is none after all attempts.

        `attempts` overrides the client's. A quote is sent once, whatever is asked for: it makes a reservation, and
        a broken connection does not say whether it was made. A 401 does (it was not), so that one is repeated.

        Raises what ends a sweep: TokenRefused, SweepStopped (the day's requests are used up), and
        SupplierUnreachable where no attempt found a connection and no search before did.
        """
        most = 1 if operation is Operation.QUOTE else attempts or self._attempts
        sent = 0
        for number in range(1, most + 1):
            answer = await self._attempt(operation, body, sent)
            sent = answer.attempts
            if answer.failure not in RETRIED or number == most:
                break
            await self._wait(answer, number)
        if answer.failure is Failure.UNREACHABLE and not self._was_ever_answered:
            raise SupplierUnreachable(
                f"The supplier could not be reached: {answer.failure_detail}",
                kept="What has landed stays.",
                hint=f"Check NIGHTAUDIT_BASE_URL ({self.base_url}), NIGHTAUDIT_AUTH_URL and the network.",
            )
        return answer

    async def _wait(self, answer: Answer, number: int) -> None:
        """Wait before the next attempt: alone, or with the whole sweep where the supplier asks for it."""
        backoff = self._backoff.seconds(number)
        if answer.failure is Failure.THROTTLED or "retry-after" in answer.headers_of_interest:
            asked_for = retry_after_seconds(answer.headers_of_interest.get("retry-after"), self._wall_clock())
            self._pacer.pause(backoff if asked_for is None else asked_for)
        else:
            await self._sleep(backoff)

    async def _attempt(self, operation: Operation, body: bytes, sent: int) -> Answer:
        """Return the answer to one attempt, after `sent` requests before it; it may take a token and a repetition."""
        request = httpx.Request(
            "POST", self._urls[operation], headers=self._headers, content=body, extensions=self._timeouts
        )
        async with self._in_flight, aclosing(self._auth.async_auth_flow(request)) as flow:
            begun_at = self._wall_clock()
            try:
                outgoing = await anext(flow)
                while True:
                    if outgoing is not request:
                        response = await self._token(outgoing)
                    else:
                        sent += 1
                        answer = await self._search(request, sent)
                        if answer.http_status is None:
                            return answer
                        response = self._status(answer.http_status)
                    try:
                        outgoing = await flow.asend(response)
                    except StopAsyncIteration:
                        return answer
            except TokenUnavailable as error:
                return Answer(
                    None,
                    "",
                    "",
                    b"",
                    begun_at,
                    self._wall_clock(),
                    sent,
                    Failure.UNREACHABLE if error.is_unreachable else Failure.NO_TOKEN,
                    f"token address: {self._auth.redact(str(error))}",
                    {"retry-after": error.retry_after} if error.retry_after else {},
                )

    async def _search(self, request: httpx.Request, sent: int) -> Answer:
        """Send a search when its turn comes, and return what came of it. Raises TokenRefused on a 403."""
        await self._pacer.slot()
        self._allowance.take()
        started_at = self._wall_clock()
        status: int | None = None
        headers: dict[str, str] = {}
        body = b""
        failure: Failure | None
        try:
            async with asyncio.timeout(self._limits.attempt_seconds):
                response = await self._send(request)
                try:
                    status, headers = response.status_code, _of_interest(response.headers)
                    body = await _read(response, headers.get("content-length", ""), self._limits.body_bytes)
                finally:
                    await response.aclose()
        except _BodyTooLarge:
            failure, detail = Failure.BODY_TOO_LARGE, f"more than {self._limits.body_bytes} bytes"
        except NETWORK_ERRORS as error:
            failure, detail = failure_of(error)
            if failure is Failure.CONNECTION and status is not None:
                failure = Failure.TRUNCATED
            detail = self._auth.redact(detail)
        else:
            location = response.headers.get("location", "") if 300 <= status < 400 else ""
            failure, detail = failure_of_status(status, headers, body, location=location)
        self._was_ever_answered |= status is not None
        if status == httpx.codes.FORBIDDEN:
            raise TokenRefused(
                "The supplier answered 403: the token does not allow this.",
                kept="What has landed stays.",
                hint="Ask the supplier which scopes these credentials have, and set NIGHTAUDIT_SCOPES.",
            )
        return Answer(
            status,
            headers.get("content-type", ""),
            headers.get("content-encoding", ""),
            body,
            started_at,
            self._wall_clock(),
            sent,
            failure,
            detail,
            headers,
        )

    async def _token(self, request: httpx.Request) -> httpx.Response:
        """Send a token request when its turn comes. It is no search, so the day's allowance does not count it."""
        await self._pacer.slot()
        request.extensions = self._timeouts
        try:
            async with asyncio.timeout(self._limits.attempt_seconds):
                response = await self._send(request)
                try:
                    body = await _read(response, response.headers.get("content-length", ""), _TOKEN_BYTES)
                finally:
                    await response.aclose()
            return httpx.Response(response.status_code, headers=response.headers, content=body)
        except _BodyTooLarge:
            raise TokenUnavailable(f"more than {_TOKEN_BYTES} bytes") from None
        except NETWORK_ERRORS as error:
            failure, detail = failure_of(error)
            raise TokenUnavailable(detail, is_unreachable=failure is Failure.UNREACHABLE) from None

    def _status(self, status: int) -> httpx.Response:
        """Return a response for the authentication flow, which looks at its status alone. Kept, for there are few."""
        if status not in self._statuses:
            self._statuses[status] = httpx.Response(status)
        return self._statuses[status]

    async def _send(self, request: httpx.Request) -> httpx.Response:
        return await self._transports[request.url.netloc].handle_async_request(request)


def _of_interest(headers: httpx.Headers) -> dict[str, str]:
    return {
        HEADERS_OF_INTEREST[key]: value[:_HEADER_CHARACTERS].decode("latin-1")
        for name, value in headers.raw
        if (key := name.lower()) in HEADERS_OF_INTEREST
    }


async def _read(response: httpx.Response, length: str, limit_bytes: int) -> bytes:
    """Return the wire bytes of a body. Raises _BodyTooLarge as soon as there are more than `limit_bytes`."""
    if length.isdecimal() and int(length[:20]) > limit_bytes:
        raise _BodyTooLarge
    parts: list[bytes] = []
    size = 0
    # The stream itself: `aiter_raw` would only add a layer for each part.
    async for part in cast("AsyncIterable[bytes]", response.stream):
        size += len(part)
        if size > limit_bytes:
            raise _BodyTooLarge
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
