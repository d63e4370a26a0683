"""What the log of a run holds: the pipeline's own notes, and an error that is meant for users once."""

from __future__ import annotations

import logging
from weakref import WeakSet

from pipeline.domain.errors import NightauditError

_RUN_LOGGERS = ("prefect.flow_runs", "prefect.task_runs")

_told: WeakSet[NightauditError] = WeakSet()


def tell_our_errors_once() -> None:
    """Let Prefect log an error that is meant for users as its message alone, and once."""
    for name in _RUN_LOGGERS:
        logging.getLogger(name).addFilter(_told_once)


def log_steps() -> None:
    """Let the pipeline's own notes reach the run's log."""
    logger = logging.getLogger("pipeline")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)


def _told_once(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, NightauditError):
        return True
    # It passes through the task's engine, the flow's, and the process's; each would tell it.
    if error in _told:
        return False
    _told.add(error)
    record.msg, record.args, record.exc_info = str(error), (), None
    return True
