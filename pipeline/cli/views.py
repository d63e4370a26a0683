"""What the commands print, made from their arguments alone: no lake, no network, no clock."""

import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.cli.terminal import listing
from pipeline.domain.search import STATUSES
from pipeline.lake.raw import Manifest
from pipeline.lake.simulated import SIMULATED
from pipeline.night.choose_detail import Choice
from pipeline.night.outlook import Outlook
from pipeline.night.overview import Overview, SweepOverview
from pipeline.night.summary import NightSummary, lines_of
from pipeline.night.supplier import supplier_name, what_else
from pipeline.night.tolerance import failed_share
from pipeline.plan.estimate import Bound, TimedStep
from pipeline.publish import Published
from pipeline.settings import Settings

# Before anything is requested.
_TO_COME = "The data will be simulated: the bundled sandbox answers, not a supplier."


def plan_view(settings: Settings, outlook: Outlook, cluster: str) -> RenderableType:
    """Return what a plan requests and costs; `cluster` says who shares the work, if there is a cluster."""
    spec, counts, cost, chosen = outlook.spec, outlook.counts, outlook.cost, outlook.chosen
    table = _pairs()
    table.add_row("Properties", f"{outlook.properties:,}")
    table.add_row("Markets", f"{len(spec.ask.markets)}: {' '.join(spec.ask.markets)}")
    table.add_row("Cells", f"{counts.cells:,}")
    for operation, searches in counts.searches_by_operation.items():
        table.add_row(f"Requests ({operation})", f"{searches:,}")
    if chosen is not None and spec.detail is not None:
        table.add_row("In detail", _chosen(chosen, spec.detail.budget))
    table.add_row("Answers over the wire", _bytes(cost.wire_bytes))
    table.add_row("Raw zone", _bytes(cost.raw_bytes))
    table.add_row("Tables", _bytes(cost.table_bytes))
    table.add_row("Duration", f"{_duration(cost.hours * 3600)} ({_BOUNDS[cost.bound]})")
    after = (f"{step} {_duration(took.seconds)}" for step, took in cost.steps.items() if step is not TimedStep.SWEEP)
    table.add_row("Then", ", ".join(after))
    if cluster:
        table.add_row("Cluster", cluster)
    table.add_row("At most", f"{settings.rate:g} requests/s, {settings.in_flight} in flight")
    if cost.days is not None:
        days = _times(cost.days, "day")
        table.add_row("Daily cap", f"{settings.daily_calls:,} calls a day: {'never' if outlook.endless else days}")
    for source, figures in _sources(outlook).items():
        table.add_row(source, figures)
    refused = [Text(f"{outlook.endless} A sweep is refused.", style="bold red")] if outlook.endless else []
    return Group(table, *refused, Text(_TO_COME if settings.is_simulated else "", style="yellow"))


_BOUNDS = {
    Bound.RATE: "limited by the allowed rate",
    Bound.IN_FLIGHT: "limited by requests in flight",
    Bound.PACE: "as measured in earlier sweeps",
}


def _sources(outlook: Outlook) -> dict[str, str]:
    """Return which figures were measured in earlier sweeps of this lake, and which are assumed."""
    counts, cost, sweeps = outlook.counts, outlook.cost, outlook.history.sweeps if outlook.history else 0
    measured: list[str] = []
    assumed: list[str] = []
    for operation in counts.searches_by_operation:
        figures = f"bytes and latency of {operation}"
        if operation in cost.assumed:
            assumed.append(figures)
        else:
            measured.append(f"{figures} ({_times(sweeps, 'sweep')})")
    for step, took in cost.steps.items():
        name = "pace of the sweep" if step is TimedStep.SWEEP else f"{step}"
        if took.nights:
            measured.append(f"{name} ({_times(took.nights, 'night')})")
        elif step is not TimedStep.SWEEP:
            assumed.append(name)
    return {name: ", ".join(of) for name, of in (("Measured", measured), ("Assumed", assumed)) if of}


def _times(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _chosen(chosen: Choice, budget: int) -> str:
    text = f"{len(chosen.property_ids):,} properties at {chosen.requests_each:,} requests, budget {budget:,}"
    if chosen.is_first_night:
        return f"{text}; nothing is published yet to choose from, so only the watch list is searched"
    fitting = ", ".join(f"{rule} {count:,}" for rule, count in chosen.fitting.items())
    return f"{text}; fitting: {fitting or 'none'}"


def begun_view(manifest: Manifest) -> RenderableType:
    """Return which sweep begins."""
    of_what = f": {manifest.cells:,} cells (supplier: {manifest.supplier}). "
    text = Text.assemble("Sweep ", (manifest.sweep_id, "bold"), of_what)
    return text.append(_TO_COME, style="yellow") if manifest.is_simulated else text


def sweep_view(row: Mapping[str, Any]) -> RenderableType:
    """Return the counts of a loaded sweep."""
    table = _pairs()
    table.add_row("Planned cells", f"{row['planned']:,}")
    for status in STATUSES:
        table.add_row(f"  {status.replace('_', ' ')}", f"{row[status]:,}")
    table.add_row("Requests", f"{row['requests']:,}")
    table.add_row("Duration", _duration((row["finished_at"] - row["started_at"]).total_seconds()))
    table.add_row("Offers stored", f"{row['offers']:,}")
    table.add_row("Unreadable parts", f"{row['rejects']:,}")
    return table


# By whether the sweep is new, and whether the file was written.
_PUBLISHED = {
    (True, True): "Published.",
    (False, True): "Already published; the published file was rebuilt.",
    (False, False): "Already published; nothing changed.",
}


def published_view(published: Published) -> RenderableType:
    """Return what a publication changed."""
    row = published.sweep
    table = _pairs()
    table.add_row("Sweep", row["sweep_id"])
    table.add_row("Published file", str(published.file))
    table.add_row("Offers first seen", f"{row['offers_first']:,}")
    table.add_row("Offers changed", f"{row['offers_changed']:,}, {row['price_changes']:,} of them in price")
    table.add_row("Offers gone, back", f"{row['offers_gone']:,}, {row['offers_back']:,}")
    heading = Text(_PUBLISHED[published.is_new, published.is_built], style="green")
    return Group(heading, table, _simulated(row["is_simulated"]))


def night_view(summary: NightSummary) -> RenderableType:
    """Return the summary of a night."""
    table = _pairs()
    for label, text in lines_of(summary):
        table.add_row(label, Text(text, overflow="fold"))
    return Group(_simulated(summary.is_simulated), table, Text("\nOne query to try:"))


def status_view(
    held: Overview, settings: Settings, now: datetime, go_on: str = "", refusal: str = ""
) -> RenderableType:
    """Return the sweeps of a lake, the age of the published file, and what to do next with these settings.

    `go_on` is the command that continues with the latest sweep, if that is loaded and a step is missing. `refusal` is
    why any such command would be refused now.
    """
    if not held.sweeps:
        where = settings.lake if "://" in settings.lake else held.root
        if not held.root.exists():
            return Text.assemble(
                f"There is no lake at {where} (NIGHTAUDIT_LAKE). The first night creates one: ",
                ("nightaudit nightly", "cyan"),
            )
        if held.copy_of:
            return Text.assemble(
                f"{where} is a copy of the published data of {held.copy_of}, which has the sweeps. To update the "
                "copy: ",
                (f"nightaudit pull {shlex.quote(held.copy_of)} {shlex.quote(str(held.root))}", "cyan"),
            )
        return Text.assemble(f"The lake {where} has no sweeps yet. Start with: ", ("nightaudit nightly", "cyan"))
    table = listing("sweep", "state", "landed", "cells")
    table.columns[1].no_wrap = True
    for sweep in held.sweeps:
        done = f"{sweep.landed_searches / sweep.planned_searches:.0%}" if sweep.planned_searches else ""
        style = {"published": "green", "loaded": "blue"}.get(sweep.state, "yellow")
        table.add_row(sweep.sweep_id, Text(sweep.state, style), done, _cells(sweep))
    if held.latest_published:
        fresh = f"Published: {held.published_file}, {_age(held.latest_published.started_at, now)}."
    else:
        fresh = "Nothing is published yet."
    unfinished = [sweep for sweep in held.sweeps if sweep.state not in {"published", "loaded", "damaged"}]
    hint = _how_to_go_on(unfinished[-1], supplier_name(settings)) if unfinished else ""
    hint = f"Continue with: {go_on}" if go_on else hint
    hint = refusal if hint and refusal else hint
    is_simulated = any(sweep.is_simulated for sweep in held.sweeps)
    fault = [Text(held.fault, style="bold red")] if held.fault else []
    warned = _failed_cells(held.sweeps[-1], settings.tolerated_failed_share)
    return Group(table, Text(fresh), *fault, *warned, Text(hint, style="cyan"), _simulated(is_simulated))


def _how_to_go_on(sweep: SweepOverview, supplier: str) -> str:
    if sweep.supplier == supplier or sweep.state != "unfinished":
        return f"Continue with: nightaudit resume {sweep.sweep_id}"
    other = f"{sweep.sweep_id} used the supplier {sweep.supplier}; the settings name {supplier}."
    return f"{other} {what_else(sweep.sweep_id, has_landed=sweep.landed_searches > 0)}"


def _failed_cells(sweep: SweepOverview, tolerated: float) -> list[Text]:
    """Return a warning if more cells of a loaded sweep failed than are tolerated."""
    share = failed_share(sweep.counts) if sweep.counts else 0
    if share <= tolerated:
        return []
    warning = f"{share:.1%} of the planned cells of {sweep.sweep_id} failed; {tolerated:.1%} are tolerated."
    return [Text(warning, style="bold yellow")]


def _cells(sweep: SweepOverview) -> str:
    """Return the planned cells and, once counted, how many have each status."""
    counted = [
        f"{sweep.counts[name]:,} {name.replace('_', ' ')}" for name in STATUSES if sweep.counts and sweep.counts[name]
    ]
    return f"{sweep.planned_cells:,} planned" + (": " + " + ".join(counted) if counted else "")


def _pairs() -> Table:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    return table


def _simulated(is_simulated: bool) -> Text:
    return Text(SIMULATED if is_simulated else "", style="yellow")


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def _age(began_at: datetime, now: datetime) -> str:
    seconds = (now - began_at).total_seconds()
    if seconds < 0:
        return f"began at {began_at:%Y-%m-%d %H:%M} UTC, which is in the future by this machine's clock"
    return f"{_duration(seconds)} old"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"
