"""The pages of a large night: each is written in a process of its own.

DuckDB, polars and the drawing library keep memory that they no longer use: all pages in one process need the sum of
what each needs, which grows with the night. A page of its own needs what its largest section needs.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.lake import Lake
from pipeline.lake.database import open_published
from pipeline.process.own_process import in_own_processes
from pipeline.report.charts import here
from pipeline.report.page_files import Written, begin_page, finish_page, write_case_and_property_pages
from pipeline.report.read import Reader
from pipeline.report.scope import Scope

# Up to this many offers, one process stays below 700 MB (694 measured); more processes cost half as much CPU again.
_OFFERS_IN_ONE_PROCESS: Final = 3_500_000
# Processes side by side.
_AT_ONCE: Final = 2


@dataclass(frozen=True, slots=True)
class _Pages:
    """What a process writes: the page of a report with these links; without a report, those of cases and properties."""

    lake: Lake
    scope: Scope
    report: str | None
    links: Sequence[tuple[str, str, str]]


def is_large(reader: Reader) -> bool:
    """Whether the report would need too much memory in one process; that of one property never does."""
    return reader.scope.property_id is None and reader.night["offers"] > _OFFERS_IN_ONE_PROCESS


def write_apart(
    lake: Lake,
    scope: Scope,
    names: Sequence[str],
    own: Sequence[tuple[str, str, str]],
    common: Sequence[tuple[str, str, str]],
) -> list[Written]:
    """Write each page in a process of its own; `own` are the links of reports, `common` of their other pages."""
    jobs = [*(_Pages(lake, scope, name, own) for name in names), _Pages(lake, scope, None, common)]
    written = in_own_processes(_write, jobs, min(_AT_ONCE, os.cpu_count() or 1))
    return [each for each in written if each is not None]


def _write(pages: _Pages) -> Written | None:
    lake = pages.lake
    with open_published(lake.published_file, lake.spill) as session:
        reader = Reader(session, pages.scope, reports=lake.reports)
        if pages.report is not None:
            return finish_page(lake, begin_page(pages.report, lake, reader, here), reader, pages.links)
        write_case_and_property_pages(lake, reader, pages.links)
    return None
