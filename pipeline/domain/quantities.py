"""Quantities in words: counts with their nouns, amounts of money, and what checks measured."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 price`, `2,000 prices`."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def measured(check: str, value: float | None) -> str:
    """Return a value that a check measured: a share in percent, a whole number as a count, others with four digits."""
    if value is None:
        return "none"
    if check.endswith("_share"):
        return f"{100 * value:.4g}%"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"


def cost_said(exposure_eur: Decimal | None, amounts: Iterable[Mapping[str, Any]] | None) -> str | None:
    """Return what a problem costs: in euro, in its own currencies if a rate is unknown, or None: no amount."""
    if exposure_eur is not None:
        return _rounded(exposure_eur, "EUR") if exposure_eur else None
    by_currency: dict[str, Decimal] = {}
    for each in amounts or ():
        by_currency[each["currency"]] = by_currency.get(each["currency"], Decimal(0)) + each["amount"]
    return " + ".join(_rounded(amount, currency) for currency, amount in sorted(by_currency.items())) or None


def _rounded(amount: Decimal, currency: str) -> str:
    return f"{amount:,.0f} {currency}" if amount >= 1 else f"under 1 {currency}"
