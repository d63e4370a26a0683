"""Quantities in words: counts with their nouns, and what checks measured."""


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
