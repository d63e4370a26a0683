"""Errors of the layers below, each as one of our failures.

httpx-aiohttp raises httpx errors caused by aiohttp's, but reports nearly every broken connection as a connect timeout,
and lets some of aiohttp's errors through. So the cause counts first.
"""

import asyncio
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import aiohttp
import httpx

from pipeline.domain.texts import shortened
from pipeline.supplier.answer import Failure
from pipeline.supplier.bodies import is_plainly_not_json

# The ways in which a request can end without an answer; any other error is a bug and is raised unchanged.
NETWORK_ERRORS = (
    httpx.HTTPError,
    httpx.StreamError,
    aiohttp.ClientError,
    OSError,  # TimeoutError, ConnectionError and ssl.SSLError with it
    EOFError,  # asyncio.IncompleteReadError with it
)

_DETAIL_CHARACTERS = 200

# OpenSSL's names for an answer that is not part of a handshake.
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"})

# In this order: the first class that fits decides.
_FAILURES: tuple[tuple[tuple[type[BaseException], ...], Failure], ...] = (
    (
        (
            aiohttp.ClientConnectorError,
            aiohttp.ClientHttpProxyError,
            aiohttp.ConnectionTimeoutError,
            aiohttp.InvalidURL,
            httpx.ConnectError,
            httpx.ConnectTimeout,
            httpx.PoolTimeout,
            httpx.ProxyError,
            httpx.UnsupportedProtocol,
        ),
        Failure.UNREACHABLE,
    ),
    ((TimeoutError, httpx.TimeoutException), Failure.TIMEOUT),
    ((aiohttp.ClientPayloadError, asyncio.IncompleteReadError), Failure.TRUNCATED),
)


def failure_of(error: BaseException) -> tuple[Failure, str]:
    """Return what `error` means for its search, and a short text for people."""
    origin = error.__cause__ if isinstance(error.__cause__, NETWORK_ERRORS) else error
    system = getattr(origin, "os_error", None)
    if isinstance(origin, aiohttp.ClientConnectorError):
        if getattr(system, "reason", None) in _NO_TLS:
            detail = f"the address of {_place(origin)} says https, but its port answers in clear text"
            return Failure.UNREACHABLE, detail
        if isinstance(system, ssl.SSLCertVerificationError):
            why = shortened(system.verify_message, _DETAIL_CHARACTERS)
            return Failure.UNREACHABLE, f"the certificate of {_place(origin)} is not trusted: {why}"
    for classes, failure in _FAILURES:
        if isinstance(origin, classes):
            return failure, describe(origin)
    return Failure.CONNECTION, describe(origin)


def _place(error: aiohttp.ClientConnectorError) -> str:
    """Return the host and port of the supplier, or of a proxy."""
    return f"{error.host}:{error.port}"


def failure_of_status(
    status: int, headers: Mapping[str, str], body: bytes, *, location: str = ""
) -> tuple[Failure | None, str]:
    """Return why a complete response is not an answer to a search, with a short text; None: it is one.

    A 400 is an answer: the supplier's verdict on the request.
    """
    detail = f"HTTP {status}"
    failure: Failure | None = Failure.UNEXPECTED_STATUS
    if status == httpx.codes.OK:
        content_type, encoding = headers.get("content-type", ""), headers.get("content-encoding", "")
        failure, detail = None, ""
        if is_plainly_not_json(content_type, encoding, body):
            failure = Failure.NOT_JSON
            detail = f"HTTP 200 with {len(body)} bytes of {content_type or 'no content type'}"
    elif status == httpx.codes.BAD_REQUEST:
        failure, detail = None, ""
    elif 300 <= status < 400:
        failure = Failure.REDIRECT
        detail = f"HTTP {status} to {_host(location)}; not followed"
    elif status == httpx.codes.TOO_MANY_REQUESTS or (
        status == httpx.codes.SERVICE_UNAVAILABLE and "retry-after" in headers
    ):
        failure = Failure.THROTTLED
    elif status == httpx.codes.REQUEST_TIMEOUT:
        failure = Failure.TIMEOUT
    elif status >= httpx.codes.INTERNAL_SERVER_ERROR:
        failure = Failure.SERVER_ERROR
    return failure, detail


def describe(error: BaseException) -> str:
    """Return the error's kind and message on one line, cut to what a report can hold."""
    message = " ".join(str(error).split())
    kind = type(error).__name__
    return shortened(f"{kind}: {message}" if message else kind, _DETAIL_CHARACTERS)


def _host(location: str) -> str:
    """Return where a redirect leads, without its path: it may contain private data."""
    try:
        host = urlsplit(location).hostname
    except ValueError:
        return "nowhere"
    return host[:_DETAIL_CHARACTERS] if host else "the same host" if location else "nowhere"
