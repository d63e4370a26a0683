"""What a report is about: all that the published file knows, or one property, market or span of stay dates."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from pipeline.domain.errors import InputError
from pipeline.domain.texts import literal

# Conditions on columns of `mart.property` that choose properties. Names without a relation belong to the chosen rows.
_CHOSEN_BY = {
    name: f"property_id IN (SELECT place.property_id FROM mart.property AS place WHERE lower({of}) = lower(${name}))"  # noqa: S608 - our own names
    for name, of in (("city", "place.city"), ("brand", "place.brand"), ("group", "place.property_group"))
}
# A case of a property may have several markets.
_OF_MARKET = "(market = $market OR (property_id IS NOT NULL AND list_contains(markets, $market)))"


@dataclass(frozen=True, slots=True)
class Scope:
    """Filters of a report; None: no filter. `first` and `last` are days of check-in, both included.

    `city`, `brand` and `group` are values of `mart.property`, in upper or lower case.
    """

    property_id: int | None = None
    market: str | None = None
    first: date | None = None
    last: date | None = None
    city: str | None = None
    brand: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        if self.first and self.last and self.first > self.last:
            raise InputError(
                f"The first check-in date, {self.first}, is after the last one, {self.last}.",
                kept="No report was written.",
                hint="Swap --from and --to.",
            )

    @property
    def suffix(self) -> str:
        """Part of file names that distinguishes a filtered report from the complete one; empty without filters."""
        parts = [
            f"property-{self.property_id}" if self.property_id is not None else "",
            self.market or "",
            f"from-{self.first}" if self.first else "",
            f"to-{self.last}" if self.last else "",
            *(f"{name}-{_in_a_file_name(value)}" for name, value in self._chosen()),
        ]
        return "".join(f"--{part}" for part in parts if part)

    @property
    def words(self) -> str:
        """The filters in words; empty if there are none."""
        parts = [
            f"property {self.property_id}" if self.property_id is not None else "",
            f"market {self.market}" if self.market else "",
            f"check-in from {self.first}" if self.first else "",
            f"check-in until {self.last}" if self.last else "",
            *(f"{name} {value}" for name, value in self._chosen()),
        ]
        return ", ".join(part for part in parts if part)

    @property
    def choices(self) -> str:
        """A query for the possible values of the filters."""
        if self._chosen():
            return "SELECT DISTINCT city, brand, property_group FROM mart.property"
        return "SELECT DISTINCT property_id, market FROM mart.cell_latest"

    def missing(self, *columns: str) -> str:
        """Return in words the filters that cannot be applied to a relation with these columns; empty: none."""
        asked = [
            ("property_id", "property", self.property_id),
            ("market", "market", self.market),
            ("check_in", "check-in", self.first or self.last),
            *(("property_id", name, value) for name, value in self._chosen()),
        ]
        return ", ".join(word for column, word, value in asked if value is not None and column not in columns)

    def condition(self, *columns: str) -> tuple[str, dict[str, Any]]:
        """Return an SQL condition over those of property_id, market and check_in in `columns`, and its values."""
        wanted = [
            ("property_id", "property_id = $property_id", "property_id", self.property_id),
            ("market", _OF_MARKET if "markets" in columns else "market = $market", "market", self.market),
            ("check_in", "check_in >= $first", "first", self.first),
            ("check_in", "check_in <= $last", "last", self.last),
            *(("property_id", _CHOSEN_BY[name], name, value) for name, value in self._chosen()),
        ]
        used = [(text, name, value) for column, text, name, value in wanted if column in columns and value is not None]
        return " AND ".join(text for text, _, _ in used) or "true", {name: value for _, name, value in used}

    @property
    def expression(self) -> str:
        """The condition over `its_property_id`, `its_market` and `its_check_in` with literal values, for a macro.

        Parameters of a macro must not have names of columns, which views in it would resolve to the parameters.
        """
        text, values = self.condition("property_id", "market", "check_in")
        named = re.sub(r"(?<![.$])\b(property_id|market|check_in)\b", r"its_\1", text)
        return re.sub(r"\$(\w+)", lambda found: literal(str(values[found[1]])), named)

    def as_attributes(self, places: Iterable[Mapping[str, str]]) -> dict[str, str]:
        """Return the filters by city, brand and group for a page's script, spelled as in the attributes of `places`."""
        wanted = {f"data-{name}": value for name, value in self._chosen()}
        known = [(name, place[name]) for place in places for name in wanted.keys() & place.keys()]
        return wanted | {name: value for name, value in reversed(known) if value.lower() == wanted[name].lower()}

    def _chosen(self) -> list[tuple[str, str]]:
        """Return the filters on `mart.property` and their values."""
        limits = [("city", self.city), ("brand", self.brand), ("group", self.group)]
        return [(name, value) for name, value in limits if value is not None]


def _in_a_file_name(text: str) -> str:
    """Return a user's text as part of a file name, with a hash if characters had to be changed."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40]
    return plain if plain == text.lower() else f"{plain}-{hashlib.sha256(text.lower().encode()).hexdigest()[:6]}"
