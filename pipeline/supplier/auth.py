"""OAuth 2.0 client credentials as an httpx authentication flow.

The flow yields the requests to send and receives their responses, so tests need no network. The supplier's document
names the flow, the address and the scopes; the rest follows RFC 6749 and RFC 6750.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode

import httpx

from pipeline.domain.errors import TokenRefused
from pipeline.domain.texts import shortened
from pipeline.settings import Credentials
from pipeline.supplier.secret_texts import SecretTexts

TOKEN_PATH = "/auth/oauth/token"  # noqa: S105 - an address

USER_AGENT = "nightaudit"

# If the token answer does not state a lifetime.
UNSTATED_LIFETIME_SECONDS = 300.0

# A token is replaced this long before it expires, so that none expires in transit; a short-lived one at four fifths.
_MARGIN_SECONDS = 30.0
_MARGIN_SHARE = 0.2

# Statuses that mean 'not now' rather than 'not you'.
_NOT_NOW = frozenset({408, 425, 429})

_DETAIL_CHARACTERS = 300


class TokenUnavailable(Exception):
    """The token endpoint failed for now; another attempt may help. Never reaches a user."""

    def __init__(self, message: str, *, retry_after: str | None = None, is_unreachable: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.is_unreachable = is_unreachable


@dataclass(frozen=True, slots=True)
class _Token:
    value: str = field(repr=False)
    stale_at: float

    @property
    def header(self) -> str:
        return f"Bearer {self.value}"


class ClientCredentials(httpx.Auth):
    """Gets a token, keeps it until shortly before it expires, and replaces it once if it is refused.

    One of the waiting requests asks for the token, and all use it. `now` is a monotonic clock in seconds.
    """

    def __init__(
        self,
        address: str,
        client_id: str,
        client_secret: str,
        *,
        scopes: str = "read_rooms",
        credentials: Credentials = Credentials.BASIC,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.address = address
        self._scopes = " ".join(scopes.split())
        self._now = now
        self._token: _Token | None = None
        self._refresh = asyncio.Lock()
        self._headers, self._body = _token_request(client_id, client_secret, self._scopes, credentials)
        basic = self._headers.get("Authorization", "").removeprefix("Basic ")
        self.secrets = SecretTexts(client_secret, basic)

    def __repr__(self) -> str:
        return f"ClientCredentials({self.address!r})"

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Yield `request` with a token, after a token request if needed, and again after a 401.

        Raises TokenRefused if the token endpoint refuses, and TokenUnavailable if another attempt may help.
        """
        if not self._is_fresh():
            async with self._refresh:
                if not self._is_fresh():
                    self._keep(await _read((yield self._request())))
        used = self._token
        response = yield _carrying(request, used)
        if response.status_code != httpx.codes.UNAUTHORIZED:
            return

        async with self._refresh:
            # Another request may have met the same 401 and replaced the token already.
            if self._token is used:
                self._keep(await _read((yield self._request())))
        # A second 401 is about this request; others may continue with the same token.
        yield _carrying(request, self._token)

    def take_over(self, other: ClientCredentials) -> None:
        """Use the token that another client of the same name got."""
        self._token = other._token
        for token in other.secrets.tokens():
            self.secrets.add(token)

    def _is_fresh(self) -> bool:
        return self._token is not None and self._now() < self._token.stale_at

    def _request(self) -> httpx.Request:
        return httpx.Request("POST", self.address, headers=self._headers, content=self._body)

    def _keep(self, response: httpx.Response) -> None:
        """Keep the token of `response`, or raise its error."""
        status = response.status_code
        if status in _NOT_NOW or status >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise TokenUnavailable(
                f"the token endpoint answered {status}", retry_after=response.headers.get("retry-after")
            )
        if status != httpx.codes.OK:
            raise self._refused(status, _fields(response))
        fields = _fields(response)
        if fields is None:
            raise TokenUnavailable("the token endpoint answered 200 with something that is not a JSON object")
        value, kind = fields.get("access_token"), fields.get("token_type", "Bearer")
        if not isinstance(value, str) or not value or not all("!" <= letter <= "~" for letter in value):
            raise TokenRefused(
                "The token endpoint answered 200, but without a usable access_token.", hint="Check NIGHTAUDIT_AUTH_URL."
            )
        self.secrets.add(value)
        if not isinstance(kind, str) or kind.lower() != "bearer":
            raise TokenRefused(
                f"The token endpoint issued a token of type {self._safe(kind)}; only Bearer tokens are supported.",
                hint="Check NIGHTAUDIT_AUTH_URL, and ask the supplier how to get a Bearer token.",
            )
        lifetime = _lifetime_seconds(fields.get("expires_in"))
        margin = min(_MARGIN_SECONDS, lifetime * _MARGIN_SHARE)
        self._token = _Token(value, self._now() + lifetime - margin)

    def _refused(self, status: int, fields: dict[str, Any] | None) -> TokenRefused:
        said = [self._safe(fields[key]) for key in ("error", "error_description") if fields and fields.get(key)]
        return TokenRefused(
            f"The token endpoint {self.address} answered {status}" + (f": {' - '.join(said)}" if said else ""),
            hint="Check NIGHTAUDIT_CLIENT_ID, NIGHTAUDIT_CLIENT_SECRET, NIGHTAUDIT_SCOPES and NIGHTAUDIT_CREDENTIALS."
            if status in {400, 401, 403}
            else "Check NIGHTAUDIT_AUTH_URL.",
        )

    def _safe(self, said: object) -> str:
        """Return text of the token endpoint, shortened, on one line and without our secrets."""
        return shortened(self.secrets.redact(" ".join(str(said).split())), _DETAIL_CHARACTERS)


def _token_request(
    client_id: str, client_secret: str, scopes: str, credentials: Credentials
) -> tuple[dict[str, str], bytes]:
    headers = {
        "Accept": "application/json",
        # A token is small, and an uncompressed answer cannot grow.
        "Accept-Encoding": "identity",
        "Content-Type": "application/x-www-form-urlencoded",
        "User-Agent": USER_AGENT,
    }
    form = {"grant_type": "client_credentials"}
    if scopes:
        form["scope"] = scopes
    if credentials is Credentials.BODY:
        form |= {"client_id": client_id, "client_secret": client_secret}
    else:
        # Form-urlencoded first (RFC 6749, section 2.3.1), so that the id may hold a colon.
        pair = f"{quote_plus(client_id)}:{quote_plus(client_secret)}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return headers, urlencode(form).encode()


def _carrying(request: httpx.Request, token: _Token | None) -> httpx.Request:
    if token is not None:
        request.headers["Authorization"] = token.header
    return request


async def _read(response: httpx.Response) -> httpx.Response:
    await response.aread()
    return response


def _fields(response: httpx.Response) -> dict[str, Any] | None:
    try:
        document = json.loads(response.content)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _lifetime_seconds(stated: object) -> float:
    """Return `expires_in`, which some services send as text; an impossible one counts as not stated."""
    try:
        seconds = float(stated) if isinstance(stated, (int, float, str)) and not isinstance(stated, bool) else 0.0
    except (ValueError, OverflowError):
        seconds = 0.0
    return seconds if 0 < seconds < float("inf") else UNSTATED_LIFETIME_SECONDS
