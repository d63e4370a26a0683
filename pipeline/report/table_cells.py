"""The cells of a table as HTML.

Python writes them, not a template, and as plain text in which all values are escaped: the pages of a large night have
more than a hundred thousand cells, and a template takes ten times as long.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from markupsafe import Markup, escape

from pipeline.report.page import Column
from pipeline.report.words import place_said, printed


def cells(columns: Sequence[Column], row: Mapping[str, Any], pages: Collection[int], folder: str) -> Markup:
    """Return the cells of a row. `pages` are the properties that have a page in `folder`."""
    return Markup("".join(_cell(column, row, pages, folder) for column in columns))  # noqa: S704 - escaped


def _cell(column: Column, row: Mapping[str, Any], pages: Collection[int], folder: str) -> str:
    plain = column.text(row)
    text, place = _escaped(plain), place_said(column.name, plain)
    if column.name == "property_name" and row["property_id"] in pages:
        text = f'<a href="{_escaped(folder)}{row["property_id"]}.html">{text}</a>'
    if small := column.small(row):
        text += f'<code class="below">{_escaped(small)}</code>'
    if linked := column.linked(row):
        links = (f'<a href="{_escaped(page["href"])}">{_escaped(page["text"])}</a> ' for page in linked)
        text += f'<span class="pages">Evidence: {"".join(links)}</span>'
    return f"{_opening(column, place)}{text}</td>"


@cache
def _opening(column: Column, place: int | None) -> str:
    kind = "n" if column.digits is not None else "t" if column.is_wide else "s"
    label = f"{column.label} ({column.unit})" if column.unit else column.label
    sort = "" if place is None else f' data-sort="{place}"'
    return f'<td class="{kind}" data-label="{_escaped(label)}"{sort}>'


# Most cells of a night's tables repeat, such as dates, boards and markets. Text and markup of the same letters differ.
@lru_cache(maxsize=20_000, typed=True)
def _escaped(text: str) -> str:
    return str(escape(printed(text)))
