"""All commands. The pipeline does the work; `views` makes what they print."""

import os
import re
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup
from typer.models import OptionInfo

from pipeline import __version__
from pipeline.domain.addresses import lake_address
from pipeline.domain.texts import validation_text
from pipeline.process.limits import begin


class _Commands(TyperGroup):
    """The group of all commands; it reports wrong values in our words instead of typer's."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - typer does not export its context's type
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = validation_text(error.message)
            raise


app = typer.Typer(
    name="nightaudit",
    cls=_Commands,
    help="Record a lodging supplier's prices every night: keep every answer, check it, publish what passes.",
    epilog="Exit codes: 0 done; 1 a failure; 2 wrong usage or input; 3 blocked by the quality gate; 4 too many failed "
    "cells, or no usable answer; 5 another run holds the lake; 6 no space; 130, 143 stopped by "
    "SIGINT, SIGTERM.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Spec = Annotated[Path | None, typer.Option("--spec", help="Sweep spec (TOML or YAML). Default: NIGHTAUDIT_SPEC.")]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Only the first N properties of the spec, for a quick try.")
]
Markets = Annotated[list[str] | None, typer.Option("--market", help="Only this market of the spec; may be repeated.")]
OnlyMarkets = Annotated[list[str] | None, typer.Option("--market", help="Only this market; may be repeated.")]
OnlyProperties = Annotated[list[int] | None, typer.Option("--property", help="Only this property; may be repeated.")]


def _on_this_machine(path: Path | None) -> Path | None:
    """Refuse an address: a folder would be made of it, and its text, which may carry keys, would be printed."""
    if path is not None and re.match("[a-z][a-z0-9+.-]+:/", str(path), re.IGNORECASE):
        raise typer.BadParameter("it must be a path on this machine, not an address")
    return path


def _outside_lakes(path: Path | None) -> Path | None:
    """Refuse a file in a lake: it could replace one, and raw answers cannot be restored."""
    if _on_this_machine(path) is not None and "\0" not in str(path):
        from pipeline.lake.files import is_lake

        # As it is written too: a folder of a lake may be a link to another disk.
        places = [*Path(os.path.abspath(str(path))).parents, *Path(os.path.realpath(str(path))).parents]  # noqa: PTH100 - resolve() follows links
        if any(map(is_lake, places)):
            raise typer.BadParameter("it must not be in a lake, whose files are its own")
    return path


def _lake_address(text: str) -> str:
    try:
        return lake_address(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File to write to. Default: standard output.", callback=_outside_lakes),
]
Form = Annotated[Literal["table", "json"], typer.Option("--format", help="Output format.")]
RowsForm = Annotated[
    Literal["table", "csv", "json", "parquet", "xlsx"],
    typer.Option("--format", help="Output format; json has one object per line."),
]


City = Annotated[str | None, typer.Option("--city", help="Only properties in this city.")]
Brand = Annotated[str | None, typer.Option("--brand", help="Only properties of this brand.")]
Group = Annotated[str | None, typer.Option("--group", help="Only properties of this group.")]


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a date like 2027-01-31.") from None


def _day_option(name: str, meaning: str) -> OptionInfo:
    option: OptionInfo = typer.Option(name, help=meaning, parser=_day, metavar="YYYY-MM-DD")
    return option


Sweep = Annotated[str | None, typer.Argument(help="Sweep id. Default: the latest suitable one.")]


def _starting(words: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return what completes an argument in a shell: those of the words that start like it."""
    return lambda incomplete: [word for word in words() if word.startswith(incomplete)]


def _kinds() -> Iterable[str]:
    # Imported late, as in the commands themselves, because it is slow.
    from pipeline.inputs.load import KINDS

    return KINDS


def _reports() -> Iterable[str]:
    from pipeline.report.menu import LABELS

    return LABELS


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nightaudit {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    begin(context.invoked_subcommand)


@app.command()
def plan(spec: Spec = None, limit: Limit = None, market: Markets = None, form: Form = "table") -> None:
    """Estimate the cells, requests, bytes and hours of a spec, before a single call is made."""
    from pipeline.cli import plan

    plan.show_plan(spec, limit, market, form)


@app.command()
def sweep(spec: Spec = None, limit: Limit = None, market: Markets = None) -> None:
    """Run a sweep: request, land, normalise and load. It is neither audited nor published."""
    from pipeline.cli import sweep

    sweep.sweep(spec, limit, market)


@app.command()
def resume(
    sweep_id: Sweep = None,
    close: Annotated[
        bool, typer.Option("--close", help="Abandon the remaining searches; their cells become not_swept.")
    ] = False,
) -> None:
    """Resume an interrupted sweep. Searches that have landed are not sent again."""
    from pipeline.cli import sweep

    sweep.resume(sweep_id, close=close)


@app.command()
def audit(sweep_id: Sweep = None) -> None:
    """Check a loaded sweep, store the results, write the quality page, and decide whether it may be published."""
    from pipeline.cli import audit

    audit.audit(sweep_id)


@app.command()
def publish(
    sweep_id: Sweep = None,
    override: Annotated[
        str | None, typer.Option("--override", help="Publish even though the audit failed, and record this reason.")
    ] = None,
) -> None:
    """Publish a loaded and audited sweep to the DuckDB file."""
    from pipeline.cli import publish

    publish.publish(sweep_id, override)


@app.command()
def nightly(spec: Spec = None, limit: Limit = None, market: Markets = None) -> None:
    """Run a complete night: sweep, load, audit, publish, summary."""
    from pipeline.cli import nightly

    nightly.nightly(spec, limit, market)


@app.command()
def demo(
    nights: Annotated[int, typer.Option("--nights", min=1, max=400, help="Number of nights, one per day.")] = 45,
    until: Annotated[date | None, _day_option("--until", "Day of the last night. Default: yesterday.")] = None,
) -> None:
    """Fill an empty lake with simulated nights that contain findings, and print where to look."""
    from pipeline.cli import demo

    demo.demo(nights, until)


@app.command()
def rebuild() -> None:
    """Rebuild every table and the published file from the raw answers, offline."""
    from pipeline.cli import rebuild

    rebuild.rebuild_lake()


@app.command()
def status(form: Form = "table") -> None:
    """List the sweeps of the lake, their cells by status, and the age of the published data."""
    from pipeline.cli import status

    status.show_status(form)


@app.command()
def health(
    older_than: Annotated[
        float, typer.Option("--older-than", min=0, help="Maximum age of the last published night, in hours.")
    ] = 36,
) -> None:
    """For a probe: exit with 1 if the last published night is too old, or there is none."""
    from pipeline.cli import status

    status.show_health(older_than)


@app.command()
def metrics(output: Output = None) -> None:
    """Write metrics of the lake and its last published night as OpenMetrics."""
    from pipeline.cli import status

    status.write_metrics(output)


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help="A query over the published file, for example: SELECT * FROM mart.sweep")],
    form: RowsForm = "table",
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Maximum rows. Default: 50 in a table, otherwise all.")
    ] = None,
    output: Output = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0.001, help="Time limit. Default: NIGHTAUDIT_QUERY_SECONDS.")
    ] = None,
) -> None:
    """Query the published file: one read-only statement, with limits on time and memory."""
    from pipeline.cli import query

    query.show_query(sql, form, limit, seconds, output)


@app.command()
def show(
    address: Annotated[
        str, typer.Argument(help="Address of the answer, as in lake.search: raw/<sweep>/<shard>.parquet#<row>")
    ],
    body: Annotated[bool, typer.Option("--body", help="Write only the decompressed body, unchanged.")] = False,
) -> None:
    """Show a raw answer with its request, checked against the stored hash."""
    from pipeline.cli import show

    show.show(address, body_only=body)


@app.command()
def explain(
    flag: Annotated[
        str, typer.Argument(help="A flag_id of report.flag or of another relation of findings, or a case_id.")
    ],
    form: Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")] = "text",
) -> None:
    """Trace a finding to its raw answers and recompute it, offline."""
    from pipeline.cli import explain

    explain.show_explanation(flag, form)


@app.command()
def confirm(
    flags: Annotated[list[str] | None, typer.Argument(help="Flag or case ids. Default: the largest flags.")] = None,
    rule: Annotated[list[str] | None, typer.Option("--rule", help="Only this rule; may be repeated.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of flags if none is named.")] = 20,
) -> None:
    """Ask the supplier again about flagged cells; mark each flag confirmed, gone or not confirmable."""
    from pipeline.cli import confirm

    confirm.confirm_flags(flags or (), rule or (), limit)


@app.command()
def cases(
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=1,
            help="Maximum number of problems in a table (default: 25), otherwise of cases (default: all).",
        ),
    ] = None,
    city: City = None,
    brand: Brand = None,
    group: Group = None,
    form: RowsForm = "table",
    output: Output = None,
) -> None:
    """List the open cases: new ones first, then the most costly. A case groups the findings that have one cause.

    In a table, the cases of one problem in several markets are one line.
    """
    from pipeline.cli import case

    case.list_cases(limit, {"city": city, "brand": brand, "property_group": group}, form, output)


@app.command()
def case(
    case_id: Annotated[str, typer.Argument(help="A case_id of report.finding_case.")],
    acknowledge: Annotated[bool, typer.Option("--acknowledge", help="Mark it as known and being handled.")] = False,
    mute: Annotated[
        date | None, _day_option("--mute", "Hide it until this day, when it reappears. A day in the past ends a mute.")
    ] = None,
    note: Annotated[str | None, typer.Option("--note", help='A note to keep with the case; "" removes it.')] = None,
    owner: Annotated[str | None, typer.Option("--owner", help='Who handles it; "" removes the name.')] = None,
) -> None:
    """Show a case, or annotate it. Annotations are kept and survive a rebuild."""
    from pipeline.cli import case

    case.show_or_note(case_id, is_acknowledged=acknowledge, muted_until=mute, note=note, owner=owner)


@app.command()
def load(
    kind: Annotated[
        str,
        typer.Argument(help="prices, rates, property-map, weights or properties.", autocompletion=_starting(_kinds)),
    ],
    file: Annotated[Path, typer.Argument(help="CSV or Parquet file; for rates, the ECB's zip or CSV file.")],
    check: Annotated[bool, typer.Option("--check", help="Only check the file; load nothing.")] = False,
) -> None:
    """Load selling prices, exchange rates, the property map, weights or properties: the complete file or nothing."""
    from pipeline.cli import load

    load.load(kind, file, check=check)


@app.command()
def quote(
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="Quotes to request. Omitted: show the ledger.")
    ] = None,
    market: OnlyMarkets = None,
    property_id: OnlyProperties = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed for choosing the offers.")] = 1,
    confirmed: Annotated[
        bool, typer.Option("--yes-make-reservations", help="Confirm that each quote may make a reservation.")
    ] = False,
) -> None:
    """Request quotes for a sample of published offers (at most NIGHTAUDIT_QUOTE_CAP), or show the quote ledger."""
    from pipeline.cli import quote

    if sample is None:
        quote.show_ledger()
    else:
        quote.ask(sample, market or (), property_id or (), seed, is_confirmed=confirmed)


@app.command()
def drift(
    sweep_id: Sweep = None,
    form: Form = "table",
    fields: Annotated[bool, typer.Option("--fields", help="Instead, list the column of each response field.")] = False,
) -> None:
    """Compare the structure of a sweep's raw answers with the supplier's document."""
    from pipeline.cli import drift

    if fields:
        drift.show_fields(form)
    else:
        drift.show_drift(sweep_id, form)


@app.command()
def report(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="digest, parity, promotions or availability. Omitted: all.", autocompletion=_starting(_reports)
        ),
    ] = None,
    property_id: Annotated[int | None, typer.Option("--property", help="Only this property.")] = None,
    market: Annotated[str | None, typer.Option("--market", help="Only this market.")] = None,
    first: Annotated[date | None, _day_option("--from", "First check-in date.")] = None,
    last: Annotated[date | None, _day_option("--to", "Last check-in date.")] = None,
    city: City = None,
    brand: Brand = None,
    group: Group = None,
) -> None:
    """Write the reports of the published file: pages, with their figures as CSV, Parquet and JSON."""
    from pipeline.cli import report
    from pipeline.report.scope import Scope

    scope = Scope(property_id, market.upper() if market else None, first, last, city=city, brand=brand, group=group)
    report.write(names or (), scope)


@app.command()
def docs() -> None:
    """Write a data dictionary of the published file: relations, columns, units, lineage, example queries."""
    from pipeline.cli import report

    report.write_docs()


@app.command()
def alerts(rehearse: Annotated[bool, typer.Option("--rehearse", help="Only show what would be sent.")] = False) -> None:
    """Send alerts for new and resolved findings, following the rules in NIGHTAUDIT_ALERTS."""
    from pipeline.cli import alerts

    alerts.send(is_rehearsal=rehearse)


@app.command()
def serve(
    port: Annotated[
        int, typer.Option("--port", min=1, max=65535, help="Port to listen on; only this machine can connect.")
    ] = 8377,
) -> None:
    """Serve reports and notebooks to a browser on this machine."""
    from pipeline.cli import serve

    serve.serve(port)


@app.command()
def mcp() -> None:
    """Serve read-only tools to an assistant over standard input and output (Model Context Protocol)."""
    from pipeline.cli import mcp

    mcp.serve_assistant()


@app.command()
def settings(form: Form = "table") -> None:
    """List every setting with its current value, where that comes from, and what it means."""
    from pipeline.cli import settings

    settings.show_settings(form)


@app.command()
def spec(spec: Spec = None, form: Form = "table") -> None:
    """List every key of a sweep spec with its value in the current spec and what it means."""
    from pipeline.cli import settings

    settings.show_spec_keys(spec, form)


@app.command()
def doctor(spec: Spec = None, form: Form = "table") -> None:
    """Check settings, token, one probe search, versions and free disk space; say what to fix."""
    from pipeline.cli import doctor

    doctor.doctor(spec, form)


@app.command()
def verify(
    deep: Annotated[bool, typer.Option("--deep", help="Read every file completely and compare its checksum.")] = False,
    form: Form = "table",
) -> None:
    """Check the files of the lake: what is damaged, what that affects, and how to repair it."""
    from pipeline.cli import verify

    verify.verify_lake(form, is_deep=deep)


@app.command()
def export(
    file: Annotated[
        Path, typer.Argument(help="The DuckDB file to write; it must not exist yet.", callback=_outside_lakes)
    ],
    properties: OnlyProperties = None,
    market: OnlyMarkets = None,
    first: Annotated[date | None, _day_option("--from", "Only nights from this day on.")] = None,
    last: Annotated[date | None, _day_option("--to", "Only nights up to and including this day.")] = None,
) -> None:
    """Write a self-contained DuckDB file: all relations as tables, or only some properties, markets or nights."""
    from pipeline.cli import export

    export.export_file(file, properties, market, first, last)


@app.command()
def pull(
    lake: Annotated[
        str,
        typer.Argument(
            help="Lake to pull from: a folder, such as a mounted share, or s3://bucket/prefix.", callback=_lake_address
        ),
    ],
    folder: Annotated[Path, typer.Argument(help="Folder to pull into; created if missing.", callback=_outside_lakes)],
) -> None:
    """Copy a lake's published file and the files that it reads into a folder; later runs copy only what is new."""
    from pipeline.cli import pull

    pull.pull_lake(lake, folder)


@app.command()
def lake(
    apply: Annotated[bool, typer.Option("--apply", help="Do the listed maintenance.")] = False,
    form: Form = "table",
    growth: Annotated[bool, typer.Option("--growth", help="Also draw the bytes of each night.")] = False,
) -> None:
    """Show the size of the lake by table and night; compact it, apply retention, remove unused files."""
    from pipeline.cli import lake

    lake.show_lake(form, is_applied=apply, is_growth=growth)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
def sandbox(context: typer.Context) -> None:
    """Serve the bundled sandbox supplier until interrupted (see: nightaudit sandbox --help)."""
    from pipeline.sandbox.__main__ import app

    app(context.args, prog_name="nightaudit sandbox", standalone_mode=False)
