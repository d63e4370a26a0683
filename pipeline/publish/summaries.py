"""The summaries that readers open first: a few rows each, over everything on sale."""

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from pipeline.domain.property_range import PropertyRange
from pipeline.domain.texts import literal
from pipeline.lake import Lake, beside
from pipeline.lake.files import note_touched
from pipeline.lake.relations import Relation, direct_sources, reached, relation
from pipeline.publish.comparisons import comparisons_of, view_comparisons
from pipeline.publish.state import write_macros
from pipeline.publish.state_files import files_of, refuse_damaged_state, write_state_views

SummedWith = Mapping[str, list[tuple[Any, ...]]]

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
    "report.promotion_targeting",
    "report.floor_compliance",
    "report.refundable_premium",
)

# What is known of cases without the notes about them, in the order in which they build on each other.
CASES = ("mart.case_flag", "mart.case_size", "mart.case_amount", "mart.case_evidence")

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
        "began_at", "last_seen_at", "longest_unseen_days",
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
    "mart.occupancy_supplement": ("kind", "source", "market", "product_type", "supplement_per_guest_pct"),
    "mart.multi_room_premium": ("source", "market", "product_type", "premium_pct"),
    "mart.board_premium": ("board_family", "source", "market", "product_type", "premium_pct"),
    "mart.promotion_target": (
        "source", "market", "product_type", "lead_step", "nights", "weekday", "planned", "answered", "comparable",
    ),
    "mart.promoted_offer": (
        "source", "market", "product_type", "lead_step", "nights", "weekday", "promotion_kinds", "depth_pct",
        "is_free_night_like",
    ),
    "mart.price_against_floor": (
        "source", "market", "product_type", "match_grade", "verdict", "offers", "below_floor_pct", "currency_basis",
    ),
    "mart.refundable_premium": (
        "source", "market", "product_type", "premium", "premium_pct", "break_even_pct",
    ),
}  # fmt: skip


# Relations of SUMMED over files that users load: every range sees all of their rows, and contributes its own.
_OF_USERS = frozenset({"mart.price_against_floor"})

# A median holds all its values in memory, and those of all markets at once would not fit: a summary of a large night
# is computed for one value of this column after another.
_IN_TURN = {"report.promotion_targeting": "dimension"}
# The values of columns other than the market.
VALUES = {
    "dimension": ("all", "market", "product_type", "lead_days", "nights", "weekday", "promotion_kinds"),
}

# What summaries depend on besides the nights. Of files that users load, each is known by its number and its rows.
_SUMMED_WITH = {
    "ref.written_with": "FROM ref.written_with",
    "mart.fx_of_sweep": "FROM mart.fx_of_sweep",
    "mart.weight": "FROM mart.weight",
    "mart.property_check_in": "FROM mart.property_check_in",
    "lake.fx_rate": "SELECT input_id, count(*) FROM lake.fx_rate GROUP BY input_id",
    "lake.selling_price": "SELECT input_id, count(*) FROM lake.selling_price GROUP BY input_id",
}


def write_summaries(session: duckdb.DuckDBPyConnection, names: Iterable[str] = SUMMARIES) -> None:
    """Compute summaries, or CASES. What they read exists."""
    for made in _relations(names):
        _empty(session, made)
        session.execute(f"INSERT INTO nightaudit.{made.full_name} BY NAME {made.sql}")


def fill_summaries(session: duckdb.DuckDBPyConnection, rows: Mapping[str, pa.Table]) -> None:
    """Write summaries whose rows are known, by relation."""
    for made in _relations(rows):
        _empty(session, made)
        session.register("rows_of_summary", rows[made.full_name])
        session.execute(f"INSERT INTO nightaudit.{made.full_name} BY NAME FROM rows_of_summary")
        session.unregister("rows_of_summary")


@contextmanager
def summing_folder(lake: Lake) -> Iterator[Path]:
    """Give an empty folder for what ranges contribute to the summaries, and remove it afterwards."""
    folder = lake.spill / "summing"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def select_summed(
    session: duckdb.DuckDBPyConnection, folder: Path, within: PropertyRange, names: Iterable[str] = SUMMED
) -> dict[str, str]:
    """Write a range's columns of relations of SUMMED to files; return their paths by relation."""
    written = {}
    # A worker on another machine has no such folder.
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(names):
        place = beside(folder / f"{name}-{within.first}.parquet")
        where = f" WHERE {within.condition}" if name in _OF_USERS else ""
        select = f"SELECT {', '.join(SUMMED[name])} FROM {name}{where}"  # noqa: S608 - our own names
        session.execute(f"COPY ({select}) TO {literal(str(place))} (FORMAT parquet)")
        note_touched([place])
        written[name] = str(place)
    return written


def summed_with(session: duckdb.DuckDBPyConnection) -> SummedWith:
    """Return what summaries depend on besides the nights, by relation: inputs of users, and the digest of our SQL."""
    try:
        return {name: session.execute(f"{rows} ORDER BY ALL").fetchall() for name, rows in _SUMMED_WITH.items()}
    except duckdb.IOException:
        # The views of a lake that has moved do not find their files: whatever is found later counts as changed.
        return {}


def sum_again(session: duckdb.DuckDBPyConnection, lake: Lake, before: SummedWith) -> None:
    """Recompute cases, and range by range summaries, if their inputs have changed since `before`. The views exist.

    Raises CorruptObject if a file of the state is damaged.
    """
    changed = {name for name, rows in summed_with(session).items() if before.get(name) != rows}
    names = [name for name in SUMMARIES if "ref.written_with" in changed or changed & reached([name])]
    has_new_cases = "ref.written_with" in changed or changed & reached(CASES)
    if not names and not has_new_cases:
        return
    files = files_of(session)
    refuse_damaged_state(lake, files)
    if has_new_cases:
        write_summaries(session, CASES)
    ranges = [PropertyRange(file.first_property_id, file.last_property_id) for file in comparisons_of(files)]
    if len(ranges) < 2:
        write_summaries(session, names)
        return
    session.execute(f"SET memory_limit = '{_MEMORY}'")
    with summing_folder(lake) as folder:
        parts = []
        for within in ranges:
            write_state_views(session, lake, files, within)
            view_comparisons(session, lake, files, within)
            parts.append(select_summed(session, folder, within, SUMMED.keys() & _read(names)))
        write_state_views(session, lake, files)
        view_comparisons(session, lake, files)
        sum_up(session, parts, names)


def sum_up(session: duckdb.DuckDBPyConnection, parts: Sequence[Mapping[str, str]], names: Collection[str]) -> None:
    """Compute summaries from what ranges contribute: for each range, a file by relation of SUMMED.

    See _IN_TURN.
    """
    if not names:
        return
    ((path,),) = session.execute("SELECT current_setting('search_path')").fetchall()
    session.execute("ATTACH ':memory:' AS summing")
    try:
        for schema in ("mart", "report", "state", "ref", "lake"):
            session.execute(f"CREATE SCHEMA IF NOT EXISTS summing.{schema}")
        made = _relations(names)
        contributed = sorted(SUMMED.keys() & _read(names))
        for name in sorted(_read(names)):
            files = ", ".join(literal(part[name]) for part in parts if name in contributed)
            source = f"read_parquet([{files}])" if files else f"nightaudit.{name}"
            session.execute(f"CREATE VIEW summing.{name} AS FROM {source}")
        session.execute("SET search_path = 'summing.main'")
        write_macros(session)
        seen = " UNION ".join(f"SELECT market FROM {name}" for name in ("nightaudit.state.cell", *contributed))  # noqa: S608 - our own names
        markets = session.execute(f"SELECT market FROM ({seen}) ORDER BY market").fetchall()  # noqa: S608 - our own names
        values = {"market": [market for (market,) in markets], **VALUES}
        for each in made:
            _empty(session, each)
            column = _IN_TURN.get(each.full_name, "market")
            for value in values[column]:
                of_one = f"SELECT * FROM ({each.sql}) WHERE {column} = {literal(value)}"  # noqa: S608 - our own names; the value is quoted
                session.execute(f"INSERT INTO nightaudit.{each.full_name} BY NAME {of_one}")
    finally:
        session.execute(f"SET search_path = {literal(path)}")
        session.execute("DETACH summing")


def _relations(names: Iterable[str]) -> list[Relation]:
    return [relation(*name.split(".")) for name in names]


def _read(names: Iterable[str]) -> set[str]:
    """Return what summaries read directly, by full name."""
    return set().union(*map(direct_sources, _relations(names)))


def _empty(session: duckdb.DuckDBPyConnection, made: Relation) -> None:
    """Create the table of a summary, or empty it: an existing table keeps its comments, hundreds in total."""
    name = f"nightaudit.{made.full_name}"
    found = "SELECT 1 FROM duckdb_tables() WHERE database_name = 'nightaudit' AND schema_name = ? AND table_name = ?"
    if session.execute(found, made.full_name.split(".")).fetchone() is None:
        session.execute(f"CREATE TABLE {name} AS {made.sql} LIMIT 0")
    else:
        session.execute(f"TRUNCATE {name}")
