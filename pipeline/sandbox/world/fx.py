"""Currencies of the sandbox: fixed reference rates, the mark-up on converted prices, and how amounts are written."""

from typing import Final

# Units of the currency for one euro; `minor` is how many minor units one unit has (JPY has none).
REFERENCE_RATES: Final[dict[str, float]] = {
    "EUR": 1.0,
    "GBP": 0.86,
    "USD": 1.09,
    "SEK": 11.25,
    "NOK": 11.6,
    "DKK": 7.46,
    "CHF": 0.94,
    "JPY": 163.0,
    "MXN": 20.4,
}
_NO_MINOR_UNIT: Final = frozenset({"JPY"})
MARKUP: Final = 0.025
"""Added to the reference rate where a price is converted out of the property's own currency."""

HOME_CURRENCIES: Final = ("EUR", "EUR", "EUR", "EUR", "GBP", "USD", "SEK", "NOK", "DKK", "CHF", "JPY", "MXN")


def minor_units(currency: str) -> int:
    """Return how many minor units make one unit of the currency."""
    return 1 if currency in _NO_MINOR_UNIT else 100


def minor_per_euro_cent(currency: str, home: str) -> float:
    """Return the factor from EUR cents to minor units of `currency`, with the mark-up if it is not the home one."""
    rate = REFERENCE_RATES[currency] * (1.0 if currency == home else 1.0 + MARKUP)
    return rate * minor_units(currency) / 100


def as_number(minor: int, units: int, point_zero: bool = False) -> int | float:
    """Return minor units as the number to write: `120`, `120.0` (where `point_zero`), `120.5` or `120.55`."""
    if minor % units:
        return minor / units
    return float(minor // units) if point_zero else minor // units
