"""Replies on the wire: gzip, a cache of the latest ones, and counts of what was served."""

import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from pipeline.sandbox.server.answers import Answer

Headers = tuple[tuple[bytes, bytes], ...]

JSON: Final = b"application/json"
# Below this, packing costs more than it saves.
_PACK_FROM_BYTES: Final = 1024


class Reply(NamedTuple):
    """One HTTP answer. `ending` is `whole` or the kind of fault that breaks the transfer; `length` None = chunked."""

    status: int
    headers: Headers
    chunks: Callable[[], Iterator[bytes]]
    length: int | None
    ending: str = "whole"


def reply(status: int, body: bytes, headers: Headers = (), content_type: bytes = JSON) -> Reply:
    """Return a complete reply."""
    return Reply(status, ((b"content-type", content_type), *headers), lambda: iter((body,)), len(body))


def negotiated(status: int, body: bytes, accept_encoding: str) -> Reply:
    """Return a reply, packed if the client accepts gzip and the body is large enough."""
    headers: Headers = ((b"vary", b"accept-encoding"),)
    if len(body) >= _PACK_FROM_BYTES and accepts_gzip(accept_encoding):
        # The fastest level: answers shrink to a tenth anyway. zlib writes no time, so equal bodies stay equal.
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        packed = packer.compress(body) + packer.flush()
        return reply(status, packed, (*headers, (b"content-encoding", b"gzip")))
    return reply(status, body, headers)


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header allows gzip; an empty one does not."""
    quality: dict[str, float] = {}
    for item in accept_encoding.lower().split(","):
        coding, _, parameter = item.partition(";")
        name, _, value = parameter.partition("=")
        try:
            quality[coding.strip()] = float(value) if name.strip() == "q" else 1.0
        except ValueError:
            quality[coding.strip()] = 0.0
    return quality.get("gzip", quality.get("*", 0.0)) > 0


class ReplyCache:
    """The latest replies by request, so that a repeated sweep computes nothing. Bounded in bytes."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._size = 0
        self._kept: OrderedDict[tuple[str, str, bytes], tuple[Reply, Answer]] = OrderedDict()

    def get(self, key: tuple[str, str, bytes]) -> tuple[Reply, Answer] | None:
        """Return the cached reply to a request (operation, Accept-Encoding, body) and its answer, if any."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: tuple[str, str, bytes], made: Reply, answer: Answer) -> None:
        """Cache a reply; beyond the limit, the least recently used ones are dropped."""
        size = _size(key, made)
        if size > self._limit or key in self._kept:
            return
        # Only the counts are needed again.
        self._kept[key] = (made, answer._replace(body=b""))
        self._size += size
        while self._size > self._limit:
            dropped, (old, _) = self._kept.popitem(last=False)
            self._size -= _size(dropped, old)

    def clear(self) -> None:
        """Empty the cache."""
        self._kept.clear()
        self._size = 0


def _size(key: tuple[str, str, bytes], made: Reply) -> int:
    return len(key[2]) + (made.length or 0)


class Served:
    """Counts requests by operation and outcome, and what the intact 200 answers held."""

    def __init__(self) -> None:
        self._requests: dict[str, dict[str, int]] = {}
        self._properties: dict[str, int] = {}
        self._products: dict[str, int] = {}
        self._unattributed: dict[str, int] = {}

    def count(self, operation: str, outcome: int | str, answer: Answer | None = None) -> None:
        """Count one request by its status, or by how its answer was broken.

        `answer` is given if it was sent complete and readable; its properties and products count as served.
        """
        outcomes = self._requests.setdefault(operation, {})
        outcomes[str(outcome)] = outcomes.get(str(outcome), 0) + 1
        if answer is not None and answer.status == 200:
            self._properties[operation] = self._properties.get(operation, 0) + answer.properties
            self._products[operation] = self._products.get(operation, 0) + answer.products
            self._unattributed[operation] = self._unattributed.get(operation, 0) + answer.unattributed

    def as_form(self) -> dict[str, Any]:
        """Return the counters for `GET /sandbox/served`."""
        return {
            "requests": self._requests,
            "properties_served": self._properties,
            "products_served": self._products,
            "products_without_property_id": self._unattributed,
        }
