"""The sandbox properties that the demo sweeps: some of every planted kind, and plain ones."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from pipeline.sandbox.world import planted
from pipeline.sandbox.world.profiles import Profile
from pipeline.sandbox.world.story import CHAPTERS
from pipeline.sandbox.world.world import World

PROPERTIES: Final = 60
_OF_A_KIND: Final = 2
# Kinds that only detail answers show.
_IN_DETAIL: Final = (planted.LIST_AGAINST_DETAIL, planted.PENALTY_AMOUNT, planted.EXCLUDED_CHARGES, planted.MARKET_FEES)
_MOST_PRODUCTS: Final = 6


@dataclass(frozen=True, slots=True)
class Chosen:
    """`indices` of the properties in their world, and the ids of those searched in detail each night."""

    indices: tuple[int, ...]
    watched: tuple[int, ...]


def choose(world: World, markets: tuple[str, ...], last_night: date) -> Chosen:
    """Return the properties of a demo that ends with `last_night`."""
    ids = world.property_ids()
    index_of = {property_id: index for index, property_id in enumerate(ids)}
    months = {(last_night + timedelta(days=days)).month for days in (1, 20, 40, 60)}
    by_kind = defaultdict(list)
    for anomaly in world.planted():
        if anomaly["market"] in {None, *markets} and months <= set(anomaly["check_in_months"]):
            by_kind[anomaly["kind"]].append(index_of[anomaly["property_id"]])
    # Those with few products: a night is to be quick.
    taken = {
        kind: sorted(found, key=lambda index: (_products(world.find(ids[index])), index))[:_OF_A_KIND]
        for kind, found in by_kind.items()
    }
    in_story = [chapter.number for chapter in CHAPTERS if chapter.number is not None and chapter.number < len(ids)]
    chosen = dict.fromkeys([*(index for found in taken.values() for index in found), *in_story])
    for index, property_id in enumerate(ids):
        if len(chosen) >= PROPERTIES:
            break
        profile = world.find(property_id)
        if profile is not None and profile.anomaly is None and _is_small_and_open(profile):
            chosen.setdefault(index)
    seen_in_detail = [taken[kind][0] for kind in _IN_DETAIL if taken.get(kind)]
    seen_in_detail += [
        chapter.number for chapter in CHAPTERS if chapter.kind in _IN_DETAIL and chapter.number in in_story
    ]
    return Chosen(tuple(sorted(chosen)), tuple(sorted(ids[index] for index in dict.fromkeys(seen_in_detail))))


def _products(profile: Profile | None) -> int:
    return sum(len(room.cheapest) for room in profile.rooms) if profile else 0


def _is_small_and_open(profile: Profile) -> bool:
    products = _products(profile)
    is_odd = profile.never_open or profile.restricted or profile.hotel_only or profile.whole_prices
    return products <= _MOST_PRODUCTS and profile.states_floor == 0 and not is_odd
