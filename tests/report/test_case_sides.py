"""Two answers side by side: what differs, also where they are in two currencies, and nothing that does not."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pipeline.report.case_evidence import Answer, Piece
from pipeline.report.case_page import _answers, _placed
from pipeline.report.case_sides import _FIELDS, lines_of

RATE = {"from_currency": "CHF", "to_currency": "EUR", "rate": Decimal("1.05"), "rate_date": None}
FLAG = {
    "rule": "market_disparity",
    "fx": RATE,
    "source": "detail",
    "check_in": None,
    "nights": None,
    "party": None,
    "product_type": "Hotel",
    "snapshots": 2,
}


def answer(role: str, currency: str, amount: str | None = None, **money: str) -> Answer:
    offer = dict.fromkeys(_FIELDS) | {"currency": currency} | {name: Decimal(text) for name, text in money.items()}
    penalty = {"window_hours": 24, "penalty_pct": 100.0, "penalty_nights": 1.0, "is_refundable": True}
    return Answer(role, None, offer, None, [penalty | {"amount": amount and Decimal(amount)}], [])


def differences(one: Answer, other: Answer, **flag: object) -> dict[str, str]:
    return {line.label: line.difference for line in lines_of(Piece(FLAG | flag, [one, other], [], 0, None))}


def test_money_in_two_currencies_differs_by_what_the_reference_rate_leaves():
    found = differences(
        answer("market", "EUR", "84", total="84", city_taxes="10.50", resort_fee="0", child_resort_fee="1"),
        answer("reference", "CHF", "100", total="100", city_taxes="10", resort_fee="0", child_resort_fee="0"),
    )
    assert found["Total for the stay"] == "−20.0% at the reference rate"
    # 10.50 EUR are 10 CHF, and nothing is nothing in any currency.
    assert (found["City taxes"], found["Resort fee"]) == ("", "")
    assert found["Resort fee, children"] == "only in one"
    # The amounts follow the totals: the terms are the same.
    assert found["Cancellation"] == ""
    assert found["Currency"] == "differs"


@pytest.mark.parametrize(
    ("one", "other", "said"), [("CHF", "EUR", "+31.3% at the reference rate"), ("SEK", "CHF", "differs")]
)
def test_a_rate_is_used_in_either_direction_and_for_no_other_currency(one, other, said):
    assert (
        differences(answer("market", one, total="125"), answer("reference", other, total="100"))["Total for the stay"]
        == said
    )


def test_terms_that_state_an_amount_in_one_answer_alone_are_the_same_terms():
    found = differences(answer("detail", "EUR", "84", total="84"), answer("list", "EUR", total="80"), fx=None)
    assert found["Cancellation"] == ""
    assert differences(answer("detail", "EUR", "84"), answer("list", "EUR", "80"), fx=None)["Cancellation"] == "differs"


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        (24, "from 24 hours before check-in"),
        (167, "from 167 hours before check-in"),
        (8_760, "from 365 days before check-in"),
        (999_999, "from booking"),
    ],
)
def test_a_penalty_says_from_when_it_applies(hours, said):
    of = answer("detail", "EUR", total="84")
    of.penalties[0]["window_hours"] = hours
    (line,) = (line for line in lines_of(Piece(FLAG, [of], [], 0, None)) if line.label == "Cancellation")
    assert line.values == [f"{said}, 100% of 1 night, refundable"]


def test_a_finding_says_which_answer_it_is_of_and_whose_where_the_case_is_of_many_properties():
    assert _placed(FLAG, "Hotel Sol (7)").startswith("Hotel Sol (7), detail answer, product Hotel, 1 CHF = 1.05 EUR")
    assert _placed(FLAG | {"source": "multi"}, "").startswith("List answer, product Hotel")


def test_beside_the_floor_now_stands_that_floor_and_beside_another_market_its_total():
    shown = answer("floor", "EUR", total="350.39", floor="490.55")
    others = [
        answer("floor_now", "EUR", total="423.30", floor="592.62"),
        answer("witness", "EUR", total="90", floor="80"),
    ]
    _, said, _ = _answers(Piece(FLAG | {"rule": "floor_breach"}, [shown], others, 0, None), {})
    assert said == [
        "search not kept (the floor now): 592.62 EUR",
        "search not kept (a third market): 90.00 EUR",
    ]
