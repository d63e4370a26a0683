"""Claim: markets, floors and currencies are compared as the domain says, computed from the raw answers."""

from __future__ import annotations

import csv
from datetime import date, datetime

import nights_made
import pytest
import relations_of_disparity
import relations_of_pairs as expected
import relations_of_prices
from published import difference

pytestmark = pytest.mark.slow

SAME = "source, seen_sweep_id AS sweep_id, property_id, product_type, check_in, nights, party, room_no"
OFFER = "market, room_id, board_id, policy_key, currency"


@pytest.fixture(scope="module")
def offers(history):
    return relations_of_prices.frame(history)


@pytest.fixture(scope="module")
def rates(lake):
    return expected.Rates((lake.parent / "rates.csv").read_text())


@pytest.fixture(scope="module")
def pairs(offers, published, rates):
    ranks = {offer: key for key, offer in published.offers.items()}
    return expected.pairs(offers, nights_made.REFERENCE_MARKET, rates, ranks)


@pytest.fixture(scope="module")
def parity(pairs):
    return expected.market_parity(pairs)


def test_markets_are_compared_in_one_currency_or_at_the_suppliers_own_rate(parity, published):
    found = published.reported(
        f"""SELECT match_grade, {SAME}, {OFFER}, currency_asked, total, currency_basis, reference_currency,
            reference_total, reference_converted, gap, gap_pct, verdict FROM mart.market_parity"""
    )
    assert {row["currency_basis"] for row in found} == {"same", "supplier_rate", "reference_rate"}
    assert len({row["verdict"] for row in found}) > 1
    assert not difference(parity, found)


def test_a_score_is_of_pairs_and_of_properties_and_no_basis_is_mixed_with_another(parity, published):
    found = published.reported(
        """SELECT match_grade, source, product_type, market, currency, currency_basis, win, meet, lose, pairs,
            properties, parity_score, property_score, weighted_parity_score, is_counted, market_score
            FROM report.market_parity WHERE pairs > 0"""
    )
    weights = dict(published.session.execute("SELECT property_id, weight FROM mart.weight").fetchall())
    assert any(not row["is_counted"] for row in found)
    assert not difference(expected.parity_scores(parity, weights), found)


def test_the_market_whose_price_deviates_is_named_and_none_where_it_is_not_known(pairs, history, rates, published):
    found = published.reported(
        """SELECT found.source, found.property_id, found.market, found.product_type, found.check_in, found.nights,
            found.party, found.currency, found.room_id, found.board_id, found.policy_key, found.compared_with,
            found.evidence[1].sweep_id AS sweep_id, found.markets_compared, found.markets_apart, found.total,
            found.compared_total, found.compared_answered, found.compared_currency, found.currency_basis, found.amount,
            found.size_pct, found.severity FROM report.market_disparity AS found"""
    )
    reported = relations_of_disparity.market_disparity(
        pairs, list(history.cells.values()), nights_made.REFERENCE_MARKET, rates
    )
    assert {row["currency_basis"] for row in found} == {"same", "reference_rate"}
    assert {row["market"] for row in found} > {"GB", "SE"}
    assert not difference(reported, found)


def test_a_gap_is_the_sum_of_its_parts_and_each_part_what_the_answers_say(parity, offers, rates, published):
    found = published.reported(
        """SELECT gap.source, offer.seen_sweep_id AS sweep_id, gap.offer_key,
            coalesce(offer.room_stay_id, 0) AS room_no, gap.total, gap.gap, gap.tax_and_fee,
            gap.promotion, gap.fx, gap.residual FROM mart.gap_decomposition AS gap
            JOIN mart.offer_latest AS offer USING (source, property_id, offer_key)
            WHERE gap.match_grade = 'exact'"""
    )
    for row in found:
        del row["room_stay_id"]
    assert found
    assert not difference(expected.gap_decomposition(parity, offers, nights_made.REFERENCE_MARKET, rates), found)


def test_a_suppliers_rate_is_compared_with_the_reference_rate(offers, rates, published):
    found = published.reported(
        f"""SELECT {SAME}, {OFFER}, total, base_total, base_converted, markup, markup_pct, reference_rate, supplier_rate
            FROM mart.fx_markup"""
    )
    assert found
    assert not difference(expected.fx_markup(offers, rates), found)


def test_a_price_is_compared_with_the_floor_in_force_when_it_was_seen(lake, history, rates, published):
    found = published.reported(
        """SELECT source, property_id, market, product_type, check_in, nights, party, price, currency,
            room_id, board_id, policy_key, match_grade, verdict, offers, floor, price_converted, below_floor, floor_now
            FROM mart.price_against_floor"""
    )
    running = [row | {"valid_to": None, "ended_by": None} for row in history.open.values()]
    held = expected.price_against_floor(
        prices(lake, published),
        history.closed + running,
        list(history.cells.values()),
        history.latest.started_at,
        rates,
    )
    assert {row["verdict"] for row in found if "+" in row["party"]} >= {"breach", "kept"}
    assert not difference(held, found)


def prices(lake, published):
    """The loaded file, as it was written."""
    whole = ("property_id", "nights", "room_id", "board_id", "policy_key")
    with (lake.parent / "prices.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row |= {name: int(row[name]) if row[name] else None for name in whole}
        row["policy"] = None if row["policy_key"] is None else published.policies[row.pop("policy_key")]
        row["check_in"] = date.fromisoformat(row["check_in"])
        row["observed_at"] = datetime.fromisoformat(row["observed_at"])
        row["price"] = round(float(row["price"]) * 10_000)
    return rows
