"""Any JSON as an answer: nothing raises, every property asked for has one cell, and no offer is lost or invented."""

from __future__ import annotations

import copy
import hashlib
import json
import tempfile
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_answers import SWEEP, cells_of, land, normalised, record

from pipeline.domain.search import Operation
from pipeline.lake import Lake
from pipeline.normalise import read_answer as answers
from pipeline.normalise.segment import normalise_segment
from pipeline.sweep.load import SEGMENT_TABLES

quickly = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)

NAMES = (
    "properties", "property", "errors", "code", "errorCode", "propertyId", "currencyCode", "roomStays", "id", "roomId",
    "roomName", "rateType", "availableRooms", "products", "productId", "boardBasis", "name", "detail", "charges",
    "total", "minSellablePrice", "prePromoTotal", "discountPercentage", "promotions", "promoType", "description",
    "cancelPenalties", "penaltyWindow", "penaltyPercentage", "penaltyNights", "refundable", "penaltyStartDate",
    "penaltyInAmount", "images", "roomAmenities", "excludedChargeDetails", "cityTaxes", "unheard of",
)  # fmt: skip
scalars = (
    st.none()
    | st.booleans()
    | st.sampled_from(
        [0, 1, 2, -1, 14, 2**31, 2**53 + 1, 2**63, 10**30, 0.5, 1e300, float("nan"), float("inf"), 1.00005]
    )
    | st.integers()
    | st.floats()
    | st.sampled_from(["1", "2", "", "EUR", "NaN", "1e999", "2030-01-01T00:00:00", "true", "\x00"])
    | st.text(max_size=8)
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6)
)

money = st.none() | st.integers(0, 10**7) | st.decimals(0, 10**7, places=2).map(float)
text = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
whole = st.none() | st.integers(-(2**31), 2**31 - 1)
long = st.none() | st.integers(-(2**63), 2**63 - 1)
number = st.none() | st.integers(0, 100) | st.floats(0, 100)


def thing(**fields):
    """An object in which any field may be missing."""
    return st.fixed_dictionaries({}, optional=fields)


boards = st.none() | st.sampled_from([{"id": 14, "name": "Room Only"}, {"id": 3}, {}, {"id": 777, "detail": "?"}])
promotions = st.none() | st.lists(thing(promoType=text, description=text), max_size=3)
penalties = st.none() | st.lists(
    thing(penaltyWindow=whole, penaltyPercentage=number, penaltyNights=number, refundable=st.none() | st.booleans()),
    max_size=3,
)
charges = st.none() | thing(total=money, minSellablePrice=money, prePromoTotal=money, discountPercentage=number)
# An object that says nothing is no product, and no room.
products = thing(
    productId=long, boardBasis=boards, charges=charges, promotions=promotions, cancelPenalties=penalties
).filter(lambda held: any(each not in (None, {}, []) for each in held.values()))
rooms = thing(
    id=whole, roomId=long, roomName=text, rateType=text, availableRooms=whole,
    products=st.none() | st.lists(products, max_size=4),
).filter(bool)  # fmt: skip
hotels = st.fixed_dictionaries(
    {"propertyId": st.integers(1, 5)},
    optional={"currencyCode": text, "roomStays": st.none() | st.lists(rooms, max_size=3)},
)
clean_answers = st.fixed_dictionaries(
    {},
    optional={
        "properties": st.lists(hotels, max_size=4, unique_by=lambda held: held["propertyId"]),
        "errors": st.none() | st.just([{"code": 1023, "message": "none"}]),
    },
)


def in_new_lake(records, operation=Operation.MULTI):
    with tempfile.TemporaryDirectory() as folder:
        return normalised(Lake(folder), records, operation)


@pytest.mark.slow
@quickly
@given(st.sampled_from([Operation.MULTI, Operation.SINGLE]), anything, st.booleans())
def test_any_json_gives_each_property_one_cell_and_raises_nothing(operation, body, is_wrapped):
    name = "properties" if operation is Operation.MULTI else "property"
    ids = (1, 2, 3) if operation is Operation.MULTI else (1,)
    sent = json.dumps({name: body} if is_wrapped else body).encode()
    tables = in_new_lake([record(body=sent, property_ids=ids, operation=operation)], operation)
    cells = cells_of(tables)
    assert set(cells) == set(ids)
    offers = Counter(tables["offer"]["property_id"].to_pylist())
    assert {key: cell[2] for key, cell in cells.items() if cell[2]} == offers
    assert {key for key, cell in cells.items() if cell[0] == "offered"} == set(offers)


@quickly
@given(st.binary(max_size=60))
def test_any_bytes_give_each_property_one_cell_and_raise_nothing(body):
    assert set(cells_of(in_new_lake([record(body=body)]))) == {1, 2}


@pytest.mark.slow
@quickly
@given(st.lists(clean_answers, min_size=1, max_size=3))
def test_clean_answers_are_stored_completely_and_identically_by_both_readers(bodies):
    records = [record(n, body, property_ids=(1, 2, 3, 4, 5)) for n, body in enumerate(bodies)]
    strictly = in_new_lake(records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "_read_strictly", refuse)
        tolerantly = in_new_lake(records)
    assert strictly["offer"].num_rows == sum(len(products_of(body)) for body in bodies)
    assert strictly["reject"].num_rows == 0
    for name in SEGMENT_TABLES:
        assert strictly[name].to_pylist() == tolerantly[name].to_pylist(), name


@pytest.mark.slow
@quickly
@given(clean_answers, st.data())
def test_each_product_served_is_an_offer_or_a_reject(body, data):
    spoilt = copy.deepcopy(body)
    for product in products_of(spoilt):
        field = data.draw(
            st.sampled_from([None, "productId", "charges", "promotions", "cancelPenalties", "boardBasis"])
        )
        if field:
            product[field] = data.draw(anything)
    tables = in_new_lake([record(body=spoilt, property_ids=(1, 2, 3, 4, 5))])
    refused = tables["reject"]["part"].to_pylist()
    assert set(refused) <= {"offer"}
    assert tables["offer"].num_rows + len(refused) == len(products_of(body))


@quickly
@given(st.lists(clean_answers, min_size=1, max_size=3))
def test_promotions_and_penalties_stand_at_their_own_offers(bodies):
    tables = in_new_lake([record(n, body, property_ids=(1, 2, 3, 4, 5)) for n, body in enumerate(bodies)])
    promotions, penalties, offers = [], [], []
    for number, body in enumerate(bodies):
        for offer_no, (hotel, product) in enumerate(products_of(body, with_property=True)):
            place = (number * 256 + 1, offer_no, hotel["propertyId"])
            offers.append((*place, decimal((product.get("charges") or {}).get("total"))))
            for at, each in enumerate(product.get("promotions") or ()):
                promotions.append((*place, at, each.get("promoType"), each.get("description")))
            for at, each in enumerate(product.get("cancelPenalties") or ()):
                wire = ("penaltyWindow", "penaltyPercentage", "penaltyNights", "refundable")
                penalties.append((*place, at, *(each.get(name) for name in wire)))
    place = ["search_id", "offer_no", "property_id"]
    ours = ["penalty_no", "window_hours", "penalty_pct", "penalty_nights", "is_refundable"]
    assert rows(tables["offer"], [*place, "total"]) == offers
    assert rows(tables["promotion"], [*place, "promotion_no", "promo_type", "description"]) == promotions
    assert rows(tables["penalty"], [*place, *ours]) == penalties


def test_the_same_shards_give_the_same_bytes(tmp_path):
    bodies = [
        {"properties": [{"propertyId": n, "roomStays": [{"roomName": f"r{n}", "products": [{"productId": n}] * n}]}]}
        for n in range(1, 6)
    ]
    records = [record(n, body, property_ids=(1, 2, 3, 4, 5)) for n, body in enumerate(bodies)]
    digests = []
    for name, ordered in (("one", records), ("two", records), ("other order", records[::-1])):
        lake = Lake(str(tmp_path / name))
        segment = land(lake, ordered)
        for _ in range(2):
            normalise_segment(lake, SWEEP, segment, 10**6, {})
        files = sorted(lake.root.rglob("*.parquet"))
        digests.append([(file.relative_to(lake.root), hashlib.sha256(file.read_bytes()).hexdigest()) for file in files])
    assert digests[0] == digests[1] == digests[2]
    assert len(digests[0]) >= 4


def refuse(*_):
    raise ValueError


def products_of(body, *, with_property=False):
    found = [
        (hotel, product)
        for hotel in body.get("properties") or ()
        for room in hotel.get("roomStays") or ()
        for product in room.get("products") or ()
    ]
    return found if with_property else [product for _, product in found]


def rows(table, names):
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


def decimal(value):
    return None if value is None else Decimal(str(value))
