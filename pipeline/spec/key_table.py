"""The table of a spec's keys, from the descriptions that the model itself carries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pydantic.fields import FieldInfo

from pipeline.spec.model import Ask, Detail, Horizon, Properties, SpecTable, Stays

_TABLES: tuple[tuple[str, type[SpecTable]], ...] = (
    ("properties", Properties),
    ("stays", Stays),
    ("stays.horizon", Horizon),
    ("ask", Ask),
    ("detail", Detail),
)


@dataclass(frozen=True, slots=True)
class SpecKey:
    """One key: its address in the file, what it is where it is omitted, and what it means."""

    address: str
    default: str
    description: str


def spec_keys() -> Iterator[SpecKey]:
    """Yield every key that a spec may hold, in the order in which it is documented."""
    for table, model in _TABLES:
        for name, field in model.model_fields.items():
            if f"{table}.{name}" not in dict(_TABLES):
                yield SpecKey(f"{table}.{name}", _default(field), field.description or "")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    return _written(field.default) or "none"


def _written(value: Any) -> str:  # noqa: ANN401 - any default of a field
    if isinstance(value, tuple):
        return f"[{', '.join(map(_written, value))}]" if value else ""
    if isinstance(value, Enum):
        return f'"{value.value}"'
    return str(value) if value else ""
