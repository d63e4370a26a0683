"""Telling somebody that a sweep was blocked: one message a cause."""

from __future__ import annotations

import logging
from pathlib import Path

from pipeline.audit.findings import Audit
from pipeline.notify import Tell

logger = logging.getLogger(__name__)


def messages(audit: Audit, page: Path) -> list[tuple[str, str]]:
    """Return subject and text of each message: one a critical check that failed, however many rows and markets."""
    return [
        (
            f"nightaudit: {cause.table_name}.{cause.check_name} blocks {audit.sweep_id}",
            f"{cause.line}\nThe sweep {audit.sweep_id} is not published. See {page}",
        )
        for cause in audit.causes("critical")
    ]


def tell_of(audit: Audit, page: Path, tell: Tell) -> None:
    """Tell of each cause. A message that cannot be sent is a warning: what blocks the sweep is the news."""
    for subject, text in messages(audit, page):
        try:
            tell(subject, text)
        except Exception as error:
            # Neither the error's text nor the address: both may hold the address's secret part.
            logger.warning("A notification could not be sent (%s).", type(error).__name__)
