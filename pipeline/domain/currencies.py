"""The smallest unit of each currency: how near two amounts can be at all. ISO 4217, as of 2026."""

from __future__ import annotations

from decimal import Decimal

_WITHOUT_MINOR_UNIT = (
    "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF",
)  # fmt: skip
_OF_A_THOUSANDTH = ("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND")
_OF_A_HUNDREDTH = (
    "AED", "ARS", "AUD", "BGN", "BRL", "CAD", "CHF", "CNY", "COP", "CRC", "CZK", "DKK", "DOP", "EGP", "EUR", "GBP",
    "GEL", "HKD", "HRK", "HUF", "IDR", "ILS", "INR", "KES", "MAD", "MOP", "MUR", "MXN", "MYR", "NOK", "NZD", "PEN",
    "PHP", "PLN", "QAR", "RON", "RSD", "RUB", "SAR", "SEK", "SGD", "THB", "TRY", "TWD", "UAH", "USD", "UYU", "ZAR",
)  # fmt: skip

# Decimals of an amount. What is not listed has two, as most have.
MINOR_DIGITS = (
    dict.fromkeys(_WITHOUT_MINOR_UNIT, 0) | dict.fromkeys(_OF_A_THOUSANDTH, 3) | dict.fromkeys(_OF_A_HUNDREDTH, 2)
)


def minor_unit(currency: str) -> Decimal:
    """Return the smallest amount of a currency, in its units: 0.01 of most, 1 of JPY."""
    return Decimal(1).scaleb(-MINOR_DIGITS.get(currency, 2))
