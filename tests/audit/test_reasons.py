"""What is wrong in a row is said in words, and with amounts as people write them."""

from __future__ import annotations

import re

import duckdb
import pytest

from pipeline.audit.rules import declared_rules
from pipeline.lake.relations import relation

OFFER = (
    "SELECT 'GB' AS market, 1 AS property_id, 257 AS search_id, 0 AS offer_no, 'EUR' AS currency, "
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
    with duckdb.connect() as session:
        session.execute("CREATE SCHEMA sweep_files")
        session.execute(f"CREATE TABLE sweep_files.offer AS {OFFER}", {"total": total})
        ((*_, reason),) = session.execute(relation("audit", rule).sql).fetchall()
    assert reason == said


@pytest.mark.parametrize("rule", declared_rules())
def test_no_reason_names_a_column(rule):
    (before,) = re.findall(r"SELECT(?:(?!SELECT).)*? AS reason", relation("audit", rule).sql, flags=re.DOTALL)
    assert not [text for text in re.findall(r"'([^']*)'", before) if re.search(r"[a-z]_[a-z]", text)]
