"""The files of a page: the page itself, and the figures of its sections in each form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from pipeline.lake import Lake, building, write_in_place
from pipeline.report import availability, digest, parity, promotions
from pipeline.report.case_page import case_pages
from pipeline.report.charts import Pen, begun
from pipeline.report.figures import as_json, write_figures
from pipeline.report.menu import LABELS, file_name
from pipeline.report.page import Page
from pipeline.report.property_pages import property_pages
from pipeline.report.read import CASES, PROPERTY_PAGES, Reader
from pipeline.report.render import render
from pipeline.report.rows_held import ROWS_OF_A_PAGE, rows_held
from pipeline.report.words import said

# The function of each report; the first is the night's front page.
_MADE: Mapping[str, Callable[[Reader], Page]] = {
    "digest": digest.page,
    "parity": parity.page,
    "promotions": promotions.page,
    "availability": availability.page,
}
REPORTS = tuple(_MADE)
# All rows are in CSV and Parquet.
_ROWS_OF_JSON = 1000


@dataclass(frozen=True, slots=True)
class Written:
    """A written report with its page and the page's summary."""

    name: str
    title: str
    file: Path
    points: tuple[str, ...] = ()
    charts: tuple[tuple[str, Markup], ...] = ()
    """The first chart of each section that has one, with the section's title."""
    is_simulated: bool = False


def begin_page(name: str, lake: Lake, reader: Reader, pen: Pen) -> Page:
    """Compute a report, write the figures of its sections, begin their charts, and return what the page shows.

    Each section is made once the figures of the one before are written: those of all would not fit into memory.
    """
    reader.wider.clear()
    page = _MADE[name](reader)
    # What cannot be filtered as requested is known once all sections are made.
    made = page if not reader.scope.words else _within(replace(page, sections=list(page.sections)), reader.wider)
    kept = []
    for section in made.sections:
        place = _folder(lake, reader) / f"{page.name}{reader.scope.suffix}"
        with building(place / f"{section.name}.csv") as csv, building(place / f"{section.name}.parquet") as parquet:
            write_figures(section.parts, csv, parquet)
        kept.append(replace(section.cut(_ROWS_OF_JSON, ROWS_OF_A_PAGE), charts=begun(section.charts, pen)))
        del section
    held = rows_held([each.table_rows if each.columns else 0 for each in kept])
    sections = [each.cut(_ROWS_OF_JSON, max(of, each.shown)) for each, of in zip(kept, held, strict=True)]
    return replace(made, sections=sections)


def _within(page: Page, wider: Mapping[str, str]) -> Page:
    """Return a page without the sections that cannot be filtered as requested; a note names them."""
    left_out = [said("section", each.name).replace("_", " ") for each in page.sections if each.source in wider]
    if not left_out:
        return page
    note = f"Left out, as only known for the complete night (see the full report): {', '.join(left_out)}."
    return replace(
        page, sections=[each for each in page.sections if each.source not in wider], notes=[*page.notes, note]
    )


def finish_page(lake: Lake, page: Page, reader: Reader, links: Sequence[tuple[str, str, str]]) -> Written:
    """Write a page that was begun, and its figures as JSON."""
    folder = _folder(lake, reader)
    stem, complete = f"{page.name}{reader.scope.suffix}", file_name(page.name)
    write_in_place(folder / f"{stem}.json", as_json(_as_values(page, reader)))
    text = render(
        "page",
        {
            "page": page,
            "label": LABELS[page.name],
            "night": reader.night,
            "limits": reader.limits,
            "links": links,
            "folder": stem,
            "property_pages": reader.linked_properties,
            "places": reader.places,
            "chosen": reader.scope.as_attributes(reader.places.values()),
            "complete": complete if reader.limits and (folder / complete).exists() else "",
        },
    )
    place = write_in_place(folder / file_name(page.name, reader.scope.suffix), text.encode())
    charts = tuple((each.title, escape(each.charts[0])) for each in page.sections if each.charts)
    points = tuple(point.text for point in page.points)
    return Written(page.name, page.title, place, points, charts, is_simulated=reader.night["is_simulated"])


def write_case_and_property_pages(lake: Lake, reader: Reader, links: Sequence[tuple[str, str, str]]) -> None:
    """Write the pages of cases and of properties."""
    folder = _folder(lake, reader)
    for file, text in case_pages(lake, reader, links):
        write_in_place(folder / CASES / file, text.encode())
    for file, text in property_pages(reader, links):
        write_in_place(folder / PROPERTY_PAGES / file, text.encode())


def _folder(lake: Lake, reader: Reader) -> Path:
    return lake.reports / str(reader.night["sweep_id"])


def _as_values(page: Page, reader: Reader) -> dict[str, Any]:
    return {
        "report": page.name,
        "title": page.title,
        "sweep_id": reader.night["sweep_id"],
        "snapshot_date": reader.night["snapshot_date"],
        "is_simulated": reader.night["is_simulated"],
        "limits": reader.scope.words,
        "lead": page.lead,
        "points": [point.text for point in page.points],
        "notes": list(page.notes),
        "tiles": [{"value": value, "label": label} for value, label in page.tiles],
        "sections": [
            {
                "name": section.name,
                "title": section.title,
                "note": section.note,
                "source": section.source,
                "rows_in_all": section.figure_rows,
                "rows": section.figures.rows(named=True),
            }
            for section in page.sections
        ],
    }
