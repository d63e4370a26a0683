"""The parts of an audit: measures before they are judged, and findings after."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipeline.domain.quantities import measured

ALL = "all"


@dataclass(frozen=True, slots=True)
class Measure:
    """A measured value, with the bounds that it is judged by.

    `basis` is `rule` (the same bounds each night), `rows` (counted violations of an SQL rule, none allowed) or
    `history` (bounds from earlier nights, by `kind` and `side`: see `history.bounds`). A value up to
    `harmless` is never too high for its history.
    """

    market: str
    table: str
    check: str
    severity: str
    meaning: str
    basis: str
    observed: float | None
    lowest: float | None = None
    highest: float | None = None
    kind: str = "share"
    side: str = "both"
    harmless: float = 0.0
    of: float = 0.0
    nights: int = 0
    violations: int = 0
    examples: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies the measure from night to night."""
        return self.market, self.table, self.check


@dataclass(frozen=True, slots=True)
class Finding:
    """A judged measure: one row of the table `quality`, without the columns that describe its audit."""

    market: str
    table_name: str
    check_name: str
    severity: str
    outcome: str
    basis: str
    observed: float | None
    lowest: float | None
    highest: float | None
    nights_before: int
    violations: int
    meaning: str
    examples: str | None

    @property
    def is_failed(self) -> bool:
        """Whether the check failed, at any severity."""
        return self.outcome == "failed"

    def as_row(self) -> dict[str, Any]:
        """Return its values by name."""
        # Not `asdict`, which copies each value: it takes ten times as long for the hundreds of a night.
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Cause:
    """One check that failed, with all markets in which it did."""

    table_name: str
    check_name: str
    severity: str
    meaning: str
    findings: tuple[Finding, ...]

    @property
    def line(self) -> str:
        """The cause in one line."""
        where = ", ".join(finding.market for finding in self.findings[:6])
        more = f" and {len(self.findings) - 6} more" if len(self.findings) > 6 else ""
        return f"{self.table_name}.{self.check_name} ({where}{more}): {self.meaning}; {self._numbers}"

    @property
    def _numbers(self) -> str:
        first, *others = self.findings
        if first.basis == "rows":
            return f"{sum(finding.violations for finding in self.findings):,} rows"
        if not others:
            return _found(first)
        shown = "; ".join(f"{finding.market} {_found(finding)}" for finding in self.findings[:3])
        return shown + ("; …" if len(self.findings) > 3 else "")


@dataclass(frozen=True, slots=True)
class Audit:
    """The verdict on a sweep. `nights` are the published sweeps that it was compared with, oldest first."""

    sweep_id: str
    audit_no: int
    audited_at: datetime
    findings: tuple[Finding, ...]
    nights: tuple[str, ...] = ()
    quarantined: int = 0
    is_new: bool = True

    @property
    def is_passed(self) -> bool:
        """Whether the sweep may be published."""
        return not self.causes("critical")

    @property
    def outcomes(self) -> dict[str, int]:
        """The number of checks by outcome."""
        found = [finding.outcome for finding in self.findings]
        return {outcome: found.count(outcome) for outcome in ("passed", "failed", "not_judged")}

    def causes(self, severity: str) -> list[Cause]:
        """Return the failures of a severity, one cause per check."""
        failed: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.findings:
            if finding.is_failed and finding.severity == severity:
                failed.setdefault((finding.table_name, finding.check_name), []).append(finding)
        return [
            Cause(table, check, severity, found[0].meaning, tuple(sorted(found, key=lambda f: f.market)))
            for (table, check), found in sorted(failed.items())
        ]


def rounded(value: float) -> float:
    """Return a value without its last digits, which depend on the order in which threads add up."""
    return float(f"{value:.10g}")


def _found(finding: Finding) -> str:
    bounds = []
    if finding.lowest is not None:
        bounds.append(f"at least {measured(finding.check_name, finding.lowest)}")
    if finding.highest is not None:
        bounds.append(f"at most {measured(finding.check_name, finding.highest)}")
    since = f", by {finding.nights_before} nights before" if finding.nights_before else ""
    return f"{measured(finding.check_name, finding.observed)} where {' and '.join(bounds)} is expected{since}"
