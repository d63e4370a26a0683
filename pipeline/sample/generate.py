"""Samples of what users load, made for the sandbox of seed 1: `python -m pipeline.sample.generate [FOLDER] [DAY]`.

The files in this folder are those of `DAY`. Made for today, they name stays that the sample spec requests tonight.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields
from datetime import date, timedelta
from pathlib import Path

from pipeline.sandbox.world.fx import REFERENCE_RATES
from pipeline.sandbox.world.identifiers import opaque_pairs, property_ids
from pipeline.sandbox.world.places import Place, place

SEED = 1
DAY = date(2026, 11, 20)
FOLDER = Path(__file__).parent

_PROPERTIES = 300
_PRICED = 20
_MARKETS = (("GB", "GBP"), ("SE", "SEK"), ("US", "EUR"))
_BUSINESS_DAYS = 10


def samples(day: date) -> dict[str, str]:
    """Return the text of each sample file by its name."""
    return {
        "eurofxref-hist.csv": _lines(_rates(day)),
        "selling_prices.csv": _lines(_prices(day)),
        "property_map.csv": _lines(_map()),
        "weights.csv": _lines(_weights()),
        "properties.csv": _lines(_properties()),
    }


def _rates(day: date) -> Iterator[list[object]]:
    currencies = [code for code in REFERENCE_RATES if code != "EUR"]
    yield ["Date", *currencies, ""]
    days = [past for past in (day - timedelta(days=back) for back in range(30)) if past.weekday() < 5]
    for past in days[:_BUSINESS_DAYS]:
        yield [past, *(REFERENCE_RATES[code] for code in currencies), ""]


def _prices(day: date) -> Iterator[list[object]]:
    yield ["property_id", "market", "product_type", "check_in", "nights", "party", "currency", "price", "observed_at",
           "room_id", "board_id", "policy_key", "channel"]  # fmt: skip
    for number, property_id in enumerate(property_ids(SEED, _PROPERTIES)[:_PRICED]):
        for market, currency in _MARKETS:
            nights = 1 + number % 2
            cents = round((9000 + 731 * number) * nights * REFERENCE_RATES[currency])
            price = f"{cents // 100}.{cents % 100:02}"
            stay = [market, "Hotel", day + timedelta(days=1), nights, "2", currency, price, f"{day}T02:30:00Z"]
            yield [property_id, *stay, "", 14 if number % 3 == 0 else "", "", "own site"]


def _map() -> Iterator[list[object]]:
    yield ["branded_id", "unbranded_id"]
    yield from map(list, opaque_pairs(SEED, _PROPERTIES))


def _weights() -> Iterator[list[object]]:
    yield ["property_id", "market", "weight"]
    for number, property_id in enumerate(property_ids(SEED, _PROPERTIES)[:_PRICED]):
        yield [property_id, "", 1 + number % 4 / 2]
    yield ["", "GB", 2]


def _properties() -> Iterator[list[object]]:
    columns = [field.name for field in fields(Place)]
    yield [*columns, "own_code"]
    for index in range(_PROPERTIES):
        found = place(SEED, index)
        yield [*(getattr(found, name) for name in columns), f"H{index + 1:04}"]


def _lines(rows: Iterator[list[object]]) -> str:
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    made_for = date.fromisoformat(sys.argv[2]) if len(sys.argv) > 2 else DAY
    for name, text in samples(made_for).items():
        (folder / name).write_text(text, encoding="utf-8")
