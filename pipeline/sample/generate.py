"""Samples of what users load, made for the sandbox of seed 1: `python -m pipeline.sample.generate [FOLDER] [DAY]`.

The files in this folder are those of `DAY`. Made for today, they name stays that the sample spec requests tonight.
"""

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from pipeline.sandbox.world.descriptions import PLACES
from pipeline.sandbox.world.fx import REFERENCE_RATES
from pipeline.sandbox.world.hashes import Dice
from pipeline.sandbox.world.identifiers import branded_index, opaque_pairs, property_id
from pipeline.sandbox.world.profiles import build

SEED = 1
DAY = date(2026, 11, 20)
FOLDER = Path(__file__).parent

_PROPERTIES = 300
_PRICED = 20
_MARKETS = (("GB", "GBP"), ("SE", "SEK"), ("US", "EUR"))
_BUSINESS_DAYS = 10

# Country, and degrees north and east of the middle of the city, in hundredths.
_CITIES: Final = {
    "Lisboa": ("PT", 3872, -914), "Göteborg": ("SE", 5771, 1197), "Berlin": ("DE", 5252, 1340),
    "Malmö": ("SE", 5560, 1300), "Praha": ("CZ", 5008, 1444), "Sevilla": ("ES", 3739, -598),
    "Kraków": ("PL", 5006, 1994), "Dublin": ("IE", 5335, -626), "Athína": ("GR", 3798, 2373),
    "Cancún": ("MX", 2116, -8685), "Oslo": ("NO", 5991, 1075), "Innsbruck": ("AT", 4727, 1140),
    "Split": ("HR", 4351, 1644), "Nice": ("FR", 4370, 727), "London": ("GB", 5151, -13), "Riga": ("LV", 5695, 2411),
}  # fmt: skip
# Brands with the group that owns them. None of them exists.
_BRANDS: Final = (
    ("Hjemby", "Nordlunde Group"), ("Nordlunde", "Nordlunde Group"), ("Casa Vera", "Vera Hotels"),
    ("Vera Select", "Vera Hotels"), ("Kestrel", "Kestrel Collection"), ("", "Independent"),
)  # fmt: skip

Rows = Iterator[Sequence[object]]


def samples(day: date) -> dict[str, str]:
    """Return the text of each sample file by its name."""
    return {
        "eurofxref-hist.csv": as_csv(_rates(day)),
        "selling_prices.csv": as_csv(_prices(day)),
        "property_map.csv": as_csv(map_rows(SEED, _PROPERTIES, range(_PROPERTIES))),
        "weights.csv": as_csv(weight_rows(SEED, range(_PRICED))),
        "properties.csv": as_csv(place_rows(SEED, range(_PROPERTIES))),
    }


def _rates(day: date) -> Rows:
    currencies = [code for code in REFERENCE_RATES if code != "EUR"]
    yield ["Date", *currencies, ""]
    days = [past for past in (day - timedelta(days=back) for back in range(30)) if past.weekday() < 5]
    for past in days[:_BUSINESS_DAYS]:
        yield [past, *(REFERENCE_RATES[code] for code in currencies), ""]


def _prices(day: date) -> Rows:
    yield ["property_id", "market", "product_type", "check_in", "nights", "party", "currency", "price", "observed_at",
           "room_id", "board_id", "policy_key", "channel"]  # fmt: skip
    for number in range(_PRICED):
        for market, currency in _MARKETS:
            nights = 1 + number % 2
            cents = round((9000 + 731 * number) * nights * REFERENCE_RATES[currency])
            price = f"{cents // 100}.{cents % 100:02}"
            stay = [market, "Hotel", day + timedelta(days=1), nights, "2", currency, price, f"{day}T02:30:00Z"]
            yield [property_id(SEED, number), *stay, "", 14 if number % 3 == 0 else "", "", "own site"]


@dataclass(frozen=True, slots=True)
class Place:
    """One property as its owner describes it, which no answer does."""

    property_id: int
    property_name: str
    city: str
    country: str
    stars: float
    brand: str
    property_group: str
    latitude: float
    longitude: float


def place(seed: int, index: int) -> Place:
    """Return the property with this index. An unbranded twin has the location of its branded twin."""
    twin_of = branded_index(index)
    dice = Dice(seed, index if twin_of is None else twin_of, 8)
    name = build(seed, index, plant_share=0).name
    # A branded name ends with the city; the name of a twin says only what is nearby.
    city = next(city for city in PLACES if name.endswith(city))
    country, north, east = _CITIES[city]
    stars = dice.between(4, 10) / 2
    brand, group = dice.pick(_BRANDS)
    return Place(
        property_id=property_id(seed, index),
        property_name=name,
        city=city,
        country=country,
        stars=stars,
        brand=brand if twin_of is None else "",
        property_group=group,
        latitude=(north + dice.between(-6, 6)) / 100,
        longitude=(east + dice.between(-6, 6)) / 100,
    )


def place_rows(seed: int, indices: Sequence[int]) -> Rows:
    """Yield the header and the rows of the list of properties."""
    columns = [field.name for field in fields(Place)]
    yield [*columns, "own_code"]
    for index in indices:
        found = place(seed, index)
        yield [*(getattr(found, name) for name in columns), f"H{index + 1:04}"]


def map_rows(seed: int, properties: int, indices: Sequence[int]) -> Rows:
    """Yield the header and the rows of the property map, of pairs that are both chosen."""
    asked = {property_id(seed, index) for index in indices}
    yield ["branded_id", "unbranded_id"]
    yield from (pair for pair in opaque_pairs(seed, properties) if asked.issuperset(pair))


def weight_rows(seed: int, indices: Sequence[int]) -> Rows:
    """Yield the header and the rows of the weights."""
    yield ["property_id", "market", "weight"]
    for number, index in enumerate(indices):
        yield [property_id(seed, index), "", 1 + number % 4 / 2]
    yield ["", "GB", 2]


def as_csv(rows: Rows) -> str:
    """Return rows as CSV."""
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue()


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    made_for = date.fromisoformat(sys.argv[2]) if len(sys.argv) > 2 else DAY
    for name, text in samples(made_for).items():
        (folder / name).write_text(text, encoding="utf-8")
