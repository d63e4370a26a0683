"""A page: sections that each say one finding, show it, and say what may and may not be read from it.

Text that came from the supplier is data to the templates, which escape it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pipeline.report.script import TABLES, TABLES_SOURCE
from pipeline.report.words import UNNAMED, printed, said

# Rows that a page shows of a table; all of them lie beside it as CSV and Parquet.
ROWS_SHOWN = 25

# Further rows that a page holds, for its script to show, sort and filter.
_ROWS_HELD = 250

# Characters of a text that a table shows; the figures have all of it.
_LONGEST = 240


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table on a page: where its values are, and how they are written.

    Numbers have `digits`, and a sign before gains where they are changes; `currency` names the column with that of an
    amount. Text that may be long is `is_wide` and wraps. `below` names what stands small beneath it, or alone where the
    column has no value; `links` names the pages that are linked there, each with a text and an href.
    """

    name: str
    label: str
    unit: str = ""
    digits: int | None = None
    is_wide: bool = False
    below: str | None = None
    currency: str | None = None
    is_change: bool = False
    links: str | None = None

    def text(self, row: Mapping[str, Any]) -> str:
        """Return the value of a row as people read it."""
        value = row[self.name]
        if value is None and self.below:
            return str(row[self.below])
        written = cut(said(self.name, value)) if isinstance(value, str) else shown(value, self.digits)
        sign = "+" if self.is_change and value is not None and value > 0 and _is_seen(written) else ""
        unit = f" {row[self.currency]}" if self.currency and value is not None and row[self.currency] else ""
        return f"{sign}{written}{unit}"

    def small(self, row: Mapping[str, Any]) -> str | None:
        """Return what stands beneath the value of a row."""
        small = row[self.below] if self.below and row[self.name] is not None else None
        return None if small is None else str(small)

    def linked(self, row: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
        """Return the pages that are linked beneath the value of a row."""
        return (row[self.links] or ()) if self.links else ()


PROPERTY = Column("property_name", "Property", is_wide=True, below="property_id")


@dataclass(frozen=True)
class Section:
    """One finding: `title` says it, `note` says what is and what is not comparable.

    `figures` are the numbers behind it, read from the relation `source` and written beside the page under `name`.
    `why_empty` stands where there is nothing to see.
    """

    name: str
    title: str
    note: str
    figures: pl.DataFrame
    charts: Sequence[Markup] = ()
    columns: Sequence[Column] = ()
    why_empty: str = "Nothing to show yet."
    shown: int = ROWS_SHOWN
    source: str = ""
    lines: pl.DataFrame | None = None
    """What the table shows where a line of it stands for several rows of the figures."""

    @property
    def table(self) -> pl.DataFrame:
        """What the table of the page is taken from."""
        return self.figures if self.lines is None else self.lines

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows that the page shows."""
        return list(self.table.head(self.shown).iter_rows(named=True)) if self.columns else []

    @property
    def more(self) -> list[dict[str, Any]]:
        """The rows after these that the page's script can show."""
        return list(self.table[self.shown : _ROWS_HELD].iter_rows(named=True)) if self.columns else []

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to see: no table and no chart."""
        return not self.rows and not self.charts


@dataclass(frozen=True, slots=True)
class Point:
    """A sentence of the summary that a page begins with, and the section that shows more. `tone`: good, warn or bad.

    `page` is that of the case which the sentence is about, and `about` that of its property, where there are such.
    """

    text: str
    section: str
    tone: str = ""
    page: str = ""
    about: str = ""


@dataclass(frozen=True)
class Page:
    """A report: what it is called, what a reader in a hurry is to know, the numbers that stand first, its sections."""

    name: str
    title: str
    lead: str
    sections: Sequence[Section]
    tiles: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = field(default_factory=tuple)
    points: Sequence[Point] = ()


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return a page of `pipeline/report/<template>.html.j2`."""
    return _environment().get_template(f"{template}.html.j2").render(context)


def day_colours() -> str:
    """Return the colours of a page by day, as a rule of CSS."""
    loader = _environment().loader
    assert loader is not None  # noqa: S101 - made with one
    found = re.search(r":root \{[^}]*\}", loader.get_source(_environment(), "layout.html.j2")[0])
    assert found is not None  # noqa: S101 - it begins with them
    return found[0]


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
        return _level(f"{value:,.{2 if digits is None else digits}f}")
    return _level(f"{value:,}") if isinstance(value, int) and digits is not None else str(value)


def percent(value: float, digits: int = 1, *, is_change: bool = False) -> str:
    """Return percent points as people read them; changes have a sign."""
    return _level(f"{value:{'+' if is_change else ''},.{digits}f}%")


def share(part: float, whole: float) -> str:
    """Return a share in percent, never rounded to all or to none of it."""
    if part in (0, whole) or whole == 0:
        return "100%" if part and whole else "0%"
    return percent(min(99.9, max(0.1, 100 * part / whole)))


def money(amount: object, currency: str | None) -> str:
    """Return an amount with its currency, which an answer may leave out."""
    return f"{shown(amount)} {currency or '(currency not stated)'}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 price`, `2,000 prices`."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def cut(text: str) -> str:
    """Return a text as a table shows it: cut where it is long."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}…"


def measured(value: float) -> str:
    """Return a measure whose unit is not known here: a count whole, a share with four digits."""
    return _level(f"{value:,.0f}" if value == int(value) else f"{value:,.4g}")


def _level(number: str) -> str:
    """Return a number with a minus sign in place of a hyphen; what rounds to nothing has no sign."""
    return number.replace("-", "−" if _is_seen(number) else "")


def _is_seen(number: str) -> bool:
    return any(digit in "123456789" for digit in number)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pipeline.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printed,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    environment.filters["said"] = lambda value, column: said(column, value)
    environment.filters["named"] = _named
    environment.filters["coded"] = _coded
    # Our own file, as its hash says.
    environment.globals |= {"tables_script": Markup(TABLES), "tables_source": TABLES_SOURCE}  # noqa: S704 - our own file
    return environment


def _coded(text: str) -> Markup:
    """Return a note with the commands in it, between backticks, as code."""
    parts = [str(escape(printed(part))) for part in text.split("`")]
    return Markup("".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts)))  # noqa: S704 - escaped


def _named(chart: Markup, title: str) -> Markup:
    """Return a chart that says what it shows to those who do not see it."""
    return chart.replace(UNNAMED, f"Chart: {printed(title)}")
