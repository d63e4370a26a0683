"""Quarantine: offers that break a rule so that they cannot be used become rows of `reject`, and are not published.

What belongs to an offer goes with it. A penalty or promotion whose offer is not there is taken as what it is.
The files of the table `offer` stay; readers of the table's log get copies without what was taken. Which
offers are taken follows from the sweep's own rows alone, so that a repeated audit takes the same ones; they are one
file and one commit, named after the sweep.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb

from pipeline.audit.results import Measure
from pipeline.audit.rules import Rule, rules
from pipeline.audit.store import count_quarantined
from pipeline.domain.tables import REJECT, TABLES
from pipeline.lake import Lake, beside, put_in_place
from pipeline.lake.database import OF_OFFERS, quoted, select_kept, sql_type
from pipeline.lake.delta import commit_files, is_committed, replace_files
from pipeline.lake.relations import relation
from pipeline.lake.sweep_files import KEPT, quarantine_file


def find_violators(session: duckdb.DuckDBPyConnection) -> None:
    """Make the table of rows that break a rule by which offers are quarantined."""
    union = " UNION ALL ".join(_taken(rule) for rule in rules() if rule.quarantines)
    # A table, not a view: joined with what is nearly always empty, offers need not be read.
    session.execute(f"CREATE OR REPLACE TABLE audit.violation AS {union}")


def choose_quarantined(session: duckdb.DuckDBPyConnection) -> None:
    """Make the table of what goes into quarantine: one row for each offer that breaks such a rule."""
    session.execute(f"CREATE TABLE audit.quarantine AS {relation('measure', 'quarantine').sql}")


def _taken(rule: Rule) -> str:
    """Return a SELECT of what a rule takes: rows of offers as they are, of a search all its offers."""
    columns = (
        f"market, property_id, search_id, offer_no, reason, {quoted(rule.name)} AS rule, {quoted(rule.table)} AS part"
    )
    if rule.table != "search":
        return f"SELECT {columns} FROM ({rule.sql})"  # noqa: S608 - our own relations
    return (
        f"SELECT {columns} FROM (SELECT offer.market, offer.property_id, search_id, offer.offer_no, broken.reason "  # noqa: S608 - our own relations
        f"FROM ({rule.sql}) AS broken JOIN sweep_files.offer AS offer USING (search_id))"
    )


def measure_quarantine(session: duckdb.DuckDBPyConnection, tolerated_share: float) -> Iterator[Measure]:
    """Measure the share of quarantined offers per market."""
    rows = session.execute(
        "SELECT offers.market, coalesce(taken.offers, 0), offers.offers FROM "
        "(SELECT market, count(*) AS offers FROM sweep_files.offer GROUP BY market) AS offers LEFT JOIN "
        "(SELECT market, count(*) AS offers FROM audit.quarantine WHERE part = 'offer' GROUP BY market) AS taken "
        "USING (market) ORDER BY 1"
    ).fetchall()
    meaning = "share of offers that break a rule and are put in quarantine"
    for market, taken, offers in rows:
        yield Measure(
            market,
            "offer",
            "quarantined_share",
            "critical",
            meaning,
            "rule",
            taken / offers,
            highest=tolerated_share,
            violations=taken if taken / offers > tolerated_share else 0,
        )


def put_in_quarantine(session: duckdb.DuckDBPyConnection, lake: Lake, sweep_id: str) -> int:
    """Write the quarantined offers into `reject`, once, and return how many there are."""
    if is_committed(lake, REJECT, f"{sweep_id}/quarantine"):
        return count_quarantined(lake, sweep_id)
    if not session.execute("SELECT 1 FROM audit.quarantine LIMIT 1").fetchall():
        return 0
    file = quarantine_file(lake, sweep_id)
    file.parent.mkdir(parents=True, exist_ok=True)
    built = beside(file)
    names = ", ".join(f"{column.name}::{sql_type(column)} AS {column.name}" for column in REJECT.columns)
    session.execute(
        f"COPY (SELECT {names} FROM audit.quarantine ORDER BY search_id, reject_no) "  # noqa: S608 - our own names
        f"TO {quoted(str(built))} (FORMAT parquet, COMPRESSION zstd)"
    )
    put_in_place(built, file)
    path = lake.table_file(REJECT.name, sweep_id, file.stem)
    leave_out(session, lake, sweep_id)
    commit_files(lake, REJECT, {f"{sweep_id}/quarantine": [path]})
    return count_quarantined(lake, sweep_id)


def leave_out(session: duckdb.DuckDBPyConnection, lake: Lake, sweep_id: str) -> None:
    """Let readers of the Delta tables see what is published: without offers in quarantine and what belongs to them.

    Files that hold such rows give way to copies without them, in a folder beside; all our own reading stays with the
    files as they were loaded. The quarantine of the sweep is written. Doing it again changes nothing.
    """
    quarantine = quarantine_file(lake, sweep_id)
    for name in OF_OFFERS:
        files = sorted((lake.table_root(name) / sweep_id).glob("*.parquet"))
        if not files or is_committed(lake, TABLES[name], f"{sweep_id}/quarantine"):
            continue
        listed = ", ".join(quoted(str(file)) for file in files)
        found = session.execute(
            f"SELECT DISTINCT filename FROM read_parquet([{listed}], filename = true) AS held "  # noqa: S608 - our own names; paths are quoted
            f"SEMI JOIN read_parquet({quoted(str(quarantine))}) AS taken "
            "ON taken.search_id = held.search_id AND taken.offer_no = held.offer_no ORDER BY 1"
        ).fetchall()
        replaced = {}
        for file in (Path(row[0]) for row in found):
            path = lake.table_file(name, f"{sweep_id}{KEPT}", file.stem)
            is_written = _copy_kept(session, name, file, quarantine, lake.local(path))
            replaced[lake.table_file(name, sweep_id, file.stem)] = path if is_written else None
        replace_files(lake, TABLES[name], replaced, f"{sweep_id}/quarantine")


def _copy_kept(session: duckdb.DuckDBPyConnection, table: str, file: Path, quarantine: Path, place: Path) -> bool:
    """Write a file's rows that are not in quarantine, if there are any."""
    kept = select_kept(table, [file], [quarantine])
    if not session.execute(f"SELECT 1 FROM ({kept}) LIMIT 1").fetchall():  # noqa: S608 - our own names
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    built = beside(place)
    names = ", ".join(f"{column.name}::{sql_type(column)} AS {column.name}" for column in TABLES[table].stored)
    session.execute(
        f"COPY (SELECT {names} FROM ({kept}) ORDER BY search_id, offer_no) "  # noqa: S608 - our own names
        f"TO {quoted(str(built))} (FORMAT parquet, COMPRESSION zstd)"
    )
    put_in_place(built, place)
    return True
