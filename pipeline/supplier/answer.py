"""`Answer`: the untouched result of one search, and `Failure`: why there is none."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from pipeline.domain.search import Operation


class Failure(StrEnum):
    """Why a search has no answer that could be read."""

    UNREACHABLE = "unreachable"  # no connection was made: name, refusal, TLS, proxy, time
    CONNECTION = "connection"  # a connection was made and broke before the answer
    TIMEOUT = "timeout"  # no answer, or not all of it, in time
    TRUNCATED = "truncated"  # the answer began and broke off
    BODY_TOO_LARGE = "body_too_large"  # more bytes than the limit, as sent or inflated
    NOT_JSON = "not_json"  # 200 with something that is not a JSON object
    SERVER_ERROR = "server_error"  # 5xx, or a 200 or 400 that says so, or a 200 that says nothing
    THROTTLED = "throttled"  # 429, or 503 with a Retry-After
    REDIRECT = "redirect"  # 3xx that is not followed: another origin, not a 307 or 308, or a circle
    UNEXPECTED_STATUS = "unexpected_status"  # any other undocumented status
    NO_TOKEN = "no_token"  # noqa: S105 - the token endpoint failed for now


@dataclass(frozen=True, slots=True)
class Answer:
    """The last attempt of one search.

    `body` holds the wire bytes as received, in `content_encoding`; it is empty if they broke off or were too many,
    see `failure`. In an error that repeats our secret or token, `(hidden)` stands in its place.
    `started_at` and `ended_at` (UTC) span the last attempt only, without the wait for its turn. `attempts` counts the
    requests sent. `failure_detail` is safe to show and to store.
    """

    http_status: int | None
    content_type: str
    content_encoding: str
    body: bytes = field(repr=False)
    started_at: datetime
    ended_at: datetime
    attempts: int
    failure: Failure | None = None
    failure_detail: str = ""
    headers_of_interest: Mapping[str, str] = field(default_factory=dict)


class Ask(Protocol):
    """Sends one request and returns its answer, as `SupplierClient.ask` does."""

    def __call__(self, operation: Operation, body: bytes, *, attempts: int | None = None) -> Awaitable[Answer]:
        """Send `body` and return the answer."""
