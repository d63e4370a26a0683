"""Settings that changed since findings were made: what a rule no longer finds by other settings was not put right."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from functools import cache

from pipeline.domain.analysis import Analysis
from pipeline.lake.ledger import LedgerEntry
from pipeline.lake.relations import detectors, night_relations, relation, relations, sources, views

# Two decide how severe a finding is, not whether there is one. For the third, findings have an end of their own.
_LEFT_OUT = frozenset({"medium_pct", "high_pct", "reference_market"})
_COMMENT = re.compile(r"--.*")
_WORD = re.compile(r"\w+")


def changed_after(nights: Sequence[LedgerEntry]) -> dict[str, datetime]:
    """Return, by relation of a rule, the start of the last night that judged by other settings than the last one does.

    `nights` are oldest first. Rules whose settings have never changed are left out.
    """
    *earlier, tonight = nights
    others = [(night.started_at, _different(night.analysis, tonight.analysis)) for night in reversed(earlier)]
    if not any(different for _, different in others):
        return {}
    found = {}
    for rule in detectors():
        read = _settings_of(rule)
        started_at = next((started_at for started_at, different in others if different & read), None)
        if started_at is not None:
            found[rule] = started_at
    return found


def _different(before: Analysis, now: Analysis) -> frozenset[str]:
    was = asdict(before)
    return frozenset(name for name, value in asdict(now).items() if value != was[name]) - _LEFT_OUT


@cache
def _settings_of(rule: str) -> frozenset[str]:
    """Return the settings named in the SQL that a rule depends on: its views, and what computes the state they read."""
    read = {rule, *sources(relation(*rule.split(".")))}
    names = {name.partition(".")[2] for name in read}
    staged = {made.name for made in relations("staging")}
    made = [each for name in sorted(names) for each in (name, f"{name}_next") if each in staged]
    texts = [made.sql for made in views() if made.full_name in read]
    texts += [relation("staging", name).sql for name in night_relations(*made)]
    return frozenset(word for text in texts for word in _WORD.findall(_COMMENT.sub("", text)))
