"""The analyst's guide shows what its queries answer. Run this file by hand to rewrite the results."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

from sandbox_nights import swept

from pipeline.lake.database import open_published

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "notebooks" / "GUIDE.md"
QUERY = re.compile(r"### (\d+)\. [^\n]+\n\n(?:[^\n]+\n)+\n```sql\n(.*?);\n```\n\n```\n(.*?)```\n", re.DOTALL)


def answered(lake, query: str) -> str:
    """Return the answer of a query as a plain table."""
    with open_published(lake.published_file) as session:
        found = pl.DataFrame(session.sql(query).to_arrow_table())
    assert found.height, query
    rows = [found.columns, *([_written(value) for value in row] for row in found.iter_rows())]
    widths = [max(len(row[place]) for row in rows) for place in range(found.width)]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines) + "\n"


def _written(value: object) -> str:
    return "NULL" if value is None else str(value)


@pytest.mark.parametrize(("number", "query", "shown"), QUERY.findall(GUIDE.read_text()))
def test_the_guide_shows_what_the_query_answers(nights, number, query, shown):
    assert answered(nights.both, query) == shown, number


def test_there_are_twelve_queries():
    assert [number for number, _, _ in QUERY.findall(GUIDE.read_text())] == [str(number) for number in range(1, 13)]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        lake = swept(Path(folder)).both
        written = GUIDE.read_text()
        for _, query, shown in QUERY.findall(written):
            reported = f"{query};\n```\n\n```\n"
            written = written.replace(f"{reported}{shown}", f"{reported}{answered(lake, query)}")
    GUIDE.write_text(written)
