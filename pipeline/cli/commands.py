"""All commands. What they do is done by the pipeline; what they print is made in `views`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline import __version__
from pipeline.process.limits import refuse_tight_limits

app = typer.Typer(
    name="nightaudit",
    help="Sweep a lodging supplier's prices every night, keep every answer, publish what can be trusted.",
    epilog="Exit codes: 0 done; 1 a failure; 2 wrong usage or input; 3 blocked by the quality gate; 4 too many failed "
    "cells, or no answer that can be used; 5 another run holds the lake; 6 no space; 130, 143 stopped by "
    "SIGINT, SIGTERM.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Spec = Annotated[
    Path | None, typer.Option("--spec", help="Sweep spec (TOML or YAML). Default: NIGHTAUDIT_SPEC.", show_default=False)
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit", min=1, help="Only the first N properties of the spec: a quick first try.", show_default=False
    ),
]
Sweep = Annotated[str | None, typer.Argument(help="Sweep id. Default: the latest that fits.", show_default=False)]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nightaudit {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    refuse_tight_limits()


@app.command()
def plan(spec: Spec = None, limit: Limit = None) -> None:
    """Show how many cells, requests, bytes and hours a spec will cost, before a single call."""
    from pipeline.cli import plan

    plan.show_plan(spec, limit)


@app.command()
def sweep(spec: Spec = None, limit: Limit = None) -> None:
    """Begin a sweep: ask, land, normalise and load. It is neither audited nor published."""
    from pipeline.cli import sweep

    sweep.sweep(spec, limit)


@app.command()
def resume(
    sweep_id: Sweep = None,
    close: Annotated[bool, typer.Option("--close", help="Give up what has not landed: not swept, for good.")] = False,
) -> None:
    """Go on with a sweep that was interrupted. What has landed is not asked again."""
    from pipeline.cli import sweep

    sweep.resume(sweep_id, close=close)


@app.command()
def audit(sweep_id: Sweep = None) -> None:
    """Check a loaded sweep: what is found is stored, shown on a page, and decides whether it may be published."""
    from pipeline.cli import audit

    audit.audit(sweep_id)


@app.command()
def publish(
    sweep_id: Sweep = None,
    override: Annotated[
        str | None, typer.Option("--override", help="Publish although the audit failed; the reason stays written down.")
    ] = None,
) -> None:
    """Publish a loaded and audited sweep into the DuckDB file."""
    from pipeline.cli import publish

    publish.publish(sweep_id, override)


@app.command()
def nightly(spec: Spec = None, limit: Limit = None) -> None:
    """Run the whole night: sweep, load, audit, publish, summary."""
    from pipeline.cli import nightly

    nightly.nightly(spec, limit)


@app.command()
def demo(
    nights: Annotated[int, typer.Option("--nights", min=1, max=400, help="Nights to make, one a day.")] = 45,
    until: Annotated[
        str | None, typer.Option("--until", help="Day of the last night. Default: yesterday.", show_default=False)
    ] = None,
) -> None:
    """Fill an empty lake with simulated nights that have something to find, and say where to look."""
    from pipeline.cli import demo

    demo.demo(nights, until)


@app.command()
def rebuild() -> None:
    """Make all tables and the published file anew from the raw answers, without the network."""
    from pipeline.cli import rebuild

    rebuild.rebuild_lake()


@app.command()
def status() -> None:
    """Show the sweeps of the lake, their cells by status, and how fresh the published data is."""
    from pipeline.cli import status

    status.show_status()


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help="A query over the published file, for example: SELECT * FROM mart.sweep")],
    form: Annotated[str, typer.Option("--format", help="table, csv, json, parquet or xlsx.")] = "table",
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="Rows at most. Default: 50 in a table, else all.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. Default: standard output.", show_default=False)
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", min=0.001, help="Time it may take. Default: the setting.", show_default=False),
    ] = None,
) -> None:
    """Run a query over the published file: one statement that reads, within bounds of time and memory."""
    from pipeline.cli import query

    query.show_query(sql, form, limit, seconds, output)


@app.command()
def show(
    address: Annotated[str, typer.Argument(help="As in lake.search: raw/<sweep>/<shard>.parquet#<row>")],
    body: Annotated[bool, typer.Option("--body", help="Write the inflated body alone, as it is.")] = False,
) -> None:
    """Show a raw answer with its request, checked against the hash that was loaded."""
    from pipeline.cli import show

    show.show(address, body_only=body)


@app.command()
def explain(
    flag: Annotated[str, typer.Argument(help="flag_id, as in report.flag or a relation of findings; or a case_id.")],
    form: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """Lead a finding back to its raw answers, and work its verdict out again from them. Offline."""
    from pipeline.cli import explain

    explain.show_explanation(flag, form)


@app.command()
def confirm(
    flags: Annotated[
        list[str] | None, typer.Argument(help="Ids of flags or cases. Default: the largest flags.", show_default=False)
    ] = None,
    rule: Annotated[list[str] | None, typer.Option("--rule", help="Only of this rule; may be repeated.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Flags at most, where none is named.")] = 20,
) -> None:
    """Ask about the cells of flags again, and mark each flag confirmed, gone or not confirmable."""
    from pipeline.cli import confirm

    confirm.confirm_flags(flags or (), rule or (), limit)


@app.command()
def cases(
    limit: Annotated[int, typer.Option("--limit", min=1, help="Cases to show at most.")] = 25,
) -> None:
    """List the open cases: findings with one cause to call about, the ones to look at first before others."""
    from pipeline.cli import case

    case.list_cases(limit)


@app.command()
def case(
    case_id: Annotated[str, typer.Argument(help="case_id, as in report.finding_case.")],
    acknowledge: Annotated[bool, typer.Option("--acknowledge", help="It is known and looked after.")] = False,
    mute: Annotated[
        str | None, typer.Option("--mute", help="Leave it out until this day, as 2027-01-31.", show_default=False)
    ] = None,
    note: Annotated[str | None, typer.Option("--note", help="What there is to say.", show_default=False)] = None,
    owner: Annotated[str | None, typer.Option("--owner", help="Who looks after it.", show_default=False)] = None,
) -> None:
    """Show a case, or say something of it: that is kept, and survives a rebuild."""
    from pipeline.cli import case

    case.show_or_note(case_id, is_acknowledged=acknowledge, muted_until=mute, note=note, owner=owner)


@app.command()
def load(
    kind: Annotated[str, typer.Argument(help="prices, rates, property-map, weights or properties.")],
    file: Annotated[Path, typer.Argument(help="CSV or Parquet; rates: the ECB's zip or CSV.", show_default=False)],
    check: Annotated[bool, typer.Option("--check", help="Only say what is wrong with the file.")] = False,
) -> None:
    """Load selling prices, rates, the property map, weights or properties: all of a file, or nothing."""
    from pipeline.cli import load

    load.load(kind, file, check=check)


@app.command()
def quote(
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="Quotes to ask. Omitted: show the ledger.", show_default=False)
    ] = None,
    market: Annotated[list[str] | None, typer.Option("--market", help="Only of this market; may be repeated.")] = None,
    property_id: Annotated[
        list[int] | None, typer.Option("--property", help="Only of this property; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed chooses other offers.")] = 1,
    confirmed: Annotated[
        bool, typer.Option("--yes-make-reservations", help="Each quote makes a reservation, and that is meant.")
    ] = False,
) -> None:
    """Ask quotes for a sample of the published offers (NIGHTAUDIT_QUOTE_CAP at most), or show the ledger of quotes."""
    from pipeline.cli import quote

    if sample is None:
        quote.show_ledger()
    else:
        quote.ask(sample, market or (), property_id or (), seed, is_confirmed=confirmed)


@app.command()
def drift(
    sweep_id: Sweep = None,
    form: Annotated[str, typer.Option("--format", help="table or json.")] = "table",
    fields: Annotated[bool, typer.Option("--fields", help="Show instead the column of each response field.")] = False,
) -> None:
    """Compare how a sweep's raw answers are built with the supplier's document."""
    from pipeline.cli import drift

    if fields:
        drift.show_fields(form)
    else:
        drift.show_drift(sweep_id, form)


@app.command()
def report(
    names: Annotated[list[str] | None, typer.Argument(help="Which ones. Omitted: all.", show_default=False)] = None,
    property_id: Annotated[int | None, typer.Option("--property", help="Only of this property.")] = None,
    market: Annotated[str | None, typer.Option("--market", help="Only of this market.")] = None,
    first: Annotated[str | None, typer.Option("--from", help="First day of check-in, as 2027-01-31.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last day of check-in.")] = None,
    city: Annotated[str | None, typer.Option("--city", help="Only of properties in this city (mart.property).")] = None,
    brand: Annotated[str | None, typer.Option("--brand", help="Only of properties of this brand.")] = None,
    group: Annotated[str | None, typer.Option("--group", help="Only of properties of this group.")] = None,
) -> None:
    """Write reports of the published file: pages for people, with their figures as CSV, Parquet and JSON."""
    from pipeline.cli import report
    from pipeline.report import Scope

    limits = Scope(property_id, market.upper() if market else None, city=city, brand=brand, group=group)
    report.write(names or (), first, last, limits)


@app.command()
def docs() -> None:
    """Write a data dictionary of the published file: relations, columns, units, lineage, a query each."""
    from pipeline.cli import report

    report.write_docs()


@app.command()
def alerts(
    rehearse: Annotated[bool, typer.Option("--rehearse", help="Only show what would be told.")] = False,
) -> None:
    """Tell what is new and what is over, by the rules of NIGHTAUDIT_ALERTS, to whom it concerns."""
    from pipeline.cli import alerts

    alerts.send(is_rehearsal=rehearse)


@app.command()
def serve(
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port on the loopback address.")] = 8377,
) -> None:
    """Serve reports and notebooks to a browser on this machine."""
    from pipeline.cli import serve

    serve.serve(port)


@app.command()
def mcp() -> None:
    """Give an assistant read-only tools over its standard input and output (Model Context Protocol)."""
    from pipeline.cli import mcp

    mcp.serve_assistant()


@app.command()
def settings(
    form: Annotated[str, typer.Option("--format", help="table or json.")] = "table",
) -> None:
    """List every setting with its current value, where that comes from, and what it means."""
    from pipeline.cli import settings

    settings.show_settings(form)


@app.command()
def spec(
    spec: Spec = None,
    form: Annotated[str, typer.Option("--format", help="table or json.")] = "table",
) -> None:
    """List every key of a sweep spec with its value in the current spec and what it means."""
    from pipeline.cli import settings

    settings.show_spec_keys(spec, form)


@app.command()
def doctor(spec: Spec = None) -> None:
    """Check settings, token, one probe search, versions and free disk: what is wrong, and what to do."""
    from pipeline.cli import doctor

    doctor.doctor(spec)


@app.command()
def verify(
    deep: Annotated[bool, typer.Option("--deep", help="Read every file whole and compare its checksum.")] = False,
) -> None:
    """Check the files of the lake: what is damaged, what that affects, and what mends it."""
    from pipeline.cli import verify

    verify.verify_lake(is_deep=deep)


@app.command()
def lake(
    apply: Annotated[bool, typer.Option("--apply", help="Do what there is to do.")] = False,
    form: Annotated[str, typer.Option("--format", help="table or json.")] = "table",
    growth: Annotated[bool, typer.Option("--growth", help="Draw the bytes of each night, too.")] = False,
) -> None:
    """Show what the lake takes up by table and night; compact it, end retention, remove what nothing names."""
    from pipeline.cli import lake

    lake.show_lake(form, is_applied=apply, is_growth=growth)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
def sandbox(context: typer.Context) -> None:
    """Serve the bundled sandbox supplier until interrupted (see: nightaudit sandbox --help)."""
    from pipeline.sandbox.__main__ import main

    raise typer.Exit(main(context.args))
