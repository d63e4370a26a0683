"""Claim: when a finding was first and last seen, and how it ended, is what the raw answers of all nights say."""

from __future__ import annotations

import flags as expected
import nights_made
import pytest
from published import difference
from relations_of_pairs import Rates

pytestmark = pytest.mark.slow

SAID = (
    "rule", "source", "property_id", "market", "product_type", "check_in", "nights", "party", "currency", "severity",
    "size_pct", "amount", "first_flagged_at", "last_flagged_at", "snapshots", "resolved_at", "ended_by",
)  # fmt: skip


@pytest.fixture(scope="module")
def kept(lake, sweeps, published):
    rates = Rates((lake.parent / "rates.csv").read_text())
    ranks = {offer: key for key, offer in published.offers.items()}
    return expected.flags(sweeps, nights_made.REFERENCE_MARKET, rates, ranks)


@pytest.mark.parametrize("rule", expected.RULES)
def test_findings_begin_last_and_end_as_the_answers_say(rule, kept, published):
    found = published.reported(
        f"""SELECT {", ".join(SAID)}, flag_id, evidence
            FROM report.flag_history WHERE rule = '{rule}'"""
    )
    for row in found:
        row["evidence"] = tuple(
            sorted({(item["source"], *published.offers[item["offer_key"]]) for item in row["evidence"]}, key=repr)
        )
        del row["flag_id"]
    mine = [
        {name: row[name] for name in SAID} | {"evidence": tuple(sorted(row["evidence"], key=repr))}
        for row in [*kept.closed, *kept.open.values()]
        if row["rule"] == rule
    ]
    assert found
    assert not difference(mine, found)
