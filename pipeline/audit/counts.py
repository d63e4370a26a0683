"""Counts of a night's offers, over all of them or range by range of properties.

A search lies within one range, so what holds within a search (keys, penalties of an offer) is counted in each range and
added up. For checks over all properties, such as those of prices, each range leaves a few columns in files.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from pipeline.audit.declared import count_declared, count_doubled
from pipeline.audit.domain_measures import prepare_prices
from pipeline.audit.quarantine import find_violators
from pipeline.audit.rules import EXAMPLES, Broken, Rule, count_broken, is_taken_as_it_is, rules
from pipeline.domain.texts import literal
from pipeline.lake.database import OF_OFFERS
from pipeline.lake.files import note_touched
from pipeline.lake.relations import Relation, read_by, relation

# Tables of the schema `audit` that checks over all properties read, and to which each range adds rows.
_NARROW = ("search_offers", "property_offers", "property_penalties", "property_promotions")
_LEFT_BEHIND = (*_NARROW, "cell_price", "price_move", "violation")


@dataclass(frozen=True, slots=True)
class Counts:
    """Per table: missing and unlisted values by column, doubled keys. Per table and rule: the rows that break it."""

    declared: Mapping[str, Sequence[Sequence[Any]]]
    doubled: Mapping[str, int]
    broken: Mapping[tuple[str, str], Sequence[Broken]]


@dataclass(frozen=True, slots=True)
class RangeCounts:
    """The counts of a range, and the files that it leaves behind, by table."""

    counts: Counts
    files: Mapping[str, str]


def prepare(session: duckdb.DuckDBPyConnection) -> None:
    """Make the tables of `audit` that rules and measures read, from the offers that the session sees."""
    for name in _NARROW:
        session.execute(f"CREATE OR REPLACE TABLE audit.{name} AS {relation('measure', name).sql}")
    prepare_prices(session)
    find_violators(session)


def count_range(session: duckdb.DuckDBPyConnection, folder: Path, name: str) -> RangeCounts:
    """Count in a range, and write the columns that it leaves behind to files of that name."""
    prepare(session)
    counts = Counts(
        {table: count_declared(session, table) for table in OF_OFFERS},
        {table: count_doubled(session, table) for table in OF_OFFERS},
        {(rule.table, rule.name): count_broken(session, rule) for rule in _rules_of_ranges()},
    )
    # Another machine has no such folder.
    folder.mkdir(parents=True, exist_ok=True)
    files = {table: folder / f"{table}-{name}.parquet" for table in _LEFT_BEHIND}
    for table, file in files.items():
        session.execute(f"COPY audit.{table} TO {literal(str(file))} (FORMAT parquet)")
    note_touched(files.values())
    return RangeCounts(counts, {table: str(file) for table, file in files.items()})


def add_up(session: duckdb.DuckDBPyConnection, parts: Sequence[RangeCounts]) -> Counts:
    """Add up the counts of all ranges, and make the tables of `audit` from the files that they left behind."""
    for table in _LEFT_BEHIND:
        files = ", ".join(literal(part.files[table]) for part in parts)
        session.execute(f"CREATE VIEW audit.{table} AS FROM read_parquet([{files}])")
    counted = [part.counts for part in parts]
    return Counts(
        {table: _added(row for each in counted for row in each.declared[table]) for table in OF_OFFERS},
        {table: sum(each.doubled[table] for each in counted) for table in OF_OFFERS},
        {key: _joined(row for each in counted for row in each.broken[key]) for key in counted[0].broken},
    )


@cache
def _rules_of_ranges() -> tuple[Rule, ...]:
    """Return the rules about offers, penalties and promotions that look at nothing beyond a range."""
    found = {(rule.table, rule.name): Relation(rule.table, rule.name, "", rule.sql) for rule in rules()}
    read = read_by(list(found.values()))
    return tuple(
        rule
        for rule in rules()
        if rule.table in OF_OFFERS
        and not is_taken_as_it_is(rule)
        and not any(name.startswith("audit.") for name in read[f"{rule.table}.{rule.name}"])
    )


def _added(rows: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
    added: dict[str | None, Sequence[Any]] = {}
    for market, *found in rows:
        before = added.get(market, [0] * len(found))
        added[market] = [one + other for one, other in zip(before, found, strict=True)]
    return [(market, *found) for market, found in added.items()]


def _joined(rows: Iterable[Broken]) -> list[Broken]:
    by_market = defaultdict(list)
    for market, count, examples in rows:
        by_market[market].append((count, examples))
    return [
        (
            market,
            sum(count for count, _ in found),
            heapq.nsmallest(EXAMPLES, (each for _, some in found for each in some), key=_as_ordered),
        )
        for market, found in sorted(by_market.items(), key=lambda item: (item[0] is None, item[0]))
    ]


def _as_ordered(example: Mapping[str, Any]) -> tuple[tuple[bool, Any], ...]:
    """Return what DuckDB orders an example by: its values in turn, NULL last."""
    return tuple((value is None, 0 if value is None else value) for value in example.values())
