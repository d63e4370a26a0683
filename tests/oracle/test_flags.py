"""Claim: when a finding was first and last seen, and how it ended, is what the raw answers of all nights say."""

from __future__ import annotations

import pytest
from flags import RULES
from published import difference

pytestmark = pytest.mark.slow

SAID = (
    "rule", "source", "property_id", "market", "product_type", "check_in", "nights", "party", "currency", "severity",
    "size_pct", "amount", "first_flagged_at", "last_flagged_at", "snapshots", "resolved_at", "ended_by",
)  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_findings_begin_last_and_end_as_the_answers_say(rule, flagged, published):
    found = published.reported(
        f"""SELECT {", ".join(SAID)}, evidence
            FROM report.flag_history WHERE rule = '{rule}'"""
    )
    for row in found:
        row["evidence"] = tuple(
            sorted({(item["source"], *published.offers[item["offer_key"]]) for item in row["evidence"]}, key=repr)
        )
    mine = [
        {name: row[name] for name in SAID} | {"evidence": tuple(sorted(row["evidence"], key=repr))}
        for row in [*flagged.closed, *flagged.open.values()]
        if row["rule"] == rule
    ]
    assert found
    assert not difference(mine, found)


def test_a_disparity_of_the_lake_ends_in_every_way(flagged):
    ended = {row["ended_by"] for row in flagged.closed if row["rule"] == "market_disparity"}
    assert ended == {"value", "gone", "not_compared", "not_asked", "stay_began"}
