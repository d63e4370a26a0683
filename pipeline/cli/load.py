"""`nightaudit load`: files of the user."""

from pathlib import Path

from rich.text import Text

from pipeline.cli.terminal import Terminal
from pipeline.domain.quantities import counted
from pipeline.inputs.load import check as check_file
from pipeline.inputs.load import load as load_file
from pipeline.lake import Lake
from pipeline.publish.refresh import catch_up, refresh
from pipeline.report.written_pages import reports_page
from pipeline.settings import read_settings


def load(kind: str, file: Path, *, check: bool) -> None:
    """Check a file, load it unless `check` is set, and print the result."""
    settings = read_settings()
    lake = Lake(settings.lake)
    console = Terminal()
    if check:
        checked = check_file(lake, kind, file)
        console.print(Text(f"{file.name} can be loaded: {counted(checked.rows, 'row')}."))
        return
    if not lake.root.exists():
        # A file that is refused leaves no lake behind.
        check_file(lake, kind, file)
    with lake.writing("nightaudit load"):
        loaded = load_file(lake, kind, file, settings.clock())
        is_shown = refresh(lake) if loaded.is_new else catch_up(lake)
    if not loaded.is_new:
        changed = "the published file now shows it" if is_shown else "nothing changed"
        console.print(Text(f"{file.name} was already loaded; {changed}."))
        return
    console.print(Text(f"Loaded {counted(loaded.rows, 'row')} of {file.name}.", style="green"))
    if not is_shown:
        console.print("They appear in the published file after the next night.")
    elif reports_page(lake).exists():
        # Pages are files of their own.
        console.print("The published file shows them now; the pages do after: nightaudit report")
