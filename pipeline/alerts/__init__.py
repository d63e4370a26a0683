"""Alerts: rules over the published file, told once, told again when they are over, and to whom it concerns."""

from pipeline.alerts.rules import AlertRules, read_rules
from pipeline.alerts.telling import Told, tell_alerts

__all__ = ["AlertRules", "Told", "read_rules", "tell_alerts"]
