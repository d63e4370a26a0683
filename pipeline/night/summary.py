"""The result of a night in one small value: printed by the commands, and kept by Prefect as an artifact."""

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from pipeline.domain.errors import TooManyFailures
from pipeline.domain.search import STATUSES
from pipeline.domain.texts import in_markdown
from pipeline.lake.database import query_published
from pipeline.lake.simulated import SIMULATED
from pipeline.publish import Published

# Runs in plain DuckDB on the published file; every amount comes with its currency. Lists and details are never mixed.
QUERY = (
    "SELECT source, market, product_type, currency, count(*) AS offers, min(total_per_night) AS lowest, "
    "median(total_per_night) AS median FROM mart.offer_latest GROUP BY ALL ORDER BY ALL"
)

_FINDINGS = "SELECT count(*), count(*) FILTER (WHERE first_flagged_at >= $started_at) FROM report.flag"
_CASES = (
    "SELECT count(*), count(*) FILTER (WHERE status = 'new') FROM report.finding_case WHERE status IN ('new', 'open')"
)


_SEE_DAMAGE = "see what they held, and how to repair them: nightaudit verify --deep"
_DATE_BEFORE = (
    "SELECT max_by(snapshot_date, started_at) FROM mart.sweep "
    "WHERE started_at < (SELECT started_at FROM mart.sweep WHERE sweep_id = $sweep_id)"
)
_FAILED = "SELECT relation FROM state.failed_rule WHERE sweep_id = $sweep_id ORDER BY relation"


@dataclass(frozen=True, slots=True)
class NightSummary:
    """A published night: counts of its row of `mart.sweep`, open flags, and cases without a decision."""

    sweep_id: str
    snapshot_date: date
    supplier: str
    is_simulated: bool
    is_complete: bool
    planned: int
    cells: tuple[tuple[str, int], ...]
    requests: int
    duration: timedelta
    offers: int
    price_changes: int
    previous_date: date | None
    findings: int
    new_findings: int
    cases: int
    new_cases: int
    file: Path
    reports: Path
    query: str = QUERY
    failed_rules: tuple[str, ...] = ()
    """Relations of rules that could not be evaluated."""
    files_left_out: int = 0
    """Missing or damaged files of tables that the published night is without."""


def summarise(published: Published, reports: Path, files_left_out: int = 0) -> NightSummary:
    """Return the summary of a night that has just been published; `reports` is the start page of its reports."""
    sweep = published.sweep
    findings, new = query_published(published.file, _FINDINGS, {"started_at": sweep["started_at"]}).fetchall()[0]
    cases, new_cases = query_published(published.file, _CASES).fetchall()[0]
    about = {"sweep_id": sweep["sweep_id"]}
    return NightSummary(
        sweep_id=sweep["sweep_id"],
        snapshot_date=sweep["snapshot_date"],
        supplier=sweep["supplier"],
        is_simulated=sweep["is_simulated"],
        is_complete=sweep["state"] == "complete",
        planned=sweep["planned"],
        cells=tuple((status, sweep[status]) for status in STATUSES),
        requests=sweep["requests"],
        duration=sweep["finished_at"] - sweep["started_at"],
        offers=sweep["offers"],
        price_changes=sweep["price_changes"],
        previous_date=query_published(published.file, _DATE_BEFORE, about).fetchall()[0][0],
        findings=findings,
        new_findings=new,
        cases=cases,
        new_cases=new_cases,
        file=published.file,
        reports=reports,
        failed_rules=tuple(row[0] for row in query_published(published.file, _FAILED, about).fetchall()),
        files_left_out=files_left_out,
    )


def refuse_failed_rules(summary: NightSummary, tolerated: int) -> None:
    """Raise TooManyFailures if more rules could not be evaluated than is tolerated."""
    if len(summary.failed_rules) <= tolerated:
        return
    raise TooManyFailures(
        f"Rules that could not be evaluated tonight: {', '.join(summary.failed_rules)}; {tolerated} are tolerated "
        "(NIGHTAUDIT_TOLERATED_FAILED_RULES).",
        kept=f"The sweep {summary.sweep_id} is published; findings of these rules are unchanged.",
        hint='See why, and please report it: nightaudit query "FROM state.failed_rule"',
    )


def lines_of(summary: NightSummary) -> list[tuple[str, str]]:
    """Return the summary as pairs of a label and a text, in their order."""
    since = f"{summary.price_changes:,} since the night of {summary.previous_date} (offers on sale on both nights)"
    return [
        ("sweep", f"{summary.sweep_id} (supplier: {summary.supplier})"),
        ("planned cells", f"{summary.planned:,}{'' if summary.is_complete else ' (ended early)'}"),
        *((f"  {status}", f"{count:,}") for status, count in summary.cells),
        ("requests", f"{summary.requests:,}"),
        ("duration", _span(summary.duration)),
        ("offers stored", f"{summary.offers:,}"),
        ("price changes", since if summary.previous_date else "none yet: this is the first night"),
        ("findings", f"{summary.findings:,} open, {summary.new_findings:,} new"),
        ("cases", f"{summary.cases:,} to decide, {summary.new_cases:,} new; see: nightaudit cases"),
        *([("rules that failed", ", ".join(summary.failed_rules))] if summary.failed_rules else []),
        *([("files left out", f"{summary.files_left_out:,}; {_SEE_DAMAGE}")] if summary.files_left_out else []),
        ("published file", str(summary.file)),
        ("reports", str(summary.reports)),
    ]


def as_markdown(summary: NightSummary) -> str:
    """Return the summary as Markdown, its texts escaped."""
    rows = [f"| {in_markdown(label.strip())} | {in_markdown(text)} |" for label, text in lines_of(summary)]
    warning = [f"**{SIMULATED}**", ""] if summary.is_simulated else []
    heading = f"# Night of {summary.snapshot_date}"
    query = ["One query to try:", "", "```sql", summary.query, "```"]
    return "\n".join([heading, "", *warning, "| | |", "| --- | --- |", *rows, "", *query])


def _span(duration: timedelta) -> str:
    seconds = duration.total_seconds()
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"
