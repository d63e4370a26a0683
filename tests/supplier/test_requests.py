"""From a planned search to the bytes of its request."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pipeline.domain.codes import MARKETS
from pipeline.domain.errors import InputError, RequestRefused
from pipeline.domain.search import Operation, ProductType, Search
from pipeline.domain.stay import Party, Room, Stay
from pipeline.supplier.requests import GuestCount, quote_request_for, request_for

TODAY = date(2031, 5, 9)
SEARCH = Search(
    0,
    Operation.MULTI,
    "SE",
    ProductType.HOTEL,
    Stay.of(date(2031, 5, 10), 2),
    Party.parse("2c5-9+1"),
    "SEK",
    (2**53 + 1, 7),
)
ONE = replace(SEARCH, operation=Operation.SINGLE, property_ids=(2**53 + 1,))

rooms = st.builds(
    Room, st.integers(1, 9), st.lists(st.integers(0, 17), max_size=8).map(lambda ages: tuple(sorted(ages)))
)
searches = st.builds(
    Search,
    st.just(0),
    st.just(Operation.MULTI),
    st.sampled_from(MARKETS),
    st.sampled_from(ProductType),
    st.builds(Stay.of, st.dates(TODAY + timedelta(days=1), date(2040, 1, 1)), st.integers(1, 60)),
    st.builds(Party, st.lists(rooms, min_size=1, max_size=9).map(tuple)),
    st.none() | st.from_regex(r"[A-Z]{3}", fullmatch=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=100).map(tuple),
)


def test_a_search_becomes_compact_json_in_the_suppliers_names():
    assert request_for(SEARCH, today=TODAY).to_wire() == (
        b'{"checkIn":"2031-05-10","checkOut":"2031-05-12","market":"SE","currencyCode":"SEK","rateType":"BAR",'
        b'"productType":"Hotel","propertyIds":[9007199254740993,7],"roomStays":['
        b'{"id":0,"guestCount":{"adultCount":2,"childAges":[5,9]}},{"id":1,"guestCount":{"adultCount":1}}]}'
    )


def test_a_single_search_asks_for_its_one_property():
    document = json.loads(request_for(ONE, today=TODAY).to_wire())
    assert document["propertyId"] == 2**53 + 1
    assert "propertyIds" not in document


def test_what_is_not_stated_is_left_out_and_not_sent_as_null():
    wire = request_for(replace(SEARCH, currency=None), today=TODAY, send_rate_type=False).to_wire()
    assert b"null" not in wire
    assert {"currencyCode", "rateType"}.isdisjoint(json.loads(wire))


@given(searches)
def test_every_search_that_the_rules_allow_goes_out_with_exactly_what_it_asks(search):
    document = json.loads(request_for(search, today=TODAY).to_wire())
    assert document.pop("propertyIds") == list(search.property_ids)
    assert document.pop("currencyCode", None) == search.currency
    assert (document.pop("checkIn"), document.pop("checkOut")) == (
        str(search.stay.check_in),
        str(search.stay.check_out),
    )
    assert (document.pop("market"), document.pop("productType")) == (search.market, search.product_type)
    guests = [room["guestCount"] for room in document.pop("roomStays")]
    assert Party(tuple(Room(g["adultCount"], tuple(g.get("childAges", ()))) for g in guests)) == search.party
    assert document == {"rateType": "BAR"}


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        ({"property_ids": ()}, (1001,)),
        ({"property_ids": tuple(range(101))}, (1013,)),
        ({"property_ids": (True,)}, ()),
        ({"market": "XX"}, (1018,)),
        ({"product_type": "Flight"}, (1019,)),
        ({"currency": "kr"}, (1027,)),
        ({"stay": Stay.of(TODAY, 1)}, (1014,)),
        ({"stay": Stay.of(TODAY - timedelta(days=1), 1)}, (1014, 1015)),
        ({"party": Party(())}, (1006,)),
        ({"party": Party((Room(2),) * 10)}, (1012,)),
        ({"party": Party((Room(10),))}, (1011,)),
        ({"party": Party((Room(0),))}, (1008,)),
        ({"party": Party((Room(1, (5,) * 9),))}, (1010,)),
        ({"market": "XX", "party": Party((Room(10),))}, (1011, 1018)),
    ],
    ids=str,
)
def test_a_search_that_would_be_refused_is_refused_before_it_is_sent(change, codes):
    with pytest.raises(RequestRefused) as caught:
        request_for(replace(SEARCH, **change), today=TODAY)
    assert caught.value.codes == codes
    assert isinstance(caught.value, InputError)
    assert "was not sent" in caught.value.message


def test_a_single_search_of_no_property_or_of_several_is_refused():
    with pytest.raises(RequestRefused) as caught:
        request_for(replace(ONE, property_ids=()), today=TODAY)
    assert caught.value.codes == (1020,)
    with pytest.raises(RequestRefused, match="one property, not 2"):
        request_for(replace(ONE, property_ids=(1, 2)), today=TODAY)


def test_a_search_is_no_quote():
    with pytest.raises(RequestRefused) as caught:
        request_for(replace(ONE, operation=Operation.QUOTE), today=TODAY)
    assert caught.value.codes == (1021,)


def test_a_quote_names_a_product_for_each_room_in_their_order():
    document = json.loads(quote_request_for(ONE, [2**60 + 1, 2**60 + 3], today=TODAY).to_wire())
    assert [room["productId"] for room in document["roomStays"]] == [2**60 + 1, 2**60 + 3]
    assert document["propertyId"] == 2**53 + 1


@pytest.mark.parametrize(("products", "codes"), [([], (1021,)), ([1], (1021,)), ([1, 2, 3], ()), ([1, "2"], ())])
def test_a_quote_with_too_few_too_many_or_unreadable_products_is_refused(products, codes):
    with pytest.raises(RequestRefused) as caught:
        quote_request_for(ONE, products, today=TODAY)
    assert caught.value.codes == codes


def test_a_quote_of_several_properties_is_refused():
    with pytest.raises(RequestRefused, match="one property, not 2"):
        quote_request_for(SEARCH, [1, 2], today=TODAY)


def test_a_request_cannot_be_changed_once_it_is_made():
    with pytest.raises(ValidationError):
        request_for(SEARCH, today=TODAY).market = "XX"
    assert GuestCount(adult_count=2) == GuestCount.model_validate({"adultCount": 2})
