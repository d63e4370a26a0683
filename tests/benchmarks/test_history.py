from __future__ import annotations

import duckdb
import pytest
from benchmarks.history import make_history
from benchmarks.simulated import World

from pipeline.lake import Lake

# Simulates a history of nights.
pytestmark = pytest.mark.slow

# Long enough for the first stays to begin.
WORLD = World(properties=4, nights=13, seed=2)


@pytest.fixture(scope="module")
def history(tmp_path_factory) -> duckdb.DuckDBPyConnection:
    file = make_history(Lake(str(tmp_path_factory.mktemp("history") / "lake")), WORLD)
    with duckdb.connect(":memory:") as session:
        session.execute("SET TimeZone = 'UTC'")
        session.execute(f"ATTACH '{file}' AS history (READ_ONLY)")
        session.execute("USE history")
        yield session


def test_a_simulated_history_holds_each_of_its_nights(history):
    reported = history.execute(
        """SELECT sweep.sweep_id, sweep.offers, stored.offers
        FROM mart.sweep AS sweep
        JOIN (SELECT sweep_id, count(*) AS offers FROM lake.offer GROUP BY sweep_id) AS stored USING (sweep_id)
        ORDER BY 1"""
    ).fetchall()
    assert [row[0] for row in reported] == [WORLD.sweep_id(night) for night in range(WORLD.nights)]
    assert all(counted == stored for _, counted, stored in reported)


def test_a_simulated_history_knows_what_was_on_sale_after_any_night(history):
    for sweep, reported in history.execute("SELECT sweep_id, offers FROM mart.sweep").fetchall():
        as_of = history.execute("SELECT count(*) FROM mart.offer_as_of(?)", [sweep]).fetchall()[0][0]
        # What was not answered that night is unchanged.
        assert reported <= as_of <= reported * 1.05


def test_a_simulated_history_has_what_the_analytics_look_for(history):
    found = history.execute(
        """SELECT count(DISTINCT market) AS markets, count(DISTINCT currency) AS currencies,
            bool_or(floor IS NOT NULL), bool_or(discount_pct > 0), bool_or(product_type = 'Package'),
            bool_or(source = 'detail' AND included_charges > 0), bool_or(ended_by = 'back'),
            bool_or(ended_by = 'stay_began')
        FROM state.offer_closed"""
    ).fetchall()
    assert found == [(6, 2, *[True] * 6)]
