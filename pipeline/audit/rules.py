"""Row-level rules: each shows the rows that break it; no row is a pass.

Most are the relations of `sql/audit`; `rules.toml` there says which table a rule looks at, how severe a violation is,
and whether violators are quarantined, and why. The others follow from the ranges of the declared columns.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import duckdb

from pipeline.audit.results import ALL, Measure, rounded
from pipeline.domain.tables import TABLES, Column, Table
from pipeline.lake.relations import declared, relation

EXAMPLES = 3

# A market, how many of its rows break a rule, and a few of them.
Broken = tuple[str, int, Sequence[dict[str, Any]]]

# In the order in which they depend on each other.
CHECKED = ("search", "cell", "offer", "penalty", "promotion", "reject", "drift")

_OF_OFFERS = ("offer", "penalty", "promotion")

# Values outside their range that leave the offer usable: a discount that cannot be is what reports on promotions are
# about, and a number of rooms that cannot be is a marker. Any other one makes the price or its terms worthless.
_TOLD_ONLY = frozenset({("offer", "discount_pct"), ("offer", "available_rooms")})


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for the rows of a table. Where it quarantines, the offer goes that the row is, or belongs to; of a
    search, all its offers go.
    """

    name: str
    table: str
    severity: str
    quarantines: bool
    meaning: str
    sql: str
    is_share: bool = False
    """Whether not each violation is reported, but only a larger share of them than in earlier nights."""


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules, by name."""
    written = [_written(name, said) for name, said in sorted(declared("audit", "rules").items())]
    ranges = [
        _range(TABLES[name], column)
        for name in CHECKED
        for column in TABLES[name].columns
        if (column.lowest, column.highest) != (None, None)
    ]
    return (*written, *ranges)


def _written(name: str, said: Mapping[str, Any]) -> Rule:
    found = relation("audit", name)
    quarantines = said["violators"] == "quarantined"
    return Rule(name, said["table"], said["severity"], quarantines, found.grain, found.sql, "judged_by" in said)


def _range(table: Table, column: Column) -> Rule:
    bounds = [("below", "<", column.lowest), ("above", ">", column.highest)]
    outside = [(word, f"{column.name} {sign} {bound}", bound) for word, sign, bound in bounds if bound is not None]
    meaning = f"One row per {table.name} whose {column.name} is {' or '.join(f'{w} {b:g}' for w, _, b in outside)}."
    sql = (
        f"SELECT market, {place(table)}, '{column.name} is ' || {column.name} AS reason "  # noqa: S608 - our own names
        f"FROM sweep_files.{table.name} WHERE {' OR '.join(condition for _, condition, _ in outside)}"
    )
    quarantines = table.name in _OF_OFFERS and (table.name, column.name) not in _TOLD_ONLY
    return Rule(f"range_{column.name}", table.name, "warning", quarantines, meaning, sql)


def place(table: Table) -> str:
    """Return the columns that say of a table's row which offer it belongs to, as far as it says so."""
    names = [each.name for each in table.columns]
    return ", ".join(
        name if name in names else f"NULL::{kind} AS {name}"
        for name, kind in (("property_id", "BIGINT"), ("search_id", "BIGINT"), ("offer_no", "INTEGER"))
    )


def count_broken(session: duckdb.DuckDBPyConnection, rule: Rule) -> list[Broken]:
    """Count the rows that break a rule, per market, with a few of them."""
    return _broken(session, f"({rule.sql})")


def measure_rules(
    session: duckdb.DuckDBPyConnection, counted: Mapping[tuple[str, str], Sequence[Broken]] = MappingProxyType({})
) -> Iterator[Measure]:
    """Measure the violations of each rule, per market, with a few examples and where their raw answers lie.

    `counted` are those that are counted already, by table and rule.
    """
    taken = _taken(session)
    for rule in rules():
        key = rule.table, rule.name
        found = (
            taken[key] if is_taken_as_it_is(rule) else counted[key] if key in counted else count_broken(session, rule)
        )
        meaning = rule.meaning.removeprefix("One row per ").removesuffix(".")
        if rule.is_share:
            yield from _shares(session, rule, meaning, {market: (count, some) for market, count, some in found})
            continue
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
                examples=with_addresses(session, examples),
            )


def is_taken_as_it_is(rule: Rule) -> bool:
    """Return whether the rows that break a rule are those of `audit.violation`: of a search, all its offers are."""
    return rule.quarantines and rule.table != "search"


def _taken(session: duckdb.DuckDBPyConnection) -> defaultdict[tuple[str, str], list[Broken]]:
    """Return the rows of `audit.violation` by table and rule, as `_broken` does: no rule looks at its table twice."""
    found: defaultdict[tuple[str, str], list[Broken]] = defaultdict(list)
    for market, count, some, part, rule in _broken(session, "audit.violation", "part", "rule"):
        found[part, rule].append((market, count, some))
    return found


def _broken(session: duckdb.DuckDBPyConnection, rows: str, *also_by: str) -> list[Any]:
    """Return per market how many rows there are, and a few of them."""
    columns = "".join(f", {name}" for name in also_by)
    return session.execute(
        f"SELECT market, count(*), min({{search_id: search_id, offer_no: offer_no, property_id: property_id, "  # noqa: S608 - our own relations
        f"reason: reason}}, {EXAMPLES}){columns} FROM {rows} GROUP BY market{columns} ORDER BY market{columns}"
    ).fetchall()


def _shares(
    session: duckdb.DuckDBPyConnection,
    rule: Rule,
    meaning: str,
    found: Mapping[str, tuple[int, Sequence[dict[str, Any]]]],
) -> Iterator[Measure]:
    """Measure the share of a table's rows that break a rule, per market."""
    rows = session.execute(f"SELECT market, count(*) FROM sweep_files.{rule.table} GROUP BY market ORDER BY market")  # noqa: S608 - our own names
    for market, total in rows.fetchall():
        count, examples = found.get(market, (0, ()))
        yield Measure(
            market or ALL,
            rule.table,
            rule.name,
            rule.severity,
            f"share of: {meaning}",
            "history",
            rounded(count / total),
            side="high",
            of=total,
            violations=count,
            examples=with_addresses(session, examples) if count else None,
        )


def with_addresses(session: duckdb.DuckDBPyConnection, found: Sequence[dict[str, Any]]) -> str:
    """Return examples as JSON, each with the address of its raw answer."""
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
