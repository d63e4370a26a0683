"""What each rule must find in a planted world, what it may find besides, and how well it does."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from planted_world import CHEAP_STAYS, MANY_STAYS, MARKUP_PCT, ONE_STAY, OPENED, REFERENCE, PlantedWorld, Questions

from pipeline.lake.database import query_published
from pipeline.sandbox.world import planted
from pipeline.sandbox.world.fx import MARKUP
from pipeline.sandbox.world.offers import BLOCK_DAYS, is_open


class Truth(NamedTuple):
    """Kinds of planted anomalies that a rule is about, and kinds that show what it looks for by their nature."""

    must: frozenset[str]
    may: frozenset[str] = frozenset()
    seen_as: str = "TRUE"
    """What an offer must be like for the rule to be able to judge it, as SQL over `seen_in`."""
    questions: Questions = ONE_STAY
    """The stays on which the rule is measured."""
    seen_in: str = "mart.offer_latest"
    found_in: str = "report.flag"


# What the sandbox does to every property, besides what is planted in some.
CONVERTED = "converted"
UPSIDE_DOWN = "upside_down"
CLOSED = "closed"

# With less history than this, a rule about the past says nothing.
_WATCHED = "first_seen_at <= last_seen_at - INTERVAL 30 DAYS"
# A price that no sweep saw while it was low cannot be the lowest one.
_SEEN_CHEAP = (
    "offer_key IN (SELECT offer_key FROM mart.offer_history WHERE is_offered"  # noqa: S608 - our own numbers
    f" AND valid_from < '{OPENED + timedelta(days=planted.PROMOTED_FROM)}'"
    f" AND last_seen_at > '{OPENED + timedelta(days=planted.CHEAPER_FROM)}')"
)
_REFERRED = f"property_id IN (SELECT property_id FROM mart.offer_latest WHERE market = '{REFERENCE}')"  # noqa: S608 - our own
_IN_BOTH = (
    "source = 'detail' AND (property_id, market) IN"
    " (SELECT (property_id, market) FROM mart.offer_latest WHERE source = 'multi')"
)
# A planted price before promotions is planted permanently: it was never charged, and the promotion never ends.
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
    # What the reference market does not offer cannot be compared with it.
    "market_disparity": Truth(frozenset({planted.MARKET_DISPARITY}), seen_as=_REFERRED),
    "all_in_gap": Truth(frozenset({planted.MARKET_FEES}), seen_as=f"source = 'detail' AND {_REFERRED}"),
    # A floor at the price before promotions lies above the mark-up where the promotion is deeper than it.
    "floor_what_if": Truth(frozenset({planted.FLOOR_BREACH}), frozenset({planted.FLOOR_EATS_PROMOTION}), "floor > 0"),
    # A seller has no price for a property that sold nothing when the prices were made; one without a currency cannot be
    # loaded. One on top of what an offer costs without its promotion lies above the floor where the promotion is deep.
    "floor_breach": Truth(
        frozenset({planted.FLOOR_BREACH}),
        frozenset({planted.FLOOR_EATS_PROMOTION}),
        "source = 'multi' AND (property_id, market) IN (SELECT (property_id, market) FROM mart.selling_price)"  # noqa: S608 - our own
        f" AND floor > 1.01 * (1 + {MARKUP_PCT} / 100) * greatest(total, coalesce(pre_promo_total, 0))",
    ),
    "penalty_amount_off_formula": Truth(frozenset({planted.PENALTY_AMOUNT}), seen_as="source = 'detail'"),
    "reference_above_lowest": Truth(frozenset({planted.RAISED_REFERENCE}), seen_as=f"{_WATCHED} AND {_SEEN_CHEAP}"),
    "excluded_charges_mismatch": Truth(frozenset({planted.EXCLUDED_CHARGES}), seen_as="source = 'detail'"),
    "list_detail_mismatch": Truth(frozenset({planted.LIST_AGAINST_DETAIL}), seen_as=_IN_BOTH),
    # Properties close for some nights by themselves, too.
    "property_gone_quiet": Truth(
        frozenset({planted.GONE_QUIET}), frozenset({CLOSED}), seen_in="state.property_sale", questions=MANY_STAYS
    ),
    "fx_markup": Truth(frozenset({CONVERTED}), questions=CHEAP_STAYS),
    "package_leak": Truth(
        frozenset({planted.PACKAGE_LEAK}),
        seen_as="product_type = 'Package' AND property_id IN"
        " (SELECT property_id FROM mart.offer_latest WHERE product_type = 'Hotel' AND floor > 0)",
        questions=MANY_STAYS,
        found_in="report.package_leak",
    ),
    # Rooms have a price path each, so some ladders are inverted for some stays without a plant.
    "room_ladder_inversion": Truth(
        frozenset({planted.ROOM_LADDER}),
        frozenset({UPSIDE_DOWN}),
        questions=MANY_STAYS,
        found_in="report.room_ladder_inversion",
    ),
    # A floor above every total is above one with an honest promotion too. A property that states no floor breaks none.
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
    """Compare what is open after the last night with what was planted, rule by rule of those it was made for."""
    made = {}
    for rule, truth in TRUTH.items():
        if truth.questions == world.questions:
            found = cells(world, f"SELECT DISTINCT property_id, market FROM {truth.found_in} WHERE rule = '{rule}'")  # noqa: S608 - our own names
            on_sale = cells(world, f"SELECT DISTINCT property_id, market FROM {truth.seen_in} WHERE {truth.seen_as}")  # noqa: S608 - our own SQL
            must = carrying(world, truth.must) & on_sale
            if planted.ROOM_LADDER in truth.must:
                must &= with_a_ladder(world)
            right = carrying(world, truth.must | truth.may)
            made[rule] = Score(len(must), len(found), frozenset(found - right), frozenset(must - found))
    return made


def carrying(world: PlantedWorld, kinds: frozenset[str]) -> set[tuple[int, str]]:
    """The cells that carry an anomaly of some kinds."""
    months = {check_in.month for check_in in world.questions.check_ins}
    found = {
        (entry["property_id"], market)
        for entry in world.planted
        for market in world.markets
        if entry["kind"] in kinds and months & set(entry["check_in_months"]) and entry["market"] in {None, market}
    }
    if CONVERTED in kinds:
        found |= converted(world)
    if CLOSED in kinds:
        found |= closed(world)
    return found | upside_down(world) if UPSIDE_DOWN in kinds else found


def converted(world: PlantedWorld) -> set[tuple[int, str]]:
    """The cells of properties requested in their own currency and in another, which is dearer by the mark-up."""
    asked = world.questions.currencies
    assert MARKUP > 0
    own = [identifier for identifier, hotel in world.hotels.items() if hotel.home_currency in asked and len(asked) > 1]
    return {(identifier, market) for identifier in own for market in world.markets}


def closed(world: PlantedWorld) -> set[tuple[int, str]]:
    """The cells of properties that sell nothing to a market on the last night, whatever is planted."""
    ((tonight,),) = query_published(world.lake.published_file, "SELECT max(snapshot_date) FROM mart.sweep").fetchall()
    night, blocks = (tonight - OPENED).days, {day.toordinal() // BLOCK_DAYS for day in world.questions.check_ins}
    return {
        (identifier, market)
        for identifier, hotel in world.hotels.items()
        for market in world.markets
        if not any(is_open(hotel, night, market, block) for block in blocks)
    }


def with_a_ladder(world: PlantedWorld) -> set[tuple[int, str]]:
    """The cells in which two rooms are on sale in a month of what is planted."""
    months = {entry["property_id"]: entry["check_in_months"] for entry in world.planted}
    query = """
        SELECT property_id, market, month(check_in) FROM mart.offer_latest
        GROUP BY ALL HAVING count(DISTINCT room_id) > 1
    """
    return {
        (identifier, market)
        for identifier, market, month in query_published(world.lake.published_file, query).fetchall()
        if month in months.get(identifier, ())
    }


def upside_down(world: PlantedWorld) -> set[tuple[int, str]]:
    """The cells where, in some stay of some night, a room costs less than a plainer one of the same property."""
    query = """
        SELECT property_id, market, room_id, min(total),
            (sweep_id, product_type, check_in, currency, board_id, policy_key) AS terms
        FROM lake.offer WHERE room_id IS NOT NULL GROUP BY ALL
    """
    ladders = defaultdict(list)
    for identifier, market, room_id, total, terms in query_published(world.lake.published_file, query).fetchall():
        rate = next(room.rate for room in world.hotels[identifier].rooms if room.room_id == room_id)
        ladders[identifier, market, terms].append((rate, total))
    return {
        (identifier, market)
        for (identifier, market, _), rooms in ladders.items()
        if any(one < other and dearer > cheaper for one, dearer in rooms for other, cheaper in rooms)
    }


def cells(world: PlantedWorld, query: str) -> set[tuple[int, str]]:
    return set(query_published(world.lake.published_file, query).fetchall())
