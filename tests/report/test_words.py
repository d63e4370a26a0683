"""Pages show words, never our codes."""

from __future__ import annotations

import re

import pytest

from pipeline.domain.tables import FLAG_CLOSED
from pipeline.report.page import Column, percent, share, shown
from pipeline.report.words import are_alike, first_of, kinds_said, lead_days_said, printed, role_said, rule_said, said


def test_a_rule_is_said_by_its_title_and_one_without_is_still_no_code():
    assert rule_said("floor_breach") == "Sold below the floor"
    assert rule_said("some_new_rule") == "Some new rule"


def test_codes_are_said_in_words_and_other_text_is_left_alone():
    assert said("match_grade", "board_family") == "board family"
    assert said("room_name", "board_family") == "board_family"
    assert (lead_days_said("007-013"), lead_days_said("000-006"), lead_days_said("180+")) == ("7–13", "0–6", "180+")
    assert kinds_said("discount_off,value_add") == "discount off and value add"


def test_of_two_prices_in_two_currencies_the_heading_says_which_one_the_finding_is_about():
    assert (role_said("currency"), role_said("base_currency")) == ("", "compared with")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (shown(-1234.5, 1), "−1,234.5"),
        (shown(-0.001, 2), "0.00"),
        (percent(-13.13, is_change=True), "−13.1%"),
        (percent(2.5, 2, is_change=True), "+2.50%"),
        (share(9_999, 10_000), "99.9%"),
        (share(1, 10_000), "0.1%"),
        (share(10_000, 10_000), "100%"),
        (share(0, 0), "0%"),
    ],
)
def test_numbers_are_written_one_way(written, expected):
    assert written == expected


def test_a_hyphen_before_a_share_is_a_minus_and_others_stay_hyphens():
    assert printed("DE pays 102.49 EUR: -15.4%.") == "DE pays 102.49 EUR: −15.4%."
    for other in ("2030-02-01", "4-star hotel", "case-15%", "10-20%", "raw/20300101T000000Z-1/x.parquet#-1"):
        assert printed(other) == other


def test_an_amount_stands_beside_its_currency_and_a_change_has_a_sign():
    row = {"total": 12.5, "currency": "EUR", "gap": 0.001, "name": None, "id": 7}
    assert Column("total", "Now", digits=2, currency="currency").text(row) == "12.50 EUR"
    assert Column("gap", "Gap", digits=2, is_change=True).text(row) == "0.00"
    nameless = Column("name", "Property", below="id")
    assert (nameless.text(row), nameless.small(row)) == ("7", None)


def test_who_shares_the_first_place_is_not_alone_in_it():
    assert first_of("DE", ["14.6%", "3.0%"]) == "DE has"
    assert first_of("DE", ["14.6%", "14.6%", "14.6%", "3.0%"]) == "DE and 2 more have"
    assert are_alike(["14.6%", "14.6%"])
    assert not are_alike(["14.6%"])
    assert not are_alike(["14.6%", "3.0%"])


def test_every_way_in_which_a_finding_ends_is_said_in_words():
    (column,) = (column for column in FLAG_CLOSED.columns if column.name == "ended_by")
    ways = re.findall(r"`(\w+)`", column.meaning)
    assert "reference_changed" in ways
    assert [way for way in ways if said("ended_by", way) == way] == []
