"""The wire's types have the documented fields, types and widths, and bear what the document allows."""

from __future__ import annotations

import json
from decimal import Decimal

import msgspec
import pytest

from pipeline.domain.search import Operation
from pipeline.normalise.read_answer import read_answer
from pipeline.quote.read_answer import UnreadableAnswer, reservation_id_of
from pipeline.quote.read_answer import read_answer as read_quote
from pipeline.supplier.date_times import instant_of
from pipeline.supplier.fields import fields_of
from pipeline.supplier.wire import ANSWERS, QuoteAnswer

# Kinds of the document, as `drift` prints them.
KINDS = {
    "int32": "integer",
    "int64": "integer",
    "number": "number",
    "text": "text",
    "flag": "flag",
    "moment": "date-time",
}

# Accepted and refused JSON of each plain type; what is accepted is read back as the Python value beside it.
SAMPLES = {
    "int32": ([("2147483647", 2**31 - 1), ("-1", -1)], ["2147483648", '"many"', "1.5"]),
    "int64": ([("9007199254740993", 2**53 + 1), ("9223372036854775807", 2**63 - 1)], ['"many"', "1.5"]),
    "number": ([("99999999999.9999", 99999999999.9999), ("0.10", 0.1)], ['"x"', "NaN"]),
    "text": ([('"é"', "é"), ('""', "")], ["1", "{}"]),
    "flag": ([("true", True), ("false", False)], ['"maybe"']),
    "moment": ([('"2031-05-10T14:00:00+05:30"', "2031-05-10T14:00:00+05:30")], ["1", "{}"]),
}


def declared(name, struct, facts, found=None):
    """Every schema of an answer with the types that declare it: the same schema may have several."""
    found = {} if found is None else found
    found.setdefault(name, []).append(struct)
    for wire_name, field in fields_of(struct).items():
        if field.struct is not None:
            declared(facts["responses"][name][wire_name].strip("[]"), field.struct, facts, found)
    return found


@pytest.fixture(params=list(Operation))
def schemas(request, facts):
    return declared(request.param, ANSWERS[request.param], facts).items()


def example(facts, kind):
    """JSON of a documented type, with every field of everything below it."""
    if kind.startswith("["):
        return f"[{example(facts, kind[1:-1])}]"
    if kind in facts["responses"]:
        fields = facts["responses"][kind].items()
        return "{" + ", ".join(f'"{name}": {example(facts, inner)}' for name, inner in fields) + "}"
    return SAMPLES[kind][0][0][0]


def test_every_schema_has_exactly_its_fields_of_their_kinds_and_each_may_be_missing(schemas, facts):
    for name, structs in schemas:
        for struct in structs:
            known, stated = fields_of(struct), facts["responses"][name]
            assert known.keys() == stated.keys(), name
            for field, kind in stated.items():
                assert known[field].is_list == kind.startswith("["), (name, field)
                assert known[field].kind == KINDS.get(kind.strip("[]"), "object"), (name, field)
            assert struct() == msgspec.json.decode("{}", type=struct)


def test_each_field_takes_its_type_null_and_nothing_of_another_type(schemas, facts):
    for name, structs in schemas:
        for struct in structs:
            for field, kind in facts["responses"][name].items():
                known = fields_of(struct)[field]
                if known.is_raw:
                    continue
                read = msgspec.json.Decoder(struct).decode
                assert getattr(read(f'{{"{field}": null}}'), known.name) is None
                accepted, refused = SAMPLES.get(kind, ([], ["3", '"text"']))
                for text, value in accepted:
                    given = getattr(read(f'{{"{field}": {text}}}'), known.name)
                    assert given == (Decimal(text) if isinstance(given, Decimal) else value)
                for text in refused:
                    with pytest.raises(msgspec.DecodeError):
                        read(f'{{"{field}": {text}}}')


@pytest.mark.parametrize("operation", [Operation.MULTI, Operation.SINGLE])
def test_an_answer_with_every_documented_field_is_read_without_a_second_try(operation, facts):
    from pipeline.normalise.interned import Interned

    body = example(facts, operation)
    reading = read_answer(body.encode(), operation, frozenset({2**53 + 1}), Interned())
    assert (reading.refusals, [each.kind for each in reading.deviations]) == ([], ["new_value"])
    assert reading.returned == {2**53 + 1: 1}


def test_a_quote_with_every_documented_field_comes_through_unchanged(facts):
    body = example(facts, Operation.QUOTE)
    answer, left_out = read_quote(body.encode())
    assert left_out == {}
    assert_same(json.loads(body, parse_float=Decimal), answer, QuoteAnswer)


def assert_same(sent, read, struct):
    """Each field of what was sent is in what was read, under our name, with its value."""
    if isinstance(sent, dict):
        for name, value in sent.items():
            known = fields_of(struct)[name]
            held = getattr(read, known.name)
            if known.is_raw:
                assert json.loads(bytes(held), parse_float=Decimal) == value
            else:
                assert_same(value, held, known.struct)
    elif isinstance(sent, list):
        assert len(sent) == len(read)
        for one, other in zip(sent, read, strict=True):
            assert_same(one, other, struct)
    else:
        assert sent == (Decimal(str(read)) if isinstance(sent, Decimal) else read)


def test_an_amount_of_a_quote_keeps_more_digits_than_a_double_has():
    body = b'{"property": {"roomStays": [{"product": {"charges": {"total": 12345678901234.5678}}}]}}'
    answer, _ = read_quote(body)
    assert answer.property.room_stays[0].product.charges.total == Decimal("12345678901234.5678")


@pytest.mark.parametrize(
    ("text", "utc", "offset"),
    [
        ("2031-05-10T14:00:00-03:00", "2031-05-10T17:00:00+00:00", "-03:00"),
        ("2031-05-10T14:00:00Z", "2031-05-10T14:00:00+00:00", "Z"),
    ],
)
def test_a_date_time_is_an_instant_with_the_offset_that_was_sent(text, utc, offset):
    instant, sent = instant_of(text)
    assert (instant.isoformat(), sent) == (utc, offset)


@pytest.mark.parametrize("text", ["2031-05-10T14:00:00", "10 May", "", "0001-01-01T00:00:00+10:00"])
def test_what_has_no_offset_or_is_no_instant_is_no_date_time(text):
    assert instant_of(text) is None


def test_an_unknown_field_of_a_quote_costs_nothing():
    body = b'{"new": 1, "reservationId": 5, "property": {"currencyCode": "?", "x": {}}}'
    answer, left_out = read_quote(body)
    assert (answer.reservation_id, answer.property.currency, left_out) == (5, "?", {})


def test_both_error_item_shapes_are_read_beside_whatever_else_is_there():
    errors = b'[{"code": 1023, "message": "a"}, {"errorCode": 500, "errorDescription": "b"}, {}]'
    body = b'{"properties": [], "property": {}, "errors": ' + errors + b"}"
    answer, _ = read_quote(body)
    assert [(item.number, item.text) for item in answer.errors] == [(1023, "a"), (500, "b"), (None, None)]


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"null", b"[" * 100_000],
    ids=range(5),
)
def test_a_quote_that_cannot_be_read_says_so_and_nothing_else(body):
    with pytest.raises(UnreadableAnswer):
        read_quote(body)


@pytest.mark.parametrize(
    ("body", "left_out"),
    [
        (b'{"errors": 3}', ["errors"]),
        (b'{"reservationId": Infinity}', ["reservationId"]),
        (b'{"reservationId": ' + b"9" * 5000 + b"}", ["reservationId"]),
        (b'{"reservationId": 9223372036854775808}', ["reservationId"]),
        (b'{"property": {"roomStays": [{"id": 2147483648}, 5]}}', ["property.roomStays.0.id", "property.roomStays.1"]),
    ],
    ids=range(5),
)
def test_a_field_of_a_quote_that_cannot_be_read_is_left_out_and_named(body, left_out):
    assert list(read_quote(body)[1]) == left_out


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
