"""Claim: promotions, cancelling and moves of prices are what the raw answers of all nights say."""

from __future__ import annotations

import pytest
import relations_of_promises as expected
from published import difference

pytestmark = pytest.mark.slow

OF_HISTORY = {
    "mart.promotion_episode": (
        expected.promotion_episode,
        """began_at, plain_seen_at, promoted_seen_at, ended_at, least_depth_pct, most_depth_pct, is_running
            FROM mart.promotion_episode""",
    ),
    "mart.price_path": (
        expected.price_path,
        """total, snapshots, valid_from, last_seen_at, step_no, total_before, was_gone, index_first, change_pct,
            lead_days_seen FROM mart.price_path""",
    ),
    "mart.price_volatility": (
        expected.price_volatility,
        """snapshots, pairs, changes, volatility_pct, lowest, highest
            FROM mart.price_volatility""",
    ),
    "report.price_move": (
        expected.price_move,
        "previous_total, total, change_amount::DECIMAL(18, 4) AS change_amount, change_pct FROM report.price_move",
    ),
    "mart.floor_move": (expected.floor_move, "total, floor_before, floor, moved_at FROM mart.floor_move"),
    "mart.stated_penalty": (expected.stated_penalty, "amount FROM mart.stated_penalty"),
    "mart.cancellation": (
        expected.cancellation,
        "share_now, is_free_now, free_until_at, deadline_rule FROM mart.cancellation",
    ),
}
OF_PROMOTIONS = {
    "mart.offer_promotion": (
        expected.offer_promotion,
        """total, pre_promo_total, discount_pct, depth_pct, names_price_promotion, promised_pct, free_nights
            FROM mart.offer_promotion""",
    ),
    "report.promotion_arithmetic": (expected.promotion_arithmetic, "rule FROM report.promotion_arithmetic"),
}


@pytest.mark.parametrize("relation", OF_HISTORY)
def test_what_offers_did_over_time_is_what_the_answers_say(relation, history, published):
    rows, query = OF_HISTORY[relation]
    found = published.reported(f"SELECT source, offer_key, {query}")
    assert found
    assert not difference(rows(history), found)


@pytest.mark.parametrize("relation", OF_PROMOTIONS)
def test_a_promotion_is_what_the_prices_and_the_names_say(relation, sweeps, history, published):
    rows, query = OF_PROMOTIONS[relation]
    found = published.reported(f"SELECT source, offer_key, {query}")
    assert found
    assert not difference(rows(history, expected.kinds_of(sweeps)), found)


def test_a_policy_is_as_strict_as_the_area_under_its_terms(history, published):
    found = published.reported("SELECT policy_key, nights, strictness FROM mart.policy_strictness")
    assert found
    assert not difference(expected.policy_strictness(history), found)
