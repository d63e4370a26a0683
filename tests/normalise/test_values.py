"""No value is altered in silence: it is stored as it was sent, or it is a reject or drift."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from raw_answers import answer, cells_of, hotel, normalised, product, record, room

from pipeline.domain.search import Operation

SINGLE = Operation.SINGLE


def multi_with(lake, *products, **of_room):
    return normalised(lake, [record(body=answer(hotel(rooms=[room(list(products), **of_room)])))])


def total_written(lake, text: str):
    """The tables of an answer with two products; the second one's total is written as `text`."""
    body = json.dumps(answer(hotel(rooms=[room([product(), product(charges={"total": 0.123})])])))
    return normalised(lake, [record(body=body.replace("0.123", text).encode("utf-8", "surrogateescape"))])


@pytest.mark.parametrize(
    "text",
    [
        "0", "0.1", "19.99", "100", "-5.25", "1e2", "0.0001", "0.0000", "1234567.8901", "99999999999.9999",
        "99999999999999", "12345678901.2345", "123456789012.345", "999999999999.5", "90071992547409",
    ],
)  # fmt: skip
def test_money_of_up_to_fifteen_digits_and_four_decimals_is_stored_exactly(lake, text):
    tables = total_written(lake, text)
    assert tables["offer"]["total"].to_pylist()[1] == Decimal(text)
    assert tables["reject"].num_rows == 0


@pytest.mark.parametrize(
    "text",
    [
        "0.00001", "19.99999", "1e-320", "100000000000000", "123456789012345678", "1e300", "1e400", "-1e400", "NaN",
        "Infinity", "12345678901234.5678", "600000000000.0001", "9007199254740993", '"NaN"', '"inf"', '"1e400"',
        '"12 EUR"', "true", "[]", "{}", "9" * 400, "9" * 5000,
    ],
)  # fmt: skip
def test_money_that_would_be_rounded_is_a_reject_and_costs_its_offer_alone(lake, text):
    tables = total_written(lake, text)
    assert tables["offer"]["offer_no"].to_pylist() == [0]
    assert [(r["part"], r["property_id"]) for r in tables["reject"].to_pylist()] == [("offer", 1)]
    assert cells_of(tables)[1] == ("offered", None, 1)


def test_large_money_next_to_small_is_judged_on_its_own(lake):
    fine, large = product(charges={"total": 549755813887.9999}), product(charges={"total": 999999999999.5})
    totals = multi_with(lake, fine, large)["offer"]["total"].to_pylist()
    assert totals == [Decimal("549755813887.9999"), Decimal("999999999999.5")]


def test_zero_amounts_differ_from_null_and_missing_ones(lake):
    charges = [{"total": 0, "minSellablePrice": 0}, {"total": None, "minSellablePrice": None}, {}, None]
    offers = multi_with(lake, *(product(charges=held) for held in charges))["offer"]
    assert offers["total"].to_pylist() == [Decimal(0), None, None, None]
    assert offers["floor"].to_pylist() == [Decimal(0), None, None, None]


def test_null_and_missing_stay_null_at_every_level(lake):
    board = {"detail": "no meals"}
    empty = {"productId": None, "boardBasis": board, "charges": None, "promotions": None, "cancelPenalties": None}
    bare = {"id": None, "roomId": None, "roomName": None, "rateType": None, "availableRooms": None}
    body = answer(
        {"propertyId": 1, "currencyCode": None, "roomStays": [bare | {"products": [empty, {"boardBasis": board}]}]}
    )
    tables = normalised(lake, [record(body=body)])
    assert tables["offer"].num_rows == 2
    for row in tables["offer"].to_pylist():
        stated = {
            name
            for name in ("currency", "room_stay_id", "room_id", "room_name", "rate_type", "available_rooms", "total")
            if row[name] is not None
        } | {name for name in ("product_id", "board_id", "board_name", "discount_pct") if row[name] is not None}
        assert stated == set()
        assert (row["policy_key"], row["promotion_key"], row["refundability"]) == (0, 0, "unknown")
    assert tables["penalty"].num_rows == tables["promotion"].num_rows == 0


def test_an_empty_text_is_not_null(lake):
    offers = multi_with(lake, product(boardBasis={"id": 14, "name": ""}), roomName="")["offer"]
    assert offers["room_name"].to_pylist() == offers["board_name"].to_pylist() == [""]


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1, -(2**63), 0])
def test_ids_are_whole_over_the_range_of_int64(lake, number):
    offers = multi_with(lake, product(productId=number), roomId=number)["offer"]
    assert offers["product_id"].to_pylist() == offers["room_id"].to_pylist() == [number]


@pytest.mark.parametrize(("written", "stored"), [('"123"', 123), ("123.0", 123), ('"9007199254740993"', 2**53 + 1)])
def test_an_id_written_another_way_is_kept_and_reported(lake, written, stored):
    body = json.dumps(answer(hotel(rooms=[room([product(productId=777)])]))).replace("777", written).encode()
    tables = normalised(lake, [record(body=body)])
    assert tables["offer"]["product_id"].to_pylist() == [stored]
    assert drift(tables) == {("properties[].roomStays[].products[].productId", "changed_type")}


@pytest.mark.parametrize("written", ["9007199254740993.0", "1.5", "true", '"abc"', str(2**63), "1e400", '""'])
def test_an_id_that_names_no_int64_costs_its_offer_alone(lake, written):
    body = json.dumps(answer(hotel(rooms=[room([product(), product(productId=777)])]))).replace("777", written)
    tables = normalised(lake, [record(body=body.encode())])
    assert tables["offer"]["product_id"].to_pylist() == [900]
    assert tables["reject"]["part"].to_pylist() == ["offer"]


@pytest.mark.parametrize("field", ["id", "roomId"])
def test_a_number_beyond_its_type_costs_its_room_stay_alone(lake, field):
    body = answer(hotel(rooms=[room(), room(**{field: 2**31 if field == "id" else 2**63})]))
    tables = normalised(lake, [record(body=body)])
    assert tables["offer"].num_rows == 1
    assert [(r["part"], r["path"]) for r in tables["reject"].to_pylist()] == [
        ("room_stay", "properties[0].roomStays[1]")
    ]


@pytest.mark.parametrize(
    ("field", "given"),
    [("availableRooms", 2**31), ("availableRooms", "many"), ("roomName", {"en": "Double"}), ("rateType", ["BAR"])],
)
def test_what_a_room_says_beside_its_offers_costs_itself_alone(lake, field, given):
    tables = multi_with(lake, product(), product(productId=901), **{field: given})
    column = {"availableRooms": "available_rooms", "roomName": "room_name", "rateType": "rate_type"}[field]
    assert tables["offer"]["product_id"].to_pylist() == [900, 901]
    assert tables["offer"][column].to_pylist() == [None, None]
    assert [(r["part"], r["path"]) for r in tables["reject"].to_pylist()] == [
        ("room_stay", f"properties[0].roomStays[0].{field}")
    ]


@pytest.mark.parametrize("given", [[], {}, ["a"], True, "cut in the middle of a smile \ud83d"], ids=repr)
@pytest.mark.parametrize("field", ["detail", "promoType", "description"])
def test_words_of_a_product_that_cannot_be_read_cost_neither_it_nor_its_cell(lake, field, given):
    spoilt = product()
    of_board = field == "detail"
    (spoilt["boardBasis"] if of_board else spoilt["promotions"][0])[field] = given
    tables = multi_with(lake, spoilt)
    assert tables["offer"]["total"].to_pylist() == [Decimal("100.5")]
    assert tables["cell"]["status"][0].as_py() == "offered"
    assert tables["reject"].num_rows == 0
    column = {"detail": "board_detail", "promoType": "promo_type"}.get(field, field)
    assert tables["offer" if of_board else "promotion"][column].to_pylist() == [None]
    path = f"properties[].roomStays[].products[].{'boardBasis' if of_board else 'promotions[]'}.{field}"
    assert path in [row["path"] for row in tables["drift"].to_pylist() if row["kind"] == "changed_type"]


def test_a_field_of_a_room_that_comes_twice_costs_itself_alone(lake):
    text = json.dumps(answer(hotel()))
    body = text.replace('"availableRooms": 4', '"availableRooms": 4, "availableRooms": 5').encode()
    tables = normalised(lake, [record(body=body)])
    assert tables["offer"]["available_rooms"].to_pylist() == [None]
    assert tables["reject"]["reason"].to_pylist() == ["properties[].roomStays[] has availableRooms twice"]


def test_the_largest_int32_is_kept(lake):
    assert multi_with(lake, product(), availableRooms=2**31 - 1)["offer"]["available_rooms"].to_pylist() == [2**31 - 1]


@pytest.mark.parametrize(
    "change",
    [
        {"boardBasis": {"id": 2**31}},
        {"cancelPenalties": [{"penaltyWindow": 2**31}]},
        {"boardBasis": []},
        {"charges": []},
        {"promotions": "none"},
        {"cancelPenalties": {}},
        {"promotions": ["early"]},
        {"cancelPenalties": [None]},
        {"cancelPenalties": [{"penaltyPercentage": "NaN"}]},
        {"charges": {"discountPercentage": "inf"}},
        {"cancelPenalties": [{}] * 32769},
        {"promotions": [{}] * 32769},
    ],
)
def test_a_product_of_a_wrong_shape_costs_itself_alone(lake, change):
    tables = multi_with(lake, product(productId=1), product(**change), product(productId=3))
    assert tables["offer"]["product_id"].to_pylist() == [1, 3]
    assert tables["offer"]["offer_no"].to_pylist() == [0, 2]
    assert set(tables["penalty"]["offer_no"].to_pylist()) == {0, 2}
    assert tables["reject"]["part"].to_pylist() == ["offer"]


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\\ud800", b"\\udc00 x"])
def test_bytes_that_are_no_text_cost_the_part_that_they_stand_in(lake, text):
    body = json.dumps(answer(hotel(rooms=[room([product(), product(boardBasis={"name": "@@"})])])))
    tables = normalised(lake, [record(body=body.encode().replace(b"@@", text))])
    assert tables["offer"]["offer_no"].to_pylist() == [0]
    assert tables["reject"]["part"].to_pylist() == ["offer"]


@pytest.mark.parametrize("text", [b"\xff", b"1\xff", b"\\ud800"])
@pytest.mark.parametrize("place", [{"charges": {"total": "@@"}}, {"productId": "@@"}, {"boardBasis": {"id": "@@"}}])
def test_bytes_that_are_no_text_where_a_number_belongs_cost_that_part(lake, place, text):
    body = json.dumps(answer(hotel(rooms=[room([product(), product(**place)])])))
    tables = normalised(lake, [record(body=body.encode().replace(b"@@", text))])
    assert tables["offer"]["offer_no"].to_pylist() == [0]
    assert tables["reject"]["part"].to_pylist() == ["offer"]


@pytest.mark.parametrize("operation", [Operation.MULTI, Operation.SINGLE])
def test_an_error_code_of_bytes_that_are_no_text_leaves_an_answer_of_errors(lake, operation):
    body = b'{"errors":[{"code":"\xff","errorCode":"\xff"}]}'
    tables = normalised(lake, [record(body=body, property_ids=(1,), operation=operation)], operation)
    assert tables["cell"]["status"].to_pylist() == ["failed"]


def test_unknown_fields_at_every_level_cost_nothing_and_are_reported(lake):
    odd = product(
        stars=5,
        boardBasis={"id": 14, "kcal": 1},
        charges={"total": 5, "tax": {}},
        promotions=[{"promoType": "free night", "until": "soon"}],
        cancelPenalties=[{"penaltyWindow": 5, "note": None}],
    )
    body = answer(hotel(1, rooms=[room([odd], view=True)], chain="x"), page=1, errors=[{"code": 1023, "id": 4}])
    tables = normalised(lake, [record(body=body)])
    assert tables["offer"].num_rows == 1
    assert tables["reject"].num_rows == 0
    place = "properties[].roomStays[].products[]"
    assert {(r["path"], r["detail"]) for r in tables["drift"].to_pylist() if r["kind"] == "unknown_field"} == {
        ("page", "integer"),
        ("errors[].id", "integer"),
        ("properties[].chain", "string"),
        ("properties[].roomStays[].view", "boolean"),
        (f"{place}.stars", "integer"),
        (f"{place}.boardBasis.kcal", "integer"),
        (f"{place}.charges.tax", "object"),
        (f"{place}.promotions[].until", "string"),
        (f"{place}.cancelPenalties[].note", "null"),
    }


def test_an_unknown_field_whose_name_is_not_text_is_reported_too(lake):
    body = json.dumps(answer(hotel(1, **{"@@": 1}))).encode().replace(b"@@", b"\xff")
    tables = normalised(lake, [record(body=body)])
    assert tables["offer"].num_rows == 1
    assert [row["path"] for row in tables["drift"].to_pylist()] == ["properties[].\\udcff"]


def test_fields_without_a_column_are_ignored_whatever_they_hold(lake):
    detail = room(roomDescription={"en": "x"}, bedTypeInfo=4, images="a.jpg", roomAmenities={"id": 1})
    body = {"property": hotel(1, rooms=[detail], propertyName=["x"])}
    tables = normalised(lake, [record(body=body, property_ids=(1,), operation=SINGLE)], SINGLE)
    assert tables["offer"].num_rows == 1
    assert tables["reject"].num_rows == 0
    assert {path.rpartition(".")[2] for path, kind in drift(tables) if kind == "changed_type"} == {
        "propertyName", "roomDescription", "bedTypeInfo", "images", "roomAmenities",
    }  # fmt: skip


def test_unknown_boards_and_kinds_of_promotion_are_kept_and_reported_with_their_count(lake):
    odd = product(boardBasis={"id": 777, "name": "Brunch"}, promotions=[{"promoType": "Mystery"}])
    tables = multi_with(lake, odd, odd, product(promotions=[{"promoType": "VALUE_ADD"}, {"promoType": "free night"}]))
    assert tables["offer"]["board_id"].to_pylist() == [777, 777, 14]
    reported = {(r["path"].rpartition(".")[2], r["detail"]): r["occurrences"] for r in tables["drift"].to_pylist()}
    # The two say the same about one room, which is reported too.
    assert reported == {("id", "777"): 2, ("promoType", "Mystery"): 2, ("productId", "product"): 2}


def detail_with(lake, penalty):
    body = {"property": hotel(1, rooms=[room([product(cancelPenalties=[penalty])])])}
    return normalised(lake, [record(body=body, property_ids=(1,), operation=SINGLE)], SINGLE)


def test_an_exact_date_is_kept_as_an_instant_with_its_offset(lake):
    penalty = {
        "penaltyStartDate": "2030-01-30T15:00:00+02:00",
        "penaltyEndDate": "2030-02-01T15:00:00Z",
        "penaltyInAmount": 80.5,
    }
    tables = detail_with(lake, penalty)
    (row,) = tables["penalty"].to_pylist()
    assert (row["start_at"], row["start_offset"]) == (datetime(2030, 1, 30, 13, tzinfo=UTC), "+02:00")
    assert (row["end_at"], row["end_offset"]) == (datetime(2030, 2, 1, 15, tzinfo=UTC), "Z")
    assert row["amount"] == Decimal("80.5")
    assert tables["offer"]["free_cancel_until"].to_pylist() == [datetime(2030, 1, 30, 13, tzinfo=UTC)]


@pytest.mark.parametrize(
    "text", ["2030-01-30T15:00:00", "2030-01-30", "soon", "", "0001-01-01T00:00:00+14:00", "2030-02-30T00:00:00Z"]
)
def test_an_unreadable_date_is_left_out_and_reported_and_its_offer_is_kept(lake, text):
    tables = detail_with(lake, {"penaltyWindow": 24, "penaltyStartDate": text})
    assert tables["penalty"].select(["window_hours", "start_at"]).to_pylist() == [
        {"window_hours": 24, "start_at": None}
    ]
    assert ("property.roomStays[].products[].cancelPenalties[].penaltyStartDate", "changed_type") in drift(tables)


def test_many_dates_without_zone_are_one_row_of_drift(lake):
    penalties = [{"penaltyStartDate": f"2030-01-{day:02}T15:00:00"} for day in range(1, 29)]
    body = {"property": hotel(1, rooms=[room([product(cancelPenalties=penalties)])])}
    tables = normalised(lake, [record(body=body, property_ids=(1,), operation=SINGLE)], SINGLE)
    (row,) = tables["drift"].to_pylist()
    assert (row["detail"], row["occurrences"]) == ("9999-99-99T99:99:99", 28)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ((), "unknown"),
        ((None,), "unknown"),
        ((True,), "refundable"),
        ((False, False), "non_refundable"),
        ((True, False), "mixed"),
        ((None, True), "refundable"),
    ],
)
def test_refundability_is_that_of_all_penalties_together(lake, stated, expected):
    penalties = [{"penaltyWindow": 24, "penaltyPercentage": 100, "refundable": flag} for flag in stated]
    assert multi_with(lake, product(cancelPenalties=penalties))["offer"]["refundability"].to_pylist() == [expected]


def test_cancelling_is_free_until_the_earliest_penalty_that_costs_something(lake):
    penalties = [
        {"penaltyWindow": 96, "penaltyPercentage": 0, "refundable": True},
        {"penaltyWindow": 48, "penaltyPercentage": 50, "refundable": True},
        {"penaltyWindow": 24, "penaltyPercentage": 100, "refundable": True},
    ]
    never = [{"penaltyWindow": 48, "penaltyPercentage": 100, "refundable": False}]
    offers = multi_with(lake, product(cancelPenalties=penalties), product(cancelPenalties=never))["offer"]
    assert offers["free_cancel_hours"].to_pylist() == [48, None]


def drift(tables):
    return {(row["path"], row["kind"]) for row in tables["drift"].to_pylist()}
