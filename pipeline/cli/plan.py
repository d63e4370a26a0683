"""`nightaudit plan`: what a spec will cost."""

from __future__ import annotations

from pathlib import Path

from pipeline.cli import views
from pipeline.cli.given import settings_with
from pipeline.cli.terminal import Terminal
from pipeline.lake import Lake
from pipeline.night.choose_detail import choose_detail
from pipeline.night.costs import cost_history
from pipeline.night.read_spec import read_spec_of, spec_folder
from pipeline.night.steps import endless
from pipeline.plan import SweepPlan
from pipeline.plan.estimate import estimate


def show_plan(spec_path: Path | None, limit: int | None) -> None:
    """Print what a spec will cost."""
    settings = settings_with(spec_path, limit)
    lake, today = Lake(settings.lake), settings.clock().date()
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
    never = endless(plan.partitions, settings.daily_calls)
    Terminal().print(views.plan_view(settings, spec, len(ids), counts, cost, history, chosen, endless=never))
