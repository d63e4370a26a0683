"""A case of a market whose share of properties hovers about the bound does not come and go."""

from __future__ import annotations

import random

import pytest
from nights import started_at

from pipeline.lake.relations import relation

NIGHTS, PROPERTIES = 30, 36
KEPT = ("rule", "market", "base_currency", "currency", "opened_at", "last_met_at", "below_since", "ended_at")


@pytest.mark.parametrize("share", [0.4, 0.45])
def test_a_share_that_hovers_about_the_bound_opens_a_case_once(golden, share):
    """On each night some properties are dearer, by chance."""
    chance = random.Random(16)  # noqa: S311 - the same nights every time
    markets, asked = ("DE", "FR"), relation("staging", "case_scope_next")
    sold = [{"property_id": each, "market": market} for each in range(PROPERTIES) for market in markets]
    golden.give("state.property_sale", sold)
    scope, opened = [], set()
    for number in range(NIGHTS):
        dearer = [each for each in range(PROPERTIES) if chance.random() < share]
        tonight = {
            "night.sweep": [{"started_at": started_at(number), "snapshot_date": started_at(number).date()}],
            "state.case_scope": scope,
            "state.flag_open": [
                {"flag_id": str(each), "rule": "market_disparity", "subject_key": each, "property_id": each,
                 "market": "DE", "size_pct": 8}
                for each in dearer
            ],
        }  # fmt: skip
        for table, rows in tonight.items():
            golden.session.execute(f"TRUNCATE {table}")
            golden.give(table, rows)
        scope = [{name: row[name] for name in KEPT} for row in golden.rows(asked)]
        opened |= {row["opened_at"] for row in scope if row["ended_at"] is None}
    assert len(opened) == 1
