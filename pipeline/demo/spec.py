"""The sweep spec of the demo: five markets in their own currencies and in euro, lists and details, packages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

# Market and the currencies that it is asked in: its own, and the one in which markets are compared.
MARKETS: Final = {"GB": ("GBP", "EUR"), "DE": ("EUR",), "NL": ("EUR",), "SE": ("SEK", "EUR"), "US": ("USD", "EUR")}

_TEXT: Final = """# The demo's spec, used for the simulated nights of this lake and for the next ones.

[properties]
ids = {ids}

[stays]
nights = [2]
anchor = "calendar"

# Three check-ins, on the same dates night after night: the nearest one has been followed for forty nights, and the
# rules about reference prices look thirty days back.
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
_EACH: Final = 3 * 2 * sum(map(len, MARKETS.values()))


def demo_spec_text(property_ids: Sequence[int], watched: Sequence[int]) -> str:
    """Return the spec in TOML. Each night asks in detail about the watched properties."""
    currencies = ", ".join(f"{market} = {json.dumps(codes)}" for market, codes in MARKETS.items())
    return _TEXT.format(
        ids=json.dumps(list(property_ids)),
        markets=json.dumps(list(MARKETS)),
        currencies=currencies,
        watched=json.dumps(list(watched)),
        budget=_EACH * len(watched),
    )
