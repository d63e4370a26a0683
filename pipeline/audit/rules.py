"""Row-level rules: the relations of `sql/audit`, each of which shows the rows that break it; no row is a pass.

A rule's header says which table it looks at, how severe a violation is, and whether violators are quarantined.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb

from pipeline.audit.findings import ALL, Measure
from pipeline.relations import relation, sql_folder

EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Rule:
    """One file of `sql/audit`."""

    name: str
    table: str
    severity: str
    quarantines: bool
    meaning: str
    sql: str


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules, by name."""
    return tuple(_read(path.stem) for path in sorted((sql_folder() / "audit").glob("*.sql")))


def _read(name: str) -> Rule:
    found = relation("audit", name)
    said = found.meanings
    return Rule(name, said["table"], said["severity"], said["violators"] == "quarantined", found.grain, found.sql)


def measure_rules(session: duckdb.DuckDBPyConnection) -> Iterator[Measure]:
    """Count the violations of each rule, per market, with a few examples and where their raw answers lie."""
    for rule in rules():
        found = session.execute(
            f"SELECT market, count(*), min({{search_id: search_id, offer_no: offer_no, property_id: property_id, "  # noqa: S608 - our own relation
            f"reason: reason}}, {EXAMPLES}) FROM ({rule.sql}) GROUP BY market ORDER BY market"
        ).fetchall()
        meaning = rule.meaning.removeprefix("One row per ").removesuffix(".")
        if not found:
            yield Measure(ALL, rule.table, rule.name, rule.severity, meaning, "rows", 0.0, highest=0.0)
        for market, count, examples in found:
            yield Measure(
                market or ALL,
                rule.table,
                rule.name,
                rule.severity,
                meaning,
                "rows",
                float(count),
                highest=0.0,
                violations=count,
                examples=_examples(session, examples),
            )


def _examples(session: duckdb.DuckDBPyConnection, found: list[dict[str, Any]]) -> str:
    searches = [row["search_id"] for row in found if row["search_id"] is not None]
    addresses = dict(
        session.execute(
            "SELECT search_id, any_value(raw_address) FROM sweep_files.search "
            "WHERE list_contains(?, search_id) GROUP BY search_id",
            [searches],
        ).fetchall()
    )
    told = [row | {"raw_address": addresses.get(row["search_id"])} for row in found]
    return json.dumps(told, ensure_ascii=False, default=str)
