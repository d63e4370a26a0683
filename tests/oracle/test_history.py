"""Claim: what was asked, what is on sale and what was before is what the raw answers say, to the last row."""

from __future__ import annotations

import pytest
import relations_of_history as expected
from published import difference

pytestmark = pytest.mark.slow

OFFER = """source, property_id, market, product_type, check_in, nights, party, currency_asked,
    room_stay_id, room_id, board_id, policy_key, currency"""
CELL = """CASE operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
    property_id, market, product_type, check_in, nights, party, currency_asked"""
VALUES = """total, pre_promo_total, discount_pct, floor, available_rooms, included_charges, excluded_charges,
    resort_fee, child_resort_fee, city_taxes, hotel_service_fee"""
SOURCE = "CASE operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source"
OF_SWEEPS = {
    "lake.offer": (
        expected.offers_stored,
        f"""SELECT sweep_id, search_id, offer_no, {OFFER}, {VALUES}, product_id, room_name, refundability
            FROM lake.offer""",
    ),
    "lake.cell": (
        expected.cells_stored,
        f"SELECT sweep_id, search_id, {CELL}, status, code, offers FROM lake.cell",
    ),
    "mart.sweep": (
        expected.sweeps_counted,
        "SELECT sweep_id, planned, offers, offered, no_offer, absent, rejected, failed, not_swept FROM mart.sweep",
    ),
    "report.coverage": (
        expected.coverage,
        f"""SELECT sweep_id, {SOURCE}, market, planned, swept, answered, rejected, failed, answered_share
            FROM report.coverage""",
    ),
    "report.availability": (
        expected.availability,
        f"""SELECT {SOURCE}, market, product_type, sweep_id, answered, offered, absent, no_offer, no_offer_1023,
            no_offer_1025, no_offer_1026, availability, availability_of_present FROM report.availability""",
    ),
}
OF_HISTORY = {
    "mart.offer_latest": (
        expected.offer_latest,
        f"""SELECT {OFFER}, {VALUES}, first_seen_at, last_seen_at, valid_from, snapshots, unobserved_since, is_whole,
            lead_days, seen_sweep_id, seen_search_id, seen_offer_no FROM mart.offer_latest""",
    ),
    "mart.offer_history": (
        expected.offer_history,
        f"""SELECT {OFFER}, is_offered, valid_from, last_seen_at, snapshots, total, pre_promo_total, floor,
            available_rooms, change, valid_to, ended_by, longest_unseen_days FROM mart.offer_history""",
    ),
    "mart.cell_latest": (
        expected.cell_latest,
        f"SELECT {CELL}, status, code, offers, sweep_id, answered_at, is_fresh FROM mart.cell_latest",
    ),
    "mart.cell_history": (
        expected.cell_history,
        f"""SELECT cell_key, {SOURCE}, known_status, known_code, known_from, known_seen_at, known_to, next_status,
            spells FROM mart.cell_history""",
    ),
    "mart.market_coverage": (
        expected.market_coverage,
        "SELECT source, market, product_type, planned, answered FROM mart.market_coverage",
    ),
    "mart.minimum_stay": (
        expected.minimum_stay,
        f"""SELECT {CELL.replace(" nights,", "")}, sweep_id, lengths_answered, shortest_offered, shorter_refused,
            implied_minimum_stay FROM mart.minimum_stay""",
    ),
    "mart.pick_up": (
        expected.pick_up,
        "SELECT cell_key, source, room_id, picked_up, given_back, reopenings, changes FROM mart.pick_up",
    ),
}


@pytest.mark.parametrize("relation", OF_SWEEPS)
def test_what_sweeps_asked_and_heard_is_what_their_raw_answers_say(relation, sweeps, published):
    rows, query = OF_SWEEPS[relation]
    found = published.reported(query)
    assert found
    assert not difference(rows(sweeps), found)


@pytest.mark.parametrize("relation", OF_HISTORY)
def test_what_nights_come_to_is_what_their_answers_add_up_to(relation, history, published):
    rows, query = OF_HISTORY[relation]
    found = published.reported(query)
    assert found
    assert not difference(rows(history), found)
