"""Pages as HTML, from the templates of this folder, which escape text from the supplier."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pipeline.report.charts import with_title
from pipeline.report.page import shown
from pipeline.report.rows_held import ROWS_PRINTED
from pipeline.report.script import TABLES, TABLES_SOURCE
from pipeline.report.table_cells import cells
from pipeline.report.words import printed, said


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return a page of `pipeline/report/<template>.html.j2`."""
    return _environment().get_template(f"{template}.html.j2").render(context)


def day_colours() -> str:
    """Return the light colours of a page as a CSS rule."""
    loader = _environment().loader
    assert loader is not None  # noqa: S101 - made with one
    found = re.search(r":root \{[^}]*\}", loader.get_source(_environment(), "layout.html.j2")[0])
    assert found is not None  # noqa: S101 - it begins with them
    return found[0]


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
    environment.filters["named"] = with_title
    environment.filters["coded"] = _coded
    environment.globals["rows_printed"] = ROWS_PRINTED
    # Our own file, as its hash says.
    environment.globals |= {"cells": cells, "tables_script": Markup(TABLES), "tables_source": TABLES_SOURCE}  # noqa: S704 - our own file
    return environment


def _coded(text: str) -> Markup:
    """Return a note with its commands (in backticks) as code."""
    parts = [str(escape(printed(part))) for part in text.split("`")]
    return Markup("".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts)))  # noqa: S704 - escaped
