"""Quarantine: offers that break a rule so badly that they cannot be used become rows of `reject`, unpublished.

Their penalties and promotions go with them; one without an offer goes alone. The files of the table `offer` stay,
and readers of the table's log get copies without the quarantined rows. The choice depends on the sweep's own rows
alone, so a repeated audit makes the same one. The quarantine is one file and one commit, named after the sweep.
"""

from collections.abc import Iterator
from pathlib import Path

import duckdb

from pipeline.audit.results import Measure
from pipeline.audit.rules import LONGEST_REASON, Rule, rules
from pipeline.audit.store import count_quarantined
from pipeline.domain.tables import REJECT, TABLES
from pipeline.domain.texts import literal
from pipeline.lake import Lake
from pipeline.lake.database import OF_OFFERS, select_kept, write_rows
from pipeline.lake.delta import commit_files, is_committed, replace_files
from pipeline.lake.relations import relation
from pipeline.lake.sweep_files import KEPT, quarantine_file


def find_violators(session: duckdb.DuckDBPyConnection) -> None:
    """Make the table of rows that break a rule whose violators are quarantined."""
    union = " UNION ALL ".join(_taken(rule) for rule in rules() if rule.quarantines)
    # A table, not a view: joined with what is nearly always empty, offers need not be read.
    session.execute(f"CREATE OR REPLACE TABLE audit.violation AS {union}")


def choose_quarantined(session: duckdb.DuckDBPyConnection) -> None:
    """Make the table of the quarantine: one row for each offer that breaks such a rule."""
    session.execute(f"CREATE TABLE audit.quarantine AS {relation('measure', 'quarantine').sql}")


def _taken(rule: Rule) -> str:
    """Return a SELECT of what a rule quarantines: the rows that break it, or all offers of a search that does."""
    columns = (
        f"market, property_id, search_id, offer_no, left(reason, {LONGEST_REASON}) AS reason, "
        f"{literal(rule.name)} AS rule, {literal(rule.table)} AS part"
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
    # Otherwise an empty folder would be left in the table.
    if not session.execute("SELECT 1 FROM audit.quarantine LIMIT 1").fetchall():
        return 0
    file = quarantine_file(lake, sweep_id)
    write_rows(session, file, REJECT, "FROM audit.quarantine", "search_id, reject_no")
    path = lake.table_file(REJECT.name, sweep_id, file.stem)
    leave_out(session, lake, sweep_id)
    commit_files(lake, REJECT, {f"{sweep_id}/quarantine": [path]})
    return count_quarantined(lake, sweep_id)


def leave_out(session: duckdb.DuckDBPyConnection, lake: Lake, sweep_id: str) -> None:
    """Show readers of the Delta tables what is published: no quarantined offers, nor their penalties and promotions.

    Files with such rows are replaced by copies without them, in another folder; nightaudit itself reads the files as
    they were loaded. The quarantine of the sweep is written. Doing it again changes nothing.
    """
    quarantine = quarantine_file(lake, sweep_id)
    for name in OF_OFFERS:
        files = sorted((lake.table_root(name) / sweep_id).glob("*.parquet"))
        if not files or is_committed(lake, TABLES[name], f"{sweep_id}/quarantine"):
            continue
        listed = ", ".join(literal(str(file)) for file in files)
        found = session.execute(
            f"SELECT DISTINCT filename FROM read_parquet([{listed}], filename = true) AS held "  # noqa: S608 - our own names; paths are quoted
            f"SEMI JOIN read_parquet({literal(str(quarantine))}) AS taken "
            "ON taken.search_id = held.search_id AND taken.offer_no = held.offer_no ORDER BY 1"
        ).fetchall()
        replaced = {}
        for file in (Path(row[0]) for row in found):
            path = lake.table_file(name, f"{sweep_id}{KEPT}", file.stem)
            kept = select_kept(name, [file], [quarantine])
            has_rows = bool(session.execute(f"SELECT 1 FROM ({kept}) LIMIT 1").fetchall())  # noqa: S608 - our own names
            if has_rows:
                write_rows(session, lake.local(path), TABLES[name], kept, "search_id, offer_no")
            replaced[lake.table_file(name, sweep_id, file.stem)] = path if has_rows else None
        replace_files(lake, TABLES[name], replaced, f"{sweep_id}/quarantine")
