"""The session that golden cases run in: all tables that a relation may read, with what is usual in them."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pyarrow as pa
from nights import filled, started_at, sweep_id

from pipeline.domain import tables
from pipeline.domain.analysis import Analysis
from pipeline.domain.tables import FLAG, INSTANT, INT, LONG, TEXT, Column, Table
from pipeline.domain.tables.declaration import required
from pipeline.lake.relations import Relation, night_relations, relation, sources, sql_folder, views
from pipeline.publish.catalogue import write_reference
from pipeline.publish.state import write_macros
from pipeline.publish.summaries import CASES

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
    "last_answered_at": STARTED,
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
    "match_grade": "exact",
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
        (
            _KEY,
            Column("source", TEXT, ""),
            Column("is_answered", FLAG, ""),
            Column("is_answered_whole", FLAG, ""),
            required("is_left_out", FLAG, ""),
            required("parts_in_doubt", INT, ""),
        ),
    ),
    "night.cell_doubtful": (tables.CELL, (required("parts", INT, ""),)),
    "night.offer_observed": (tables.OFFER, (_KEY, Column("offer_key", LONG, ""), Column("is_whole", FLAG, ""))),
    "night.offer_change": (tables.OFFER_CHANGE, (Column("previous_total", tables.MONEY, ""),)),
    "night.offer_dropped": (
        tables.PARITY_OPEN,
        (_KEY, required("ended_by", TEXT, "")),
    ),
    "night.group_observed": (
        tables.PARITY_GROUP_OPEN,
        (
            *(Column(name, TEXT, "") for name in ("market", "product_type", "party", "currency_asked")),
            Column("nights", INT, ""),
            Column("offer_key", LONG, ""),
            Column("total", tables.MONEY, ""),
        ),
    ),
    "night.parity_gone": (tables.PARITY_OPEN, ()),
    "night.parity_group_judged": (
        tables.PARITY_GROUP_OPEN,
        (Column("is_compared", FLAG, ""), Column("ended_by", TEXT, "")),
    ),
    "night.parity_observed": (
        tables.PARITY_OPEN,
        (
            *(required(name, TEXT, "") for name in ("match_grade", "board_family", "currency", "reference_currency")),
            _KEY,
            Column("reference_cell_key", LONG, ""),
            required("room_no", INT, ""),
            Column("gap_pct", tables.NUMBER, ""),
            Column("is_losing", FLAG, ""),
        ),
    ),
    "night.sweep": (tables.SWEEP, ()),
    "night.change_count": (replace(tables.SWEEP_PUBLISHED, columns=tables.SWEEP_PUBLISHED.columns[-5:]), ()),
    "mart.sweep": (tables.SWEEP_PUBLISHED, ()),
    "night.found": (_FOUND, ()),
    "night.finding": (replace(_FOUND, columns=(tables.FLAG_ID, *_FOUND.columns)), ()),
    "night.reference_rule": (Table("reference_rule", "", (), (Column("version", INT, ""),)), ()),
    "night.market_silent": (
        Table("market_silent", "", (), (required("operation", TEXT, ""), required("market", TEXT, ""))),
        (),
    ),
    "night.market_silence": (
        Table(
            "market_silence",
            "",
            (),
            (
                required("source", TEXT, ""),
                required("market", TEXT, ""),
                required("started_at", INSTANT, ""),
                required("sold_at", INSTANT, ""),
            ),
        ),
        (),
    ),
    "night.failed_rule": (Table("failed_rule", "", (), (Column("relation", TEXT, ""),)), ()),
    # What the choice of properties for detail searches, and of offers to quote, is asked with: one row each.
    "given": (
        Table(
            "given",
            "",
            (),
            (
                Column("rules", pa.list_(TEXT), ""),
                Column("watched", pa.list_(LONG), ""),
                Column("properties", pa.list_(LONG), ""),
                Column("since", tables.INSTANT, ""),
            ),
        ),
        (),
    ),
    "wanted": (
        Table(
            "wanted",
            "",
            (),
            (
                Column("seed", LONG, ""),
                Column("size", LONG, ""),
                Column("today", tables.DAY, ""),
                Column("markets", pa.list_(TEXT), ""),
                Column("property_ids", pa.list_(LONG), ""),
            ),
        ),
        (),
    ),
    "night.rule_version": (
        Table("rule_version", "", (), (Column("relation", TEXT, ""), required("rule_version", INT, ""))),
        (),
    ),
    "night.setting_change": (
        Table("setting_change", "", (), (Column("relation", TEXT, ""), required("last_other_at", INSTANT, ""))),
        (),
    ),
    "night.flag_corrected": (
        Table("flag_corrected", "", (), (tables.FLAG_ID, required("is_changed", FLAG, ""))),
        (),
    ),
    "night.flag_ended": (Table("flag_ended", "", (), (tables.FLAG_ID, *tables.FLAG_CLOSED.columns[-3:])), ()),
}

# What a case gives as observed; what stood before it is the row that it gives of the state.
_OBSERVED = "night.offer_observed"
_GIVEN_AS = {_OBSERVED: "night.offer_given"}
_OBSERVED_VIEW = """
    CREATE VIEW night.offer_observed AS
    SELECT
        given.*,
        CASE WHEN before.offer_key IS NOT NULL THEN before END AS before,
        mart.change_of(
            CASE WHEN before.offer_key IS NOT NULL THEN before END,
            given.total, given.pre_promo_total, given.discount_pct, given.floor, given.available_rooms,
            given.promotion_key
        ) AS change
    FROM night.offer_given AS given
    LEFT JOIN state.offer_open AS before
        ON
            before.source = given.source
            AND before.property_id = given.property_id
            AND before.offer_key = given.offer_key
"""


def shapes() -> dict[str, Table]:
    """Every table that a relation may read, as it is while a night is published."""
    found = {name: _as_read(table, more) for name, (table, more) in _WITH.items()}
    found |= {f"state.{table.name}": table for table in (*tables.STATE_TABLES, *tables.CONTENT_STATES)}
    found |= {f"sweep_files.{name}": table for name, table in (tables.TABLES | tables.WORKING_TABLES).items()}
    return found | {f"lake.{name}": table for name, table in (tables.TABLES | tables.SIDE_TABLES).items()}


def _as_read(table: Table, more: tuple[Column, ...]) -> Table:
    """A table with the columns that are computed when it is read, and with more."""
    return replace(table, columns=(*(replace(column, derived="") for column in table.columns), *more))


class Golden:
    """A session with all tables that the relations read, empty until a case gives rows. Made once, emptied for each."""

    def __init__(self) -> None:
        self.session = duckdb.connect(":memory:")
        self.session.execute("SET TimeZone = 'UTC'")
        for schema in ("night", "sweep_files", "state", "mart", "report", "ref", "lake"):
            self.session.execute(f"CREATE SCHEMA {schema}")
        self.given: set[str] = set()
        self.made: set[str] = set()
        self.shapes = shapes()
        for name in self.shapes:
            self.give(name, [])
        self.session.execute("CREATE TABLE night.audit AS SELECT 'pass' AS audit, NULL::VARCHAR AS override_reason")
        write_macros(self.session)
        self.session.execute(_OBSERVED_VIEW)
        # The limits that a page is read within: all but property 9.
        self.session.execute(
            "CREATE MACRO is_within(its_property_id, its_market, its_check_in) AS (its_property_id <> 9)"
        )
        write_reference(self.session, Analysis())

    def empty(self) -> None:
        """Take back what the last case gave."""
        for name in self.given:
            if name == "ref.analysis":
                write_reference(self.session, Analysis())
            else:
                self.session.execute(f"TRUNCATE {_GIVEN_AS.get(name, name)}")
        self.given = set()

    def give(self, name: str, rows: list[dict[str, object]]) -> None:
        if rows:
            self.given.add(name)
        if name == "ref.analysis":
            write_reference(self.session, Analysis(**rows[0]))
            return
        table = self.shapes[name]
        made = pa.Table.from_pylist([filled(table, row, **USUAL) for row in rows], schema=table.schema)  # noqa: F841 - read by DuckDB, by its name
        stored = _GIVEN_AS.get(name, name)
        if name in self.made:
            self.session.execute(f"INSERT INTO {stored} FROM made")
            return
        self.session.execute(f"CREATE OR REPLACE TABLE {stored} AS FROM made")
        self.made.add(name)

    def rows(self, asked: Relation) -> list[dict[str, object]]:
        needed, steps = self._needed(asked)
        for made in views():
            # Stored when a night is published. As views of views, they take a second to plan.
            if made.full_name in needed.intersection(CASES):
                self.session.execute(f"CREATE OR REPLACE TABLE {made.full_name} AS {made.sql}")
            elif made.full_name in needed - self.made:
                self.session.execute(f"CREATE OR REPLACE VIEW {made.full_name} AS {made.sql}")
                self.made.add(made.full_name)
        for step in steps:
            self.session.execute(f"CREATE OR REPLACE TABLE night.{step.name} AS {step.sql}")
        found = self.session.execute(asked.sql)
        columns = [column[0] for column in found.description]
        return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]

    def _needed(self, asked: Relation) -> tuple[frozenset[str], list[Relation]]:
        """All that a relation reads, and the steps of a night before it that no case gives, in order."""
        needed, steps = sources(asked), []
        for name in reversed(night_relations("flag_ended", "promotion_open_next")):
            full_name = f"night.{name}"
            if full_name in needed - self.shapes.keys() and name != asked.name:
                steps.insert(0, relation("staging", name))
                needed |= sources(steps[0])
        return needed, steps

    def views(self) -> None:
        self.session.execute(f"CREATE OR REPLACE VIEW mart.offer_history AS {relation('mart', 'offer_history').sql}")
        self.session.execute((sql_folder() / "macro" / "offer_as_of.sql").read_text())
