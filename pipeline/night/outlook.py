"""What a night would request and cost, estimated before a single call."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.lake import Lake
from pipeline.night.choose_detail import Choice, choose_detail
from pipeline.night.costs import cost_history
from pipeline.night.read_spec import read_spec_of, spec_folder
from pipeline.night.steps import endless
from pipeline.plan import PlanCounts, SweepPlan
from pipeline.plan.estimate import CostHistory, Estimate, estimate
from pipeline.settings import Settings
from pipeline.spec import SweepSpec


@dataclass(frozen=True, slots=True)
class Outlook:
    """A night that has not begun. `endless` says why the daily cap would let it never end; else it is empty."""

    spec: SweepSpec
    properties: int
    counts: PlanCounts
    cost: Estimate
    history: CostHistory | None
    chosen: Choice | None
    endless: str


def look_ahead(settings: Settings, lake: Lake) -> Outlook:
    """Plan today's night and estimate it. Nothing is asked or written. Raises SpecError and InputError."""
    today = settings.clock().date()
    spec, ids = read_spec_of(settings, today)
    chosen = choose_detail(spec, ids, today, lake.published_file, spec_folder(settings))
    plan = SweepPlan.of(spec, ids, today, None if chosen is None else chosen.property_ids)
    counts, history = plan.counts(), cost_history(lake)
    cost = estimate(
        counts,
        settings.rate,
        settings.in_flight,
        history,
        settings.daily_calls,
        is_simulated=settings.is_simulated,
    )
    return Outlook(spec, len(ids), counts, cost, history, chosen, endless(plan.partitions, settings.daily_calls))


def as_record(outlook: Outlook) -> dict[str, object]:
    """Return what a night would ask and cost as one flat record, for programs. Bytes are bytes, seconds seconds."""
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
        "assumed": [operation.value for operation in cost.assumed],
        "refusal": outlook.endless or None,
    }


def as_markdown(outlook: Outlook) -> str:
    """Return what a night would ask and cost as a table in Markdown."""
    rows = [
        f"| {name.replace('_', ' ')} | {', '.join(value) if isinstance(value, list) else value} |"
        for name, value in as_record(outlook).items()
        if value not in (None, [])
    ]
    return "\n".join(["# Dry run: nothing was asked", "", "| | |", "| --- | --- |", *rows])
