"""Reports for people: self-contained pages, and the same figures as CSV, Parquet and JSON next to them."""

from pipeline.report.case_problems import problems_of
from pipeline.report.markdown import as_markdown
from pipeline.report.page_files import REPORTS, Written
from pipeline.report.scope import Scope
from pipeline.report.write import (
    reports_page,
    write_dictionary,
    write_reports,
    written_case_pages,
)

__all__ = [
    "REPORTS",
    "Scope",
    "Written",
    "as_markdown",
    "problems_of",
    "reports_page",
    "write_dictionary",
    "write_reports",
    "written_case_pages",
]
