"""Ranges of property ids: a night is computed range by range, each within the memory of one process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

# Offers of a range, tonight's plus those on sale before: as wide rows they fit into a process of 700 MB.
MOST_OFFERS = 500_000

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class PropertyRange:
    """Property ids from `first` to `last`, both included."""

    first: int = _LOWEST
    last: int = _HIGHEST

    @property
    def is_all(self) -> bool:
        """Whether no property is left out."""
        return self == ALL

    @property
    def condition(self) -> str:
        """The range as SQL over a column `property_id`."""
        return f"property_id BETWEEN {self.first} AND {self.last}"

    def meets(self, first: int, last: int) -> bool:
        """Whether it has an id in common with another range."""
        return self.first <= last and first <= self.last


ALL = PropertyRange()


def choose_ranges(session: duckdb.DuckDBPyConnection, most_offers: int) -> tuple[list[PropertyRange], list[int]]:
    """Cut the properties of a night and of the state before it into ranges of at most so many offers.

    A property is never cut: one with more offers is a range of its own. Together the ranges hold every id there is.
    Returns the ranges and the ids of the properties.
    """
    found = session.execute(
        """
        SELECT property_id, sum(offers) AS offers
        FROM (
            SELECT property_id, count(*) AS offers FROM sweep_files.offer GROUP BY property_id
            UNION ALL
            SELECT property_id, count(*) AS offers FROM state.offer_open GROUP BY property_id
            UNION ALL
            SELECT property_id, count(*) / 8 AS offers FROM sweep_files.cell GROUP BY property_id
        )
        GROUP BY property_id
        ORDER BY property_id
        """
    ).fetchall()
    return cut(found, most_offers), [property_id for property_id, _ in found]


def cut(offers: Sequence[tuple[int, float]], most_offers: int) -> list[PropertyRange]:
    """Cut properties, in the order of their ids and with their numbers of offers, into ranges."""
    starts, held = [_LOWEST], 0.0
    for property_id, number in offers:
        if held and held + number > most_offers:
            starts.append(property_id)
            held = 0.0
        held += number
    ends = [start - 1 for start in starts[1:]]
    return [PropertyRange(first, last) for first, last in zip(starts, [*ends, _HIGHEST], strict=True)]
