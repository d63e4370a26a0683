"""Events at a supplier: answers as they would be if a market were dearer, sold nothing, or repeated itself.

Answers are changed on their way from the sandbox, before the pipeline sees them.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from pipeline.supplier import sender
from pipeline.supplier.exchange import Reply

# Market and decoded answer: what is answered instead.
Change = Callable[[str, Any], Any]
NO_OFFER = {"errors": [{"code": 1023, "message": "No offers available"}]}
_MONEY = ("total", "minSellablePrice", "prePromoTotal", "includedCharges")
_UNPACKED = {"gzip": gzip.decompress, "deflate": zlib.decompress, "": bytes}


@contextmanager
def market_events(change: Change) -> Iterator[None]:
    """Let searches be answered with what `change` makes of their answers; what is not JSON stays as it is."""
    exchange = sender.exchange

    async def changed(transport: Any, request: Any, **limits: Any) -> Reply:
        reply = await exchange(transport, request, **limits)
        if reply.status != 200 or reply.failure or b'"market"' not in request.content:
            return reply
        try:
            said = json.loads(_UNPACKED[reply.headers.get("content-encoding", "")](reply.body))
        except ValueError:
            return reply
        body = json.dumps(change(json.loads(request.content)["market"], said)).encode()
        return replace(reply, body=body, headers=reply.headers | {"content-encoding": ""})

    with mock.patch.object(sender, "exchange", changed):
        yield


def dearer(said: Any, factor: float) -> Any:
    """Multiply all that is paid for the products of an answer; what is written as a text stays."""
    for product in _products(said):
        charges = product.get("charges")
        if isinstance(charges, dict):
            charges.update(
                {
                    name: round(charges[name] * factor, 2)
                    for name in _MONEY
                    if isinstance(charges.get(name), int | float)
                }
            )
    return said


def repeated(said: Any, factor: float) -> Any:
    """Repeat each product of an answer under the same terms, for another price."""
    for room in _rooms(said):
        if isinstance(room.get("products"), list):
            again = dearer(
                {"property": {"roomStays": [{"products": json.loads(json.dumps(room["products"]))}]}}, factor
            )
            room["products"] += again["property"]["roomStays"][0]["products"]
    return said


def _products(said: Any) -> Iterator[dict[str, Any]]:
    return (product for room in _rooms(said) for product in _dicts(room.get("products")))


def _rooms(said: Any) -> Iterator[dict[str, Any]]:
    if isinstance(said, dict):
        for hotel in _dicts(said.get("properties") or [said.get("property")]):
            yield from _dicts(hotel.get("roomStays"))


def _dicts(values: Any) -> list[dict[str, Any]]:
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []
