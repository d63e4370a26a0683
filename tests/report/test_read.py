"""What a report reads, in the memory that it has."""

import duckdb
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
