"""`nightaudit drift`: how raw answers deviate from the supplier's document, and where each field is stored."""

import dataclasses
from collections import Counter

from rich.text import Text

from pipeline.cli.terminal import Terminal, write_json_lines
from pipeline.domain.errors import UnknownSweep
from pipeline.domain.search import Operation
from pipeline.domain.stored import STORED
from pipeline.lake import Lake
from pipeline.lake.pulled import refuse_pulled
from pipeline.lake.raw import read_manifest
from pipeline.process.pandasless import keep_pandas_out
from pipeline.replay.drift import drift_of
from pipeline.settings import read_settings
from pipeline.supplier.fields import response_fields

# A supplier may invent thousands of names or values.
_LISTED = 10


def show_drift(sweep_id: str | None, form: str) -> None:
    """Print how a sweep's answers deviate from the document: the latest sweep's, if none is named."""
    settings = read_settings()
    lake = Lake(settings.lake)
    refuse_pulled(lake.root)
    known = lake.sweep_ids()
    if not known:
        raise UnknownSweep(f"The lake {lake.root} has no sweeps yet.", hint="Run one: nightaudit sweep")
    keep_pandas_out()
    found = drift_of(lake, read_manifest(lake, sweep_id or known[-1]), settings.max_body_bytes)
    if form == "json":
        write_json_lines(dataclasses.asdict(each) | {"share": each.share} for each in found)
        return
    console = Terminal(soft_wrap=True, highlight=False)
    console.print(Text(f"Sweep {sweep_id or known[-1]}: {len(found)} kinds of deviation from the document."))
    # Paths and addresses are too long for columns, so each finding has three uncut lines that can be copied.
    listed: Counter[tuple[str, str, str]] = Counter()
    for each in found:
        listed[each.group] += 1
        if listed[each.group] > _LISTED:
            continue
        # As Text, because it comes from the supplier and must not be read as markup.
        console.print(
            Text.assemble(
                (f"\n{each.kind}", "bold"),
                f": {each.operation}, {each.occurrences:,} of {each.of:,} ({each.share:.2%})\n",
                f"  {each.path or '$'}: {each.detail}\n",
                (f"  {each.example}", "cyan"),
            )
        )
    if unlisted := sum(max(0, number - _LISTED) for number in listed.values()):
        console.print(
            Text(
                f"\n{unlisted:,} more are not shown: at most {_LISTED} of a kind in one object. "
                "List all: nightaudit drift --format json",
                "dim",
            )
        )


def show_fields(form: str) -> None:
    """Print every response field of the document with its column, and how many fields have one."""
    fields = [
        {"operation": operation.value, "field": path, "columns": list(STORED[operation].get(path, ()))}
        for operation in Operation
        for path in response_fields(operation)
    ]
    if form == "json":
        write_json_lines(fields)
        return
    console = Terminal(soft_wrap=True, highlight=False)
    for operation in Operation:
        of_this = [field for field in fields if field["operation"] == operation.value]
        console.print(Text(f"{operation}", "bold"))
        for field in of_this:
            console.print(Text(f"  {field['field']}: {', '.join(field['columns']) or 'NOT STORED'}"))
        stored = sum(bool(field["columns"]) for field in of_this)
        console.print(Text(f"  {stored} of {len(of_this)} fields are stored in a column.\n", "green"))
