"""`nightaudit report`: pages for people."""

from collections.abc import Sequence

from rich.text import Text

from pipeline.cli.terminal import Terminal
from pipeline.domain.errors import InputError
from pipeline.lake import Lake
from pipeline.lake.published_paths import refuse_damaged_reads
from pipeline.report.page_files import REPORTS
from pipeline.report.scope import Scope
from pipeline.report.write import write_dictionary, write_reports
from pipeline.report.written_pages import reports_page
from pipeline.settings import read_settings


def write(names: Sequence[str], scope: Scope) -> None:
    """Write reports of a scope; print the title of each and the path of its page."""
    unknown = [name for name in names if name not in REPORTS]
    if unknown:
        raise InputError(f"There is no report {unknown[0]!r}.", hint=f"Available reports: {', '.join(REPORTS)}")
    lake = Lake(read_settings().lake)
    # The night's own step needs no check: it reports what `publish` has just checked or written.
    refuse_damaged_reads(lake.published_file)
    console = Terminal()
    for written in write_reports(lake, names or REPORTS, scope):
        console.print(Text.assemble((written.name, "bold"), ": ", written.title), soft_wrap=True)
        console.print(Text(f"  {written.file}", style="cyan"), soft_wrap=True)
    console.print(Text(f"All nights: {reports_page(lake)}", style="dim"), soft_wrap=True)


def write_docs() -> None:
    """Write the data dictionary and print its path."""
    lake = Lake(read_settings().lake)
    console = Terminal()
    console.print(Text(str(write_dictionary(lake)), style="cyan"), soft_wrap=True)
    console.print(Text(f"Linked from: {reports_page(lake)}", style="dim"), soft_wrap=True)
