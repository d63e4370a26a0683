"""What is wrong in a row is said in words, and with amounts as people write them."""

from __future__ import annotations

import re

import duckdb
import pytest

from pipeline.audit.rules import declared_rules
from pipeline.lake.relations import macros, relation

OFFER = (
    "SELECT 'GB' AS market, 1 AS property_id, 257 AS search_id, 0 AS offer_no, $currency AS currency, "
    "$total::DECIMAL(18, 4) AS total, 275.17::DECIMAL(18, 4) AS pre_promo_total, 15.0 AS discount_pct"
)


@pytest.mark.parametrize(
    ("rule", "total", "said"),
    [
        (
            "total_above_pre_promo_total",
            1300,
            "the total of 1,300.00 EUR is above the price before promotions, 275.17",
        ),
        (
            "discount_not_as_stated",
            "247.653",
            "a discount of 15% is stated, but 247.65 EUR is 10.0% off the price before promotions, 275.17",
        ),
        ("total_not_positive", -5, "the total is -5.00 EUR"),
    ],
)
def test_what_is_wrong_with_an_offer_has_amounts_to_the_cent(rule, total, said):
    assert reasons(rule, total) == [said]


def reasons(rule, total, currency="EUR"):
    with duckdb.connect() as session:
        for schema in ("sweep_files", "ref", "mart"):
            session.execute(f"CREATE SCHEMA {schema}")
        for macro in macros(over_views=False):
            session.execute(macro)
        session.execute(
            "CREATE TABLE ref.currency AS FROM (VALUES ('EUR', 0.01), ('JPY', 1)) AS known (currency, minor_unit)"
        )
        session.execute(f"CREATE TABLE sweep_files.offer AS {OFFER}", {"total": total, "currency": currency})
        return [reason for *_, reason in session.execute(relation("audit", rule).sql).fetchall()]


def test_a_price_that_differs_by_the_smallest_coin_is_neither_above_the_other_nor_off_it():
    assert reasons("total_above_pre_promo_total", "275.18") == []
    assert len(reasons("total_above_pre_promo_total", "275.19")) == 1
    assert reasons("total_above_pre_promo_total", "276.17", currency="JPY") == []
    assert len(reasons("discount_not_as_stated", "275.18")) == 1
    assert reasons("discount_not_as_stated", "275.19") == []


@pytest.mark.parametrize("rule", declared_rules())
def test_no_reason_names_a_column(rule):
    (before,) = re.findall(r"SELECT(?:(?!SELECT).)*? AS reason", relation("audit", rule).sql, flags=re.DOTALL)
    assert not [text for text in re.findall(r"'([^']*)'", before) if re.search(r"[a-z]_[a-z]", text)]
