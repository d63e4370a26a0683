"""What the document would refuse is refused here, with the document's code, for all three operations."""

from __future__ import annotations

import json
from datetime import date

import pytest

from pipeline.domain.codes import ERROR_CODES
from pipeline.domain.errors import RequestRefused
from pipeline.domain.search import Operation
from pipeline.supplier.requests import MultiRequest, QuoteRequest, SingleRequest, checked

TODAY = date(2031, 5, 9)
OPERATIONS = list(Operation)
REQUESTS = {Operation.MULTI: MultiRequest, Operation.SINGLE: SingleRequest, Operation.QUOTE: QuoteRequest}


def read_request(operation, asked):
    """A request that was written by hand, in the supplier's names."""
    return checked(REQUESTS[operation], asked, TODAY)


def room(operation, number=0):
    product = {"productId": 2**53 + 1} if operation is Operation.QUOTE else {}
    return {"id": number, "guestCount": {"adultCount": 2, "childAges": [7]}} | product


def document(operation):
    ids = {"propertyIds": [2**53 + 1, 5]} if operation is Operation.MULTI else {"propertyId": 2**53 + 1}
    return ids | {
        "checkIn": "2031-05-10",
        "checkOut": "2031-05-12",
        "market": "SE",
        "currencyCode": "SEK",
        "rateType": "BAR",
        "productType": "Hotel",
        "roomStays": [room(operation)],
    }


def refusal(operation, asked):
    with pytest.raises(RequestRefused) as caught:
        read_request(operation, asked)
    documented = {code for code in caught.value.codes if operation in ERROR_CODES[code].operations}
    assert documented == set(caught.value.codes)
    assert all(f"(error {code})" in caught.value.message for code in caught.value.codes)
    return caught.value


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_allowed_request_passes_and_goes_out_as_it_came(operation):
    asked = document(operation)
    assert json.loads(read_request(operation, asked).to_wire()) == asked


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_request_has_exactly_the_documented_fields(operation, facts):
    fields = {field.alias: field for field in REQUESTS[operation].model_fields.values()}
    documented = facts["requests"][operation]
    assert set(fields) == {*documented["required"], *documented["optional"]}
    assert {name for name, field in fields.items() if field.is_required()} == set(documented["required"])
    assert set(room(operation)) == set(documented["room"])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_required_field_that_is_missing_or_null_is_refused_with_its_code(operation, facts):
    holders = {
        **dict.fromkeys(facts["requests"][operation]["required"], ()),
        **dict.fromkeys(facts["requests"][operation]["room"], ("roomStays", 0)),
        "adultCount": ("roomStays", 0, "guestCount"),
    }
    for name, path in holders.items():
        for is_null in (False, True):
            asked = document(operation)
            holder = asked
            for step in path:
                holder = holder[step]
            if is_null:
                holder[name] = None
            else:
                del holder[name]
            assert refusal(operation, asked).codes == (facts["missing"][name],), name


@pytest.mark.parametrize("operation", OPERATIONS)
def test_optional_fields_may_be_missing_or_null(operation, facts):
    for name in facts["requests"][operation]["optional"]:
        asked = document(operation)
        read_request(operation, asked | {name: None})
        del asked[name]
        read_request(operation, asked)
    asked = document(operation)
    del asked["roomStays"][0]["guestCount"]["childAges"]
    read_request(operation, asked)


def sized(operation, name, size):
    """A request whose limited field has `size` items, or is `size`."""
    asked = document(operation)
    guests = asked["roomStays"][0]["guestCount"]
    if name == "propertyIds":
        asked[name] = list(range(size))
    elif name == "roomStays":
        asked[name] = [room(operation, number) for number in range(size)]
    else:
        guests[name] = size if name == "adultCount" else [5] * size
    return asked


@pytest.mark.parametrize("operation", OPERATIONS)
def test_limits_hold_on_both_sides(operation, facts):
    for name, limit in facts["limits"].items():
        if name == "propertyIds" and operation is not Operation.MULTI:
            continue
        for allowed in (limit["least"], limit["most"]):
            read_request(operation, sized(operation, name, allowed))
        assert refusal(operation, sized(operation, name, limit["most"] + 1)).codes == (limit["above"],)
        if limit["below"]:
            assert refusal(operation, sized(operation, name, limit["least"] - 1)).codes == (limit["below"],)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("change", "codes"),
    [
        ({"checkIn": "2031-05-09"}, (1014,)),
        ({"checkIn": "2031-05-01", "checkOut": "2031-05-09"}, (1014, 1015)),
        ({"checkOut": "2031-05-10"}, (1017,)),
        ({"checkIn": "2031-05-14"}, (1017,)),
        ({"checkIn": "2031-5-10"}, (1016,)),
        ({"checkIn": "10.05.2031"}, (1016,)),
        ({"checkIn": "2031-02-30"}, (1016,)),
        ({"checkIn": "2031-05-10T00:00:00"}, (1016,)),
        ({"checkOut": 1936224000}, (1016,)),
        ({"checkOut": "２０３１-05-12"}, (1016,)),
        ({"market": "XX"}, (1018,)),
        ({"market": "se"}, (1018,)),
        ({"market": ""}, (1018,)),
        ({"productType": "hotel"}, (1019,)),
        ({"currencyCode": "sek"}, (1027,)),
        ({"currencyCode": "SEKK"}, (1027,)),
        ({"currencyCode": "SEK\n"}, (1027,)),
        ({"rateType": "RACK"}, ()),
        ({"surprise": 1}, ()),
        ({"market": "XX", "currencyCode": "kr"}, (1018, 1027)),
    ],
    ids=str,
)
def test_a_broken_rule_is_named_with_its_code(operation, change, codes):
    assert refusal(operation, document(operation) | change).codes == codes


def test_only_the_suppliers_names_are_names():
    asked = document(Operation.SINGLE)
    asked["property_id"] = asked.pop("propertyId")
    assert refusal(Operation.SINGLE, asked).codes == (1020,)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("ids", [[1], [0, 0], [1, 0], [0, 2], [-1, 0]], ids=str)
def test_rooms_are_numbered_from_0_upwards(operation, ids):
    asked = document(operation)
    asked["roomStays"] = [room(operation, number) for number in ids]
    error = refusal(operation, asked)
    assert error.codes == ()
    assert "start at 0" in error.message


@pytest.mark.parametrize("value", [True, 1.0, "1", 2**63, -(2**63) - 1, [1]], ids=str)
def test_an_id_is_an_int64_and_nothing_that_looks_like_one(value):
    for operation, name in ((Operation.MULTI, "propertyIds"), (Operation.SINGLE, "propertyId")):
        asked = document(operation) | {name: [5, value] if name == "propertyIds" else value}
        assert refusal(operation, asked).codes == ()
    asked = document(Operation.QUOTE)
    asked["roomStays"][0]["productId"] = value
    assert refusal(Operation.QUOTE, asked).codes == ()


@pytest.mark.parametrize("value", [True, 1.0, "1", 2**31], ids=str)
def test_guests_are_counted_and_aged_in_int32(value):
    for name, wrong in (("adultCount", value), ("childAges", [value])):
        asked = document(Operation.SINGLE)
        asked["roomStays"][0]["guestCount"][name] = wrong
        assert set(refusal(Operation.SINGLE, asked).codes) <= {1011}


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**53 + 1, 0])
def test_every_int64_comes_through_exactly(value):
    asked = document(Operation.MULTI) | {"propertyIds": [value]}
    assert f'"propertyIds":[{value}]'.encode() in read_request(Operation.MULTI, asked).to_wire()
