"""The settings that comparisons use, in the words of a page."""

import re
from collections.abc import Mapping
from typing import Any

from pipeline.report.read import Reader


def thresholds(reader: Reader) -> Mapping[str, Any]:
    """Return the settings of the published file by name."""
    (row,) = reader.query("FROM ref.analysis").rows(named=True)
    return row


def named_in(meaning: str, held: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the numbers that the text of a rule names, each with its value."""
    names = {*re.findall(r"\w+", meaning), *(["tolerance_pct"] if "the tolerance" in meaning else [])}
    return [(name, f"{held[name]:g}") for name in held if name in names and isinstance(held[name], int | float)]


def tolerance_said(held: Mapping[str, Any]) -> str:
    """Return up to which difference two prices meet."""
    return f"{held['tolerance_pct']:g}%; {held['reference_rate_pct']:g} points more at a reference rate"
