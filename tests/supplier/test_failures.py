"""Every error of the layers below has a place among our failures."""

from __future__ import annotations

import asyncio
import inspect
import socket
import ssl

import aiohttp
import httpx
import pytest

from pipeline.supplier.answer import Failure
from pipeline.supplier.failures import NETWORK_ERRORS, describe, failure_of, failure_of_status


def classes_of(module, base):
    return [thing for _, thing in inspect.getmembers(module, inspect.isclass) if issubclass(thing, base)]


def bare(kind):
    """An error of any class, without the arguments that its construction and its message ask for."""
    plain = type(kind.__name__, (kind,), {"__str__": lambda _: "trouble"})
    return plain.__new__(plain)


@pytest.mark.parametrize("kind", classes_of(httpx, Exception), ids=lambda kind: kind.__name__)
def test_every_httpx_error_that_a_request_can_end_with_is_caught_and_has_a_failure(kind):
    # These two are raised when an address or a cookie jar is made, which happens before anything is sent.
    if kind not in {httpx.InvalidURL, httpx.CookieConflict}:
        assert issubclass(kind, NETWORK_ERRORS)
    assert isinstance(failure_of(bare(kind))[0], Failure)


@pytest.mark.parametrize("kind", classes_of(aiohttp, aiohttp.ClientError), ids=lambda kind: kind.__name__)
def test_every_aiohttp_error_is_caught_and_has_a_failure_even_where_httpx_hides_it(kind):
    assert issubclass(kind, NETWORK_ERRORS)
    hidden = httpx.ConnectTimeout("trouble")
    hidden.__cause__ = origin = bare(kind)
    assert failure_of(hidden) == failure_of(origin)
    assert isinstance(failure_of(origin)[0], Failure)


@pytest.mark.parametrize("kind", [*classes_of(ssl, OSError), *classes_of(socket, OSError), EOFError, TimeoutError])
def test_errors_of_the_system_are_caught(kind):
    assert issubclass(kind, NETWORK_ERRORS)


@pytest.mark.parametrize(
    ("error", "cause", "failure"),
    [
        (httpx.ConnectTimeout("x"), aiohttp.ServerDisconnectedError(), Failure.CONNECTION),
        (httpx.ConnectTimeout("x"), aiohttp.ClientOSError(104, "reset"), Failure.CONNECTION),
        (httpx.ConnectTimeout("x"), aiohttp.ConnectionTimeoutError("x"), Failure.UNREACHABLE),
        (httpx.ConnectTimeout("x"), None, Failure.UNREACHABLE),
        (httpx.ReadTimeout("x"), aiohttp.SocketTimeoutError("x"), Failure.TIMEOUT),
        (httpx.WriteTimeout("x"), None, Failure.TIMEOUT),
        (TimeoutError(), None, Failure.TIMEOUT),
        (httpx.ReadError("x"), aiohttp.ClientPayloadError("x"), Failure.TRUNCATED),
        (asyncio.IncompleteReadError(b"", 1), None, Failure.TRUNCATED),
        (httpx.ProxyError("x"), None, Failure.UNREACHABLE),
        (ssl.SSLError("x"), None, Failure.CONNECTION),
        (ConnectionResetError(), None, Failure.CONNECTION),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_the_cause_decides_where_the_layer_above_mistook_it(error, cause, failure):
    error.__cause__ = cause
    assert failure_of(error)[0] is failure


def test_a_description_is_one_line_of_bounded_length():
    text = describe(OSError("first\nsecond " + "x" * 1000))
    assert text.startswith("OSError: first second x")
    assert len(text) == 200
    assert describe(OSError()) == "OSError"
    # A reader sees that there is more, and no half of a word.
    assert describe(OSError("the certificate of this server " * 10)).endswith(" of this server the…")


def test_every_status_but_200_and_400_is_a_failure_that_says_so():
    for status in range(100, 1000):
        failure, detail = failure_of_status(status, {}, b"{}")
        assert (failure is None) == (detail == "") == (status in {200, 400})


def test_a_redirect_names_the_host_alone():
    _, detail = failure_of_status(302, {}, b"", location="https://user:pw@evil.example/path?token=1")
    assert detail == "HTTP 302 to evil.example; not followed"
    assert "nowhere" in failure_of_status(302, {}, b"", location="http://[")[1]
