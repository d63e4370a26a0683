"""The request of a raw record, read back from what was sent: answers do not repeat it."""

from dataclasses import dataclass, replace
from datetime import date

import msgspec
import pyarrow as pa

from pipeline.domain.search import Search
from pipeline.domain.stay import Party, Room
from pipeline.normalise.read_answer import Reading


class _GuestCount(msgspec.Struct):
    adultCount: int  # noqa: N815 - wire name
    childAges: list[int] = []  # noqa: N815 - wire name; msgspec copies defaults


class _RoomStay(msgspec.Struct):
    guestCount: _GuestCount  # noqa: N815 - wire name


class _Request(msgspec.Struct):
    check_in: date = msgspec.field(name="checkIn")
    check_out: date = msgspec.field(name="checkOut")
    market: str
    product_type: str = msgspec.field(name="productType")
    room_stays: list[_RoomStay] = msgspec.field(name="roomStays")
    property_ids: list[int] = msgspec.field(name="propertyIds", default_factory=list)
    property_id: int | None = msgspec.field(name="propertyId", default=None)
    currency: str | None = msgspec.field(name="currencyCode", default=None)


@dataclass(frozen=True, slots=True)
class Asked:
    """The cells of one search: what they have in common, and their properties."""

    market: str
    product_type: str
    check_in: date
    nights: int
    party: str
    currency: str | None
    property_ids: tuple[int, ...]
    sent_property_id: int | None = None
    """The id that was sent instead of the cell's own: the unbranded one of an opaque pair."""


_decode = msgspec.json.Decoder(_Request).decode


def asked_of_request(request: bytes) -> Asked:
    """Read the JSON of a request that we sent. Raises msgspec.MsgspecError if it is damaged."""
    sent = _decode(request)
    rooms = (Room(r.guestCount.adultCount, tuple(r.guestCount.childAges)) for r in sent.room_stays)
    return Asked(
        sent.market,
        sent.product_type,
        sent.check_in,
        (sent.check_out - sent.check_in).days,
        Party(tuple(rooms)).text,
        sent.currency,
        tuple(sent.property_ids) or (() if sent.property_id is None else (sent.property_id,)),
    )


def asked_of_search(search: Search) -> Asked:
    """Return the cells of a planned search that was never sent."""
    return Asked(
        search.market,
        search.product_type,
        search.stay.check_in,
        search.stay.nights,
        search.party.text,
        search.currency,
        search.property_ids,
    )


def asked_for(asked: Asked, own_property_id: int | None) -> Asked:
    """Return the request as planned, if one property was requested under the id of another."""
    if own_property_id is None or asked.property_ids == (own_property_id,):
        return asked
    (sent,) = asked.property_ids
    return replace(asked, property_ids=(own_property_id,), sent_property_id=sent)


def sent_ids(asked: Asked) -> frozenset[int]:
    """Return the property ids that the request named."""
    return frozenset(asked.property_ids if asked.sent_property_id is None else (asked.sent_property_id,))


def under_own_id(reading: Reading, asked: Asked) -> Reading:
    """Return the reading with the cell's own property id instead of the one that was sent."""
    sent = asked.sent_property_id
    if sent is None:
        return reading
    (own,) = asked.property_ids

    def own_for(property_id: int) -> int:
        return own if property_id == sent else property_id

    if reading.offers is not None:
        answered = reading.offers.property_id.to_pylist()
        reading.offers.property_id = pa.array(map(own_for, answered), pa.int64())
    reading.returned = {own_for(property_id): offers for property_id, offers in reading.returned.items()}
    reading.unreadable = frozenset(map(own_for, reading.unreadable))
    reading.refusals = [
        replace(refusal, property_id=own) if refusal.property_id == sent else refusal for refusal in reading.refusals
    ]
    if reading.content is not None and reading.content.property_id == sent:
        reading.content = replace(reading.content, property_id=own)
    return reading
