"""The searches of a segment in the order in which they were added: what each row says of the search it came from."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pipeline.domain.tables import INSTANT
from pipeline.normalise.columns import Index, constant, spread
from pipeline.normalise.request import Asked


class AskedSearches:
    """What was asked in each search, when, and where its raw answer lies; rows refer to a search by its position."""

    def __init__(self, sweep_id: str) -> None:
        self.sweep_id = sweep_id
        self.addresses: list[str] = []
        self._asked: list[Asked] = []
        self._search_ids: list[int] = []
        self._searched_at: list[Any] = []

    def add(self, search_id: int, asked: Asked, searched_at: Any, address: str) -> int:  # noqa: ANN401 - as pyarrow takes it
        """Add a search and return its position."""
        self._asked.append(asked)
        self._search_ids.append(search_id)
        self._searched_at.append(searched_at)
        self.addresses.append(address)
        return len(self._asked) - 1

    def search_id(self, position: Index) -> pa.Array:
        """Return the id of the search of each row."""
        return spread(self._search_ids, pa.int64(), position)

    def columns(self, position: Index) -> dict[str, pa.Array]:
        """Return the columns that each row takes over from its search."""
        asked = self._asked
        return {
            "sweep_id": constant(self.sweep_id, len(position)),
            "search_id": self.search_id(position),
            "searched_at": spread(self._searched_at, INSTANT, position),
            "market": spread([a.market for a in asked], pa.string(), position),
            "product_type": spread([a.product_type for a in asked], pa.string(), position),
            "check_in": spread([a.check_in for a in asked], pa.date32(), position),
            "nights": spread([a.nights for a in asked], pa.int16(), position),
            "party": spread([a.party for a in asked], pa.string(), position),
            "currency_asked": spread([a.currency for a in asked], pa.string(), position),
        }
