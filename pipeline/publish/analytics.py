"""The analytics of the published file: which relations there are, in the order in which they build on each other.

Each is a view over the state that nights leave behind and over the marts; what they compare with is in `ref.analysis`.
"""

from __future__ import annotations

NIGHT: tuple[str, ...] = ("report/price_move",)

PARITY: tuple[str, ...] = (
    "mart/reference_market",
    "mart/market_coverage",
    "mart/floor_headroom",
    "report/floor_coverage",
    "report/floor_what_if",
    "mart/price_against_floor",
    "report/floor_breach",
    "report/floor_compliance",
    "mart/floor_move",
    "report/floor_move",
    "mart/comparable_offer",
    "mart/floor_dispersion",
    "report/floor_dispersion",
    "mart/market_parity",
    "report/market_parity",
    "report/market_disparity",
    "mart/parity_episode",
    "report/parity_resolution",
    "mart/package_discount",
    "report/package_discount",
    "report/package_leak",
    "mart/private_opaque_discount",
    "mart/gap_decomposition",
    "report/gap_decomposition",
    "mart/all_in_parity",
    "report/all_in_gap",
    "mart/fx_markup",
    "report/fx_markup",
    "report/fx_markup_by_currency",
)

PROMOTIONS: tuple[str, ...] = (
    "mart/promotion_named",
    "mart/offer_promotion",
    "mart/promotion_episode",
    "mart/reference_price",
    "report/promotion_arithmetic",
    "report/promotion_reference",
    "report/floor_eats_promotion",
    "report/promotion_targeting",
    "mart/promotion_target",
    "report/promotion_honesty",
    "report/promotion_length",
)

PENALTIES: tuple[str, ...] = (
    "mart/policy",
    "mart/policy_step",
    "mart/policy_strictness",
    "mart/stated_penalty",
    "mart/cancellation",
    "mart/refundable_premium",
    "mart/policy_drift",
    "report/penalty_amount_off_formula",
    "report/refundable_premium",
    "report/cancellation",
    "report/policy_drift",
)

AVAILABILITY: tuple[str, ...] = (
    "mart/cell_history",
    "report/availability",
    "report/sell_out_curve",
    "mart/pick_up",
    "report/pick_up",
    "mart/price_path",
    "mart/price_volatility",
    "report/price_path",
    "report/regret_of_waiting",
    "report/coverage",
    "report/freshness",
    "report/property_gone_quiet",
    "mart/party",
    "mart/stay_length",
    "mart/minimum_stay",
    "report/minimum_stay",
    "mart/occupancy_supplement",
    "mart/multi_room_premium",
    "mart/board_premium",
    "report/stay_price",
    "report/room_ladder_inversion",
    "mart/all_in_price",
    "report/all_in_price",
    "report/excluded_charges_mismatch",
    "report/list_against_detail",
    "report/list_detail_mismatch",
    "report/quote_accuracy",
)

EVIDENCE: tuple[str, ...] = ("report/flag", "report/flag_history")

# `schema/name`, as the files lie under `sql/`.
ANALYTICS = (*NIGHT, *PARITY, *PROMOTIONS, *PENALTIES, *AVAILABILITY, *EVIDENCE)

# Relations of ANALYTICS whose rows are findings, with the columns of `FINDING_COLUMNS`: after each night they become
# flags. They read what a night leaves behind, never the flags themselves.
DETECTORS: tuple[str, ...] = (
    "report/floor_breach",
    "report/floor_what_if",
    "report/market_disparity",
    "report/all_in_gap",
    "report/fx_markup",
    "report/promotion_arithmetic",
    "report/promotion_reference",
    "report/floor_eats_promotion",
    "report/penalty_amount_off_formula",
    "report/excluded_charges_mismatch",
    "report/list_detail_mismatch",
    "report/property_gone_quiet",
)

# Findings as well, but no flags: what is common and mostly meant. A package is made to be cheaper than the hotel alone
# (`report/package_leak` is an exposure to look at), and `report/room_ladder_inversion` says more of houses than of
# prices. Of a large night either would make more flags than anybody reads.
EXPOSURES: tuple[str, ...] = ("report/package_leak", "report/room_ladder_inversion")
