"""What a night would request and cost, estimated before any call."""

from dataclasses import dataclass

from pipeline.domain.errors import NightauditError
from pipeline.domain.search import Operation
from pipeline.domain.tables import SEARCH, SWEEP
from pipeline.lake import Lake
from pipeline.lake.database import connect, select_files
from pipeline.lake.delta import committed_files
from pipeline.lake.relations import relation
from pipeline.lake.sweep_files import sweep_files
from pipeline.night.choose_detail import Choice, choose_detail
from pipeline.night.durations import durations_of
from pipeline.night.night_sweep import endless
from pipeline.night.read_spec import read_spec_of, spec_folder
from pipeline.plan import PlanCounts, SweepPlan
from pipeline.plan.estimate import CostHistory, Estimate, OperationCost, TimedStep, estimate
from pipeline.settings import Settings
from pipeline.spec import SweepSpec

# Sweeps in the averages.
_SWEEPS = 5


def cost_history(lake: Lake) -> CostHistory | None:
    """Return the costs of the last loaded sweeps; None: there are none, or the lake cannot be read."""
    try:
        sweeps, costs = _by_operation(lake)
        durations = {step: tuple(durations_of(lake, step)) for step in TimedStep}
    except NightauditError:
        # Commands that need the lake report what is wrong with it; a plan can be made without.
        return None
    return CostHistory(sweeps, costs, durations) if costs or any(durations.values()) else None


def _by_operation(lake: Lake) -> tuple[int, dict[Operation, OperationCost]]:
    # A sweep gets its row after all its tables are loaded.
    latest = sorted(file.parent.name for file in committed_files(lake, SWEEP))[-_SWEEPS:]
    held = sweep_files(lake, SEARCH)
    files = [file for sweep_id in latest for file in held.get(sweep_id, [])]
    with connect(lake) as session:
        session.execute("CREATE SCHEMA lake")
        session.execute(f"CREATE VIEW lake.search AS {select_files('search', files)}")
        rows = session.execute(relation("staging", "search_cost").sql).fetchall()
    costs = {
        Operation(operation): OperationCost(wire_bytes, table_bytes, latency)
        for operation, _, wire_bytes, table_bytes, latency in rows
    }
    return max((row[1] for row in rows), default=0), costs


@dataclass(frozen=True, slots=True)
class Outlook:
    """A night that has not begun. `endless` says why the daily cap would never let it end; empty: it would."""

    spec: SweepSpec
    properties: int
    counts: PlanCounts
    cost: Estimate
    history: CostHistory | None
    chosen: Choice | None
    endless: str


def look_ahead(settings: Settings, lake: Lake) -> Outlook:
    """Plan and estimate today's night, without requests or writes. Raises SpecError and InputError."""
    today = settings.clock().date()
    spec, ids = read_spec_of(settings, today)
    chosen = choose_detail(spec, ids, today, lake.published_file, spec_folder(settings))
    plan = SweepPlan.of(spec, ids, today, None if chosen is None else chosen.property_ids)
    counts, history = plan.counts(), cost_history(lake)
    allowed = (settings.rate, settings.in_flight, history, settings.daily_calls)
    is_spread = settings.spread_over is not None
    cost = estimate(counts, *allowed, is_simulated=settings.is_simulated, is_spread=is_spread)
    return Outlook(spec, len(ids), counts, cost, history, chosen, endless(plan.partitions, settings.daily_calls))


def as_record(outlook: Outlook) -> dict[str, object]:
    """Return an outlook as one flat record for programs, in bytes and seconds."""
    counts, cost = outlook.counts, outlook.cost
    return {
        "properties": outlook.properties,
        "markets": list(outlook.spec.ask.markets),
        "cells": counts.cells,
        "searches": counts.searches,
        **{f"searches_{operation}": searches for operation, searches in counts.searches_by_operation.items()},
        "wire_bytes": cost.wire_bytes,
        "raw_bytes": cost.raw_bytes,
        "table_bytes": cost.table_bytes,
        **{f"{step}_seconds": round(took.seconds, 1) for step, took in cost.steps.items()},
        "days": cost.days,
        "bound": cost.bound.value,
        "measured_on_cluster": [step.value for step, took in cost.steps.items() if took.is_spread],
        "assumed": [operation.value for operation in cost.assumed],
        "refusal": outlook.endless or None,
    }


def as_markdown(outlook: Outlook) -> str:
    """Return an outlook as a table in Markdown."""
    rows = [
        f"| {name.replace('_', ' ')} | {', '.join(value) if isinstance(value, list) else value} |"
        for name, value in as_record(outlook).items()
        if value not in (None, [])
    ]
    return "\n".join(["# Dry run: nothing was requested", "", "| | |", "| --- | --- |", *rows])
