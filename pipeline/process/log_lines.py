"""The format of the log: lines for a terminal, or one JSON object per line, with its sweep."""

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from pipeline.domain.texts import printable

_sweep_id: ContextVar[str | None] = ContextVar("sweep_id", default=None)
# Fields that a log call may add as `extra`.
_FIELDS = ("step", "seconds", "kept", "hint", "exit_code")


class TextLines(logging.Formatter):
    """Lines for a terminal. They may quote a supplier."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line without control characters."""
        return printable(super().format(record))


class JsonLines(logging.Formatter):
    """One JSON object a line: `at` (UTC), `level`, `logger`, `message`; where known, `sweep_id` and _FIELDS."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line of JSON."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (sweep_id := _sweep_id.get()) is not None:
            line["sweep_id"] = sweep_id
        line |= {name: value for name in _FIELDS if (value := getattr(record, name, None)) is not None}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def is_log_json() -> bool:
    """Whether the log is JSON, found without the settings, as reading them is slow and may log."""
    from pipeline.process.env_file import value_in_env_file

    name = "NIGHTAUDIT_LOG_FORMAT"
    return (os.environ.get(name) or value_in_env_file(name)) == "json"


def begin_log(*, is_json: bool) -> None:
    """Write this process's log to standard error: warnings as text; with `is_json`, all messages of ours as JSON."""
    lines = logging.StreamHandler()
    lines.setFormatter(JsonLines() if is_json else TextLines("%(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[lines], force=True)
    if is_json:
        logging.getLogger("pipeline").setLevel(logging.INFO)


@contextmanager
def about_sweep(sweep_id: str) -> Iterator[None]:
    """Add the sweep to all log lines written within."""
    token = _sweep_id.set(sweep_id)
    try:
        yield
    finally:
        _sweep_id.reset(token)
