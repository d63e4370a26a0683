"""Texts of few values are enumerations while a night is computed, and no value is lost by it."""

from __future__ import annotations

import duckdb
import pytest

from pipeline.domain.tables import CELL
from pipeline.lake.column_sql import select_columns
from pipeline.lake.enumerations import create_enumerations, find_values, refuse_lost

MARKETS = ["GB", "de", "", "it's", '"x"', "Ünï", "a" * 300, "x" * 5000, None, "GB "]


@pytest.mark.parametrize("many", [0, 257, 65_537])
@pytest.mark.parametrize("others", [[], ["a\x00b", "a\x00c", "\x00"]], ids=["", "NUL"])
def test_every_text_of_a_file_has_its_value_and_its_place_in_the_order(tmp_path, many, others):
    """However many there are: DuckDB stores the number of a value in one, two or four bytes."""
    given_texts = [*MARKETS, *others, *map(str, range(many))]
    file = tmp_path / "cell.parquet"
    with duckdb.connect(":memory:") as session:
        given = ", ".join(
            "market" if column.name == "market" else f"NULL::VARCHAR AS {column.name}" for column in CELL.columns
        )
        session.execute("CREATE TABLE given AS SELECT unnest(?::VARCHAR[]) AS market", [given_texts])
        session.execute(f"COPY (SELECT {given} FROM given) TO '{file}'")  # noqa: S608 - our own names
        session.execute(f"CREATE VIEW texts AS {select_columns(CELL.columns, [file])}")
        create_enumerations(session, find_values(session, {"texts": CELL}))
        # Those of an earlier night are replaced.
        create_enumerations(session, find_values(session, {"texts": CELL}))
        read = select_columns(CELL.columns, [file], enumerated=True)
        # The other columns have no value.
        in_order = session.execute(f"FROM ({read}) ORDER BY market, party, currency_asked").fetchall()
        assert in_order == session.execute("FROM texts ORDER BY market, party, currency_asked").fetchall()
        assert len(in_order) == len(given_texts)
        refuse_lost(session, "texts", CELL, "FROM texts", read)
        kinds = session.execute(f"SELECT DISTINCT typeof(market) FROM ({read}) LIMIT 1").fetchone()[0]  # noqa: S608 - our own SQL
        assert kinds.startswith("ENUM") is not bool(others)
