"""Writing a night's reports: pages, figures, and the page of all nights."""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
from markupsafe import Markup, escape
from polars.exceptions import ColumnNotFoundError

from pipeline.domain.errors import InputError, LakeError, first_line
from pipeline.domain.texts import in_markdown
from pipeline.lake import Lake, write_in_place
from pipeline.lake.database import open_published
from pipeline.process.failures import as_ours
from pipeline.process.limits import CHARTS_MB, refuse_tight_limits
from pipeline.report import availability, digest, parity, promotions
from pipeline.report.case_page import case_pages, remove_others
from pipeline.report.charts import Pen, begun, here
from pipeline.report.dictionary import SCHEMAS, described
from pipeline.report.figures import as_csv, as_json, as_parquet
from pipeline.report.menu import LABELS, file_name, link_quality_page, links_of, pages_of
from pipeline.report.page import Page, day_colours, render
from pipeline.report.property_pages import property_pages
from pipeline.report.read import CASES, PROPERTY_PAGES, Reader
from pipeline.report.rows_held import rows_held
from pipeline.report.scope import Scope
from pipeline.report.words import said

# The function of each report; the first is the night's front page.
_MADE: Mapping[str, Callable[[Reader], Page]] = {
    "digest": digest.page,
    "parity": parity.page,
    "promotions": promotions.page,
    "availability": availability.page,
}
REPORTS = tuple(_MADE)
_DICTIONARY = "dictionary.html"
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


def write_reports(lake: Lake, names: Iterable[str] = REPORTS, scope: Scope = Scope(), pen: Pen = here) -> list[Written]:
    """Write reports of the published file under `reports/<sweep_id>` of the lake, and return their pages.

    Writing them again writes the same bytes. `pen` draws charts elsewhere. Raises InputError if nothing is published
    or the filters match nothing, and LakeError if the reports cannot be written.
    """
    refuse_tight_limits(more_mb=CHARTS_MB)
    written, wanted = [], tuple(names)
    with open_published(lake.published_file, lake.root / ".spill") as session:
        reader = Reader(session, scope, reports=lake.root / "reports")
        folder = lake.root / "reports" / reader.night["sweep_id"]
        # Pages of cases and properties belong to the complete report, whatever is filtered.
        own, common = links_of(folder, wanted, scope), links_of(folder, () if scope.words else wanted)
        if reader.is_out_of_reach:
            raise InputError(
                f"No upcoming stay within these limits was ever requested: {scope.words}.",
                kept="No report was written.",
                hint=f'List the possible values: nightaudit query "{scope.choices}"',
            )
        try:
            # A page is written once the next one is computed: its charts may be drawn elsewhere meanwhile.
            ahead: Page | None = None
            for name in wanted:
                reader.wider.clear()
                page = _within(_MADE[name](reader), reader.wider)
                held = rows_held([each.table.height if each.columns else 0 for each in page.sections])
                sections = zip(page.sections, held, strict=True)
                page = replace(
                    page, sections=[replace(each, charts=begun(each.charts, pen), held=of) for each, of in sections]
                )
                if ahead is not None:
                    written.append(_write(folder, ahead, reader, own))
                ahead = page
            for file, text in case_pages(lake, reader, common):
                write_in_place(folder / CASES / file, text.encode())
            for file, text in property_pages(reader, common):
                write_in_place(folder / PROPERTY_PAGES / file, text.encode())
            if ahead is not None:
                written.append(_write(folder, ahead, reader, own))
            link_quality_page(folder, common)
            _write_overview(lake, reader)
            if not scope.words:
                remove_others(folder / CASES, reader)
        except duckdb.IOException as error:
            raise LakeError(
                f"The published file cannot be read completely: {first_line(error)}",
                kept="Earlier reports are unchanged.",
                hint="If the lake was moved: nightaudit publish\n"
                "Otherwise, see what is damaged: nightaudit verify --deep",
            ) from None
        except (duckdb.CatalogException, duckdb.BinderException, ColumnNotFoundError) as error:
            raise LakeError(
                f"{lake.published_file} does not hold what this version of nightaudit reads: {first_line(error)}",
                kept="Earlier reports are unchanged.",
                hint="If another version published it, rebuild it from the lake's tables: nightaudit publish. "
                "If it fails again, please report it.",
            ) from None
        except OSError as error:
            ours = as_ours(error) or LakeError(
                f"The reports could not be written: {error}",
                hint="Fix the cause (disk space or permissions), then: nightaudit report",
            )
            ours.at_step("The night is published, and earlier reports are unchanged.", "nightaudit report")
            raise ours from None
    return written


def _within(page: Page, wider: Mapping[str, str]) -> Page:
    """Return a page without the sections that cannot be filtered as requested; a note names them."""
    left_out = [said("section", each.name).replace("_", " ") for each in page.sections if each.source in wider]
    if not left_out:
        return page
    note = f"Left out, as only known for the complete night (see the full report): {', '.join(left_out)}."
    return replace(
        page, sections=[each for each in page.sections if each.source not in wider], notes=[*page.notes, note]
    )


def write_dictionary(lake: Lake) -> Path:
    """Write the data dictionary, link it from the page of all nights, and return its file.

    Raises InputError if nothing is published.
    """
    with open_published(lake.published_file) as session:
        _write_overview(lake, Reader(session, Scope()), has_dictionary=True)
    return lake.root / "reports" / _DICTIONARY


def reports_page(lake: Lake) -> Path:
    """Return the page of all nights."""
    return lake.root / "reports" / "index.html"


def written_case_pages(lake: Lake) -> dict[str, Path]:
    """Return the written pages of cases of the last published night, ended ones too, by case id."""
    with open_published(lake.published_file) as session:
        folder = lake.root / "reports" / Reader(session, Scope()).night["sweep_id"] / CASES
    return {page.stem: page for page in sorted(folder.glob("*.html"))}


def _write_overview(lake: Lake, reader: Reader, *, has_dictionary: bool = False) -> Path:
    root = lake.root / "reports"
    # The dictionary is linked as that of the last night, so one of an earlier night is written again.
    if has_dictionary := has_dictionary or (root / _DICTIONARY).exists():
        relations = {"relations": described(reader.session), "schemas": SCHEMAS, "night": reader.night}
        write_in_place(root / _DICTIONARY, render("dictionary", relations).encode())
    nights = [night | {"pages": pages} for night in reader.nights if (pages := pages_of(root, night["sweep_id"]))]
    context = {
        "nights": nights,
        "is_simulated": any(night["is_simulated"] for night in nights),
        "dictionary": _DICTIONARY if has_dictionary else "",
    }
    text = render("overview", context)
    return write_in_place(root / "index.html", text.encode())


def _write(folder: Path, page: Page, reader: Reader, links: Sequence[tuple[str, str, str]]) -> Written:
    stem, complete = f"{page.name}{reader.scope.suffix}", file_name(page.name)
    for section in page.sections:
        write_in_place(folder / stem / f"{section.name}.csv", as_csv(section.figures))
        write_in_place(folder / stem / f"{section.name}.parquet", as_parquet(section.figures))
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
                "rows_in_all": section.figures.height,
                "rows": section.figures.head(_ROWS_OF_JSON).rows(named=True),
            }
            for section in page.sections
        ],
    }


_SVG = re.compile(r"<svg .*?</svg>", re.DOTALL)


def as_markdown(written: Sequence[Written]) -> str:
    """Return the first report's summary and charts, and links to all pages."""
    lines = []
    for first in written[:1]:
        lines += [f"# {in_markdown(first.title)}", "", *(["**Simulated data.**", ""] if first.is_simulated else [])]
        lines += [f"- {in_markdown(point)}" for point in first.points]
        for title, chart in first.charts:
            lines += ["", f"![{in_markdown(title)}]({_as_image(chart)})", "", f"*{in_markdown(title)}*"]
    lines += ["", "## Pages", ""]
    lines += [f"- {page.name}: [{in_markdown(page.title)}]({page.file.resolve().as_uri()})" for page in written]
    return "\n".join(lines)


def _as_image(chart: str) -> str:
    """Return a page's chart as a self-contained picture on white."""
    drawn = _SVG.search(chart)
    assert drawn is not None  # noqa: S101 - each chart is one
    tag, _, inside = drawn[0].partition(">")
    colours = f"<style>{day_colours()} svg {{ background: #fff }}</style>"
    return "data:image/svg+xml;base64," + b64encode(f"{tag}>{colours}{inside}".encode()).decode()
