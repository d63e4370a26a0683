"""Anomalies planted on purpose, and exactly which cells carry them: the truth that reports are measured against."""

from typing import Any, Final, NamedTuple

from pipeline.sandbox.world.documented import MARKETS
from pipeline.sandbox.world.hashes import Dice
from pipeline.sandbox.world.identifiers import property_id

FLOOR_BREACH: Final = "floor_breach"
PHANTOM_PROMOTION: Final = "phantom_promotion"
UNNAMED_PROMOTION: Final = "unnamed_promotion"
INFLATED_REFERENCE: Final = "inflated_reference"
WRONG_DISCOUNT: Final = "wrong_discount"
TOTAL_ABOVE_REFERENCE: Final = "total_above_reference"
FLOOR_EATS_PROMOTION: Final = "floor_eats_promotion"
MARKET_DISPARITY: Final = "market_disparity"
MARKET_FEES: Final = "market_fees"
PENALTY_AMOUNT: Final = "penalty_amount"
RAISED_REFERENCE: Final = "raised_reference"
PACKAGE_LEAK: Final = "package_leak"
LIST_AGAINST_DETAIL: Final = "list_against_detail"
EXCLUDED_CHARGES: Final = "excluded_charges"
GONE_QUIET: Final = "gone_quiet"
ROOM_LADDER: Final = "room_ladder"

# Nights of the world on which the planted changes happen.
CHEAPER_FROM: Final = 12
PROMOTED_FROM: Final = 36
QUIET_FROM: Final = 2

MEANING: Final[dict[str, str]] = {
    FLOOR_BREACH: "minSellablePrice = total x (1 + size): any selling price below that mark-up breaches the floor",
    PHANTOM_PROMOTION: "a discount is named, total = prePromoTotal; size = the discount named (share)",
    UNNAMED_PROMOTION: "total = prePromoTotal x (1 - size), no promotion named",
    INFLATED_REFERENCE: "prePromoTotal = total / (1 - size) at all times: never charged, never ending",
    WRONG_DISCOUNT: "discountPercentage says size (share) more than total against prePromoTotal gives",
    TOTAL_ABOVE_REFERENCE: "total = prePromoTotal x (1 + size)",
    FLOOR_EATS_PROMOTION: "total = prePromoTotal x (1 - size) while minSellablePrice = prePromoTotal, above total",
    MARKET_DISPARITY: "prices of this market x (1 + size) against every other market, floors included",
    MARKET_FEES: "total as in every market, resortFee of this one dearer by size x total (detail answers only)",
    PENALTY_AMOUNT: "penaltyInAmount = (1 + size) x what percentage and nights give (detail answers only)",
    RAISED_REFERENCE: (
        f"dearer by size (share) before night {CHEAPER_FROM}; from night {PROMOTED_FROM} on, prePromoTotal is that "
        "price again, and total = prePromoTotal x (1 - size)"
    ),
    PACKAGE_LEAK: "total = (1 - size) x minSellablePrice of the same product without the package",
    LIST_AGAINST_DETAIL: "total of detail answers and quotes = (1 + size) x total of list answers",
    EXCLUDED_CHARGES: "excludedCharges is less than the sum of its details by size x total (detail answers only)",
    GONE_QUIET: f"nothing is offered from night {QUIET_FROM} on; size 1",
    ROOM_LADDER: "the dearest room costs size (share) less than the plainest, and in no other month",
}
_KINDS: Final = tuple(MEANING)
_WEIGHTS: Final = (22, 12, 8, 14, 8, 6, 8, 11, 5, 6, 6, 6, 4, 4, 4, 4)


class Anomaly(NamedTuple):
    """One planted anomaly of a property. `market` None = all markets, `months` = months of the check-in."""

    kind: str
    size: float
    product_type: str | None
    market: str | None
    months: frozenset[int]

    def covers(self, market: str, product_type: str, check_in_month: int) -> bool:
        """Whether a cell with these coordinates has the anomaly."""
        return (
            (self.market is None or self.market == market)
            and (self.product_type is None or self.product_type == product_type)
            and check_in_month in self.months
        )


_SIZES: Final[dict[str, tuple[int, int]]] = {
    FLOOR_BREACH: (25, 45),
    PHANTOM_PROMOTION: (10, 30),
    UNNAMED_PROMOTION: (8, 25),
    INFLATED_REFERENCE: (25, 40),
    WRONG_DISCOUNT: (5, 15),
    TOTAL_ABOVE_REFERENCE: (4, 12),
    FLOOR_EATS_PROMOTION: (15, 30),
    MARKET_DISPARITY: (6, 20),
    MARKET_FEES: (6, 15),
    PENALTY_AMOUNT: (10, 50),
    RAISED_REFERENCE: (10, 20),
    PACKAGE_LEAK: (4, 12),
    LIST_AGAINST_DETAIL: (2, 12),
    EXCLUDED_CHARGES: (2, 10),
    GONE_QUIET: (100, 100),
    ROOM_LADDER: (5, 15),
}
_ABOUT_FLOORS: Final = frozenset({FLOOR_BREACH, FLOOR_EATS_PROMOTION})
_OF_ONE_MARKET: Final = frozenset({MARKET_DISPARITY, MARKET_FEES})
_ALL_YEAR: Final = frozenset(range(1, 13))


def anomaly_of(seed: int, index: int, share: float) -> Anomaly | None:
    """Return the planted anomaly of a property; only `share` of the properties have one, the others None."""
    dice = Dice(seed, index, 7)
    if dice.below(1_000_000) >= share * 1_000_000:
        return None
    kind = _KINDS[dice.weighted(_WEIGHTS)]
    low, high = _SIZES[kind]
    size = dice.between(low, high) / 100
    # Floors concern hotel-only products; the other kinds apply to every product type.
    product_type = "Hotel" if kind in _ABOUT_FLOORS else "Package" if kind == PACKAGE_LEAK else None
    market = None
    if kind in _OF_ONE_MARKET:
        market = dice.pick(MARKETS)
    if kind == MARKET_DISPARITY:
        size = size if dice.chance(500) else -size
    first = dice.between(1, 12)
    months = _ALL_YEAR if dice.chance(500) else frozenset((first + step - 1) % 12 + 1 for step in range(6))
    if kind == GONE_QUIET:
        months = _ALL_YEAR
    if kind == ROOM_LADDER:
        # The other months must show which room is the better one.
        months = frozenset({first})
    return Anomaly(kind, size, product_type, market, months)


def planted(seed: int, count: int, share: float) -> list[dict[str, Any]]:
    """Return every planted anomaly of a world: property, kind, size (a share), and the cells that carry it.

    A cell carries it when its market, product type and month of check-in fit (null = any) and it has an offer.
    """
    found = []
    for index in range(count):
        anomaly = anomaly_of(seed, index, share)
        if anomaly is not None:
            found.append(
                {
                    "property_id": property_id(seed, index),
                    "kind": anomaly.kind,
                    "size": anomaly.size,
                    "product_type": anomaly.product_type,
                    "market": anomaly.market,
                    "check_in_months": sorted(anomaly.months),
                    "meaning": MEANING[anomaly.kind],
                }
            )
    return found
