"""A page: sections that each say one finding, show it, and say what may and may not be read from it.

Text that came from the supplier is data to the templates, which escape it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

# Rows that a page shows of a table; all of them lie beside it as CSV and Parquet.
ROWS_SHOWN = 25


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table on a page: where its values are, and how they are written.

    Numbers have `digits`; text that may be long is `is_wide` and wraps. `below` names what stands small beneath it.
    """

    name: str
    label: str
    unit: str = ""
    digits: int | None = None
    is_wide: bool = False
    below: str | None = None


@dataclass(frozen=True)
class Section:
    """One finding: `title` says it, `note` says what is and what is not comparable.

    `figures` are the numbers behind it, written beside the page under `name`. `why_empty` stands where there is none.
    """

    name: str
    title: str
    note: str
    figures: pl.DataFrame
    charts: Sequence[Markup] = ()
    columns: Sequence[Column] = ()
    why_empty: str = "Nothing to show yet."
    shown: int = ROWS_SHOWN

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows that the page shows."""
        return list(self.figures.head(self.shown).iter_rows(named=True)) if self.columns else []


@dataclass(frozen=True)
class Page:
    """A report: what it is called, the few numbers that stand first, and its sections."""

    name: str
    title: str
    lead: str
    sections: Sequence[Section]
    tiles: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = field(default_factory=tuple)


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return a page of `pipeline/report/<template>.html.j2`."""
    return _environment().get_template(f"{template}.html.j2").render(context)


def shown(value: object, digits: int | None = None) -> str:
    """Return a value as people read it; a missing one as a dash."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal | float):
        return f"{value:,.{2 if digits is None else digits}f}"
    return f"{value:,}" if isinstance(value, int) and digits is not None else str(value)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pipeline.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    return environment
