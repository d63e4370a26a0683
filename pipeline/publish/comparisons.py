"""Comparisons of markets: computed once a night and kept in files, like the state.

`sql/mart/market_parity.sql` defines them. Summaries, rules, pages and analysts read the files: pairing all offers again
for each reader would cost more than the rest of publishing.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

import duckdb

from pipeline.domain.property_range import ALL, PropertyRange
from pipeline.domain.texts import literal
from pipeline.lake import Lake, building
from pipeline.lake.database import PARQUET
from pipeline.lake.relations import relation
from pipeline.publish.state_files import StateFile, files_of, note_files, refuse_damaged_state, write_state_views

_MADE = relation("mart", "market_parity")
# The tables of the state that it reads. Parsing all relations to find them would cost each process more than they do.
COMPARED = ("offer_open", "parity_open", "parity_group_open")
# It reads the offers on sale in six places, these columns of them.
_ON_SALE = relation("mart", "offer_latest")
_READ_OF_OFFERS = (
    "source", "property_id", "market", "product_type", "check_in", "nights", "party", "currency_asked", "currency",
    "room_stay_id", "board_family", "cell_key", "offer_key", "room_id", "board_id", "policy_key", "promotion_key",
    "total", "pre_promo_total", "floor", "included_charges", "seen_sweep_id", "seen_search_id", "seen_offer_no",
    "is_whole",
)  # fmt: skip
# Pairs come grade by grade, and within a grade in the order of the state, by property. Sorting them in full width would
# take a fifth of the time; with short row groups, one property is found without reading most of the others.
_ROW_GROUP = 61_440

# What may change between two nights: rates that users load, and our SQL.
MadeWith = list[list[tuple[object, ...]]]


def write_comparisons(
    session: duckdb.DuckDBPyConnection, lake: Lake, folder: str, sweep_id: str, within: PropertyRange
) -> StateFile:
    """Compare the markets of a range and make `mart.market_parity` the result. The other views exist.

    The file gets a new name, so that readers of an earlier one keep theirs.
    """
    stem = f"{folder}/{_MADE.name}-{within.first}-{within.last}"
    names = (f"{stem}-{number}.parquet" if number else f"{stem}.parquet" for number in count())
    path = next(path for path in names if not lake.local(path).exists())
    place = lake.local(path)
    # Several threads pair offers in another order each time: the same night would give other bytes.
    threads = session.execute("SELECT current_setting('threads')").fetchall()[0][0]
    session.execute("SET threads = 1")
    # Not through the view: creating and reading it would bind the query twice, which takes as long as its rows.
    session.execute("SET preserve_insertion_order = true")
    # DuckDB would hold the wide pairs in memory for joins with small tables, instead of the small tables.
    session.execute("SET disabled_optimizers = 'build_side_probe_side'")
    try:
        with building(place) as built:
            written = session.execute(
                f"COPY ({_MADE.sql}) TO {literal(str(built))} ({PARQUET}, ROW_GROUP_SIZE {_ROW_GROUP})"
            )
            rows = written.fetchall()[0][0]
    finally:
        session.execute("SET disabled_optimizers = ''")
        session.execute("SET preserve_insertion_order = false")
        session.execute(f"SET threads = {threads}")
    file = StateFile(_MADE.name, sweep_id, path, rows, place.stat().st_size, within.first, within.last)
    view_comparisons(session, lake, [file])
    return file


@contextmanager
def keeping_offers(session: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Read the offers on sale once for a comparison, not in six places. The session's views are its own."""
    rows = f"SELECT {', '.join(_READ_OF_OFFERS)} FROM ({_ON_SALE.sql})"  # noqa: S608 - our own names
    session.execute(f"CREATE OR REPLACE TABLE memory.night.on_sale AS {rows}")
    session.execute(f"CREATE OR REPLACE VIEW nightaudit.{_ON_SALE.full_name} AS FROM memory.night.on_sale")
    try:
        yield
    finally:
        session.execute(f"CREATE OR REPLACE VIEW nightaudit.{_ON_SALE.full_name} AS {_ON_SALE.sql}")
        session.execute("DROP TABLE memory.night.on_sale")


def view_comparisons(
    session: duckdb.DuckDBPyConnection, lake: Lake, files: Iterable[StateFile], within: PropertyRange = ALL
) -> None:
    """Make `mart.market_parity` read its files; without files it stays the view of its relation.

    `within` leaves out other properties.
    """
    paths = [
        str(lake.local(file.path))
        for file in comparisons_of(files)
        if within.meets(file.first_property_id, file.last_property_id)
    ]
    if paths:
        select = f"FROM read_parquet([{', '.join(literal(path) for path in paths)}])"
        select += "" if within.is_all else f" WHERE {within.condition}"
        session.execute(f"CREATE OR REPLACE VIEW {_MADE.full_name} AS {select}")


def note_comparisons(session: duckdb.DuckDBPyConnection, lake: Lake, files: Sequence[StateFile]) -> None:
    """Record the files of a night in place of earlier ones, and make `mart.market_parity` read them."""
    note_files(session, files, replaced=[_MADE.name])
    view_comparisons(session, lake, files)


def comparisons_of(files: Iterable[StateFile]) -> list[StateFile]:
    """Return the files that hold comparisons, one per range."""
    return [file for file in files if file.table_name == _MADE.name]


def made_with(session: duckdb.DuckDBPyConnection) -> MadeWith:
    """Return what comparisons depend on now: the exchange rates and the digest of our SQL."""
    return [
        session.execute(f"FROM {name} ORDER BY ALL").fetchall() for name in ("mart.fx_of_sweep", "ref.written_with")
    ]


def compare_again(session: duckdb.DuckDBPyConnection, lake: Lake, before: MadeWith) -> None:
    """Compare again, range by range, if `made_with` has changed since `before`. The views exist.

    Raises CorruptObject if a file of the state is damaged.
    """
    files = files_of(session)
    held = comparisons_of(files)
    view_comparisons(session, lake, held)
    if not held or made_with(session) == before:
        return
    refuse_damaged_state(lake, files)
    made = []
    for file in held:
        within = PropertyRange(file.first_property_id, file.last_property_id)
        write_state_views(session, lake, files, within)
        folder = file.path.rpartition("/")[0]
        made.append(write_comparisons(session, lake, folder, file.sweep_id, within))
    write_state_views(session, lake, files)
    note_comparisons(session, lake, made)
