"""The currencies of ISO 4217, as of 2026, and the smallest unit of each: how near two amounts can be at all."""

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

# Codes of money that prices are in: those of today and those given up since 2023, without metals, funds and test codes.
ISO_4217 = frozenset((
    "AED", "AFN", "ALL", "AMD", "ANG", "AOA", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT", "BGN", "BHD", "BIF",
    "BMD", "BND", "BOB", "BRL", "BSD", "BTN", "BWP", "BYN", "BZD", "CAD", "CDF", "CHF", "CLP", "CNY", "COP", "CRC",
    "CUP", "CVE", "CZK", "DJF", "DKK", "DOP", "DZD", "EGP", "ERN", "ETB", "EUR", "FJD", "FKP", "GBP", "GEL", "GHS",
    "GIP", "GMD", "GNF", "GTQ", "GYD", "HKD", "HNL", "HRK", "HTG", "HUF", "IDR", "ILS", "INR", "IQD", "IRR", "ISK",
    "JMD", "JOD", "JPY", "KES", "KGS", "KHR", "KMF", "KPW", "KRW", "KWD", "KYD", "KZT", "LAK", "LBP", "LKR", "LRD",
    "LSL", "LYD", "MAD", "MDL", "MGA", "MKD", "MMK", "MNT", "MOP", "MRU", "MUR", "MVR", "MWK", "MXN", "MYR", "MZN",
    "NAD", "NGN", "NIO", "NOK", "NPR", "NZD", "OMR", "PAB", "PEN", "PGK", "PHP", "PKR", "PLN", "PYG", "QAR", "RON",
    "RSD", "RUB", "RWF", "SAR", "SBD", "SCR", "SDG", "SEK", "SGD", "SHP", "SLE", "SLL", "SOS", "SRD", "SSP", "STN",
    "SVC", "SYP", "SZL", "THB", "TJS", "TMT", "TND", "TOP", "TRY", "TTD", "TWD", "TZS", "UAH", "UGX", "USD", "UYU",
    "UZS", "VES", "VND", "VUV", "WST", "XAF", "XCD", "XCG", "XOF", "XPF", "YER", "ZAR", "ZMW", "ZWG", "ZWL",
))  # fmt: skip


def minor_unit(currency: str) -> Decimal:
    """Return the smallest amount of a currency, in its units: 0.01 of most, 1 of JPY."""
    return Decimal(1).scaleb(-MINOR_DIGITS.get(currency, 2))
