"""The summaries that readers open first: a few rows each, over everything on sale."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from pipeline.domain.property_range import PropertyRange
from pipeline.lake import Lake, beside
from pipeline.lake.database import quoted
from pipeline.lake.files import note_touched
from pipeline.lake.relations import Relation, read_by, relation
from pipeline.publish.comparisons import MadeWith, comparisons_of, made_with, view_comparisons
from pipeline.publish.state_files import files_of, write_state_views

# DuckDB's share of the memory of a process that computes the summaries of a large night again.
_MEMORY = "450MB"

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


@contextmanager
def summing_folder(lake: Lake) -> Iterator[Path]:
    """Give an empty folder for what ranges contribute to the summaries, and remove it afterwards."""
    folder = lake.root / ".spill" / "summing"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def select_summed(session: duckdb.DuckDBPyConnection, folder: Path, within: PropertyRange) -> dict[str, str]:
    """Write a range's columns for the summaries to files; return their paths by relation."""
    written = {}
    # A worker on another machine has no such folder.
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in SUMMED.items():
        place = beside(folder / f"{name}-{within.first}.parquet")
        select = f"SELECT {', '.join(columns)} FROM {name}"  # noqa: S608 - our own names
        session.execute(f"COPY ({select}) TO {quoted(str(place))} (FORMAT parquet)")
        note_touched([place])
        written[name] = str(place)
    return written


def summed_with(session: duckdb.DuckDBPyConnection) -> MadeWith:
    """Return what summaries depend on besides the nights: what comparisons depend on, and the weights of markets."""
    try:
        weights = session.execute("FROM mart.weight ORDER BY ALL").fetchall()
    except duckdb.IOException:
        # The views of a lake that has moved do not find their files: whatever is found later counts as changed.
        return []
    return [*made_with(session), weights]


def sum_again(session: duckdb.DuckDBPyConnection, lake: Lake) -> None:
    """Compute the summaries again, range by range. The views exist."""
    files = files_of(session)
    ranges = [PropertyRange(file.first_property_id, file.last_property_id) for file in comparisons_of(files)]
    if len(ranges) < 2:
        write_summaries(session)
        return
    session.execute(f"SET memory_limit = '{_MEMORY}'")
    with summing_folder(lake) as folder:
        parts = []
        for within in ranges:
            write_state_views(session, lake, files, within)
            view_comparisons(session, lake, files, within)
            parts.append(select_summed(session, folder, within))
        write_state_views(session, lake, files)
        view_comparisons(session, lake, files)
        sum_up(session, {name: [part[name] for part in parts] for name in SUMMED})


def sum_up(session: duckdb.DuckDBPyConnection, parts: Mapping[str, Sequence[str]]) -> None:
    """Compute the summaries from the files that `parts` names for each relation of SUMMED.

    Market by market: a median holds all its values in memory, and those of every market at once would not fit.
    """
    ((path,),) = session.execute("SELECT current_setting('search_path')").fetchall()
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
        session.execute(f"SET search_path = {quoted(path)}")
        session.execute("DETACH summing")


def _empty(session: duckdb.DuckDBPyConnection, made: Relation) -> None:
    """Create the table of a summary, or empty it: a table that is there keeps its comments, hundreds over all."""
    name = f"nightaudit.{made.full_name}"
    found = "SELECT 1 FROM duckdb_tables() WHERE database_name = 'nightaudit' AND schema_name = ? AND table_name = ?"
    if session.execute(found, made.full_name.split(".")).fetchone() is None:
        session.execute(f"CREATE TABLE {name} AS {made.sql} LIMIT 0")
    else:
        session.execute(f"TRUNCATE {name}")
