"""Columns of a segment: joined from its answers, and repeated for rows that share a value."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.domain.tables import INSTANT, Table
from pipeline.normalise.request import Asked

Index = npt.NDArray[Any]


def concatenated(parts: Sequence[Index]) -> Index:
    """Join arrays of numbers; none of them: an empty one."""
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)


def joined(parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """Join columns of one type; none of them: an empty one."""
    return pa.concat_arrays(parts) if parts else pa.array([], kind)


def constant(value: str, count: int) -> pa.Array:
    """Repeat one text for all rows."""
    return spread([value], pa.string(), np.zeros(count, dtype=np.int32))


def spread(values: Sequence[Any], kind: pa.DataType, index: Index) -> pa.Array:
    """Repeat `values` by `index`."""
    return spread_array(pa.array(values, kind), index)


def spread_array(values: pa.Array, index: Index) -> pa.Array:
    """Repeat `values` by `index`. Texts stay a dictionary, so that each is written once."""
    if not pa.types.is_string(values.type):
        return values.take(pa.array(index))
    encoded = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(pa.array(index)), encoded.dictionary)


def in_declared_order(table: Table, columns: dict[str, pa.Array], count: int) -> pa.Table:
    """Order the columns as declared; those that this kind of answer does not have are NULL."""
    arrays = [
        columns[column.name] if column.name in columns else pa.nulls(count, column.type) for column in table.columns
    ]
    return pa.Table.from_arrays(arrays, names=[column.name for column in table.columns])


class AskedSearches:
    """Request, time and raw address of each search; rows refer to a search by its position."""

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
        """Return the columns that each row has from its search."""
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
