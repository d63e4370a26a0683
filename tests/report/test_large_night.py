"""The report of a large night: each page in a process of its own, one section after the other, and the same bytes."""

from __future__ import annotations

import gc
import weakref
from datetime import date
from decimal import Decimal

import duckdb
import polars as pl
import pytest

from pipeline.domain.errors import LakeError
from pipeline.lake.database import open_published
from pipeline.report import large_night, page_files
from pipeline.report.charts import here
from pipeline.report.figures import write_figures
from pipeline.report.page import Column, Page, Section
from pipeline.report.page_files import REPORTS
from pipeline.report.read import Reader
from pipeline.report.scope import Scope
from pipeline.report.write import write_reports


@pytest.fixture
def every_night_is_large(monkeypatch):
    monkeypatch.setattr(large_night, "_OFFERS_IN_ONE_PROCESS", -1)


def _not_here(_):
    raise AssertionError("a page of a large night was made in this process")


def _files(lake):
    return {file: file.read_bytes() for file in (lake.root / "reports").rglob("*.*")}


@pytest.mark.slow
def test_a_large_night_has_each_page_made_elsewhere_and_the_bytes_of_a_small_one(two_nights, monkeypatch, request):
    # Other tests write pages of these nights, to which a page would link.
    for file in _files(two_nights):
        file.unlink()
    pages = write_reports(two_nights)
    limited = write_reports(two_nights, ["parity"], Scope(market="GB"))
    expected = _files(two_nights)
    for file in expected:
        file.unlink()
    request.getfixturevalue("every_night_is_large")
    monkeypatch.setattr(page_files, "_MADE", dict.fromkeys(REPORTS, _not_here))

    assert write_reports(two_nights) == pages
    assert write_reports(two_nights, ["parity"], Scope(market="GB")) == limited
    assert _files(two_nights) == expected


@pytest.mark.usefixtures("every_night_is_large")
def test_the_report_of_one_property_of_a_large_night_is_made_here(two_nights, monkeypatch):
    monkeypatch.setattr(page_files, "_MADE", dict.fromkeys(REPORTS, _not_here))
    with pytest.raises(AssertionError, match="in this process"):
        write_reports(two_nights, ["parity"], Scope(property_id=1))


@pytest.mark.usefixtures("every_night_is_large")
def test_a_page_that_cannot_be_computed_elsewhere_is_reported_as_here(lake):
    with duckdb.connect(lake.published_file) as session:
        session.execute("DROP VIEW mart.property_requested")
    with pytest.raises(LakeError, match="does not hold what this version"):
        write_reports(lake, ["parity"])


def _section(number: int) -> Section:
    return Section(f"section_{number}", "", "", pl.DataFrame({"number": range(number * 10_000)}))


def test_the_figures_of_a_section_are_freed_before_the_next_one_is_made(two_nights, monkeypatch):
    """Fails if a page holds the figures of all of its sections until it is written."""
    alive = []

    def sections():
        made: list[weakref.ref[pl.DataFrame]] = []
        for number in (1, 2, 3):
            section = _section(number)
            made.append(weakref.ref(section.figures))
            yield section
            del section
            gc.collect()
            alive.append([each() is not None for each in made])

    monkeypatch.setitem(page_files._MADE, "parity", lambda _: Page("parity", "", "", sections()))
    with open_published(two_nights.published_file) as session:
        reader = Reader(session, Scope(), reports=two_nights.root / "reports")
        page = page_files.begin_page("parity", two_nights, reader, here)
    assert alive == [[False], [False, False], [False, False, False]]
    # What is left of them is what the page and its JSON hold, and how many rows there were.
    assert [(each.figures.height, each.figure_rows) for each in page.sections] == [
        (1000, 10_000),
        (1000, 20_000),
        (1000, 30_000),
    ]


def test_the_rows_that_a_page_keeps_are_the_first_ones_with_all_their_types():
    figures = pl.DataFrame(
        {
            "name": [f"a name of more than twelve letters {number}" for number in range(9)],
            "total": [Decimal(number) for number in range(9)],
            "day": [date(2030, 1, 1 + number) for number in range(9)],
            "parts": [[{"sweep": "a", "number": number}] for number in range(9)],
        },
        schema_overrides={"total": pl.Decimal(18, 4)},
    )
    section = Section("name", "", "", figures, columns=[Column("name", "Name")], lines=figures.reverse())
    kept = section.cut(2, 3)
    assert kept.figures.equals(figures.head(2))
    assert kept.figures.schema == figures.schema
    assert kept.table.equals(figures.reverse().head(3))
    assert (kept.figure_rows, kept.table_rows) == (9, 9)
    assert (section.figure_rows, section.table_rows) == (9, 9)


def test_figures_in_parts_are_the_files_of_all_rows_with_their_types(tmp_path):
    frame = pl.DataFrame(
        {
            "number": range(12_000),
            "total": [None, Decimal(1)] * 6_000,
            "texts": [["=1", None], None] * 6_000,
            "parts": [[{"a": 1}], []] * 6_000,
        },
        schema_overrides={"total": pl.Decimal(18, 4)},
    )
    files = {name: (tmp_path / f"{name}.csv", tmp_path / f"{name}.parquet") for name in ("one", "parts")}
    write_figures([frame], *files["one"])
    write_figures([frame.head(1), frame[1:7_000], frame[7_000:]], *files["parts"])
    assert files["parts"][0].read_bytes() == files["one"][0].read_bytes()
    assert files["one"][0].read_text().count("number,total,texts,parts") == 1
    for _, parquet in files.values():
        read = pl.read_parquet(parquet)
        assert read.equals(frame)
        assert read.schema == frame.schema
