"""A page: sections that each state one result, show it, and explain what it does and does not mean."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import polars as pl
from markupsafe import Markup

from pipeline.domain.texts import shortened
from pipeline.report.words import said

if TYPE_CHECKING:
    from pipeline.report.charts import Drawing

# Rows of a table that a page shows; CSV and Parquet files have all.
ROWS_SHOWN = 25

# Characters of a text that a table shows; the figures have all of it. The longest sentence of a rule, after the number
# of its offers and markets, is shorter.
_LONGEST = 400
_SEEN = re.compile("[1-9]")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table on a page, and how its values are written.

    Numbers have `digits`, changes a sign; `currency` is the column with the currency of an amount, `unit_in` the column
    with a unit that differs from row to row. Long text is `is_wide` and wraps. `below` is the column shown in small
    print below it, or instead of a missing value; `links` is the column of links, each with a text and an href.
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
    unit_in: str | None = None

    def text(self, row: Mapping[str, Any]) -> str:
        """Return the value of a row as text."""
        value = row[self.name]
        if value is None and self.below:
            return str(row[self.below])
        written = cut(said(self.name, value)) if isinstance(value, str) else shown(value, self.digits)
        sign = "+" if self.is_change and value is not None and value > 0 and _is_seen(written) else ""
        unit = f" {row[self.currency]}" if self.currency and value is not None and row[self.currency] else ""
        if self.unit_in and value is not None:
            unit = row[self.unit_in]
        return f"{sign}{written}{unit}"

    def small(self, row: Mapping[str, Any]) -> str | None:
        """Return the small print below the value of a row."""
        small = row[self.below] if self.below and row[self.name] is not None else None
        return None if small is None else str(small)

    def linked(self, row: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
        """Return the links below the value of a row."""
        return (row[self.links] or ()) if self.links else ()


PROPERTY = Column("property_name", "Property", is_wide=True, below="property_id")


def named(**labels: str) -> list[Column]:
    """Return columns of text by name, each with its label."""
    return [Column(name, label) for name, label in labels.items()]


def whole(**labels: str) -> list[Column]:
    """Return columns of whole numbers by name, each with its label."""
    return [Column(name, label, digits=0) for name, label in labels.items()]


@dataclass(frozen=True)
class Section:
    """One result: `title` states it, and `note` explains what is and is not comparable.

    `figures` are its numbers, read from the relation `source` and written to files under `name`. `why_empty` is shown
    if there is nothing to see.
    """

    name: str
    title: str
    note: str
    figures: pl.DataFrame
    charts: "Sequence[Markup | Drawing]" = ()
    columns: Sequence[Column] = ()
    why_empty: str = "Nothing to show yet."
    shown: int = ROWS_SHOWN
    """Rows of the table that the page shows at first; without scripts, it shows all that are kept."""
    source: str = ""
    lines: pl.DataFrame | None = None
    """Rows of the table, if they summarise several rows of the figures."""
    in_all: tuple[int, int] | None = None
    """Rows of the figures and of the table, if only the first of each are kept; None: all are."""
    further: Callable[[], Iterable[pl.DataFrame]] = tuple
    """Reads the rows that follow `figures`, some at a time, if there are too many to hold."""

    @property
    def table(self) -> pl.DataFrame:
        """The rows for the page's table."""
        return self.figures if self.lines is None else self.lines

    @property
    def parts(self) -> Iterator[pl.DataFrame]:
        """All figures, some at a time."""
        yield self.figures
        yield from self.further()

    @property
    def figure_rows(self) -> int:
        """Number of rows of the figures."""
        return self.figures.height if self.in_all is None else self.in_all[0]

    @property
    def table_rows(self) -> int:
        """Number of rows of the table."""
        return self.table.height if self.in_all is None else self.in_all[1]

    def cut(self, figures: int, table: int) -> Self:
        """Return this section with only the first rows of its figures and of its table, which frees the others."""
        return replace(
            self,
            figures=_first(self.figures, figures),
            lines=_first(self.table, table if self.columns else 0),
            in_all=(self.figure_rows, self.table_rows),
            further=tuple,
        )

    # The templates ask for rows several times.
    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows that the page shows."""
        return list(self.table.head(self.shown).iter_rows(named=True)) if self.columns else []

    @cached_property
    def more(self) -> list[dict[str, Any]]:
        """The further rows: the page's script shows them on request."""
        return list(self.table[self.shown :].iter_rows(named=True)) if self.columns else []

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to see: no table and no chart."""
        return not self.rows and not self.charts


def _first(frame: pl.DataFrame, rows: int) -> pl.DataFrame:
    """Return the first rows of a frame, in memory of their own: a slice would keep the memory of all rows."""
    if frame.height <= rows:
        return frame
    return pl.DataFrame(frame.head(rows).rows(), schema=frame.schema, orient="row")


@dataclass(frozen=True, slots=True)
class Point:
    """A sentence of a page's summary, and the section that shows more. `tone`: good, warn or bad.

    `page` and `about` are the pages of its case and property, if any; `bold` is the part that the text begins with.
    """

    text: str
    section: str
    tone: str = ""
    page: str = ""
    about: str = ""
    bold: str = ""


@dataclass(frozen=True)
class Page:
    """A report: name and title, main sentences (`points`), main numbers (`tiles`) and sections.

    `sections` may be a generator, so that only one section's figures are in memory at a time.
    """

    name: str
    title: str
    lead: str
    sections: Iterable[Section]
    tiles: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = field(default_factory=tuple)
    points: Sequence[Point] = ()


def shown(value: object, digits: int | None = None) -> str:
    """Return a value as text; a missing one as a dash."""
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
    """Return a percentage as text; changes have a sign."""
    return _level(f"{value:{'+' if is_change else ''},.{digits}f}%")


def share(part: float, whole: float) -> str:
    """Return a share in percent, never rounded to 0% or 100%."""
    if part in (0, whole) or whole == 0:
        return "100%" if part and whole else "0%"
    return percent(min(99.9, max(0.1, 100 * part / whole)))


def money(amount: object, currency: str | None) -> str:
    """Return an amount with its currency, which may be missing."""
    return f"{shown(amount)} {currency or '(currency not stated)'}"


def cut(text: str) -> str:
    """Return a text for a table, cut if it is long."""
    return shortened(text, _LONGEST)


def _level(number: str) -> str:
    """Return a number with a minus sign instead of a hyphen, and without one if it rounds to zero."""
    return number.replace("-", "−" if _is_seen(number) else "") if "-" in number else number


def _is_seen(number: str) -> bool:
    return _SEEN.search(number) is not None
