"""Claim: what there is to call about, and whether it is a property or a market, is what the raw answers say."""

from __future__ import annotations

import nights_made
import pytest
from case_scopes import wider
from flags import RULES
from published import difference
from relations_of_cases import finding_case

pytestmark = pytest.mark.slow


def test_cases_are_what_the_findings_of_all_nights_come_to(flagged, published):
    mine = finding_case(flagged, wider(flagged.nights), flagged.nights[-1])
    names = [name for name in mine[0] if name not in {"is_part", "amounts"}]
    found = published.rows(
        f"""SELECT {", ".join(names)}, part_of_case_id IS NOT NULL AS is_part, amounts
            FROM report.finding_case WHERE rule IN {RULES}"""
    )
    for row in found:
        row["amounts"] = tuple((each["currency"], int(each["amount"] * 10_000)) for each in row["amounts"])
    assert {"new", "open", "part_of", "closed"} <= {row["status"] for row in found}
    dear = [row for row in found if row["scope"] == "market" and row["rule"] == "market_disparity"]
    assert [row["market"] for row in dear] == [nights_made.DEAR]
    assert not difference(mine, found)
