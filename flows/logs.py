"""The log of a run: the messages of the pipeline, and each error for users only once."""

from __future__ import annotations

import logging
from weakref import WeakSet

from prefect.exceptions import CancelledRun, FailedRun
from prefect.logging.handlers import PrefectConsoleHandler

from pipeline.domain.errors import NightauditError
from pipeline.process.log_lines import JsonLines, is_log_json

_OURS = "pipeline"
_RUN_LOGGERS = ("prefect.flow_runs", "prefect.task_runs")

_reported: WeakSet[NightauditError] = WeakSet()


def tell_our_errors_once() -> None:
    """Let Prefect log an error for users once, and only its message; a state that a flow returns is logged already."""
    for name in _RUN_LOGGERS:
        logging.getLogger(name).addFilter(_logged_once)


def log_steps() -> None:
    """Let the messages of the pipeline reach the run's log, and standard error as JSON if the settings say so."""
    logger = logging.getLogger(_OURS)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    if is_log_json() and not any(isinstance(handler.formatter, JsonLines) for handler in logger.handlers):
        lines = logging.StreamHandler()
        lines.setFormatter(JsonLines())
        logger.addHandler(lines)
        # Prefect's console would write them once more; its handler of runs' logs gets them as before.
        for handler in logging.getLogger().handlers:
            if isinstance(handler, PrefectConsoleHandler):
                handler.addFilter(_is_not_ours)


def _is_not_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] != _OURS


def _logged_once(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    # Prefect logs the state that a flow returns, and then a traceback, as if the run had crashed.
    if isinstance(error, (CancelledRun, FailedRun)):
        return False
    if not isinstance(error, NightauditError):
        return True
    # The engines of the task, the flow and the process would each log it.
    if error in _reported:
        return False
    _reported.add(error)
    record.msg, record.args, record.exc_info = str(error), (), None
    return True
