"""Measures of the domain: the relations of `sql/measure`, with a row per market and a column per measure.

For each column, `measures.toml` there says what it means, how severe a deviation is, which side matters and how it is
compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import duckdb
import msgspec

from pipeline.audit.results import ALL, Measure, rounded
from pipeline.domain.search import ANSWERED, NODES_PER_SEARCH, STATUSES
from pipeline.lake.database import rows_of
from pipeline.lake.raw import Manifest
from pipeline.lake.relations import declarations, relation

REPEATED = "repeated_body_share"
# Of a market that is served from a cache, fewer answers than this are new.
_NEARLY_ALL = 0.95
_FEW = 9


class DeclaredMeasure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `measures.toml` says about a measure; its head explains each key."""

    severity: Literal["critical", "warning"]
    side: Literal["low", "high", "both"]
    kind: Literal["share", "rare", "level"]
    meaning: str
    harmless: float = 0.0


class DeclaredMeasures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table that a relation of `sql/measure` is about, and its measures by column."""

    name: str
    table: str
    measures: dict[str, DeclaredMeasure]


def declared_measures() -> Mapping[str, DeclaredMeasures]:
    """Return what is declared about the relations of `sql/measure`, by name."""
    return declarations("measure", "measures", DeclaredMeasures)


def view_leads(session: duckdb.DuckDBPyConnection) -> None:
    """Make the views that class the searches of both nights by lead time."""
    lead = relation("measure", "search_lead").sql
    for night in ("sweep_files", "before_files"):
        session.execute(f"CREATE VIEW {night}.search_lead AS {lead.replace('sweep_files.', f'{night}.')}")


def prepare_prices(session: duckdb.DuckDBPyConnection) -> None:
    """Make the tables of each cell's lowest price, tonight and when last published, and of its moves."""
    price = relation("measure", "cell_price").sql
    for night, table in (("sweep_files", "cell_price"), ("before_files", "cell_price_before")):
        session.execute(f"CREATE OR REPLACE TABLE audit.{table} AS {price.replace('sweep_files.', f'{night}.')}")
    session.execute(f"CREATE OR REPLACE TABLE audit.price_move AS {relation('measure', 'cell_price_move').sql}")


def measure_domain(session: duckdb.DuckDBPyConnection) -> Iterator[Measure]:
    """Measure what is compared with earlier nights, per market and, for prices, per lead time."""
    measures = [
        _measure(row, column, about.table, declared)
        for name, about in declared_measures().items()
        for row in rows_of(session.execute(relation("measure", name).sql))
        for column, declared in about.measures.items()
    ]
    silent = _silent_markets(measures)
    resting = resting_markets(measures)
    for measure in measures:
        is_harmless = measure.market in silent or (measure.check == REPEATED and measure.market in resting)
        yield replace(measure, severity="warning") if is_harmless else measure


def _silent_markets(measures: Sequence[Measure]) -> set[str]:
    """Return the markets that the supplier answered with "no offer" throughout, if they are at most half of all.

    Such a market is no reason to withhold the others. One that lost its offers in any other way is, and so is a night
    that has lost most of its markets.
    """
    shares = [measure for measure in measures if measure.check == "no_offer_share"]
    silent = {measure.market for measure in shares if measure.observed == 1}
    return silent if 2 * len(silent) <= len(shares) else set()


def resting_markets(measures: Sequence[Measure]) -> set[str]:
    """Return the markets of which too many answers are new for them to come from last night's cache.

    If a supplier converts prices at the rate of the day, no answer is repeated on weekdays, but most are at weekends.
    All markets together rest if each of those that repeat answers does.
    """
    repeating = [each for each in measures if each.check == REPEATED and (each.observed or 0) > each.harmless]
    resting = {
        each.market
        for each in repeating
        if each.market != ALL
        and each.observed is not None
        and each.observed < _NEARLY_ALL
        and each.of * (1 - each.observed) >= _FEW
    }
    return resting | {ALL} if resting == {each.market for each in repeating} - {ALL} else resting


def _measure(row: dict[str, Any], column: str, table: str, declared: DeclaredMeasure) -> Measure:
    lead = row.get("lead")
    value, count = row[column], row[f"{column}__of"]
    return Measure(
        row["market"] or ALL,
        table,
        f"{column}_lead_{lead}" if lead else column,
        declared.severity,
        declared.meaning + (f" (lead days {lead.replace('_', ' ')})" if lead else ""),
        "history",
        None if value is None else rounded(value),
        side=declared.side,
        harmless=declared.harmless,
        kind=declared.kind,
        of=float(count or 0),
    )


def measure_sweep(
    session: duckdb.DuckDBPyConnection, manifest: Manifest, sweep: dict[str, Any], age_days: int
) -> Iterator[Measure]:
    """Measure that a sweep's statuses add up, that no planned cell is missing, some are answered, and it is recent."""
    missing = sweep["planned"] - sum(sweep[status] for status in STATUSES)
    yield _rule(ALL, "sweep", "statuses_add_up", "planned cells without a status, or with two", missing)
    cells = session.execute("SELECT count(*) FROM sweep_files.cell").fetchall()[0][0]
    lost = manifest.cells - cells
    if manifest.cells:
        # Without any answer, nothing is known of this night: the last good one stays.
        answered = float(sum(sweep[status] for status in ANSWERED))
        yield Measure(ALL, "sweep", "answered_cells", "critical", "cells with an answer", "rule", answered, lowest=1.0)
    meaning = "planned cells that are missing" if lost >= 0 else "cells that were not planned"
    yield _rule(ALL, "cell", "cells_as_planned", meaning, lost)
    yield Measure(ALL, "sweep", "age_days", "warning", "days from sweep to audit", "rule", float(age_days), highest=1.0)
    planned: dict[str, int] = {}
    for partition in manifest.partitions:
        planned[partition.market] = planned.get(partition.market, 0) + partition.searches
    there = dict(
        session.execute(
            "SELECT market, count(DISTINCT search_id // $nodes) FROM sweep_files.cell GROUP BY 1",
            {"nodes": NODES_PER_SEARCH},
        ).fetchall()
    )
    for market in sorted(planned.keys() | there.keys()):
        lost = planned.get(market, 0) - there.get(market, 0)
        meaning = "planned searches without any cell" if lost >= 0 else "searches with cells that were not planned"
        yield _rule(market, "cell", "market_as_planned", f"{meaning} in the tables", lost)


def _rule(market: str, table: str, check: str, meaning: str, difference: int) -> Measure:
    count = abs(difference)
    return Measure(market, table, check, "critical", meaning, "rule", float(count), highest=0.0, violations=count)
