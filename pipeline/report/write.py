"""Writing a night's reports: pages, figures, and the page of all nights."""

from collections.abc import Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path

import duckdb
from polars.exceptions import ColumnNotFoundError, PolarsError

from pipeline.domain.errors import InputError, LakeError, first_line
from pipeline.lake import Lake, write_in_place
from pipeline.lake.database import open_published
from pipeline.process.failures import as_ours
from pipeline.process.limits import CHARTS_MB, refuse_tight_limits
from pipeline.report.blocked_nights import blocked_nights
from pipeline.report.case_page import remove_others
from pipeline.report.charts import Pen, here
from pipeline.report.dictionary import SCHEMAS, described
from pipeline.report.large_night import is_large, write_apart
from pipeline.report.menu import link_quality_page, links_of, pages_of
from pipeline.report.page import Page
from pipeline.report.page_files import REPORTS, Written, begin_page, finish_page, write_case_and_property_pages
from pipeline.report.read import CASES, Reader
from pipeline.report.render import render
from pipeline.report.scope import Scope
from pipeline.report.written_pages import reports_page

_DICTIONARY = "dictionary.html"

Links = list[tuple[str, str, str]]


def write_reports(lake: Lake, names: Iterable[str] = REPORTS, scope: Scope = Scope(), pen: Pen = here) -> list[Written]:
    """Write reports of the published file under `reports/<sweep_id>` of the lake, and return their pages.

    Writing them again writes the same bytes. `pen` draws charts elsewhere, unless the night is large: then each page
    is written in a process of its own. Raises InputError if nothing is published or the filters match nothing, and
    LakeError if the reports cannot be written.
    """
    refuse_tight_limits(more_mb=CHARTS_MB)
    wanted = tuple(names)
    with open_published(lake.published_file, lake.spill) as session:
        reader = Reader(session, scope, reports=lake.reports)
        folder = lake.reports / reader.night["sweep_id"]
        # Pages of cases and properties belong to the complete report, whatever is filtered.
        own, common = links_of(folder, wanted, scope), links_of(folder, () if scope.words else wanted)
        if reader.is_out_of_reach:
            raise InputError(
                f"No upcoming stay within these limits was ever requested: {scope.words}.",
                kept="No report was written.",
                hint=f'List the possible values: nightaudit query "{scope.choices}"',
            )
        with _failures_as_ours(lake):
            if is_large(reader):
                written = write_apart(lake, scope, wanted, own, common)
            else:
                written = _write_here(lake, reader, wanted, own, common, pen)
            link_quality_page(folder, common)
            _write_overview(lake, reader)
            if not scope.words:
                remove_others(folder / CASES, reader)
    return written


def _write_here(
    lake: Lake, reader: Reader, wanted: Iterable[str], own: Links, common: Links, pen: Pen
) -> list[Written]:
    """Write all pages in this process."""
    # A page is finished once the next one is computed: its charts may be drawn elsewhere meanwhile.
    written, ahead = [], list[Page]()
    for name in wanted:
        ahead.append(begin_page(name, lake, reader, pen))
        written += [finish_page(lake, page, reader, own) for page in ahead[:-1]]
        del ahead[:-1]
    write_case_and_property_pages(lake, reader, common)
    return written + [finish_page(lake, page, reader, own) for page in ahead]


@contextmanager
def _failures_as_ours(lake: Lake) -> Iterator[None]:
    try:
        yield
    except duckdb.IOException as error:
        raise LakeError(
            f"The published file cannot be read completely: {first_line(error)}",
            kept="Earlier reports are unchanged.",
            hint="If the lake was moved: nightaudit publish\nOtherwise, see what is damaged: nightaudit verify --deep",
        ) from None
    except (duckdb.CatalogException, duckdb.BinderException, ColumnNotFoundError) as error:
        raise LakeError(
            f"{lake.published_file} does not hold what this version of nightaudit reads: {first_line(error)}",
            kept="Earlier reports are unchanged.",
            hint="If another version published it, rebuild it from the lake's tables: nightaudit publish. "
            "If it fails again, please report it.",
        ) from None
    except (OSError, PolarsError, BrokenProcessPool) as error:
        ours = as_ours(error)
        if ours is None and not isinstance(error, OSError):
            raise
        ours = ours or LakeError(
            f"The reports could not be written: {error}",
            hint="Fix the cause (disk space or permissions), then: nightaudit report",
        )
        ours.at_step("The night is published, and earlier reports are unchanged.", "nightaudit report")
        raise ours from None


def write_dictionary(lake: Lake) -> Path:
    """Write the data dictionary, link it from the page of all nights, and return its file.

    Raises InputError if nothing is published.
    """
    with open_published(lake.published_file) as session:
        _write_overview(lake, Reader(session, Scope()), has_dictionary=True)
    return lake.reports / _DICTIONARY


def list_blocked_night(lake: Lake) -> None:
    """Write the page of all nights again, if there is one: the audit has blocked a sweep."""
    if reports_page(lake).exists():
        with _failures_as_ours(lake), open_published(lake.published_file) as session:
            _write_overview(lake, Reader(session, Scope()))


def _write_overview(lake: Lake, reader: Reader, *, has_dictionary: bool = False) -> Path:
    root = lake.reports
    # The dictionary is linked as that of the last night, so one of an earlier night is written again.
    if has_dictionary := has_dictionary or (root / _DICTIONARY).exists():
        relations = {"relations": described(reader.session), "schemas": SCHEMAS, "night": reader.night}
        write_in_place(root / _DICTIONARY, render("dictionary", relations).encode())
    reported = [night | {"pages": pages} for night in reader.nights if (pages := pages_of(root, night["sweep_id"]))]
    blocked = blocked_nights(root, {night["sweep_id"] for night in reader.nights})
    context = {
        # The ids begin with the time.
        "nights": sorted([*reported, *blocked], key=itemgetter("sweep_id"), reverse=True),
        "reported": reported,
        "is_simulated": any(night["is_simulated"] for night in reported),
        "dictionary": _DICTIONARY if has_dictionary else "",
    }
    text = render("overview", context)
    return write_in_place(root / "index.html", text.encode())
