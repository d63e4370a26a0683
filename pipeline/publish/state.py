"""How the state changes from night to night: which tables it has, and how each night updates them.

The SQL of `sql/staging` computes what a night changes, from the state before it and from the answers of the sweep. No
statement looks beyond one property, so a night can be computed range by range of property ids.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb

from pipeline.domain.tables import CONTENT_STATES, STATE_FILE, STATE_TABLES, SWEEP, SWEEP_PUBLISHED, TABLES, Table
from pipeline.domain.texts import literal
from pipeline.lake.column_sql import declared
from pipeline.lake.relations import macros, night_relations, relation

# What is computed over all properties, before any range is compared, and handed to each.
OVER_ALL = ("cell_doubtful", "market_silent", "market_silence")

# Names without a database are found in the file first, then among the night's working tables.
SEARCH_PATH = "SET search_path = 'nightaudit.main,memory.night,memory.sweep_files'"

# The storage format of the oldest DuckDB that is supported.
_STORAGE_VERSION = "v1.5.0"
# Each of its hundred tables fills blocks of its own, most of them with a few rows: in DuckDB's usual blocks of 256 kB a
# file is two to three times as large, and each night copies it. A file keeps the size that it was made with.
_BLOCK_BYTES = 65_536

# With its whole key: rows that tie would come in another order each time. Offers of a cell are adjacent, which makes
# files a fifth smaller than keys, which have nothing in common, and joins by cell cheaper.
_BY_STAY = "property_id, check_in, source, nights, party, market, room_id, board_id, policy_key, offer_key"
_BY_GROUP = "property_id, cell_key, source, match_grade, room_no, board_family, currency"


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """How a table of the state is updated: the rows of `sql/staging/<next>.sql` are added to it, or replace it.

    `order` sorts a night's rows, by property first, so that one property is found without reading the others.
    """

    name: str
    order: str
    is_replaced: bool = False

    @property
    def next(self) -> str:
        """The relation of `sql/staging` that updates the table."""
        return f"{self.name}_next"


@dataclass(frozen=True, slots=True)
class SmallUpdate(StateUpdate):
    """An update of a table that is small however large the night: the rows of all ranges are merged.

    `sums` are columns that are added up over the ranges, grouped by the others. Without sums, several ranges may report
    the same thing and the first one counts; `key` identifies it.
    """

    sums: tuple[str, ...] = ()
    key: str = ""


# All of them are computed from the state before the night.
FILED_UPDATES = (
    StateUpdate("offer_closed", _BY_STAY),
    StateUpdate("offer_open", _BY_STAY, is_replaced=True),
    StateUpdate("cell", "property_id, check_in, operation, cell_key", is_replaced=True),
    StateUpdate("detail_penalty", "property_id, offer_key, penalty_no", is_replaced=True),
    StateUpdate("cell_closed", "property_id, check_in, operation, cell_key"),
    StateUpdate("stock_change", "property_id, check_in, cell_key, room_id, source"),
    StateUpdate("property_sale", "property_id, market, product_type, operation", is_replaced=True),
    StateUpdate("quiet_search", "property_id, search_id"),
    StateUpdate("parity_closed", "property_id, offer_key, source"),
    StateUpdate("parity_open", "property_id, offer_key, source", is_replaced=True),
    StateUpdate("parity_group_open", _BY_GROUP, is_replaced=True),
    StateUpdate("parity_group_closed", _BY_GROUP),
    StateUpdate("floor_move", "property_id, offer_key, source"),
    StateUpdate("promotion_open", "property_id, check_in, source, offer_key", is_replaced=True),
    StateUpdate("promotion_closed", "property_id, check_in, source, offer_key"),
    StateUpdate("policy_drift", "property_id, check_in, source, offer_key_before, offer_key_after"),
)
SMALL_UPDATES = (
    SmallUpdate("promotion", "promotion_key, promotion_no", key="promotion_key"),
    SmallUpdate("policy", "policy_key, penalty_no", key="policy_key"),
    SmallUpdate(
        "cell_count",
        "operation, market, product_type, rooms, lead_days",
        sums=(
            "planned", "offered", "no_offer_1023", "no_offer_1024", "no_offer_1025", "no_offer_1026",
            "no_offer_other", "absent", "rejected", "failed", "not_swept",
        ),
    ),
    SmallUpdate(
        "price_move",
        "source, market, product_type, lead_days",
        sums=("seen", "pairs", "raised", "lowered", "spanning", "drift", "squares"),
    ),
    SmallUpdate(
        "price_change", "source, market, product_type, currency, is_plain, change_step", sums=("pairs", "drift")
    ),
    SmallUpdate(
        "waiting",
        "source, market, product_type, lead_days",
        sums=(
            "offers", "answered_later", "gone_later", "comparable", "cheaper_later", "dearer_last", "ln_lowest",
            "ln_last",
        ),
    ),
)  # fmt: skip

# Tables of the state that are views over files.
_FILED = frozenset(update.name for update in FILED_UPDATES)
FILED = {table.name: table for table in STATE_TABLES if table.name in _FILED}
# What a night reads with enumerations: tables with many rows that are not history.
ENUMERATED_OF_STATE, ENUMERATED_OF_SWEEP = ("offer_open", "cell", "parity_open", "parity_group_open"), ("offer", "cell")
ENUMERATED = {
    **{f"state.{name}": FILED[name] for name in ENUMERATED_OF_STATE},
    **{f"sweep_files.{name}": TABLES[name] for name in ENUMERATED_OF_SWEEP},
    "night.sweep": SWEEP,
}
# The other tables of the published file.
NATIVE = {f"state.{table.name}": table for table in (*STATE_TABLES, *CONTENT_STATES) if table.name not in _FILED} | {
    "state.file": STATE_FILE,
    "mart.sweep": SWEEP_PUBLISHED,
}


def attach(session: duckdb.DuckDBPyConnection, file: Path, name: str = "nightaudit") -> None:
    """Attach the file being built, for writing."""
    block_size = "" if file.exists() else f", BLOCK_SIZE {_BLOCK_BYTES}"
    session.execute(f"ATTACH {literal(str(file))} AS {name} (STORAGE_VERSION '{_STORAGE_VERSION}'{block_size})")


def prepare(session: duckdb.DuckDBPyConnection) -> None:
    """Create the schemas and macros that computing a night needs.

    The state is attached as `nightaudit`; the night's working tables are in the session's memory.
    """
    for schema in ("night", "sweep_files"):
        session.execute(f"CREATE SCHEMA IF NOT EXISTS memory.{schema}")
    # A name like night.sweep is found in another database only if its schema is on the path.
    session.execute(SEARCH_PATH)
    for schema in ("mart", "report", "ref", "state", "lake"):
        session.execute(f"CREATE SCHEMA IF NOT EXISTS nightaudit.{schema}")
    write_macros(session)


def write_macros(session: duckdb.DuckDBPyConnection) -> None:
    """Write the macros that views use."""
    for macro in macros(over_views=False):
        session.execute(macro)


def write_view_macros(session: duckdb.DuckDBPyConnection) -> None:
    """Write the macros over views. The views exist."""
    for macro in macros(over_views=True):
        session.execute(macro)


def note_audit(session: duckdb.DuckDBPyConnection, audit: str, override_reason: str | None) -> None:
    """Record the verdict of the audit on the sweep."""
    session.execute("CREATE OR REPLACE TABLE memory.night.audit (audit VARCHAR, override_reason VARCHAR)")
    session.execute("INSERT INTO memory.night.audit VALUES (?, ?)", [audit, override_reason])


def look_over_all(session: duckdb.DuckDBPyConnection, reference_rule: int) -> None:
    """Compute what needs all properties of the night, before any range is compared.

    The market that others are compared with is chosen by a rule of the ledger, or kept; `night.cell_doubtful` names the
    cells in doubt, `night.market_silent` the markets that sell nothing, `night.market_silence` those of earlier nights.
    """
    # The other views are written once the night is computed.
    session.execute(f"CREATE OR REPLACE VIEW mart.market_silence AS {relation('mart', 'market_silence').sql}")
    session.execute("CREATE OR REPLACE TABLE memory.night.reference_rule (version INTEGER)")
    session.execute("INSERT INTO memory.night.reference_rule VALUES (?)", [reference_rule])
    make(session, (*OVER_ALL, "reference_choice_next"))
    session.execute("TRUNCATE state.reference_choice")
    session.execute("INSERT INTO state.reference_choice BY NAME FROM memory.night.reference_choice_next")
    session.execute("DROP TABLE memory.night.reference_choice_next")


def make(session: duckdb.DuckDBPyConnection, names: Iterable[str]) -> None:
    """Compute relations of `staging`, each into the table of schema `night` that others read."""
    for name in names:
        session.execute(f"CREATE OR REPLACE TABLE memory.night.{name} AS {relation('staging', name).sql}")


def compare(session: duckdb.DuckDBPyConnection, needed: Collection[str] | None = None) -> None:
    """Compute what `night.sweep` and the rows of `sweep_files` change; of this, only what is `needed`, if given."""
    make(session, (name for name in compared() if needed is None or f"night.{name}" in needed))


@cache
def compared() -> tuple[str, ...]:
    """Return what the updates read; each is a table of schema `night` until the night is done."""
    updates = tuple(update.next for update in (*FILED_UPDATES, *SMALL_UPDATES))
    return tuple(name for name in night_relations(*updates, "change_count") if name not in {*updates, *OVER_ALL})


def note_sweep(session: duckdb.DuckDBPyConnection) -> None:
    """Add the sweep to those of the file; `night.change_count` says what it changed."""
    session.execute(f"INSERT INTO mart.sweep BY NAME {relation('staging', 'sweep_published').sql}")


def forget_night(session: duckdb.DuckDBPyConnection) -> None:
    """Drop the night's working tables."""
    for name in compared():
        session.execute(f"DROP TABLE IF EXISTS memory.night.{name}")


def move_on(session: duckdb.DuckDBPyConnection, needed: Collection[str] | None = None) -> None:
    """Update a state that is all tables with the night that was compared: every table, or those `needed`."""
    updates = [
        update for update in (*FILED_UPDATES, *SMALL_UPDATES) if needed is None or f"state.{update.name}" in needed
    ]
    make(session, (update.next for update in updates))
    for update in updates:
        if update.is_replaced:
            session.execute(f"TRUNCATE state.{update.name}")
        select = f"SELECT * FROM memory.night.{update.next} ORDER BY {update.order}"  # noqa: S608 - our own names
        session.execute(f"INSERT INTO state.{update.name} BY NAME {select}")
        session.execute(f"DROP TABLE memory.night.{update.next}")
    note_sweep(session)
    forget_night(session)


def create(name: str, table: Table) -> str:
    """Return the statement that creates a declared table unless it exists."""
    return f"CREATE TABLE IF NOT EXISTS {name} ({declared(table.columns)})"
