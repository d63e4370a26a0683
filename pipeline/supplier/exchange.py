"""One request and its response, within limits of time and bytes, and whether it is an answer."""

import asyncio
from collections.abc import AsyncIterable
from dataclasses import dataclass, field
from typing import cast

import httpx

from pipeline.domain.search import Operation
from pipeline.supplier.answer import Failure
from pipeline.supplier.envelope import failure_in
from pipeline.supplier.error_bodies import server_failure
from pipeline.supplier.failures import NETWORK_ERRORS, failure_of, failure_of_status

# Headers worth keeping: the day and format of an answer, and ids by which a supplier finds it in its logs.
HEADERS_OF_INTEREST = {
    name.encode(): name
    for name in (
        "date", "content-type", "content-encoding", "content-length", "retry-after", "request-id", "x-request-id",
        "correlation-id", "x-correlation-id", "x-trace-id", "x-amzn-requestid", "x-amzn-trace-id", "cf-ray",
        "traceparent",
    )
}  # fmt: skip

# An answer may arrive slowly, each part in time; after this many read timeouts it has taken too long.
_READ_TIMEOUTS_AN_EXCHANGE = 5


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request, in seconds and wire bytes."""

    connect_seconds: float
    read_seconds: float
    body_bytes: int

    @property
    def exchange_seconds(self) -> float:
        """Seconds that an exchange may take, from its request to the last byte."""
        return self.connect_seconds + _READ_TIMEOUTS_AN_EXCHANGE * self.read_seconds

    @property
    def extensions(self) -> dict[str, dict[str, float | None]]:
        """The timeouts, as httpx transports read them from a request."""
        return {"timeout": {"connect": self.connect_seconds, "read": self.read_seconds, "write": None, "pool": None}}


@dataclass(slots=True)
class Reply:
    """The response, or the part of it that arrived before `failure`."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    location: str = ""
    body: bytes = b""
    failure: Failure | None = None
    detail: str = ""


class _BodyTooLarge(Exception):
    """More wire bytes arrived than the limit."""


async def exchange(
    transport: httpx.AsyncBaseTransport, request: httpx.Request, *, seconds: float, limit_bytes: int
) -> Reply:
    """Send a request and read its answer, within `seconds` and `limit_bytes`. Failures are in the reply."""
    reply = Reply()
    try:
        async with asyncio.timeout(seconds):
            response = await transport.handle_async_request(request)
            try:
                reply.status = response.status_code
                reply.headers = {
                    HEADERS_OF_INTEREST[key]: value.decode("latin-1")
                    for name, value in response.headers.raw
                    if (key := name.lower()) in HEADERS_OF_INTEREST
                }
                if response.has_redirect_location:
                    reply.location = response.headers["location"]
                reply.body = await _read(response, reply.headers.get("content-length", ""), limit_bytes)
            finally:
                await response.aclose()
    except _BodyTooLarge:
        reply.failure, reply.detail = Failure.BODY_TOO_LARGE, f"more than {limit_bytes} bytes"
    except NETWORK_ERRORS as error:
        reply.failure, reply.detail = failure_of(error)
        if reply.failure is Failure.CONNECTION and reply.status is not None:
            reply.failure = Failure.TRUNCATED
    return reply


async def _read(response: httpx.Response, stated_length: str, limit_bytes: int) -> bytes:
    """Return the wire bytes of a body. Raises _BodyTooLarge as soon as there are more than `limit_bytes`."""
    if stated_length.isdecimal() and int(stated_length[:20]) > limit_bytes:
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


def failure_of_reply(operation: Operation, reply: Reply, limit_bytes: int) -> tuple[Failure | None, str]:
    """Return why a reply is not an answer, with a short text; None: it is one."""
    if reply.status is None or reply.failure is not None:
        return reply.failure, reply.detail
    failure, detail = failure_of_status(reply.status, reply.headers, reply.body, location=reply.location)
    # A quote may have made a reservation whatever its answer says, so `quote` reads it.
    if failure is None and operation is not Operation.QUOTE:
        encoding = reply.headers.get("content-encoding", "")
        if reply.status == httpx.codes.OK:
            return failure_in(operation, reply.body, encoding, limit_bytes=limit_bytes)
        if (code := server_failure(reply.body, encoding)) is not None:
            return Failure.SERVER_ERROR, f"HTTP {reply.status} with error {code}"
    return failure, detail
