"""Where the simulated properties lie and whose they are: what a user's file of properties says, and no answer does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pipeline.sandbox.world.descriptions import PLACES
from pipeline.sandbox.world.hashes import Dice
from pipeline.sandbox.world.identifiers import branded_index, property_id
from pipeline.sandbox.world.profiles import build

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


@dataclass(frozen=True, slots=True)
class Place:
    """One property as its owner describes it."""

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
