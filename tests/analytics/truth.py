"""What each rule must find in a planted world, what it may find besides, and how well it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from planted_world import CHECK_IN, REFERENCE, PlantedWorld

from pipeline.sandbox import planted
from pipeline.warehouse import query_published


class Truth(NamedTuple):
    """Kinds of planted anomalies that a rule is about, and kinds that show what it looks for by their nature."""

    must: frozenset[str]
    may: frozenset[str] = frozenset()
    seen_as: str = "TRUE"
    """What an offer must be like for the rule to be able to judge it, as SQL over mart.offer_latest."""


# With less history than this, a rule about the past says nothing.
_WATCHED = "first_seen_at <= last_seen_at - INTERVAL 30 DAYS"
_REFERRED = f"property_id IN (SELECT property_id FROM mart.offer_latest WHERE market = '{REFERENCE}')"  # noqa: S608 - our own
# A planted price before promotions is planted for good: nobody ever paid it, and the promotion never ends.
_FOR_GOOD = frozenset(
    {planted.INFLATED_REFERENCE, planted.UNNAMED_PROMOTION, planted.WRONG_DISCOUNT, planted.FLOOR_EATS_PROMOTION}
)
TRUTH = {
    "phantom_promotion": Truth(frozenset({planted.PHANTOM_PROMOTION})),
    "unnamed_promotion": Truth(frozenset({planted.UNNAMED_PROMOTION})),
    "wrong_discount": Truth(frozenset({planted.WRONG_DISCOUNT})),
    "total_above_reference": Truth(frozenset({planted.TOTAL_ABOVE_REFERENCE})),
    "reference_never_charged": Truth(_FOR_GOOD, seen_as=_WATCHED),
    "evergreen_promotion": Truth(_FOR_GOOD, seen_as=_WATCHED),
    # What a reference market does not offer cannot be held against it.
    "market_disparity": Truth(frozenset({planted.MARKET_DISPARITY}), seen_as=_REFERRED),
    "all_in_gap": Truth(frozenset({planted.MARKET_FEES}), seen_as=f"source = 'detail' AND {_REFERRED}"),
    # A floor at the price before promotions lies above the mark-up where the promotion is deeper than it.
    "floor_what_if": Truth(frozenset({planted.FLOOR_BREACH}), frozenset({planted.FLOOR_EATS_PROMOTION}), "floor > 0"),
    # A seller's price without a currency cannot be loaded.
    "floor_breach": Truth(
        frozenset({planted.FLOOR_BREACH}),
        frozenset({planted.FLOOR_EATS_PROMOTION}),
        "floor > 0 AND source = 'multi' AND currency IS NOT NULL",
    ),
    "penalty_amount_off_formula": Truth(frozenset({planted.PENALTY_AMOUNT}), seen_as="source = 'detail'"),
    # A floor above every total is above one with an honest promotion too. A house that states no floor breaks none.
    "floor_eats_promotion": Truth(
        frozenset({planted.FLOOR_EATS_PROMOTION}), frozenset({planted.FLOOR_BREACH}), "floor > 0"
    ),
}


@dataclass(frozen=True)
class Score:
    """Cells (property and market): how many a rule had to find, found, and found rightly; and how many it missed."""

    expected: int
    found: int
    wrong: frozenset[tuple[int, str]]
    missed: frozenset[tuple[int, str]]

    @property
    def precision(self) -> float:
        return 1 - len(self.wrong) / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return 1 - len(self.missed) / self.expected if self.expected else 1.0


def scores(world: PlantedWorld) -> dict[str, Score]:
    """Hold the flags that stand after the last night against what was planted, rule by rule."""
    made = {}
    for rule, truth in TRUTH.items():
        found = cells(world, f"SELECT DISTINCT property_id, market FROM report.flag WHERE rule = '{rule}'")  # noqa: S608 - our own names
        on_sale = cells(world, f"SELECT DISTINCT property_id, market FROM mart.offer_latest WHERE {truth.seen_as}")  # noqa: S608 - our own SQL
        must = carrying(world, truth.must) & on_sale
        right = carrying(world, truth.must | truth.may)
        made[rule] = Score(len(must), len(found), frozenset(found - right), frozenset(must - found))
    return made


def carrying(world: PlantedWorld, kinds: frozenset[str]) -> set[tuple[int, str]]:
    """The cells that carry an anomaly of some kinds."""
    return {
        (entry["property_id"], market)
        for entry in world.planted
        for market in world.markets
        if entry["kind"] in kinds and CHECK_IN.month in entry["check_in_months"] and entry["market"] in {None, market}
    }


def cells(world: PlantedWorld, query: str) -> set[tuple[int, str]]:
    return set(query_published(world.lake.published_file, query).fetchall())
