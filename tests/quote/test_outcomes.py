"""What a quote came to follows from the offer and the answer alone."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from pipeline.quote.ledger import Entry, Intent, QuoteAnswer
from pipeline.quote.outcomes import result_of
from pipeline.quote.sample import ChosenOffer

NOW = datetime(2030, 1, 1, tzinfo=UTC)
TOTAL = Decimal("120.5000")
OFFER = ChosenOffer(
    "multi", 1, 7, "GB", "Hotel", date(2030, 2, 1), 1, "2", "EUR", 0, 5, 14, 0, 99, "EUR", TOTAL, "sweep", 1, 0, NOW
)


def said(body, status=200, failure="", reservation=None):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = QuoteAnswer(status, "", data, NOW, NOW, failure, "", reservation)
    return result_of(Entry(Intent(0, NOW, OFFER, 7, "{}"), answer), 1_000_000)


def quoted(total=120.5, currency="EUR", product_id=99, **more):
    product = {"productId": product_id, "charges": {"total": total}, **more}
    stays = [{"id": 0, "roomId": 5, "product": product}]
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
        (quoted(total=1e300), "not_comparable"),
        (quoted(total=0.00001), "not_comparable"),
        (quoted(product_id=98), "not_comparable"),
        (quoted(product_id=None), "matched"),
        ({}, "not_comparable"),
        ({"errors": [{"code": 1023}]}, "gone"),
        ({"errors": [{"errorCode": 1024}]}, "gone"),
        ({"errors": [{"errorCode": 9999}]}, "refused"),
        (b"[]", "unknown"),
        (b"{", "unknown"),
        (quoted(total="NaN?"), "unknown"),
    ],
)
def test_an_answer_is_compared_by_price_currency_and_product(body, outcome):
    assert said(body).outcome == outcome


def test_the_policy_of_a_quote_has_the_key_of_its_search():
    penalties = [{"penaltyWindow": 48, "penaltyPercentage": 50.0, "penaltyNights": 2, "refundable": True}]
    from pipeline.domain.keys import policy_key

    result = said(quoted(cancelPenalties=penalties, boardBasis={"id": 14}), reservation=3)
    assert result.policy_key == policy_key([(48, 50.0, 2.0, True)])
    assert (result.room_id, result.board_id, result.is_reservation_possible) == (5, 14, True)


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


def test_a_reservation_that_was_told_beside_a_failure_is_never_ruled_out():
    assert said(b"", 500, "server_error", reservation=3).outcome == "unknown"
