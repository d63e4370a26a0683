"""The pool: httpx-aiohttp over one aiohttp session."""

from __future__ import annotations

import ipaddress
import urllib.request
from urllib.parse import urlsplit

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport
from httpx_aiohttp.transport import AiohttpResponseStream

# Read in large parts: each part passes through several layers, and an answer is tens to hundreds of kilobytes.
_READ_BYTES = 256 * 1024

# Servers close an idle connection after a minute or more; below that a request never meets a closing one.
_KEEP_ALIVE_SECONDS = 15.0


class PooledTransport(AiohttpTransport):
    """HTTP/1.1 with kept connections, no cookies, no redirects, nothing inflated. To be made inside a running loop."""

    def __init__(self, address: str, *, is_verified: bool = True) -> None:
        # Loading the certificates takes tens of milliseconds, which plain HTTP need not pay.
        ssl_context = httpx.create_ssl_context(verify=is_verified and address.startswith("https:"))
        proxy = proxy_for(address)
        super().__init__(
            verify=ssl_context,
            proxy=httpx.Proxy(proxy) if proxy else None,
            client=aiohttp.ClientSession(
                # The client bounds what is in flight; a second bound in the pool could only be a lower one.
                connector=aiohttp.TCPConnector(limit=0, ssl=ssl_context, keepalive_timeout=_KEEP_ALIVE_SECONDS),
                # A cookie would tie searches to one another.
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                read_bufsize=_READ_BYTES,
            ),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and return its response as soon as the headers are there."""
        response = await super().handle_async_request(request)
        if isinstance(response.stream, AiohttpResponseStream):
            response.stream.CHUNK_SIZE = _READ_BYTES
        return response


def proxy_for(address: str) -> str | None:
    """Return the proxy that the environment names for `address`; never one for this very machine.

    Asked once a client. aiohttp's own `trust_env` would ask in a thread for every request, and read .netrc too.
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    if _is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
