"""Where the written pages are."""

from pathlib import Path

from pipeline.lake import Lake
from pipeline.lake.database import open_published
from pipeline.report.read import CASES, Reader
from pipeline.report.scope import Scope


def reports_page(lake: Lake) -> Path:
    """Return the page of all nights."""
    return lake.reports / "index.html"


def written_case_pages(lake: Lake) -> dict[str, Path]:
    """Return the written pages of cases of the last published night, ended ones too, by case id."""
    with open_published(lake.published_file) as session:
        folder = lake.reports / Reader(session, Scope()).night["sweep_id"] / CASES
    return {page.stem: page for page in sorted(folder.glob("*.html"))}
