"""What a user of the demo would write: its sweep spec, and files of rates, properties, weights and shop prices.

It sweeps some properties of every planted kind, and plain ones.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from pipeline.lake.database import query_published
from pipeline.lake.lake import Lake
from pipeline.sample.generate import Rows, as_csv, map_rows, place_rows, weight_rows
from pipeline.sandbox.world import planted
from pipeline.sandbox.world.fx import REFERENCE_RATES
from pipeline.sandbox.world.profiles import Profile
from pipeline.sandbox.world.story import CHAPTERS
from pipeline.sandbox.world.world import World

# What the shop adds to a total. Honest floors are below it, planted ones above.
MARKUP_PCT: Final = 15


def input_files(seed: int, properties: int, indices: Sequence[int], nights: Sequence[date]) -> dict[str, str]:
    """Return the text of the CSV file of each kind that is loaded before the first night."""
    return {
        "rates": as_csv(_rates(nights)),
        "properties": as_csv(place_rows(seed, indices)),
        "property-map": as_csv(map_rows(seed, properties, indices)),
        "weights": as_csv(weight_rows(seed, indices)),
    }


def shop_prices(lake: Lake, observed_at: datetime) -> str:
    """Return as CSV the prices of a shop that adds its mark-up to the cheapest total of each stay in each market."""
    rows = query_published(lake.published_file, _CHEAPEST).fetchall()
    seen = observed_at.isoformat()
    return as_csv(iter([[*_SHOP_COLUMNS, "observed_at", "channel"], *([*row, seen, "own shop"] for row in rows)]))


_SHOP_COLUMNS: Final = (
    *("property_id", "market", "product_type", "check_in", "nights", "party", "currency"),
    *("room_id", "board_id", "policy_key", "price"),
)
_CHEAPEST: Final = f"""
SELECT {", ".join(_SHOP_COLUMNS[:-1])}, round(total * {100 + MARKUP_PCT} / 100, 2)::DECIMAL(18, 2) AS price
FROM mart.offer_latest
WHERE source = 'multi' AND product_type = 'Hotel' AND total IS NOT NULL AND currency = currency_asked
QUALIFY row_number() OVER (PARTITION BY property_id, market, check_in ORDER BY total, offer_key) = 1
ORDER BY ALL
"""  # noqa: S608 - our own names


def _rates(nights: Sequence[date]) -> Rows:
    currencies = [code for code in REFERENCE_RATES if code != "EUR"]
    yield ["Date", *currencies]
    # A first night on a Sunday has the rates of the Friday before.
    for number in range(-3, len(nights)):
        day = nights[0] + timedelta(days=number)
        if day.weekday() < 5:
            yield [day, *(REFERENCE_RATES[code] for code in currencies)]


# Market and the currencies requested in it: its own, and the one in which markets are compared.
MARKETS: Final = {"GB": ("GBP", "EUR"), "DE": ("EUR",), "NL": ("EUR",), "SE": ("SEK", "EUR"), "US": ("USD", "EUR")}

_TEXT: Final = """# The demo's spec, used for the simulated nights of this lake and for the next ones.

[properties]
ids = {ids}

[stays]
nights = [2]
anchor = "calendar"

# Four check-ins, on the same dates night after night. Two are within twenty days, so that enough stays have begun to
# say whether it paid to wait. One of these has been followed for forty nights: the rules about reference prices look
# thirty days back.
[[stays.horizon]]
to_days = 20
every_days = 10

[[stays.horizon]]
to_days = 60
every_days = 20

[ask]
markets = {markets}
product_types = ["Hotel", "Package"]
parties = ["2"]
currency_by_market = {{ {currencies} }}
operations = ["multi", "single"]

[detail]
choose = ["watch"]
watch = {watched}
budget = {budget}
"""
# Check-ins x product types x pairs of market and currency: what one property takes in detail.
_EACH: Final = 4 * 2 * sum(map(len, MARKETS.values()))


def demo_spec_text(property_ids: Sequence[int], watched: Sequence[int]) -> str:
    """Return the spec in TOML. Each night searches the watched properties in detail."""
    currencies = ", ".join(f"{market} = {json.dumps(codes)}" for market, codes in MARKETS.items())
    return _TEXT.format(
        ids=json.dumps(list(property_ids)),
        markets=json.dumps(list(MARKETS)),
        currencies=currencies,
        watched=json.dumps(list(watched)),
        budget=_EACH * len(watched),
    )


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
    # Those with few products, so that a night is quick.
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
