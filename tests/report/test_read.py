"""What a report reads, in the memory that it has."""

import duckdb
import polars as pl
import pytest

from pipeline.lake.database import open_published
from pipeline.report import read
from pipeline.report.read import Reader
from pipeline.report.scope import Scope

# A median holds its values in memory; these are 40 MB.
LARGE = "SELECT median(number) AS middle FROM range(5_000_000) AS numbers(number)"


def test_a_query_that_does_not_fit_is_run_again_with_more_memory():
    with duckdb.connect(":memory:") as session:
        session.execute("SET memory_limit = '20MB'")
        session.execute("SET temp_directory = ''")
        with pytest.raises(duckdb.OutOfMemoryException):
            session.execute(LARGE)
        reader = Reader(session, Scope())

        assert reader.query(LARGE).rows() == [(2_499_999.5,)]
        # The next one has to keep within the memory of a report again.
        assert session.execute("SELECT current_setting('memory_limit')").fetchone() == ("190.7 MiB",)


def test_stays_are_the_same_whether_all_properties_are_read_at_once_or_some_at_a_time(two_nights, monkeypatch):
    with open_published(two_nights.published_file) as session:
        for scope in (Scope(), Scope(property_id=2)):
            reader = Reader(session, scope)
            at_once = reader.figures("on_sale_day")
            monkeypatch.setattr(read, "_PROPERTIES_AT_ONCE", 1)
            assert reader.figures_by_property("on_sale_day").equals(at_once)
            assert at_once["property_id"].unique().sort().to_list() == ([1, 2, 3] if scope.property_id is None else [2])


def test_a_mark_up_of_a_market_and_of_its_properties_leaves_one_line_a_flag():
    """Each flag has one case: its property's, or what that is part of; titles count the lines."""
    pair = {"rule": "fx_markup", "market": "GB", "base_currency": "EUR", "currency": "GBP"}
    of_properties = [
        pair | {"scope": "property", "case_id": f"case-{number}", "property_id": number, "part_of_case_id": wider}
        for number, wider in ((1, "case-9"), (2, "case-9"), (3, None))
    ]
    of_market = pair | {"scope": "market", "case_id": "case-9", "property_id": None, "part_of_case_id": None}
    with duckdb.connect(":memory:") as session:
        reader = Reader(session, Scope())
        cases = pl.DataFrame([*of_properties, of_market], infer_schema_length=None)
        reader.__dict__.update(cases_of_night=cases.with_columns(status=pl.lit("open")), case_pages=frozenset())
        fx = {"from_currency": "EUR", "to_currency": "GBP"}
        flags = pl.DataFrame([pair | {"property_id": number, "fx": fx} for number in (1, 2, 3, 4)])
        found = reader.with_cases(flags)
        # What is filtered by property has no rows about a market.
        reader.session.execute("CREATE SCHEMA report")
        reader.session.register("unfiltered", reader.cases_of_night.with_columns(urgency=0).to_arrow())
        reader.session.execute("CREATE VIEW report.finding_case AS FROM unfiltered")
        limited = Reader(session, Scope(city="Oslo"))
        limited.__dict__.update(cases_of_night=reader.cases_of_night.clear(), case_pages=frozenset())
        assert limited.with_cases(flags).equals(found)
    assert found.select("property_id", "case_id").rows() == [(1, "case-9"), (2, "case-9"), (3, "case-3"), (4, "case-9")]
