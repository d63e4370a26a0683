"""Claim: prices are compared as the domain says, pair by pair and to the cent, computed from the raw answers."""

from __future__ import annotations

import pytest
import relations_of_prices as expected
from published import difference

pytestmark = pytest.mark.slow

CELL = "source, property_id, market, product_type, check_in, nights, party"
STAY = f"{CELL}, seen_sweep_id AS sweep_id"
ROOM = "room_id, board_id, policy_key, currency"
# What some relations leave to the key of the offer.
OF_OFFER = "source, offer_key, seen_sweep_id AS sweep_id"
RELATIONS = {
    "mart.floor_headroom": (
        expected.floor_headroom,
        f"""SELECT {STAY}, currency_asked, room_stay_id, {ROOM}, total, floor, headroom, headroom_pct
            FROM mart.floor_headroom""",
    ),
    "report.floor_coverage": (
        expected.floor_coverage,
        """SELECT source, market, offers, offers_with_floor, floor_above_total, coverage_pct, median_headroom_pct,
            highest_headroom_pct FROM report.floor_coverage WHERE offers > 0""",
    ),
    "mart.floor_dispersion": (
        expected.floor_dispersion,
        f"""SELECT source, property_id, seen_sweep_id AS sweep_id, check_in, nights, party, room_no, {ROOM}, markets,
            lowest_floor, highest_floor, dispersion_pct FROM mart.floor_dispersion WHERE NOT is_converted""",
    ),
    "mart.package_discount": (
        expected.package_discount,
        f"""SELECT {STAY.replace(" product_type,", "")}, currency_asked, room_no, {ROOM}, hotel_total, package_total,
            discount, discount_pct, leak, leak_pct FROM mart.package_discount""",
    ),
    "mart.refundable_premium": (
        expected.refundable_premium,
        f"""SELECT {STAY}, cell_key, room_stay_id, room_id, board_id, currency, refundable_total, non_refundable_total,
            premium, premium_pct FROM mart.refundable_premium""",
    ),
    "mart.board_premium": (
        expected.board_premium,
        f"""SELECT {OF_OFFER}, total, room_only_total, premium, premium_per_guest_night, premium_pct
            FROM mart.board_premium""",
    ),
    "mart.occupancy_supplement": (
        expected.occupancy_supplement,
        f"SELECT {OF_OFFER}, total, base_total, supplement, supplement_pct FROM mart.occupancy_supplement",
    ),
    "mart.multi_room_premium": (
        expected.multi_room_premium,
        f"""SELECT {STAY}, cell_key, {ROOM}, rooms, rooms_offered, rooms_found, total, singles_total, premium
            FROM mart.multi_room_premium""",
    ),
    "mart.stay_length": (
        expected.stay_length,
        f"SELECT {OF_OFFER}, total, nights_found, nights_total, saving, discount_pct_of_nights FROM mart.stay_length",
    ),
    "report.stay_price": (
        expected.stay_price,
        """SELECT measure, source, market, product_type, planned, comparable, share_above_0, median_pct
            FROM report.stay_price""",
    ),
    "mart.all_in_price": (
        expected.all_in_price,
        f"""SELECT {OF_OFFER}, total, fees_stated, mandatory_charges, all_in_total, optional_charges, drip_ratio,
            mandatory_drip_ratio, included_ratio FROM mart.all_in_price""",
    ),
    "mart.offer_truth": (
        expected.list_against_detail,
        """SELECT offer_key, list_total, detail_total, detail_above_list FROM mart.offer_truth
            WHERE list_at IS NOT NULL AND detail_at IS NOT NULL""",
    ),
}


@pytest.fixture(scope="module")
def offers(history):
    return expected.frame(history)


@pytest.mark.parametrize("relation", RELATIONS)
def test_prices_are_compared_as_the_domain_says(relation, offers, published):
    rows, query = RELATIONS[relation]
    found = published.reported(query)
    assert found
    assert not difference(rows(offers).to_dicts(), found)
