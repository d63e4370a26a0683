"""Access control of `nightaudit serve`: only a browser that opened the printed address may read pages.

Any web site open in a browser can send requests to this machine, with cookies or through its own name (DNS rebinding).
So the Host, Origin and token of every request and WebSocket are checked, and no answer may be read, framed or included
from another origin.
"""

import re
import secrets
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from pipeline.report.script import TABLES_SOURCE

TOKEN_PARAMETER = "access_token"  # noqa: S105 - the name of a parameter
_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]+)?", re.IGNORECASE)
# Sec-Fetch-Site of a request caused by another origin's page; that of a link in a terminal is `none`.
_FOREIGN = frozenset({"cross-site", "same-site"})
_POLICY_VIOLATION = 1008

_OF_NOTEBOOKS = "/notebooks"
_REPORT_POLICY = (
    f"default-src 'none'; script-src {TABLES_SOURCE}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; "
    "frame-ancestors 'none'"
)
# marimo's page has inline scripts; charts compile expressions, and widgets are modules in memory.
_NOTEBOOK_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' data: blob:; worker-src 'self' blob: data:; frame-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Pages must not be readable from the browser's cache without a token.
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Key:
    """The secrets that open the pages: the token in the printed address, and the session cookie of a browser."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def address(self, page: str) -> str:
        """Return the address of a page with the token."""
        return f"{page}?{urlencode({TOKEN_PARAMETER: self.token})}"


class Guard:
    """ASGI middleware around the complete server."""

    def __init__(self, app: ASGIApp, key: Key) -> None:
        self._app = app
        self._key = key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an allowed request or WebSocket on, and refuse any other."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        guarded = _guarded(scope, send)
        if refusal := _foreign(headers):
            await _refuse(scope, receive, guarded, 400, refusal)
        elif self._has_session(headers, scope):
            if headers.get("sec-fetch-site") in _FOREIGN:
                await _refuse(scope, receive, guarded, 403, "Refused: the request came from a page of another site.")
            else:
                await self._app(scope, receive, guarded)
        elif not any(_is_same(value, self._key.token) for name, value in _query(scope) if name == TOKEN_PARAMETER):
            await _refuse(scope, receive, guarded, 403, "Open the address printed by nightaudit serve.")
        elif scope["type"] == "websocket" or scope["method"] not in {"GET", "HEAD"}:
            await self._app(scope, receive, guarded)
        else:
            await self._open_session(scope)(scope, receive, guarded)

    def _has_session(self, headers: Headers, scope: Scope) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(scope))
        except CookieError:
            return False
        return cookie is not None and _is_same(cookie.value, self._key.session)

    def _open_session(self, scope: Scope) -> RedirectResponse:
        """Return a redirect to the same page without the token, which would stay in history and logs."""
        left = urlencode([(name, value) for name, value in _query(scope) if name != TOKEN_PARAMETER])
        # One slash, as two would address another host.
        page = "/" + scope["path"].lstrip("/")
        response = RedirectResponse(f"{page}?{left}" if left else page, status_code=303)
        response.set_cookie(_cookie_name(scope), self._key.session, httponly=True, samesite="strict", path="/")
        return response


def _cookie_name(scope: Scope) -> str:
    # Cookies do not depend on the port, so another server on this machine would overwrite it.
    return f"nightaudit-{(scope.get('server') or ('', 0))[1]}"


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def _is_same(given: str, expected: str) -> bool:
    return secrets.compare_digest(given.encode(), expected.encode())


def _foreign(headers: Headers) -> str:
    """Return why the host or origin of a request is refused; empty if it is this machine's own."""
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
        return "Refused: use a name of this machine."
    if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
        return "Refused: the request came from another origin."
    return ""


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, why: str) -> None:
    answer: ASGIApp = (
        WebSocketClose(_POLICY_VIOLATION, why)
        if scope["type"] == "websocket"
        else PlainTextResponse(f"{why}\n", status_code=status)
    )
    await answer(scope, receive, send)


def _guarded(scope: Scope, send: Send) -> Send:
    """Return `send` with our headers on every answer, and without those that allow other origins."""
    is_notebook = scope["path"].startswith(_OF_NOTEBOOKS)

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name in [name for name in headers if name.lower().startswith("access-control-")]:
                del headers[name]
            for name, value in _HEADERS.items():
                headers[name] = value
            headers["Content-Security-Policy"] = _NOTEBOOK_POLICY if is_notebook else _REPORT_POLICY
            headers["X-Frame-Options"] = "SAMEORIGIN" if is_notebook else "DENY"
        await send(message)

    return sent
