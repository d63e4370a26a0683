"""The pool: httpx-aiohttp over one aiohttp session."""

from __future__ import annotations

import ipaddress
import os
import ssl
import urllib.request
from collections.abc import Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport
from httpx_aiohttp.transport import AiohttpResponseStream

from pipeline.domain.addresses import DEFAULT_PORTS, is_host, is_loopback, proxy_address
from pipeline.domain.errors import SettingsError
from pipeline.supplier.pacer import Slot

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.connector import Connection

# Read in large parts, as each part passes through several layers and an answer has tens to hundreds of kilobytes.
_READ_BYTES = 256 * 1024

# Servers close an idle connection after a minute or more, so with less a request never meets a closing one.
_KEEP_ALIVE_SECONDS = 15.0

# The extension of a request that holds its slot.
SLOT = "slot"

_CERTIFICATES_HINT = "Name a file of trusted certificates (PEM) that you can read, or unset it to trust the usual ones."

# The slot of the request that the current task sends.
_SLOT: ContextVar[Slot | None] = ContextVar("slot", default=None)


class _PacedRequest(aiohttp.ClientRequest):
    """A request that is written in its slot, once it has a connection."""

    async def write_bytes(
        self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
    ) -> None:
        """Write headers and body together, and record when."""
        slot = _SLOT.get()
        if slot is not None:
            try:
                await slot.opens()
            except Exception as error:
                if conn.protocol is not None:
                    conn.protocol.set_exception(error)
                return
        await super().write_bytes(writer, conn, content_length)
        if slot is not None:
            slot.sent()


class PooledTransport(AiohttpTransport):
    """HTTP/1.1 with kept connections, no cookies, no redirects, nothing inflated. Created inside a running loop."""

    def __init__(self, address: str) -> None:
        """Raise SettingsError if the environment names a proxy that cannot be used."""
        proxy = proxy_for(address)
        ssl_context = _certificates(httpx.URL(each) for each in (address, proxy) if each)
        super().__init__(
            verify=ssl_context,
            proxy=httpx.Proxy(proxy) if proxy else None,
            client=aiohttp.ClientSession(
                # The client limits the requests in flight.
                connector=aiohttp.TCPConnector(limit=0, ssl=ssl_context, keepalive_timeout=_KEEP_ALIVE_SECONDS),
                # A cookie would tie searches to one another.
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                read_bufsize=_READ_BYTES,
                request_class=_PacedRequest,
            ),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request in its slot, and return its response as soon as the headers have arrived."""
        _SLOT.set(request.extensions.get(SLOT))
        response = await super().handle_async_request(request)
        if isinstance(response.stream, AiohttpResponseStream):
            response.stream.CHUNK_SIZE = _READ_BYTES
        return response


def _certificates(urls: Iterable[httpx.URL]) -> ssl.SSLContext:
    """Return a context that verifies certificates; for plain HTTP one that trusts none, as loading them is slow.

    Raises SettingsError if the environment names certificates that cannot be read.
    """
    if all(url.scheme == "http" for url in urls):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    file = os.environ.get("SSL_CERT_FILE")
    try:
        if file and not Path(file).is_file():
            # A pipe would be waited for.
            raise SettingsError(f"SSL_CERT_FILE names no file: {file}.", hint=_CERTIFICATES_HINT)
        return httpx.create_ssl_context()
    except OSError as error:  # ssl.SSLError with it
        raise SettingsError(
            f"The certificates of SSL_CERT_FILE or SSL_CERT_DIR cannot be read: {error.strerror}.",
            hint=_CERTIFICATES_HINT,
        ) from None


def proxy_for(address: str) -> str | None:
    """Return the proxy that the environment names for `address`, if any; never one for this machine itself.

    Called once per client: aiohttp's own `trust_env` would ask in a thread for every request, and read .netrc too.
    Raises SettingsError if that proxy cannot be used.
    """
    url = httpx.URL(address)
    host = url.raw_host.decode("ascii")
    if is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    proxies = urllib.request.getproxies()
    name = next((name for name in (url.scheme, "all") if proxies.get(name)), None)
    port = url.port or DEFAULT_PORTS.get(url.scheme)
    if name is None or is_excepted(host, port, proxies.get("no", "")):
        return None
    try:
        return proxy_address(proxies[name], f"{name}_proxy")
    except ValueError as error:
        raise SettingsError(
            str(error), kept="Nothing was sent.", hint="Correct it in the environment, or name the host in no_proxy."
        ) from None


def is_excepted(host: str, port: int | None, no_proxy: str) -> bool:
    """Whether `no_proxy` names a host: by name, by its domain or its network, with or without a port."""
    return any(_excepts(entry, host.rstrip(".").lower(), port) for entry in no_proxy.lower().replace(",", " ").split())


def _excepts(entry: str, host: str, port: int | None) -> bool:
    if entry == "*":
        return True
    name, mark, behind = entry.rpartition(":")
    # An IPv6 address contains colons; with a port it is in brackets.
    if mark and behind.isdecimal() and (":" not in name or name.endswith("]")):
        if int(behind) != port:
            return False
        entry = name
    entry = entry.strip("[]")
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        domain = entry.removeprefix("*").strip(".")
        if not is_host(domain):
            return False
        domain = domain.encode("idna").decode()
        return host == domain or host.endswith(f".{domain}")
