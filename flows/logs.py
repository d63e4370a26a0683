"""What is said where: the run's log goes to Prefect, and a terminal is not told the same thing three times."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def quiet_terminal() -> Iterator[None]:
    """Keep Prefect's account of a run from the terminal of a caller who shows progress and errors himself.

    Who asks for it (PREFECT_LOGGING_LEVEL=INFO or DEBUG) gets it all the same.
    """
    if os.environ.get("PREFECT_LOGGING_LEVEL", "").upper() in {"INFO", "DEBUG"}:
        yield
        return
    handlers = list(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(_not_of_prefect)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(_not_of_prefect)


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


def _not_of_prefect(record: logging.LogRecord) -> bool:
    if record.name in _RUN_LOGGERS:
        return False
    return not record.name.startswith("prefect") or record.levelno >= logging.WARNING
