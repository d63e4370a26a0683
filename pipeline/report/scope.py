"""What a report is about: all that the published file knows, or one property, market or span of stay dates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from pipeline.domain.errors import InputError


@dataclass(frozen=True, slots=True)
class Scope:
    """Limits of a report; None: no limit. `first` and `last` are days of check-in, both included."""

    property_id: int | None = None
    market: str | None = None
    first: date | None = None
    last: date | None = None

    def __post_init__(self) -> None:
        if self.first and self.last and self.first > self.last:
            raise InputError(f"The first day of check-in, {self.first}, lies after the last one, {self.last}.")

    @property
    def suffix(self) -> str:
        """Part of file names that keeps a limited report apart from the whole one; empty where there is no limit."""
        parts = [
            f"property-{self.property_id}" if self.property_id is not None else "",
            self.market or "",
            f"from-{self.first}" if self.first else "",
            f"to-{self.last}" if self.last else "",
        ]
        return "".join(f"--{part}" for part in parts if part)

    @property
    def words(self) -> str:
        """The limits in words; empty where there is none."""
        parts = [
            f"property {self.property_id}" if self.property_id is not None else "",
            f"market {self.market}" if self.market else "",
            f"check-in from {self.first}" if self.first else "",
            f"check-in until {self.last}" if self.last else "",
        ]
        return ", ".join(part for part in parts if part)

    def missing(self, *columns: str) -> str:
        """Return in words the limits that a relation with these columns cannot be held to; empty: none."""
        asked = [
            ("property_id", "property", self.property_id),
            ("market", "market", self.market),
            ("check_in", "check-in", self.first or self.last),
        ]
        return ", ".join(word for column, word, value in asked if value is not None and column not in columns)

    def condition(self, *columns: str) -> tuple[str, dict[str, Any]]:
        """Return an SQL condition over those of property_id, market and check_in in `columns`, and its values."""
        wanted = [
            ("property_id", "property_id = $property_id", "property_id", self.property_id),
            ("market", "market = $market", "market", self.market),
            ("check_in", "check_in >= $first", "first", self.first),
            ("check_in", "check_in <= $last", "last", self.last),
        ]
        used = [(text, name, value) for column, text, name, value in wanted if column in columns and value is not None]
        return " AND ".join(text for text, _, _ in used) or "true", {name: value for _, name, value in used}
