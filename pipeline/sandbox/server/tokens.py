"""The token endpoint: OAuth 2.0 client credentials (RFC 6749), tokens carried as Bearer (RFC 6750).

The document only says 'client credentials, two scopes'; the rest follows the two standards. Credentials come by HTTP
Basic (each part form-urlencoded first, section 2.3.1) or in the body, never both. A request without a scope gets both.
"""

import base64
import binascii
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote_plus

import msgspec

from pipeline.sandbox.server.replies import Headers, Reply, reply
from pipeline.sandbox.world.documented import READ_SCOPE, WRITE_SCOPE

_REALM: Final = "sandbox"
_SCOPES: Final = (READ_SCOPE, WRITE_SCOPE)


@dataclass(slots=True)
class TokenDesk:
    """Issues and checks tokens. Times are seconds of any monotonic clock."""

    client_id: str
    client_secret: str
    lifetime_s: int
    issued: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict)
    count: int = 0
    """How many tokens were issued."""

    def issue(self, authorization: str | None, content_type: str, body: bytes, now: float) -> Reply:
        """Answer a request for a token."""
        form = _form(content_type, body)
        if isinstance(form, str):
            return _refusal(400, "invalid_request", form)
        refusal = self._refuse_client(authorization, form)
        if refusal is not None:
            return refusal
        if form["grant_type"] != "client_credentials":
            return _refusal(400, "unsupported_grant_type", "only client_credentials is supported")
        scopes = form.get("scope", " ".join(_SCOPES)).split(" ")
        if not set(scopes) <= set(_SCOPES) or len(scopes) > len(_SCOPES):
            return _refusal(400, "invalid_scope", f"the scopes are {READ_SCOPE} and {WRITE_SCOPE}")
        return self._issued(frozenset(scopes), now)

    def check(self, authorization: str | None, scope: str, now: float) -> Reply | None:
        """Return the 401 or 403 to answer with; None: the request may pass."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            # RFC 6750, 3.1: no error code for a request without any authentication.
            return _challenge(401, None, "an access token is needed")
        known = self.issued.get(token.strip())
        if known is None or known[0] <= now:
            return _challenge(401, "invalid_token", "the access token is unknown or has expired")
        if scope not in known[1]:
            return _challenge(403, "insufficient_scope", "the access token lacks a scope", scope)
        return None

    def _refuse_client(self, authorization: str | None, form: dict[str, str]) -> Reply | None:
        in_body = "client_id" in form or "client_secret" in form
        if authorization is not None and in_body:
            return _refusal(400, "invalid_request", "credentials must be sent in one way only")
        given = _basic(authorization) if authorization is not None else (
            form.get("client_id", ""), form.get("client_secret", "")
        )  # fmt: skip
        expected = (self.client_id, self.client_secret)
        if given is not None and all(map(hmac.compare_digest, map(str.encode, given), map(str.encode, expected))):
            return None
        challenge = (b"www-authenticate", f'Basic realm="{_REALM}", charset="UTF-8"'.encode())
        return _refusal(401, "invalid_client", "client authentication failed", (challenge,))

    def _issued(self, scopes: frozenset[str], now: float) -> Reply:
        self.issued = {token: entry for token, entry in self.issued.items() if entry[0] > now}
        token = secrets.token_urlsafe(32)
        self.count += 1
        self.issued[token] = (now + self.lifetime_s, scopes)
        form = {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": self.lifetime_s,
            "scope": " ".join(sorted(scopes)),
        }
        return reply(200, msgspec.json.encode(form), _NOT_STORED)


_NOT_STORED: Final[Headers] = ((b"cache-control", b"no-store"), (b"pragma", b"no-cache"))


def _form(content_type: str, body: bytes) -> dict[str, str] | str:
    """Return the parameters of a token request, or what is wrong with its form."""
    if content_type.partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        return "the body must be application/x-www-form-urlencoded"
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return "the body cannot be read as a form"
    form = dict(pairs)
    if len(form) != len(pairs):
        return "a parameter occurs more than once"
    return form if "grant_type" in form else "grant_type is missing"


def _basic(authorization: str) -> tuple[str, str] | None:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        client_id, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return (unquote_plus(client_id), unquote_plus(secret)) if colon else None


def _refusal(status: int, error: str, description: str, headers: Headers = ()) -> Reply:
    body = msgspec.json.encode({"error": error, "error_description": description})
    return reply(status, body, (*_NOT_STORED, *headers))


def _challenge(status: int, error: str | None, description: str, scope: str = "") -> Reply:
    parts = [f'realm="{_REALM}"']
    if error:
        parts += [f'error="{error}"', f'error_description="{description}"']
    if scope:
        parts.append(f'scope="{scope}"')
    body = msgspec.json.encode({"error": error or "invalid_request", "error_description": description})
    return reply(status, body, ((b"www-authenticate", f"Bearer {', '.join(parts)}".encode()),))
