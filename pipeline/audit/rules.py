"""Row-level rules: each selects the rows that break it, and passes if there are none.

Most are the relations of `sql/audit`. `rules.toml` there says which table a rule looks at, how severe a violation is,
whether violators are quarantined, and why. The others follow from the bounds of the declared columns.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

import duckdb
import msgspec

from pipeline.audit.results import ALL, Measure, rounded
from pipeline.domain.tables import TABLES, Column, Table
from pipeline.lake.database import OF_OFFERS
from pipeline.lake.relations import declarations, relation

EXAMPLES = 3
# Characters of a reason, which may quote a text of the supplier.
LONGEST_REASON = 300

# A market, how many of its rows break a rule, and a few of them.
Broken = tuple[str, int, Sequence[dict[str, Any]]]

# In the order in which they depend on each other.
CHECKED = ("search", "cell", "offer", "penalty", "promotion", "reject", "drift")

# Out of bounds, these leave the offer usable: reports on promotions are about impossible discounts, and an impossible
# number of rooms is a marker. Any other value out of bounds makes the price or its terms worthless.
_REPORTED_ONLY = frozenset({("offer", "discount_pct"), ("offer", "available_rooms")})


class DeclaredRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `rules.toml` says about a relation of `sql/audit`; its head explains each key."""

    name: str
    table: str
    severity: Literal["critical", "warning"]
    violators: Literal["quarantined", "kept"]
    reason: str
    judged_by: Literal["history"] | None = None
    judged_because: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for the rows of a table.

    If it `quarantines`, the offer of a row that breaks it is quarantined, or all offers of a search that does. With
    `is_share`, not each violation is reported, but only a larger share of them than in earlier nights.
    """

    name: str
    table: str
    severity: str
    quarantines: bool
    meaning: str
    sql: str
    is_share: bool = False


def declared_rules() -> Mapping[str, DeclaredRule]:
    """Return what is declared about the relations of `sql/audit`, by name."""
    return declarations("audit", "rules", DeclaredRule)


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules, by name."""
    written = [_written(declared) for _, declared in sorted(declared_rules().items())]
    ranges = [
        _range(TABLES[name], column)
        for name in CHECKED
        for column in TABLES[name].columns
        if (column.lowest, column.highest) != (None, None)
    ]
    return (*written, *ranges)


def _written(declared: DeclaredRule) -> Rule:
    found, quarantines = relation("audit", declared.name), declared.violators == "quarantined"
    is_share = declared.judged_by == "history"
    return Rule(declared.name, declared.table, declared.severity, quarantines, found.grain, found.sql, is_share)


def _range(table: Table, column: Column) -> Rule:
    bounds = [("below", "<", column.lowest), ("above", ">", column.highest)]
    outside = [(word, f"{column.name} {sign} {bound}", bound) for word, sign, bound in bounds if bound is not None]
    meaning = f"One row per {table.name} with {column.name} {' or '.join(f'{w} {b:,.12g}' for w, _, b in outside)}."
    of_bound = {"below": "lowest", "above": "highest"}
    cases = " ".join(
        f"WHEN {condition} THEN ' is {word} {bound:,.15g}, the {of_bound[word]} allowed'"
        for word, condition, bound in outside
    )
    said = f"'{in_words(column)}: ' || format('{{:,.15g}}', {column.name}::DOUBLE) || CASE {cases} END"
    sql = (
        f"SELECT market, {place(table)}, {said} AS reason "  # noqa: S608 - our own names
        f"FROM sweep_files.{table.name} WHERE {' OR '.join(condition for _, condition, _ in outside)}"
    )
    quarantines = table.name in OF_OFFERS and (table.name, column.name) not in _REPORTED_ONLY
    return Rule(f"range_{column.name}", table.name, "warning", quarantines, meaning, sql)


def in_words(column: Column) -> str:
    """Return the name of a column in words, such as `discount percentage`."""
    return column.name.replace("_pct", "_percentage").replace("_", " ")


def place(table: Table) -> str:
    """Return the columns that name the offer of a table's row, NULL where the table lacks them."""
    names = [each.name for each in table.columns]
    return ", ".join(
        name if name in names else f"NULL::{kind} AS {name}"
        for name, kind in (("property_id", "BIGINT"), ("search_id", "BIGINT"), ("offer_no", "INTEGER"))
    )


def count_broken(session: duckdb.DuckDBPyConnection, rule: Rule) -> list[Broken]:
    """Return, per market, the number of rows that break a rule, and a few of them."""
    return _broken(session, f"({rule.sql})")


def measure_rules(
    session: duckdb.DuckDBPyConnection, counted: Mapping[tuple[str, str], Sequence[Broken]] = MappingProxyType({})
) -> Iterator[Measure]:
    """Measure the violations of each rule per market, with examples and the addresses of their raw answers.

    `counted` are violations that have been counted already, by table and rule.
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
    """Whether the rows that break a rule are in `audit.violation`; for a search, all its offers are instead."""
    return rule.quarantines and rule.table != "search"


def _taken(session: duckdb.DuckDBPyConnection) -> defaultdict[tuple[str, str], list[Broken]]:
    """Count the rows of `audit.violation` by table and rule, so that no rule looks at its table twice."""
    found: defaultdict[tuple[str, str], list[Broken]] = defaultdict(list)
    for market, count, some, part, rule in _broken(session, "audit.violation", "part", "rule"):
        found[part, rule].append((market, count, some))
    return found


def _broken(session: duckdb.DuckDBPyConnection, rows: str, *also_by: str) -> list[Any]:
    columns = "".join(f", {name}" for name in also_by)
    return session.execute(
        f"SELECT market, count(*), min({{search_id: search_id, offer_no: offer_no, property_id: property_id, "  # noqa: S608 - our own relations
        f"reason: left(reason, {LONGEST_REASON})}}, {EXAMPLES}){columns} "
        f"FROM {rows} GROUP BY market{columns} ORDER BY market{columns}"
    ).fetchall()


def _shares(
    session: duckdb.DuckDBPyConnection,
    rule: Rule,
    meaning: str,
    found: Mapping[str, tuple[int, Sequence[dict[str, Any]]]],
) -> Iterator[Measure]:
    rows = session.execute(f"SELECT market, count(*) FROM sweep_files.{rule.table} GROUP BY market ORDER BY market")  # noqa: S608 - our own names
    for market, total in rows.fetchall():
        count, examples = found.get(market, (0, ()))
        yield Measure(
            market or ALL,
            rule.table,
            rule.name,
            rule.severity,
            f"{meaning} (share)",
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
    with_address = [row | {"raw_address": addresses.get(row["search_id"])} for row in found]
    return json.dumps(with_address, ensure_ascii=False, default=str)
