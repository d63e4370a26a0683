"""Every documented refusal is given, for the operations that have it, and for all that is wrong at once."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandbox_searches import TODAY

from pipeline.sandbox.server.validation import understand
from pipeline.sandbox.world.documented import MARKETS, REFUSALS, Guests, Search

STAY = {"id": 0, "guestCount": {"adultCount": 2}}
COMMON = {
    "checkIn": "2030-02-10",
    "checkOut": "2030-02-12",
    "market": "SE",
    "currencyCode": "EUR",
    "rateType": "BAR",
    "productType": "Hotel",
}
GOOD = {
    "multi": COMMON | {"propertyIds": [1, 2], "roomStays": [STAY]},
    "single": COMMON | {"propertyId": 1, "roomStays": [STAY]},
    "quote": COMMON | {"propertyId": 1, "roomStays": [STAY | {"productId": 9}]},
}
MISSING = object()


def read(operation, changes, **options):
    request = {name: value for name, value in (GOOD[operation] | changes).items() if value is not MISSING}
    return understand(operation, json.dumps(request).encode(), TODAY, **options)


def stay(**changes):
    return {"roomStays": [{name: value for name, value in (STAY | changes).items() if value is not MISSING}]}


BROKEN_EVERYWHERE = [
    ({"checkIn": MISSING}, 1002),
    ({"checkOut": None}, 1003),
    ({"market": MISSING}, 1004),
    ({"productType": MISSING}, 1005),
    ({"roomStays": MISSING}, 1006),
    ({"roomStays": []}, 1006),
    ({"roomStays": {"id": 0}}, 1006),
    (stay(id=MISSING), 1007),
    (stay(id=1), 1007),
    (stay(id=True), 1007),
    (stay(guestCount={}), 1008),
    (stay(guestCount={"adultCount": 0}), 1008),
    (stay(guestCount={"adultCount": "2"}), 1008),
    (stay(guestCount=MISSING), 1009),
    (stay(guestCount={"adultCount": 2, "childAges": "5"}), 1009),
    (stay(guestCount={"adultCount": 2, "childAges": [5.5]}), 1009),
    (stay(guestCount={"adultCount": 2, "childAges": [5] * 9}), 1010),
    (stay(guestCount={"adultCount": 10}), 1011),
    ({"roomStays": [STAY | {"id": place} for place in range(10)]}, 1012),
    ({"checkIn": "2030-01-01"}, 1014),
    ({"checkOut": "2029-12-31"}, 1015),
    ({"checkIn": "10.02.2030"}, 1016),
    ({"checkOut": "2030-02-30"}, 1016),
    ({"checkIn": 20300210}, 1016),
    ({"checkIn": "２０３０-02-10"}, 1016),
    ({"checkOut": "2030-02-10"}, 1017),
    ({"market": "JP"}, 1018),
    ({"market": "se"}, 1018),
    ({"market": 5}, 1018),
    ({"productType": "hotel"}, 1019),
    ({"rateType": MISSING}, 1022),
    ({"rateType": None}, 1022),
    ({"rateType": "NET"}, 1022),
    ({"currencyCode": "XXX"}, 1027),
    ({"currencyCode": "eur"}, 1027),
    ({"currencyCode": 978}, 1027),
    ({"currencyCode": None}, 1027),
    (stay(guestCount={"adultCount": 2, "childAges": None}), 1009),
]


@pytest.mark.parametrize("operation", GOOD)
@pytest.mark.parametrize(("changes", "code"), BROKEN_EVERYWHERE)
def test_every_broken_rule_has_its_code(operation, changes, code):
    assert code in read(operation, changes)


@pytest.mark.parametrize(
    ("operation", "changes", "code"),
    [
        ("multi", {"propertyIds": MISSING}, 1001),
        ("multi", {"propertyIds": []}, 1001),
        ("multi", {"propertyIds": ["1"]}, 1001),
        ("multi", {"propertyIds": [2**63]}, 1001),
        ("multi", {"propertyIds": list(range(101))}, 1013),
        ("single", {"propertyId": MISSING}, 1020),
        ("single", {"propertyId": "1"}, 1020),
        ("quote", {"propertyId": None}, 1020),
        ("quote", {"roomStays": [STAY]}, 1021),
        ("quote", {"roomStays": [STAY | {"productId": "9"}]}, 1021),
    ],
)
def test_the_rules_of_one_operation_have_theirs(operation, changes, code):
    assert read(operation, changes) == [code]


def test_all_documented_codes_have_been_seen():
    seen = {code for _, code in BROKEN_EVERYWHERE} | {1001, 1013, 1020, 1021}
    assert seen == set(REFUSALS) == {*range(1001, 1023), 1027}


@pytest.mark.parametrize("operation", GOOD)
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b'{"a":"\xff"}', b"[" * 100_000])
def test_a_body_that_is_no_object_lacks_everything(operation, body):
    own = {"multi": [1001], "single": [1020], "quote": [1020]}[operation]
    assert understand(operation, body, TODAY) == sorted([*own, 1002, 1003, 1004, 1005, 1006, 1022])


def test_several_mistakes_are_refused_together():
    found = read("single", {"market": "JP", "checkIn": "soon", "productType": MISSING, "currencyCode": "XXX"})
    assert found == [1005, 1016, 1018, 1027]


@pytest.mark.parametrize("operation", GOOD)
def test_a_good_request_is_understood(operation):
    assert isinstance(read(operation, {}), Search)
    assert isinstance(read(operation, {"currencyCode": MISSING, "unknown": {"field": 1}}), Search)


def test_the_rate_type_may_be_left_out_where_the_sandbox_is_set_so():
    assert isinstance(read("multi", {"rateType": MISSING}, rate_type_required=False), Search)
    assert read("multi", {"rateType": None}, rate_type_required=False) == [1022]


def test_a_whole_number_written_with_a_point_is_an_integer():
    understood = read("multi", stay(guestCount={"adultCount": 2.0, "childAges": [7.0]}))
    assert understood.parties == (Guests(2, (7,)),)


@pytest.mark.parametrize("market", MARKETS)
def test_every_market_is_taken(market):
    assert isinstance(read("multi", {"market": market}), Search)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD["quote"], "id"]), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.sampled_from(sorted(GOOD)), st.sampled_from(sorted({*COMMON, "propertyId", "roomStays"})), ANYTHING)
def test_no_value_whatever_breaks_the_validation(operation, field, value):
    result = read(operation, {field: value})
    assert isinstance(result, Search) or set(result) <= set(REFUSALS)
