"""Values of an answer as text, for people and for formats without lists and structs."""

import json
import math
from collections.abc import Iterable, Sequence
from datetime import date

from pipeline.domain.texts import printable_json


def as_object(names: Sequence[str], row: Iterable[object]) -> dict[str, object]:
    """Return a row as a JSON object. A repeated name gets a number, as in Parquet: `a`, `a_1`."""
    held: dict[str, object] = {}
    for name, value in zip(names, row, strict=True):
        key, number = name, 0
        while key in held:
            number += 1
            key = f"{name}_{number}"
        held[key] = as_json(value)
    return held


def as_json(value: object) -> object:
    """Return a value that JSON can express; it has neither NaN nor infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, list | tuple) else value


def as_text(value: object) -> str:
    """Return a value as text: a list or a struct as JSON."""
    return json_text(as_json(value)) if isinstance(value, dict | list | tuple) else str(value)


def json_text(value: object, indent: int | None = None) -> str:
    """Return a value as JSON, by default on one line. A terminal may show it, so control characters are escaped."""
    return printable_json(json.dumps(value, default=_as_json_text, ensure_ascii=False, indent=indent))


def _as_json_text(value: object) -> str:
    """Return what JSON has no type for: a date or an instant as in ISO 8601, which `str` writes with a space."""
    return value.isoformat() if isinstance(value, date) else str(value)
