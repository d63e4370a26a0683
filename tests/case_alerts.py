"""Alert rules about open cases."""

from __future__ import annotations

from pipeline.notify.alert_rules import AlertRules


def rules_of_cases(*others: dict[str, object]) -> AlertRules:
    """Return a rule about open cases for one receiver, and others beside it."""
    cases = {
        "name": "cases",
        "relation": "report.finding_case",
        "where": "status IN ('new', 'open')",
        "key": ["case_id"],
        "who": ["desk"],
    }
    receiver = {"desk": {"block": "slack-webhook/desk"}}
    return AlertRules.model_validate({"rule": [cases, *others], "receiver": receiver})
