"""The rules whose findings people see, as `sql/report/rules.toml` declares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from pipeline.lake.relations import declared


@dataclass(frozen=True, slots=True)
class FindingRule:
    """A rule and the relation that finds by it; see the head of the file for what each is."""

    name: str
    title: str
    makes: str
    subject: Sequence[str]
    meaning: str
    relation: str
    numbers: Sequence[str]
    severity: str = "By size_pct and the bounds of ref.analysis."
    planted: bool = True

    @property
    def full_name(self) -> str:
        """Name of the relation, with its schema."""
        return f"report.{self.relation}"


@cache
def finding_rules() -> Mapping[str, FindingRule]:
    """Return all rules by name."""
    rules = declared("report", "rules")
    return {name: FindingRule(**{"name": name, "relation": name, **said}) for name, said in rules.items()}


def detectors() -> tuple[str, ...]:
    """Return the full names of the relations whose findings become flags after each night.

    They read what a night leaves behind, never the flags themselves, and have the columns of `FINDING_COLUMNS`.
    """
    return tuple(dict.fromkeys(rule.full_name for rule in finding_rules().values() if rule.makes == "flags"))
