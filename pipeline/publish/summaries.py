"""The summaries that readers open first: a few rows each, over everything on sale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from pipeline.lake.database import quoted
from pipeline.lake.relations import Relation, read_by, relation
from pipeline.publish.state import SEARCH_PATH

# Few rows each, over everything that is on sale. No other relation reads them.
SUMMARIES = (
    "report.market_parity",
    "report.gap_decomposition",
    "report.promotion_honesty",
    "report.promotion_length",
    "report.policy_drift",
    "report.stay_price",
)

# The columns that the summaries read, by relation. A large night does not fit into memory, so these are written range
# by range beforehand.
SUMMED: Mapping[str, tuple[str, ...]] = {
    "mart.property_parity": (
        "match_grade", "source", "market", "product_type", "currency", "currency_basis", "property_id", "comparable",
        "pairs", "win", "meet", "lose", "lose_high", "parity_score",
    ),
    "mart.gap_decomposition": (
        "match_grade", "source", "market", "reference_market", "product_type", "currency", "gap", "policy", "board",
        "tax_and_fee", "promotion", "fx", "residual", "parts_known",
    ),
    "mart.reference_price": (
        "source", "market", "product_type", "reference_verdict", "plain_seen_at", "history_days", "promoted_share_pct",
        "began_at", "last_seen_at",
    ),
    "mart.promotion_episode": (
        "source", "market", "product_type", "is_running", "days", "days_at_most", "most_depth_pct",
    ),
    "mart.policy_drift": (
        "source", "market", "product_type", "drift", "free_hours_before", "free_hours_after", "property_id",
        "drifted_at",
    ),
    "mart.stay_room_board": ("source", "market", "product_type", "products"),
    "mart.stay_length": ("source", "market", "product_type", "discount_pct_of_nights"),
    "mart.occupancy_supplement": ("kind", "source", "market", "product_type", "supplement_pct"),
    "mart.multi_room_premium": ("source", "market", "product_type", "premium_pct"),
    "mart.board_premium": ("board_family", "source", "market", "product_type", "premium_pct"),
}  # fmt: skip


def write_summaries(session: duckdb.DuckDBPyConnection) -> None:
    """Compute the summaries. What they read exists, and no other relation reads them."""
    for name in SUMMARIES:
        made = relation(*name.split("."))
        _empty(session, made)
        session.execute(f"INSERT INTO nightaudit.{made.full_name} BY NAME {made.sql}")


def sum_up(session: duckdb.DuckDBPyConnection, parts: Mapping[str, Sequence[str]]) -> None:
    """Compute the summaries from the files that `parts` names for each relation of SUMMED.

    Market by market: a median holds all its values in memory, and those of every market at once would not fit.
    """
    session.execute("ATTACH ':memory:' AS summing")
    try:
        for schema in ("mart", "report", "state", "ref", "lake"):
            session.execute(f"CREATE SCHEMA IF NOT EXISTS summing.{schema}")
        made = [relation(*name.split(".")) for name in SUMMARIES]
        for name in sorted(set().union(*read_by(made).values())):
            files = ", ".join(quoted(path) for path in parts.get(name, ()))
            source = f"read_parquet([{files}])" if name in parts else f"nightaudit.{name}"
            session.execute(f"CREATE VIEW summing.{name} AS FROM {source}")
        session.execute("SET search_path = 'summing.main'")
        seen = " UNION ".join(f"SELECT market FROM {name}" for name in ("state.cell", *SUMMED))  # noqa: S608 - our own names
        markets = session.execute(f"SELECT market FROM ({seen}) ORDER BY market").fetchall()  # noqa: S608 - our own names
        for each in made:
            _empty(session, each)
            for (market,) in markets:
                of_one = f"SELECT * FROM ({each.sql}) WHERE market = {quoted(market)}"  # noqa: S608 - our own names; the market is quoted
                session.execute(f"INSERT INTO nightaudit.{each.full_name} BY NAME {of_one}")
    finally:
        session.execute(SEARCH_PATH)
        session.execute("DETACH summing")


def _empty(session: duckdb.DuckDBPyConnection, made: Relation) -> None:
    """Create the table of a summary, or empty it: a table that is there keeps its comments, hundreds over all."""
    name = f"nightaudit.{made.full_name}"
    found = "SELECT 1 FROM duckdb_tables() WHERE database_name = 'nightaudit' AND schema_name = ? AND table_name = ?"
    if session.execute(found, made.full_name.split(".")).fetchone() is None:
        session.execute(f"CREATE TABLE {name} AS {made.sql} LIMIT 0")
    else:
        session.execute(f"TRUNCATE {name}")
