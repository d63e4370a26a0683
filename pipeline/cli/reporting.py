"""`nightaudit report` and `nightaudit serve`: pages for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.domain.errors import InputError
from pipeline.lake import Lake
from pipeline.report import REPORTS, Scope, write_reports
from pipeline.settings import read_settings


def write(
    names: Sequence[str], property_id: int | None, market: str | None, first: str | None, last: str | None
) -> None:
    """Write reports of the published file and print what each says and where its page lies."""
    unknown = [name for name in names if name not in REPORTS]
    if unknown:
        raise InputError(f"There is no report {unknown[0]!r}.", hint=f"Reports are: {', '.join(REPORTS)}")
    scope = Scope(property_id, market.upper() if market else None, _day("--from", first), _day("--to", last))
    lake = Lake(read_settings().lake)
    table = Table("report", "what it says", "page", header_style="bold")
    for written in write_reports(lake, names or REPORTS, scope):
        table.add_row(written.name, Text(written.title), Text(str(written.file), style="cyan"))
    console = Console()
    console.print(table)
    console.print(f"All nights: {lake.root / 'reports' / 'index.html'}", style="dim", soft_wrap=True)


def serve(port: int) -> None:
    """Serve the reports on the loopback address until interrupted."""
    from pipeline.serve import serve_reports

    lake = Lake(read_settings().lake)
    Console().print(f"Reports: http://127.0.0.1:{port}/reports/ (Ctrl-C ends)", soft_wrap=True)
    serve_reports(lake, port)


def _day(option: str, text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} is a day like 2027-01-31, not {text!r}.") from None
