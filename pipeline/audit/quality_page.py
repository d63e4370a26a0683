"""The quality page of a sweep: one HTML file that loads nothing from the network, and the same as JSON.

Text from the supplier is shown as text and never as markup.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from pipeline.audit.history import History
from pipeline.audit.results import Audit, Finding
from pipeline.domain.quantities import counted, measured
from pipeline.domain.texts import in_markdown, printable, printable_json
from pipeline.lake import Lake, write_in_place

_WIDTH, _HEIGHT, _MARGIN = 120, 28, 3
# Longer texts are cut.
_LONGEST = 2_000

# Measures that are drawn over the nights even if they passed.
_DRAWN = ("answered_share", "offered_share", "failed_share", "floor_share", "offers_per_cell", "unread_share")


@dataclass(frozen=True, slots=True)
class Trend:
    """A check over the nights as points of an SVG line; `last` is tonight's point."""

    finding: Finding
    points: str
    last: tuple[float, float]
    nights: int


def write_report(
    lake: Lake, audit: Audit, before: History, *, is_simulated: bool, cold_nights: int, kept: str | None
) -> Path:
    """Write `quality.html` and `quality.json` of an audit and return the page. `kept` is the night still published."""
    folder = lake.reports / audit.sweep_id
    folder.mkdir(parents=True, exist_ok=True)
    held = msgspec.json.format(msgspec.json.encode(as_json(audit)).decode(), indent=1)
    write_in_place(folder / "quality.json", printable_json(held).encode())
    page = _template().render(
        audit=audit,
        title=_title(audit),
        critical=audit.causes("critical"),
        warnings=audit.causes("warning"),
        outcomes=audit.outcomes,
        tables=_by_table(audit),
        trends=_trends(audit, before),
        is_simulated=is_simulated,
        cold_nights=cold_nights,
        is_cold=len(audit.nights) < cold_nights,
        kept=kept,
    )
    write_in_place(folder / "quality.html", page.encode())
    return folder / "quality.html"


def as_json(audit: Audit) -> dict[str, Any]:
    """Return an audit as plain values."""
    return {
        "sweep_id": audit.sweep_id,
        "audit_no": audit.audit_no,
        "audited_at": audit.audited_at.isoformat(),
        "is_passed": audit.is_passed,
        "nights_before": list(audit.nights),
        "quarantined": audit.quarantined,
        "causes": [cause.line for cause in audit.causes("critical")],
        "warnings": [cause.line for cause in audit.causes("warning")],
        "findings": [finding.as_row() | {"examples": _examples(finding)} for finding in audit.findings],
    }


def as_markdown(audit: Audit) -> str:
    """Return an audit as Markdown, for an artifact."""
    outcomes = audit.outcomes
    lines = [f"# {_title(audit)}", "", f"Quality of {audit.sweep_id}. "]
    lines += [f"{outcomes['passed']} checks passed, {outcomes['failed']} failed, {outcomes['not_judged']} not judged; "]
    lines += [f"{audit.quarantined:,} offers in quarantine; compared with {len(audit.nights)} nights.", ""]
    for severity in ("critical", "warning"):
        lines += [f"- **{severity}** {in_markdown(cause.line)}" for cause in audit.causes(severity)]
    return "\n".join(lines)


def _title(audit: Audit) -> str:
    """Return whether the night passed, and how many checks failed."""
    if not audit.is_passed:
        critical = len(audit.causes("critical"))
        return f"The night is blocked: {counted(critical, 'critical check')} failed"
    failed = audit.outcomes["failed"]
    if not failed:
        return "The night passed: no check failed"
    return f"The night passed: {counted(failed, 'check')} failed, none of them critical"


def _by_table(audit: Audit) -> dict[str, list[tuple[str, list[Finding]]]]:
    """Return the findings by table and check, failed checks first."""
    tables: dict[str, dict[str, list[Finding]]] = {}
    for finding in audit.findings:
        tables.setdefault(finding.table_name, {}).setdefault(finding.check_name, []).append(finding)
    return {
        table: sorted(checks.items(), key=lambda item: (not any(f.is_failed for f in item[1]), item[0]))
        for table, checks in sorted(tables.items())
    }


def _trends(audit: Audit, before: History) -> list[Trend]:
    drawn = [f for f in audit.findings if f.basis == "history" and (f.is_failed or f.check_name in _DRAWN)]
    found = []
    for finding in sorted(drawn, key=lambda f: (not f.is_failed, f.check_name, f.market)):
        key = (finding.market, finding.table_name, finding.check_name)
        values = [seen.observed for seen in before.get(key, ())]
        if finding.observed is not None and values:
            found.append(_trend(finding, [*values, finding.observed]))
    return found


def _trend(finding: Finding, values: Sequence[float]) -> Trend:
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = (_WIDTH - 2 * _MARGIN) / max(len(values) - 1, 1)
    points = [
        (_MARGIN + step * place, _HEIGHT - _MARGIN - (value - low) / span * (_HEIGHT - 2 * _MARGIN))
        for place, value in enumerate(values)
    ]
    return Trend(finding, " ".join(f"{x:.1f},{y:.1f}" for x, y in points), points[-1], len(values))


def _examples(finding: Finding) -> list[dict[str, Any]]:
    return json.loads(finding.examples) if finding.examples else []


def _shown(value: object) -> object:
    """Return a supplier's text, cut and with visible control characters; the page's own markup is unchanged."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return printable(value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…")


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("pipeline.audit", "."),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "measured": measured,
        "examples": _examples,
        "sentence": lambda text: text[:1].upper() + text[1:],
    }
    return environment.get_template("page.html.j2")
