"""What nights would cost, computed from what was measured: the table of flows/README.md.

cells    = properties x days x lengths x markets x parties
searches = cells / 100                                      100 properties per search
offers   = cells x 9                                        offers that a cell had on average
CPU      = offers x (sweep + publish + audit)               microseconds of each, below; spread over workers
report   = offers x report                                  on one machine, on one core
workers  = CPU / ((8 hours - report) x 2 cores x efficiency)    whole ones, at least one; none if the report is longer
memory   = 0.5 GB + offers x memory of an offer in a report     of the machine that runs the night
rate     = searches / 8 hours
moved    = 2 x (wire + tables + state)                      written once and read once
wire     = cells x 400 B + searches x 1,000 B               kept as raw answers
tables   = offers x bytes of an observation                 kept for NIGHTAUDIT_OBSERVATION_NIGHTS
history  = offers x bytes of a night's changes              kept forever
state    = offers x bytes of an offer's state               replaced every night, with the published file
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
# A million offers were published by one Dask worker in 30.0 s, and by two in 18.8 s: tests/benchmarks/README.md.
EFFICIENCY = 30.0 / 18.8 / 2
# A second night of 35.6 million offers, in 630 CPU seconds on a busy machine; one of 3.5 million took 13.3 us an offer.
PUBLISH_US = 630 / 35.6
# What that night wrote to the state, and the published file after it.
STATE_BYTES = (219.5e6 + 27.8e6) / 3.5e6
# The same night was audited in 84 CPU seconds.
AUDIT_US = 84 / 35.6
# A report of 35.6 million offers took 106 CPU seconds. Each page has a process of its own; the largest one took 621 MB,
# and that of 3.5 million offers 519 MB.
REPORT_US = 106 / 35.6
REPORT_BASE_BYTES, REPORT_BYTES = 0.51e9, (621e6 - 519e6) / (35.6e6 - 3.5e6)

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
    report_hours: float
    workers: int | None
    """None: no number of workers is enough, as the report alone takes the night."""
    memory_bytes: float
    searches_per_second: float
    wire_bytes: float
    table_bytes: float
    history_bytes: float
    state_bytes: float

    @property
    def moved_bytes(self) -> float:
        return 2 * (self.wire_bytes + self.table_bytes + self.state_bytes)


def measured() -> dict[str, float]:
    """Return the latest results of `make bench`, by label."""
    parts = json.loads(RESULTS.read_text())["parts"].values()
    return {row["what"]: row["value"] for part in parts for row in part["rows"]}


def cost(properties: int, scope: Scope, found: dict[str, float]) -> Cost:
    """Return what a night would take, by the formulas above."""
    cells = properties * scope.cells
    searches, offers = cells / PROPERTIES_PER_SEARCH, cells * OFFERS_PER_CELL
    us_an_offer = found["nightaudit: CPU of each further offer"] + PUBLISH_US + AUDIT_US
    cpu_seconds, report_seconds = offers * us_an_offer / 1e6, offers * REPORT_US / 1e6
    left_seconds = NIGHT_SECONDS - report_seconds
    return Cost(
        searches=searches,
        offers=offers,
        cpu_hours=cpu_seconds / 3600,
        report_hours=report_seconds / 3600,
        workers=max(1, math.ceil(cpu_seconds / (left_seconds * CORES * EFFICIENCY))) if left_seconds > 0 else None,
        memory_bytes=REPORT_BASE_BYTES + offers * REPORT_BYTES,
        searches_per_second=searches / NIGHT_SECONDS,
        wire_bytes=cells * ASSUMED[Operation.MULTI].wire_bytes_per_cell + searches * RAW_BYTES_PER_SEARCH,
        table_bytes=offers * found["stored: a night's offers with penalties and promotions"],
        history_bytes=offers * found["stored: history as changes, over 30 nights"],
        state_bytes=offers * STATE_BYTES,
    )


def table() -> str:
    """Return the costs of nights of several sizes, as a Markdown table."""
    found = measured()
    names = (
        "properties, scope, offers, searches, in 8 hours, CPU hours, report, workers of 2 cores, memory, raw, tables, "
        "history, state, moved"
    )
    lines = [f"| {names.replace(', ', ' | ')} |", "|---" * 14 + "|"]
    for scope in SCOPES:
        for properties in PROPERTIES:
            each = cost(properties, scope, found)
            lines.append(
                f"| {properties:,} | {scope.name} | {_short(each.offers)} | {_short(each.searches)} | "
                f"{each.searches_per_second:,.1f}/s | {each.cpu_hours:,.1f} | {each.report_hours:,.1f} h | "
                f"{'-' if each.workers is None else format(each.workers, ',')} | {_bytes(each.memory_bytes)} | "
                f"{_bytes(each.wire_bytes)} | {_bytes(each.table_bytes)} | {_bytes(each.history_bytes)} | "
                f"{_bytes(each.state_bytes)} | {_bytes(each.moved_bytes)} |"
            )
    us = found["nightaudit: CPU of each further offer"], PUBLISH_US, AUDIT_US, REPORT_US
    what = f"sweep {us[0]:.1f} us, publish {us[1]:.1f} us, audit {us[2]:.1f} us; report {us[3]:.1f} us, on one core"
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
