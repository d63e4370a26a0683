"""The outcome of a quote follows from the offer and the answer alone."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from pipeline.domain.keys import policy_key
from pipeline.quote.ledger import Entry, Intent, QuoteAnswer
from pipeline.quote.outcomes import result_of
from pipeline.quote.products import offer_row, penalty_rows, promotion_rows
from pipeline.quote.read_answer import reservation_id_of
from pipeline.quote.sample import ChosenOffer, ChosenRoom

NOW = datetime(2030, 1, 1, tzinfo=UTC)
TOTAL = Decimal("120.5000")
ASKED = ("multi", 7, "GB", "Hotel", date(2030, 2, 1), 1, "2", "EUR", 5, 14, 0, "EUR", "sweep", 1, NOW)
OFFER = ChosenOffer(*ASKED, (ChosenRoom(1, 0, 0, 99, TOTAL),), 7)


def said(body, status=200, failure="", reservation=None, offer=OFFER):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = QuoteAnswer(status, "", data, NOW, NOW, failure, "", reservation)
    return result_of(Entry(Intent(0, NOW, offer, "{}"), answer), 1_000_000)


def quoted(total=120.5, currency="EUR", product_id=99, room_id=5, **more):
    product = {"productId": product_id, "charges": {"total": total}, **more}
    stays = [{"id": 0, "roomId": room_id, "product": product}]
    return {"reservationId": 3, "property": {"propertyId": 7, "currencyCode": currency, "roomStays": stays}}


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (quoted(), "matched"),
        (quoted(120.51), "raised"),
        (quoted(120.49), "lowered"),
        (quoted(currency="GBP"), "not_comparable"),
        (quoted(currency=None), "not_comparable"),
        (quoted(total=None), "not_comparable"),
        (quoted(total=0), "not_comparable"),
        (quoted(total=-120.5), "not_comparable"),
        (quoted(total=1e300), "not_comparable"),
        (quoted(total=0.00001), "not_comparable"),
        (quoted(product_id=98), "not_comparable"),
        (quoted(product_id=None), "matched"),
        (quoted(room_id=6), "not_comparable"),
        (quoted(room_id=6, product_id=None), "not_comparable"),
        (quoted(room_id=None), "matched"),
        (quoted(boardBasis={"id": 13}), "not_comparable"),
        (quoted(boardBasis={"id": 14}), "matched"),
        (quoted(boardBasis={"name": "Room only"}), "matched"),
        ({}, "not_comparable"),
        ({"errors": [{"code": 1023}]}, "gone"),
        ({"errors": [{"errorCode": 1024}]}, "gone"),
        ({"errors": [{"errorCode": 9999}]}, "refused"),
        (b"[]", "unknown"),
        (b"{", "unknown"),
        (quoted(total="NaN?"), "not_comparable"),
    ],
)
def test_an_answer_is_compared_by_price_currency_product_room_and_board(body, outcome):
    assert said(body).outcome == outcome


def test_the_policy_of_a_quote_has_the_key_of_its_search():
    penalties = [{"penaltyWindow": 48, "penaltyPercentage": 50.0, "penaltyNights": 2, "refundable": True}]
    result = said(quoted(cancelPenalties=penalties, boardBasis={"id": 14}), reservation=3)
    (room,) = result.rooms
    row = offer_row(room, room.product, result.currency)
    assert row["policy_key"] == policy_key([(48, 50.0, 2.0, True)])
    assert (row["room_id"], row["board_id"], result.is_reservation_possible) == (5, 14, True)


@pytest.mark.parametrize(
    ("failure", "status", "outcome", "possible"),
    [
        ("timeout", None, "unknown", True),
        ("connection", None, "unknown", True),
        ("not_json", 200, "unknown", True),
        ("server_error", 500, "failed", True),
        ("unreachable", None, "failed", False),
        ("throttled", 429, "failed", False),
        ("TokenRefused", None, "failed", False),
    ],
)
def test_a_failure_says_whether_a_reservation_can_be_ruled_out(failure, status, outcome, possible):
    result = said(b"", status, failure)
    assert (result.outcome, result.is_reservation_possible) == (outcome, possible)


def test_a_reservation_reported_with_a_failure_is_never_ruled_out():
    assert said(b"", 500, "server_error", reservation=3).outcome == "unknown"


# Several rooms

TWO_ROOMS = ChosenOffer(*ASKED, (ChosenRoom(1, 0, 0, 98, Decimal(50)), ChosenRoom(2, 4, 1, 99, Decimal(70))), 7)


def rooms(*given):
    stays = [
        {"id": number, "roomId": room, "product": {"productId": product, "charges": {"total": total}}}
        for number, room, product, total in given
    ]
    return {"reservationId": 3, "property": {"propertyId": 7, "currencyCode": "EUR", "roomStays": stays}}


@pytest.mark.parametrize(
    ("answered", "outcome", "total"),
    [
        (rooms((0, 5, 98, 50), (1, 5, 99, 70)), "matched", 120),
        (rooms((1, 5, 99, 70), (0, 5, 98, 50)), "matched", 120),
        (rooms((None, 5, 98, 50), (None, 5, 99, 71)), "raised", 121),
        (rooms((0, 5, 98, 40), (1, 5, 99, 70)), "lowered", 110),
        (rooms((0, 5, 99, 50), (1, 5, 98, 70)), "not_comparable", 120),
        (rooms((0, 5, 98, 50), (1, 6, 99, 70)), "not_comparable", 120),
        (rooms((0, 5, 98, 130), (1, 5, 99, -10)), "not_comparable", 120),
        (rooms((0, 5, 98, 50)), "not_comparable", None),
        (rooms((0, 5, 98, 50), (1, 5, 99, None)), "not_comparable", None),
        ({"errors": [{"code": 1026}]}, "gone", None),
    ],
)
def test_a_quote_of_several_rooms_is_compared_as_a_whole(answered, outcome, total):
    result = said(answered, offer=TWO_ROOMS)
    assert (result.outcome, result.total) == (outcome, total)


def test_a_product_comes_with_all_that_the_document_says_of_it():
    product = {
        "productId": 99,
        "boardBasis": {"id": 14, "name": "Room Only", "detail": "text"},
        "charges": {
            "total": 120.5, "minSellablePrice": 130.1, "prePromoTotal": 150, "discountPercentage": 19.7,
            "includedCharges": 12.05, "excludedCharges": 9,
            "excludedChargeDetails": {"resortFee": 1, "childResortFee": 2, "cityTaxes": 3, "hotelServiceFee": None},
        },
        "cancelPenalties": [
            {"penaltyInAmount": 50.25, "penaltyStartDate": "2030-01-30T15:00:00+02:00", "refundable": True},
            {"penaltyEndDate": "2030-02-01T15:00:00Z", "penaltyInAmount": 0.00001, "refundable": False},
        ],
    }  # fmt: skip
    (room,) = said(quoted() | {"property": {"roomStays": [{"id": 0, "rateType": "BAR", "product": product}]}}).rooms
    row = offer_row(room, room.product, "EUR")
    numbers = ("floor", "pre_promo_total", "discount_pct", "included_charges", "excluded_charges", "resort_fee")
    assert [float(row[name]) for name in numbers] == [130.1, 150, 19.7, 12.05, 9, 1]
    assert (row["child_resort_fee"], row["city_taxes"], row["hotel_service_fee"]) == (2, 3, None)
    assert (row["board_name"], row["board_detail"], row["rate_type"], row["room_id"]) == (
        "Room Only", "text", "BAR", None,
    )  # fmt: skip
    first, second = penalty_rows(room.product)
    assert (first["start_at"], first["start_offset"], first["amount"]) == (
        datetime(2030, 1, 30, 13, tzinfo=UTC), "+02:00", Decimal("50.25"),
    )  # fmt: skip
    # An amount of five decimals is not stored as another one.
    assert (second["end_offset"], second["amount"], second["is_refundable"]) == ("Z", None, False)
    # The second one says no start, so no moment is known before which nothing costs.
    assert row["free_cancel_until"] is None


@pytest.mark.parametrize(
    ("change", "left_out"),
    [
        ('"productId": 99=>"productId": 99, "promotions": [{"promoType": 5}]', "promotions.0.promoType"),
        ('"productId": 99=>"productId": 99, "promotions": [5, {"promoType": "free night"}]', "promotions.0"),
        ('"productId": 99=>"productId": 99, "boardBasis": {"id": 14, "detail": 7}', "boardBasis.detail"),
        ('"productId": 99=>"productId": 99, "cancelPenalties": [{"penaltyWindow": 24.5}]', "penaltyWindow"),
        (
            '"productId": 99=>"productId": 99, "cancelPenalties": [{"penaltyStartDate": "2030-01-01T10:00:00"}]',
            "penaltyStartDate",
        ),
        ('"propertyId": 7=>"propertyId": 7, "propertyRemarks": {}', "propertyRemarks"),
        ('"total": 120.5=>"total": 120.5, "minSellablePrice": NaN', "minSellablePrice"),
        ('"total": 120.5=>"total": 120.5, "minSellablePrice": ' + 5000 * "9", "minSellablePrice"),
        ('"roomStays": [=>"roomStays": [null, ', "roomStays.0"),
    ],
)
def test_a_part_that_cannot_be_read_costs_itself_and_is_reported(change, left_out):
    body = json.dumps(quoted()).replace(*change.split("=>")).encode()
    assert reservation_id_of(body) == 3
    result = said(body, reservation=3)
    assert (result.outcome, result.total) == ("matched", TOTAL)
    assert result.failure.startswith("left out: ")
    assert left_out in result.failure


@pytest.mark.parametrize(
    ("change", "reservation", "outcome"),
    [
        ('"productId": 99=>"productId": "x"', 3, "not_comparable"),
        ('"roomId": 5=>"roomId": []', 3, "not_comparable"),
        ('"propertyId": 7=>"propertyId": 8', 3, "not_comparable"),
        ('"propertyId": 7=>"propertyId": "seven"', 3, "not_comparable"),
        ('"reservationId": 3=>"reservationId": {}', None, "unknown"),
        ('"roomStays": [=>"roomStays": 5, "was": [', 3, "not_comparable"),
        ('"roomStays": [=>"roomStays": 5, "was": [', None, "unknown"),
        # Of two values, the last would be kept.
        ('"reservationId": 3=>"reservationId": 4, "reservationId": 3', None, "unknown"),
        ('"total": 120.5=>"total": 99, "total": 120.5', 3, "not_comparable"),
        ('"productId": 99=>"productId": 98, "productId" : 99', 3, "not_comparable"),
        ('"propertyId": 7=>"propertyId": 8, "propertyId": 7', 3, "not_comparable"),
        ('"currencyCode": "EUR"=>"currencyCode": "USD", "currencyCode": "EUR"', 3, "not_comparable"),
        ('"roomStays": [=>"roomStays": [], "roomStays": [', 3, "not_comparable"),
    ],
)
def test_nothing_is_guessed_where_it_is_not_known_what_was_quoted(change, reservation, outcome):
    body = json.dumps(quoted()).replace(*change.split("=>")).encode()
    result = said(body, reservation=reservation)
    assert (result.outcome, result.is_reservation_possible) == (outcome, True)


def test_a_field_that_comes_twice_is_reported_unless_both_say_the_same():
    body = json.dumps(quoted())
    other = body.replace('"reservationId": 3', '"reservationId": 4, "reservationId": 3').encode()
    assert reservation_id_of(other) is None
    assert "reservationId" in said(other).failure
    for same in ("3", "null", "3.0"):
        again = body.replace('"reservationId": 3', f'"reservationId": 3, "reservationId": {same}').encode()
        assert reservation_id_of(again) == 3
        assert not said(again, reservation=3).failure


def test_a_text_that_no_file_holds_is_written_out():
    odd = "a\ud800"
    more = {"boardBasis": {"name": odd}, "promotions": [{"promoType": odd, "description": odd}]}
    body = quoted(**more)
    body["property"]["propertyRemarks"] = odd
    body["errors"] = [{"code": 77, "message": odd}]
    for sent in (json.dumps(body).encode(), json.dumps(body).encode().replace(rb"\ud800", b"\xe9")):
        result = said(sent, reservation=3)
        assert result.outcome == "matched"
        (room,) = result.rooms
        row = offer_row(room, room.product, "EUR") | promotion_rows(room.product)[0]
        texts = [row["board_name"], row["promo_type"], row["description"], result.property_remarks, *result.messages]
        assert set(texts) in ({"a\\ud800"}, {"a\\udce9"})


def test_the_texts_of_errors_are_kept():
    result = said({"errors": [{"code": 1023, "message": "none"}, {"errorCode": 77, "errorDescription": "more"}]})
    assert (result.outcome, result.code, result.codes, result.messages) == ("gone", 1023, (1023, 77), ("none", "more"))
    assert said({"errors": [{"errorCode": 1021, "errorDescription": "no product"}]}, 400).messages == ("no product",)


@pytest.mark.parametrize(
    ("body", "outcome", "possible"),
    [
        (quoted() | {"reservationId": None}, "matched", True),
        ({}, "not_comparable", True),
        ({"errors": [{"code": 1023, "message": 5}]}, "gone", False),
        ({"errors": [None, {"code": 1023}]}, "gone", False),
        ({"errors": {"code": 1023}}, "gone", False),
    ],
)
def test_only_errors_alone_rule_a_reservation_out(body, outcome, possible):
    result = said(body)
    assert (result.outcome, result.is_reservation_possible) == (outcome, possible)


@pytest.mark.parametrize("text", ["77.0", "7.7e1", '"77.0"', '"+77"'])
def test_a_reservation_id_is_read_however_it_is_written(text):
    assert reservation_id_of(f'{{"reservationId": {text}}}'.encode()) == 77


def test_an_endless_exponent_is_left_out_at_once():
    body = json.dumps(quoted()).replace('"productId": 99', '"productId": 1e999999999').encode()
    assert said(body, reservation=3).outcome == "not_comparable"
    assert reservation_id_of(b'{"reservationId": 1e999999999}') is None


@pytest.mark.parametrize("field", ["cancelPenalties", "promotions"])
def test_more_children_than_the_tables_number_are_left_out_and_named(field):
    result = said(quoted(**{field: [{}] * (2**15 + 1)}), reservation=3)
    assert result.outcome == "matched"
    assert field in result.failure
