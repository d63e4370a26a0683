"""What an answer says about each requested property, whatever its shape."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest
from raw_answers import answer, cells_of, hotel, normalised, product, record, room

from pipeline.domain.search import Operation

SINGLE = Operation.SINGLE


def cells(lake, body, **given):
    return cells_of(normalised(lake, [record(body=body, **given)]))


def test_each_property_asked_for_has_one_cell_with_its_status(lake):
    found = cells(lake, answer(hotel(1), hotel(2, rooms=[])), property_ids=(1, 2, 3))
    assert found == {1: ("offered", None, 1), 2: ("no_offer", None, 0), 3: ("absent", None, 0)}


@pytest.mark.parametrize("item", [{"code": 1023, "message": "none"}, {"errorCode": 1023, "errorDescription": "none"}])
def test_both_shapes_of_an_error_item_are_read(lake, item):
    assert cells(lake, {"errors": [item]}) == dict.fromkeys((1, 2), ("no_offer", 1023, 0))


def test_a_null_code_beside_the_other_shape_does_not_hide_it(lake):
    body = {"errors": [{"code": None, "errorCode": 1025, "hint": "an unknown field"}]}
    assert cells(lake, body) == dict.fromkeys((1, 2), ("no_offer", 1025, 0))


def test_an_answer_with_offers_and_errors_keeps_both(lake):
    tables = normalised(lake, [record(body=answer(hotel(1), errors=[{"code": 1023}]))])
    assert cells_of(tables) == {1: ("offered", None, 1), 2: ("no_offer", 1023, 0)}
    assert tables["search"]["codes"].to_pylist() == ["1023"]


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([{"errorCode": 500}], ("failed", 500, 0)),
        ([{"errorCode": 1027}], ("rejected", 1027, 0)),
        ([{"errorCode": 500}, {"code": 1024}], ("failed", 500, 0)),
        ([{"code": 1999}], ("failed", 1999, 0)),
        ([{"code": None, "message": "out of order"}], ("failed", None, 0)),
        (["out of order"], ("failed", None, 0)),
        ("out of order", ("failed", None, 0)),
        ([{"code": 2**40}], ("failed", None, 0)),
        ({"code": 1023}, ("no_offer", 1023, 0)),
        ([{"code": "1023"}], ("no_offer", 1023, 0)),
        ([], ("failed", None, 0)),
        (None, ("failed", None, 0)),
    ],
)
def test_an_error_of_a_200_says_no_more_than_its_code_does(lake, errors, expected):
    assert cells(lake, {"errors": errors}) == dict.fromkeys((1, 2), expected)


def test_an_unknown_code_is_drift(lake):
    tables = normalised(lake, [record(body={"errors": [{"code": 1999}]})])
    assert [(d["path"], d["kind"], d["detail"]) for d in tables["drift"].to_pylist()] == [
        ("errors[].code", "new_value", "1999")
    ]


@pytest.mark.parametrize("status", [400, 500])
def test_a_code_too_large_for_its_column_does_not_stop_the_night(lake, status):
    body = {"errors": [{"errorCode": 2**40}]}
    found = cells(lake, body, http_status=status, failure="server_error" if status == 500 else "")
    assert found == dict.fromkeys((1, 2), ("rejected" if status == 400 else "failed", None, 0))


def test_a_refused_search_rejects_each_cell_with_its_code(lake):
    tables = normalised(lake, [record(body={"errors": [{"errorCode": 1014}]}, http_status=400)])
    assert cells_of(tables) == dict.fromkeys((1, 2), ("rejected", 1014, 0))
    assert tables["search"]["outcome"].to_pylist() == ["rejected"]


def test_a_failed_search_fails_each_cell_and_keeps_why(lake):
    given = {"http_status": None, "failure": "timeout", "failure_detail": "no answer in 60 s", "attempts": 4}
    tables = normalised(lake, [record(body=b"", **given)])
    assert cells_of(tables) == dict.fromkeys((1, 2), ("failed", None, 0))
    (search,) = tables["search"].to_pylist()
    assert (search["outcome"], search["failure"], search["http_status"]) == (
        "failed",
        "timeout: no answer in 60 s",
        None,
    )
    assert search["latency_ms"] == 120
    assert search["body_sha256"] is None


def test_a_split_batch_has_a_search_and_no_cells_of_its_own(lake):
    tables = normalised(
        lake,
        [
            record(is_split=True, http_status=500, failure="server_error", body=b"{}"),
            record(node=2, property_ids=(1,), body=answer(hotel(1))),
            record(node=3, property_ids=(2,), http_status=500, failure="server_error", body=b"{}"),
        ],
    )
    assert tables["search"]["outcome"].to_pylist() == ["split", "answered", "failed"]
    assert cells_of(tables) == {1: ("offered", None, 1), 2: ("failed", None, 0)}


def test_a_property_listed_twice_has_one_cell_all_its_offers_and_a_drift_row(lake):
    tables = normalised(lake, [record(body=answer(hotel(1), hotel(1)))])
    assert cells_of(tables)[1] == ("offered", None, 2)
    assert tables["offer"]["offer_no"].to_pylist() == [0, 1]
    assert ("properties[].propertyId", "duplicate") in kinds(tables)


@pytest.mark.parametrize("is_odd", [False, True])
def test_a_product_listed_twice_in_a_room_is_two_offers_and_a_drift_row(lake, is_odd):
    twice = hotel(
        1,
        rooms=[
            room(products=[product(productId=7), product(productId=8), product(productId=7)]),
            room(products=[product(productId=7)]),
        ],
    )
    body = answer(twice | ({"odd": 1} if is_odd else {}), hotel(2))
    tables = normalised(lake, [record(body=body)])
    assert cells_of(tables)[1] == ("offered", None, 4)
    drift = [row for row in tables["drift"].to_pylist() if row["kind"] == "duplicate"]
    (row,) = drift
    assert (row["path"], row["detail"], row["occurrences"]) == (
        "properties[].roomStays[].products[].productId",
        "product",
        1,
    )


def test_a_property_that_was_not_asked_for_is_reported_and_never_stored(lake):
    tables = normalised(lake, [record(body=answer(hotel(1), hotel(99)))])
    assert tables["offer"]["property_id"].to_pylist() == [1]
    assert ("properties[].propertyId", "not_asked") in kinds(tables)
    assert [(r["property_id"], r["part"]) for r in tables["reject"].to_pylist()] == [(99, "property")]
    assert cells_of(tables) == {1: ("offered", None, 1), 2: ("absent", None, 0)}


@pytest.mark.parametrize("body", [{"property": "gone"}, {"property": {"propertyId": 99}}, {"property": [{}]}])
def test_a_single_answer_about_something_else_says_nothing_of_the_property(lake, body):
    tables = normalised(lake, [record(body=body, property_ids=(1,), operation=SINGLE)], SINGLE)
    assert cells_of(tables) == {1: ("failed", None, 0)}


@pytest.mark.parametrize("errors", [[], None])
def test_an_empty_list_of_properties_says_that_all_are_absent(lake, errors):
    assert cells(lake, answer(errors=errors)) == dict.fromkeys((1, 2), ("absent", None, 0))


@pytest.mark.parametrize("body", [{"property": {"propertyId": 1}}, {"property": {"roomStays": []}, "errors": None}])
def test_a_property_without_products_is_no_offer(lake, body):
    tables = normalised(lake, [record(body=body, property_ids=(1,), operation=SINGLE)], SINGLE)
    assert cells_of(tables) == {1: ("no_offer", None, 0)}


@pytest.mark.parametrize(
    "body", [{}, {"property": None}, {"property": {}}, {"property": {"propertyName": "x"}}, {"properties": [hotel(1)]}]
)
def test_a_single_answer_that_says_nothing_of_the_property_has_failed(lake, body):
    tables = normalised(lake, [record(body=body, property_ids=(1,), operation=SINGLE)], SINGLE)
    assert cells_of(tables) == {1: ("failed", None, 0)}
    assert [(s["outcome"], s["failure"]) for s in tables["search"].to_pylist()] == [("failed", "server_error")]


def test_a_single_answer_without_its_id_is_about_the_property_asked_for(lake):
    body = {"property": hotel(1) | {"propertyId": None}}
    tables = normalised(lake, [record(body=body, property_ids=(1,), operation=SINGLE)], SINGLE)
    assert cells_of(tables) == {1: ("offered", None, 1)}
    assert tables["offer"]["source"].to_pylist() == ["detail"]


BROKEN = {
    "empty": b"",
    "null": b"null",
    "a list": b"[]",
    "a text": b'"properties"',
    "html": b"<html></html>",
    "cut": json.dumps(answer(hotel())).encode()[:-40],
    "trailing": json.dumps(answer(hotel())).encode() + b" x",
    "deep": b'{"properties":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "properties is a text": b'{"properties":"none"}',
    "properties is an object": b'{"properties":{"1":{}}}',
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_unreadable_answer_is_a_reject_and_fails_its_cells(lake, name):
    tables = normalised(lake, [record(body=BROKEN[name]), record(1, answer(hotel(3)), property_ids=(3,))])
    found = cells_of(tables)
    assert found == {1: ("failed", None, 0), 2: ("failed", None, 0), 3: ("offered", None, 1)}
    (reject,) = tables["reject"].to_pylist()
    assert (reject["part"], reject["property_id"]) == ("answer", None)
    assert reject["raw_address"].endswith("#0")
    assert tables["search"]["outcome"].to_pylist() == ["failed", "answered"]


# Each is sent as a few kilobytes, compressed, and would otherwise be millions of rows or take hours.
FULL = {
    "properties without an id": b'{"properties":[{"propertyId":1}' + b",{}" * 21_000 + b"]}",
    "rooms": b'{"properties":[{"propertyId":1,"roomStays":[' + b'{"id":[]},' * 21_000 + b'{"id":0}]}]}',
    "products that do not fit": b'{"properties":[{"propertyId":1,"roomStays":[{"id":0,"products":['
    + b'{"productId":5,"charges":{"total":1e300}},' * 21_000
    + b'{"productId":5}]}]}]}',
    "objects": b'{"properties":[{"propertyId":1}' + b",{}" * 1_100_000 + b"]}",
    "items": b'{"properties":[{"propertyId":1,"roomStays":[0' + b",0" * 5_100_000 + b"]}]}",
}


@pytest.mark.parametrize("of", FULL)
def test_an_answer_of_more_parts_than_any_can_have_is_one_reject_and_fails_its_cells(lake, of):
    packed = gzip.compress(FULL[of])
    given = [record(body=packed, content_encoding="gzip"), record(1, answer(hotel(3)), property_ids=(3,))]
    tables = normalised(lake, given, max_body=64_000_000)
    assert cells_of(tables) == {1: ("failed", None, 0), 2: ("failed", None, 0), 3: ("offered", None, 1)}
    (reject,) = tables["reject"].to_pylist()
    assert reject["part"] == "answer"
    assert "more than" in reject["reason"]


def test_a_property_asked_for_alone_whose_id_is_unreadable_has_failed_and_is_not_absent(lake):
    for unreadable in ("", True, 10**40):
        found = cells(lake, answer(hotel(1) | {"propertyId": unreadable}), property_ids=(1,))
        assert found == {1: ("failed", None, 0)}, unreadable


def test_an_answer_with_very_many_unknown_fields_has_a_limited_number_of_drift_rows(lake):
    strange = {f"field{number}": 1 for number in range(15_000)}
    tables = normalised(lake, [record(body=answer(hotel(1) | strange, hotel(2)))])
    assert cells_of(tables) == dict.fromkeys((1, 2), ("offered", None, 1))
    drift = tables["drift"].to_pylist()
    assert len(drift) == 10_001
    assert sum(each["occurrences"] for each in drift) == 15_000
    assert [each["occurrences"] for each in drift if each["path"] == "$"] == [5000]


PACKED = gzip.compress(json.dumps(answer(hotel())).encode())


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (PACKED[:-20], "gzip"),
        (b"not gzip", "gzip"),
        (gzip.compress(b" " * 5_000_000), "gzip"),
        (zlib.compress(b" " * 5_000_000), "deflate"),
        (b" " * 5_000_000, ""),
        (PACKED, "br"),
    ],
)
def test_a_body_that_cannot_be_inflated_within_the_limit_is_a_reject(lake, body, encoding):
    tables = normalised(lake, [record(body=body, content_encoding=encoding)])
    assert cells_of(tables) == dict.fromkeys((1, 2), ("failed", None, 0))
    assert tables["reject"]["part"].to_pylist() == ["answer"]


@pytest.mark.parametrize(("body", "encoding"), [(PACKED, "gzip"), (PACKED, " GZIP "), (PACKED + PACKED[:0], "x-gzip")])
def test_a_compressed_body_is_read_like_a_plain_one(lake, body, encoding):
    tables = normalised(lake, [record(body=body, content_encoding=encoding)])
    assert cells_of(tables)[1] == ("offered", None, 1)
    (search,) = tables["search"].to_pylist()
    assert search["wire_bytes"] == len(body)
    assert search["body_bytes"] == len(gzip.decompress(PACKED))


def test_a_property_that_cannot_be_read_has_failed_and_is_not_absent(lake):
    assert cells(lake, answer(hotel(1), hotel(2, currencyCode={})))[2] == ("failed", None, 0)


def test_a_byte_order_mark_costs_nothing_and_is_reported(lake):
    body = b"\xef\xbb\xbf" + json.dumps(answer(hotel())).encode()
    tables = normalised(lake, [record(body=body)])
    assert cells_of(tables)[1] == ("offered", None, 1)
    assert ("$", "changed_type") in kinds(tables)


def test_what_was_asked_is_joined_from_the_request(lake):
    (offer,) = normalised(lake, [record(body=answer(hotel()))])["offer"].to_pylist()
    asked = {name: offer[name] for name in ("market", "product_type", "nights", "party", "currency_asked", "source")}
    assert asked == {
        "market": "GB",
        "product_type": "Hotel",
        "nights": 2,
        "party": "2",
        "currency_asked": "EUR",
        "source": "multi",
    }
    assert str(offer["check_in"]) == "2030-02-01"


def test_a_reject_says_which_part_where_and_why(lake):
    body = answer(
        hotel(1, rooms=[room([product(), product(charges=5)]), "suite"]), {"propertyId": "x"}, hotel(2, currencyCode={})
    )
    rows = normalised(lake, [record(body=body)])["reject"].to_pylist()
    assert [(r["reject_no"], r["part"], r["property_id"], r["path"]) for r in rows] == [
        (0, "offer", 1, "properties[0].roomStays[0].products[1]"),
        (1, "room_stay", 1, "properties[0].roomStays[1]"),
        (2, "property", None, "properties[1]"),
        (3, "property", 2, "properties[2]"),
    ]
    assert all(r["reason"] and r["sample"] for r in rows)


def kinds(tables):
    return {(row["path"], row["kind"]) for row in tables["drift"].to_pylist()}
