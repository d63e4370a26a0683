"""What nights would cost, computed from what was measured: the table of flows/README.md.

cells    = properties x days x lengths x markets x parties
searches = cells / 100                                      100 properties per search
offers   = cells x 9                                        offers that a cell had on average
CPU      = offers x (sweep + publish + audit and report)    microseconds of each, below
workers  = CPU / (8 hours x 2 cores x efficiency)           whole ones, at least one
rate     = searches / 8 hours
wire     = cells x 400 B + searches x 1,000 B               kept as raw answers
tables   = offers x bytes of an observation                 kept for NIGHTAUDIT_OBSERVATION_NIGHTS
history  = offers x bytes of a night's changes              kept forever
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from pipeline.domain.search import Operation
from pipeline.plan.estimate import ASSUMED, RAW_BYTES_PER_SEARCH

RESULTS = Path(__file__).parent / "results.json"
NIGHT_SECONDS = 8 * 3600
CORES = 2
OFFERS_PER_CELL = 9
PROPERTIES_PER_SEARCH = 100
# Pairs of 35 million offers in 30 ranges: one Dask worker took 17.4 s, two 9.5 s.
EFFICIENCY = 17.4 / 9.5 / 2
# Thirty nights of 1.65 million offers each were published in 1,151 CPU seconds: tests/benchmarks/README.md.
PUBLISH_US = 1151 / (30 * 1.65)
# A night of 3.46 million offers was audited in 13.8 CPU seconds and reported in 18.2 on 2026-11-22.
AUDIT_AND_REPORT_US = (13.8 + 18.2) / 3.46

PROPERTIES = (10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class Scope:
    """What is requested for each property."""

    name: str
    days: int
    lengths: int
    markets: int
    parties: int

    @property
    def cells(self) -> int:
        return self.days * self.lengths * self.markets * self.parties


SCOPES = (Scope("core", 90, 1, 2, 1), Scope("full", 365, 3, 8, 2))


@dataclass(frozen=True)
class Cost:
    """What one night would take."""

    searches: float
    offers: float
    cpu_hours: float
    workers: int
    searches_per_second: float
    wire_bytes: float
    table_bytes: float
    history_bytes: float


def measured() -> dict[str, float]:
    """Return the latest results of `make bench`, by label."""
    parts = json.loads(RESULTS.read_text())["parts"].values()
    return {row["what"]: row["value"] for part in parts for row in part["rows"]}


def cost(properties: int, scope: Scope, found: dict[str, float]) -> Cost:
    """Return what a night would take, by the formulas above."""
    cells = properties * scope.cells
    searches, offers = cells / PROPERTIES_PER_SEARCH, cells * OFFERS_PER_CELL
    us_an_offer = found["nightaudit: CPU of each further offer"] + PUBLISH_US + AUDIT_AND_REPORT_US
    cpu_seconds = offers * us_an_offer / 1e6
    return Cost(
        searches=searches,
        offers=offers,
        cpu_hours=cpu_seconds / 3600,
        workers=max(1, math.ceil(cpu_seconds / (NIGHT_SECONDS * CORES * EFFICIENCY))),
        searches_per_second=searches / NIGHT_SECONDS,
        wire_bytes=cells * ASSUMED[Operation.MULTI].wire_bytes_per_cell + searches * RAW_BYTES_PER_SEARCH,
        table_bytes=offers * found["stored: a night's offers with penalties and promotions"],
        history_bytes=offers * found["stored: history as changes, over 30 nights"],
    )


def table() -> str:
    """Return the costs of nights of several sizes, as a Markdown table."""
    found = measured()
    names = "properties, scope, offers, searches, in 8 hours, CPU hours, workers of 2 cores, raw, tables, history"
    lines = [f"| {names.replace(', ', ' | ')} |", "|---" * 10 + "|"]
    for scope in SCOPES:
        for properties in PROPERTIES:
            each = cost(properties, scope, found)
            lines.append(
                f"| {properties:,} | {scope.name} | {_short(each.offers)} | {_short(each.searches)} | "
                f"{each.searches_per_second:,.1f}/s | {each.cpu_hours:,.1f} | {each.workers:,} | "
                f"{_bytes(each.wire_bytes)} | {_bytes(each.table_bytes)} | {_bytes(each.history_bytes)} |"
            )
    us = found["nightaudit: CPU of each further offer"], PUBLISH_US, AUDIT_AND_REPORT_US
    what = f"sweep {us[0]:.1f} us, publish {us[1]:.1f} us, audit and report {us[2]:.1f} us"
    reported = f"CPU per offer: {what}. Two workers together do {2 * EFFICIENCY:.2f} times the work of one."
    return "\n".join([*lines, "", reported])


def _short(number: float) -> str:
    for size, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:,.1f} {name}"
    return f"{number:,.0f}"


def _bytes(number: float) -> str:
    return f"{number / 1e12:,.2f} TB" if number >= 1e12 else f"{number / 1e9:,.2f} GB"


if __name__ == "__main__":
    print(table())  # noqa: T201 - it is what it is for
