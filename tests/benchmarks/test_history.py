from __future__ import annotations

from datetime import timedelta

import duckdb
import pytest
from benchmarks.history import make_history
from benchmarks.simulated import World, enter_batch
from benchmarks.simulated_lake import load_inputs, load_quotes, simulating, tell_batch, write_night

from pipeline.lake import Lake
from pipeline.publish import publish

# Long enough for the first stays to begin.
WORLD = World(properties=4, nights=13, seed=2)


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> duckdb.DuckDBPyConnection:
    """The same nights twice: `whole`, made at once, and `by_night`, published one by one."""
    by_night = Lake(str(tmp_path_factory.mktemp("by_night") / "lake"))
    with simulating(by_night, WORLD) as session:
        for batch in WORLD.batches:
            enter_batch(session, batch)
            tell_batch(session, by_night, WORLD, batch, range(WORLD.nights))
        for night in range(WORLD.nights):
            write_night(session, by_night, WORLD, night)
        load_inputs(session, by_night, WORLD)
        load_quotes(session, by_night)
    for night in range(WORLD.nights):
        now = WORLD.started_at(night) + timedelta(hours=2)
        publish(by_night, WORLD.sweep_id(night), now, audit="passed")
    whole = make_history(Lake(str(tmp_path_factory.mktemp("whole") / "lake")), WORLD)
    with duckdb.connect(":memory:") as session:
        session.execute("SET TimeZone = 'UTC'")
        for name, file in (("whole", whole), ("by_night", by_night.published_file)):
            session.execute(f"ATTACH '{file}' AS {name} (READ_ONLY)")
        yield session


def test_a_history_made_at_once_is_what_publishing_its_nights_one_by_one_leaves(both):
    tables = both.execute(
        "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE database_name = 'by_night'"
    ).fetchall()
    assert len(tables) > 10
    for (table,) in tables:
        for this, other in (("whole", "by_night"), ("by_night", "whole")):
            differing = both.execute(f"FROM {this}.{table} EXCEPT ALL FROM {other}.{table} LIMIT 3").fetchall()
            assert not differing, (table, this)


def test_a_history_has_what_the_analytics_look_for(both):
    found = both.execute(
        """SELECT count(DISTINCT market) AS markets, count(DISTINCT currency) AS currencies,
            bool_or(floor IS NOT NULL), bool_or(discount_pct > 0), bool_or(product_type = 'Package'),
            bool_or(source = 'detail' AND included_charges > 0), bool_or(ended_by = 'back'),
            bool_or(ended_by = 'stay_began')
        FROM whole.state.offer_closed"""
    ).fetchall()
    assert found == [(6, 2, *[True] * 6)]


def test_a_history_knows_what_was_on_sale_after_any_night(both):
    both.execute("USE whole")
    offers = dict(both.execute("SELECT sweep_id, offers FROM mart.sweep").fetchall())
    first = WORLD.sweep_id(0)
    assert both.execute("SELECT count(*) FROM mart.offer_as_of(?)", [first]).fetchall() == [(offers[first],)]
    assert all(
        both.execute("SELECT count(*) FROM mart.offer_as_of(?)", [sweep]).fetchall()[0][0] >= told
        for sweep, told in offers.items()
    )
