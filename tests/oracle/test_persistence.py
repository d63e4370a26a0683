"""Claim: for how long an offer has been dearer, and how that ended, is what the raw answers say."""

from __future__ import annotations

import nights_made
import pytest
import relations_of_persistence as expected
import relations_of_prices
from history import CELL, OFFER
from published import difference
from relations_of_pairs import Rates, pairs

pytestmark = pytest.mark.slow

SAME = "source, seen_sweep_id AS sweep_id, property_id, product_type, check_in, nights, party, room_no"
OFFER_COLUMNS = "market, currency_asked, room_id, board_id, policy_key, currency"
GRADES = ("exact", "board_family", "cheapest")


@pytest.fixture(scope="module")
def rates(lake):
    return Rates((lake.parent / "rates.csv").read_text())


@pytest.fixture(scope="module")
def ranks(published):
    return {offer: key for key, offer in published.offers.items()}


@pytest.fixture(scope="module")
def kept(sweeps, rates, ranks):
    return expected.persistence(sweeps, nights_made.REFERENCE_MARKET, rates, ranks)


def test_pairs_of_every_grade_have_been_dearer_for_as_many_nights_as_answers_say(
    kept, history, rates, ranks, published
):
    offers = relations_of_prices.frame(history)
    names = ("source", "sweep_id", "property_id", "product_type", "check_in", "nights", "party", "room_no", "market")
    reported = ("currency_asked", "room_id", "board_id", "policy", "currency", "match_grade", "currency_basis")
    mine = []
    for pair in pairs(offers, nights_made.REFERENCE_MARKET, rates, ranks):
        run = expected.runs_of(kept, pair) or {"snapshots": None, "began_at": None}
        mine.append(
            {name: pair[name] for name in (*names, *reported)}
            | {"losing_snapshots": run["snapshots"], "losing_since": run["began_at"]}
        )
    found = published.reported(
        f"""SELECT match_grade, {SAME}, {OFFER_COLUMNS}, currency_basis, losing_snapshots, losing_since
            FROM mart.market_parity"""
    )
    for grade in GRADES:
        assert len({row["losing_snapshots"] for row in found if row["match_grade"] == grade}) > 2, grade
    assert not difference(mine, found)


def test_times_to_resolve_and_what_else_ended_an_episode_follow_from_the_answers(kept, published):
    found = published.reported(
        """SELECT source, offer_key, check_in, currency_basis, began_at, last_losing_at, snapshots, ended_at, ended_by,
            is_running, days FROM mart.parity_episode"""
    )
    assert {"resolved", "gone", "not_asked", "stay_began", None} <= {row["ended_by"] for row in found}
    running = [row | {"key": key, "ended_by": None, "ended_at": None} for key, row in kept.running.items()]
    mine = [
        dict(zip(OFFER, row["key"][1:], strict=True))
        | {name: row[name] for name in ("began_at", "last_losing_at", "snapshots", "ended_at", "ended_by")}
        | {
            "currency_basis": row["against"][-1],
            "is_running": row["ended_at"] is None,
            "days": ((row["ended_at"] or row["last_losing_at"]) - row["began_at"]).total_seconds() / 86400,
        }
        for row in [*kept.ended, *running]
        if row["key"][0] == "exact"
    ]
    assert not difference(mine, found)


def test_times_to_resolve_of_the_cheapest_of_a_group_follow_too(kept, history, published):
    found = published.reported(
        """SELECT match_grade, source, cell_key, room_no, board_family, currency, market AS of_market, reference_market,
            currency_basis, began_at, snapshots, ended_at, ended_by, days FROM mart.parity_group_episode"""
    )
    assert {"basis_changed", "gone", "not_asked", "stay_began", None} <= {row["ended_by"] for row in found}
    latest = history.latest.started_at
    running = [row | {"key": key, "ended_by": None, "ended_at": None} for key, row in kept.running.items()]
    names = ("match_grade", *CELL, "room_no", "board_family", "currency")
    mine = [
        dict(zip(names, row["key"], strict=True))
        | {name: row[name] for name in ("began_at", "snapshots", "ended_at", "ended_by")}
        | {
            "of_market": row["market"],
            "reference_market": nights_made.REFERENCE_MARKET,
            "currency_basis": row["against"][-1],
            "days": ((row["ended_at"] or latest) - row["began_at"]).total_seconds() / 86400,
        }
        for row in [*kept.ended, *running]
        if row["key"][0] != "exact"
    ]
    assert not difference(mine, found)
