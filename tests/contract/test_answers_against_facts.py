"""The answers' types have the documented fields, types and widths, and bear what the document allows."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from pipeline.domain.search import Operation
from pipeline.supplier import answers
from pipeline.supplier.answers import ANSWERS, UnreadableAnswer, read_answer, reservation_id_of

# What the schemas of the document are called here.
OUR_NAMES = {"Error": "ErrorItem", "RoomStayQuote": "RoomStayQuoted", "RoomAmenityDetails": "RoomAmenity"}

# Accepted and refused JSON of each plain type; what is accepted is read back as the Python value beside it.
SAMPLES = {
    "int32": ([("2147483647", 2**31 - 1), ("-1", -1)], ["2147483648", '"many"', "1.5"]),
    "int64": ([("9007199254740993", 2**53 + 1), ("9223372036854775807", 2**63 - 1)], ["9223372036854775808", "1.5"]),
    "number": ([("1234567890123.4567", Decimal("1234567890123.4567")), ("0.10", Decimal("0.10"))], ['"x"', "NaN"]),
    "text": ([('"é"', "é"), ('""', "")], ["1", "{}"]),
    "flag": ([("true", True), ("false", False)], ['"maybe"']),
    "moment": ([], ['"2031-05-10T14:00:00"', '"10 May"']),
}


def model_of(name):
    return ANSWERS[Operation(name)] if name in list(Operation) else getattr(answers, OUR_NAMES.get(name, name))


def example(facts, kind):
    """JSON of a documented type, with every field of everything below it."""
    if kind.startswith("["):
        return f"[{example(facts, kind[1:-1])}]"
    if kind in facts["responses"]:
        fields = facts["responses"][kind].items()
        return "{" + ", ".join(f'"{name}": {example(facts, inner)}' for name, inner in fields) + "}"
    return '"2031-05-10T14:00:00+05:30"' if kind == "moment" else SAMPLES[kind][0][0][0]


def test_every_schema_has_exactly_its_fields_and_each_may_be_missing(facts):
    for name, fields in facts["responses"].items():
        ours = model_of(name).model_fields
        assert {field.alias for field in ours.values()} == set(fields), name
        assert not any(field.is_required() for field in ours.values()), name


@pytest.mark.parametrize("operation", list(Operation))
def test_an_answer_with_every_documented_field_comes_through_whole(operation, facts):
    body = example(facts, operation)
    answer = read_answer(operation, body.encode())
    assert_same(json.loads(body, parse_float=Decimal), answer)


def assert_same(sent, read):
    """Each field of what was sent is in what was read, under our name, with its value."""
    if isinstance(sent, dict):
        names = {field.alias: name for name, field in type(read).model_fields.items()}
        for name, value in sent.items():
            assert_same(value, getattr(read, names[name]))
    elif isinstance(sent, list):
        assert len(sent) == len(read)
        for one, other in zip(sent, read, strict=True):
            assert_same(one, other)
    else:
        assert sent == (read.isoformat() if hasattr(read, "isoformat") else read)


def test_each_field_takes_its_type_null_and_nothing_of_another_type(facts):
    for name, fields in facts["responses"].items():
        model = model_of(name)
        for field, kind in fields.items():
            assert model.model_validate({field: None}) == model()
            accepted, refused = SAMPLES.get(kind, ([], ["3", '"text"']))
            for text, value in accepted:
                read = model.model_validate(json.loads(f'{{"{field}": {text}}}', parse_float=Decimal))
                assert next(v for k, v in read if model.model_fields[k].alias == field) == value
            for text in refused:
                with pytest.raises(ValueError, match=field):
                    model.model_validate(json.loads(f'{{"{field}": {text}}}', parse_float=Decimal))


def test_a_moment_keeps_its_offset():
    penalties = b'[{"penaltyStartDate": "2031-05-10T14:00:00-03:00"}, {"penaltyStartDate": "2031-05-10T14:00:00Z"}]'
    body = b'{"property": {"roomStays": [{"product": {"cancelPenalties": ' + penalties + b"}}]}}"
    answer = read_answer(Operation.QUOTE, body)
    starts = [
        penalty.penalty_start_date.isoformat() for penalty in answer.property.room_stays[0].product.cancel_penalties
    ]
    assert starts == ["2031-05-10T14:00:00-03:00", "2031-05-10T14:00:00+00:00"]


def test_unknown_fields_and_values_are_kept():
    products = b'[{"promotions": [{"promoType": "moon", "x": 0.10}]}]'
    body = b'{"new": 1, "properties": [{"currencyCode": "?", "roomStays": [{"products": ' + products + b"}]}]}"
    answer = read_answer(Operation.MULTI, body)
    promotion = answer.properties[0].room_stays[0].products[0].promotions[0]
    assert answer.model_extra == {"new": 1}
    assert (promotion.promo_type, promotion.model_extra) == ("moon", {"x": Decimal("0.10")})


@pytest.mark.parametrize("operation", list(Operation))
def test_both_error_item_shapes_are_read_beside_whatever_else_is_there(operation):
    errors = b'[{"code": 1023, "message": "a"}, {"errorCode": 500, "errorDescription": "b"}, {}]'
    body = b'{"properties": [], "property": {}, "errors": ' + errors + b"}"
    answer = read_answer(operation, body)
    assert [(item.number, item.text) for item in answer.errors] == [(1023, "a"), (500, "b"), (None, None)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b'{"errors": 3}',
        b'{"a": Infinity}',
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
    ids=range(9),
)
def test_what_cannot_be_read_says_so_and_nothing_else(body):
    with pytest.raises(UnreadableAnswer):
        read_answer(Operation.MULTI, body)


@pytest.mark.parametrize(
    ("body", "reservation_id"),
    [
        (b'{"reservationId": 9007199254740993, "property": {"propertyId": "?"}}', 2**53 + 1),
        (b'{"reservationId": "77"}', 77),
        (b'{"reservationId": null}', None),
        (b'{"reservationId": true}', None),
        (b'{"reservationId": "a"}', None),
        (b"[]", None),
        (b"{", None),
    ],
)
def test_a_reservation_id_is_found_even_where_the_price_beside_it_cannot_be_read(body, reservation_id):
    assert reservation_id_of(body) == reservation_id
