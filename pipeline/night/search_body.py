"""The body of a search as it is sent."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date

from pipeline.domain.search import Operation, Search
from pipeline.supplier.requests import request_for


def body_of(unbranded: Mapping[int, int], today: date, *, send_rate_type: bool) -> Callable[[Search], bytes]:
    """Return what makes the body of a search; `unbranded` has the unbranded id of branded properties.

    A stay is checked against `today`. For a sweep it is the day of the plan: a stay that has begun since is still
    requested, and its cell rejected.
    """
    return lambda search: request_for(as_sent(search, unbranded), today=today, send_rate_type=send_rate_type).to_wire()


def as_sent(search: Search, unbranded: Mapping[int, int]) -> Search:
    """Return a search as it is sent: a single search for an opaque offer names the unbranded property."""
    if search.operation is not Operation.SINGLE:
        return search
    return replace(search, property_ids=tuple(unbranded.get(own, own) for own in search.property_ids))
