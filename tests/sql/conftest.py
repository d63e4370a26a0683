"""Golden tests of the SQL: `<schema>/<relation>/<case>.yaml` holds given tables and the rows expected.

What a case does not name is usual: see `nights.filled`. Only the columns that it names are compared.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from nights import filled, started_at, sweep_id

from pipeline.domain import tables
from pipeline.domain.analysis import Analysis
from pipeline.domain.tables import FLAG, LONG, TEXT, Column, Table
from pipeline.lake.relations import relation, sources, sql_folder, views
from pipeline.publish.catalogue import write_reference
from pipeline.publish.publish import MACROS

STARTED = started_at(5)
USUAL = {
    "sweep_id": sweep_id(5),
    "started_at": STARTED,
    "snapshot_date": STARTED.date(),
    "searched_at": STARTED,
    "is_offered": True,
    "change": "first",
    "changed_at": STARTED,
    "valid_from": started_at(4),
    "first_seen_at": started_at(4),
    "last_seen_at": started_at(4),
    "valid_to": STARTED,
    "ended_by": "value",
    "asked_at": started_at(4),
    "began_sweep_id": sweep_id(4),
    "seen_sweep_id": sweep_id(4),
    "cell_key": 1,
    "is_answered": True,
    "is_answered_whole": True,
    "is_whole": True,
    "source": "multi",
    "evidence": [],
    "severity": "low",
    "rule_version": 1,
    "snapshots": 1,
    "currency_basis": "same",
    "relation": "report.some",
    "first_flagged_at": started_at(4),
    "first_flagged_sweep_id": sweep_id(4),
    "last_flagged_at": started_at(4),
    "last_flagged_sweep_id": sweep_id(4),
}
_KEY = Column("cell_key", LONG, "")
_FOUND = Table("found", "", (), (*tables.FINDING_COLUMNS, Column("relation", TEXT, "")))
_WITH = {
    "night.cell_observed": (
        tables.CELL,
        (_KEY, Column("source", TEXT, ""), Column("is_answered", FLAG, ""), Column("is_answered_whole", FLAG, "")),
    ),
    "night.offer_observed": (tables.OFFER, (_KEY, Column("offer_key", LONG, ""), Column("is_whole", FLAG, ""))),
    "night.offer_change": (tables.OFFER_CHANGE, ()),
    "night.offer_change_priced": (tables.OFFER_CHANGE, (Column("previous_total", tables.MONEY, ""),)),
    "night.parity_observed": (
        tables.PARITY_OPEN,
        (Column("gap_pct", tables.NUMBER, ""), Column("is_losing", FLAG, "")),
    ),
    "night.sweep": (tables.SWEEP, ()),
    "mart.sweep": (tables.SWEEP_PUBLISHED, ()),
    "night.found": (_FOUND, ()),
    "night.finding": (replace(_FOUND, columns=(tables.FLAG_ID, *_FOUND.columns)), ()),
    "night.failed_rule": (Table("failed_rule", "", (), (Column("relation", TEXT, ""),)), ()),
    "night.flag_ended": (Table("flag_ended", "", (), (tables.FLAG_ID, *tables.FLAG_CLOSED.columns[-3:])), ()),
}


def shapes() -> dict[str, Table]:
    """Every table that a relation may read, as it is while a night is published."""
    found = {name: _as_read(table, more) for name, (table, more) in _WITH.items()}
    found |= {f"state.{table.name}": table for table in tables.STATE_TABLES}
    found |= {f"sweep_files.{name}": table for name, table in tables.TABLES.items()}
    return found | {f"lake.{name}": table for name, table in (tables.TABLES | tables.SIDE_TABLES).items()}


def _as_read(table: Table, more: tuple[Column, ...]) -> Table:
    """A table with what is worked out of its columns where it is read, and with more."""
    return replace(table, columns=(*(replace(column, derived="") for column in table.columns), *more))


class Golden:
    """A session with all tables that the relations read, empty until a case gives rows."""

    def __init__(self) -> None:
        self.session = duckdb.connect(":memory:")
        self.session.execute("SET TimeZone = 'UTC'")
        for schema in ("night", "sweep_files", "state", "mart", "report", "ref", "lake"):
            self.session.execute(f"CREATE SCHEMA {schema}")
        self.shapes = shapes()
        for name in self.shapes:
            self.give(name, [])
        self.session.execute("CREATE TABLE night.audit AS SELECT 'pass' AS audit, NULL::VARCHAR AS override_reason")
        for macro in MACROS:
            self.session.execute((sql_folder() / "macro" / f"{macro}.sql").read_text())
        write_reference(self.session, Analysis())

    def give(self, name: str, rows: list[dict[str, object]]) -> None:
        if name == "ref.analysis":
            write_reference(self.session, Analysis(**rows[0]))
            return
        table = self.shapes[name]
        made = pa.Table.from_pylist([filled(table, row, **USUAL) for row in rows], schema=table.schema)  # noqa: F841 - read by DuckDB, by its name
        self.session.execute(f"CREATE OR REPLACE TABLE {name} AS FROM made")

    def rows(self, schema: str, name: str) -> list[dict[str, object]]:
        for made in views():
            if made.full_name in sources(relation(schema, name)):
                self.session.execute(f"CREATE OR REPLACE VIEW {made.full_name} AS {made.sql}")
        found = self.session.execute(relation(schema, name).sql)
        columns = [column[0] for column in found.description]
        return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]

    def views(self) -> None:
        self.session.execute(f"CREATE VIEW mart.offer_history AS {relation('mart', 'offer_history').sql}")
        self.session.execute((sql_folder() / "macro" / "offer_as_of.sql").read_text())


def comparable(value: object, like: object) -> object:
    """A value as YAML would write it: an instant as the number of its night, money as a number."""
    if isinstance(value, dt.datetime) and isinstance(like, str | None):
        nights = (value - started_at(0)) / dt.timedelta(days=1)
        return f"night {nights:g}" if nights == int(nights) else f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, Decimal):
        return float(value)
    return value


@pytest.fixture
def golden():
    made = Golden()
    yield made
    made.session.close()
