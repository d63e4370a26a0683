"""The body of a search as it is sent for a sweep."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from pipeline.domain.search import Operation, Search
from pipeline.lake.raw import Manifest
from pipeline.supplier.requests import request_for


def body_of(manifest: Manifest, unbranded: Mapping[int, int]) -> Callable[[Search], bytes]:
    """Return what makes the body of a search of a sweep; `unbranded` has the unbranded id of branded properties."""

    def made(search: Search) -> bytes:
        # Checked against the day of the plan: a stay that has begun since is still requested, and its cell rejected.
        request = request_for(
            as_sent(search, unbranded), today=manifest.snapshot_date, send_rate_type=manifest.send_rate_type
        )
        return request.to_wire()

    return made


def as_sent(search: Search, unbranded: Mapping[int, int]) -> Search:
    """Return a search as it is sent: a single search for an opaque offer names the unbranded property."""
    if search.operation is not Operation.SINGLE:
        return search
    return replace(search, property_ids=tuple(unbranded.get(own, own) for own in search.property_ids))
