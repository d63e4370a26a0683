"""The largest honest answers: as many bytes as are read by default, filled with what the document describes.

The document bounds the properties of a search (100), its rooms (9) and the boards (28), but neither room types nor
policies, so the limit of bytes decides; an answer beyond it is requested again in halves. No other limit (of objects,
items, unreadable parts, penalties of an offer, deviations) may refuse what fits into it. (Six or more short
promotions in every offer would reach the limit of objects first, at 63 MB, and are requested again in halves, too.)
"""

from __future__ import annotations

import json
from itertools import cycle

import pytest
from raw_answers import SWEEP, hotel, product, record, room

from pipeline.domain.codes import BOARDS
from pipeline.domain.search import MAX_PROPERTIES_PER_SEARCH, Operation
from pipeline.normalise.segment import rows_of_answers
from pipeline.settings import Settings

# Seconds alone; more where each part is read by itself, and while others keep the processors busy.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MOST_BYTES = Settings.model_fields["max_body_mb"].default * 1_000_000
ROOMS = 9
# Short texts on purpose: the shorter they are, the more parts fit into the bytes.
PROMOTIONS = [
    {"promoType": "Discount off", "description": "10% off"},
    {"promoType": "Free night", "description": "Stay 3, pay 2"},
]
DATES = {"penaltyStartDate": "2030-01-31T14:00:00+01:00", "penaltyEndDate": "2030-02-01T14:00:00+01:00"}
FEES = {"resortFee": 10.5, "childResortFee": 5.25, "cityTaxes": 3.1, "hotelServiceFee": 8}
CONTENT = {
    "roomDescription": "Two beds and a view of the sea. " * 8,
    "bedTypeInfo": "2 single beds",
    "images": [f"https://images.example/7001/{number}.jpg" for number in range(40)],
    "roomAmenities": [{"id": number, "name": f"Amenity {number}"} for number in range(60)],
}


def packed(value):
    return json.dumps(value, separators=(",", ":")).encode()


def template(*, is_detail):
    """A product with a place for its number, board, price and policy."""
    fees = {"includedCharges": 20.5, "excludedCharges": 26.85, "excludedChargeDetails": FEES} if is_detail else {}
    exact = DATES | {"penaltyInAmount": 55.5} if is_detail else {}
    held = product(
        productId="@number",
        boardBasis={"id": "@board", "name": "Room Only", "detail": "no meals"},
        charges={"total": "@price", "minSellablePrice": "@price", "prePromoTotal": 1500.75, "discountPercentage": 9.5}
        | fees,
        promotions=PROMOTIONS,
        cancelPenalties=[
            {"penaltyWindow": hours, "penaltyPercentage": 50, "penaltyNights": 1, "refundable": True} | exact
            for hours in ("@hours", 12)
        ],
    )
    text = packed(held).replace(b"%", b"%%")
    for name, form in ((b"number", b"d"), (b"board", b"d"), (b"price", b".2f"), (b"hours", b"d")):
        text = text.replace(b'"@%s"' % name, b"%%(%s)%s" % (name, form))
    return text


def filled(body, *, is_detail):
    """Fill the rooms of an answer with as many products as its bytes have left; return it, and how many there are."""
    before, *rooms = packed(body).split(b'"products":[]')
    text, boards = template(is_detail=is_detail), cycle(BOARDS)
    example = len(text % {b"number": 9_000_000_000, b"board": 100, b"price": 1000, b"hours": 500}) + 1
    each = (MOST_BYTES - len(packed(body))) // example // len(rooms)
    parts, first = [before], 9_000_000_000
    for after in rooms:
        made = []
        for number in range(first, first + each):
            values = {
                b"number": number,
                b"board": next(boards),
                b"price": number % 90_000 / 100,
                b"hours": number % 500,
            }
            made.append(text % values)
        first += each
        parts += [b'"products":[', b",".join(made), b"]", after]
    plain = b"".join(parts)
    assert MOST_BYTES * 0.97 < len(plain) <= MOST_BYTES
    # Blanks may follow a value of JSON.
    return plain.ljust(MOST_BYTES), each * len(rooms)


def drift_of(sent, offers, operation, ids):
    """Check that an answer of the most bytes loses nothing, and return its deviations."""
    address, given = "raw/x.parquet#0", record(body=sent, property_ids=ids, operation=operation)
    tables = rows_of_answers(SWEEP, operation, "GB", [(address, given)], MOST_BYTES)
    rejects = tables["reject"].num_rows if "reject" in tables else 0
    assert (tables["offer"].num_rows, rejects) == (offers, 0)
    assert tables["penalty"].num_rows == tables["promotion"].num_rows == 2 * offers
    assert set(tables["cell"]["status"].to_pylist()) == {"offered"}
    assert tables["cell"]["property_id"].to_pylist() == list(ids)
    return tables["drift"].to_pylist() if "drift" in tables else []


@pytest.mark.parametrize("more", [{}, {"serverVersion": "2"}], ids=["documented", "with a new field"])
def test_a_search_of_the_most_properties_and_rooms_may_fill_all_bytes(more):
    """With a field that the document does not have, each part is read by itself."""
    ids = range(1, MAX_PROPERTIES_PER_SEARCH + 1)
    hotels = [hotel(each, rooms=[room(products=[], id=number) for number in range(ROOMS)]) for each in ids]
    sent, offers = filled({"properties": hotels} | more, is_detail=False)
    drift = drift_of(sent, offers, Operation.MULTI, tuple(ids))
    assert offers > 100_000
    assert [(each["path"], each["occurrences"]) for each in drift] == [(name, 1) for name in more]


def test_a_search_of_one_property_may_fill_all_bytes():
    rooms = [room(products=[], id=number % ROOMS, roomId=number) | CONTENT for number in range(100 * ROOMS)]
    sent, offers = filled({"property": hotel(1, rooms=rooms, propertyName="At the sea")}, is_detail=True)
    assert drift_of(sent, offers, Operation.SINGLE, (1,)) == []
    assert offers > 50_000
