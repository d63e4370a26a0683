"""`nightaudit export`: a self-contained DuckDB file."""

from datetime import date
from pathlib import Path

from rich.text import Text

from pipeline.cli.terminal import Terminal
from pipeline.domain.codes import A_MARKET, MARKETS
from pipeline.domain.errors import InputError
from pipeline.lake import Lake
from pipeline.process.signals import stoppable
from pipeline.publish.export import Selection, export
from pipeline.settings import read_settings


def export_file(
    file: Path, properties: list[int] | None, markets: list[str] | None, first: date | None, last: date | None
) -> None:
    """Export from the lake of the settings, and say what was written."""
    if unknown := [market for market in markets or () if market not in MARKETS]:
        raise InputError(f"{unknown[0]!r} is not {A_MARKET}.", hint='List them: nightaudit query "FROM ref.market"')
    selection = Selection(tuple(dict.fromkeys(properties or ())), tuple(dict.fromkeys(markets or ())), first, last)
    published = Lake(read_settings().lake).published_file
    with stoppable("Nothing was written, and the published file is unchanged.", f"nightaudit export {file}"):
        made = export(published, file, selection)
    rows = sum(each.rows for each in made)
    text = f"Exported {len(made)} relations with {rows:,} rows to {file} ({file.stat().st_size:,} bytes). "
    Terminal().print(Text(f"{text}See which relations were filtered: FROM ref.export"), soft_wrap=True)
