"""Columns of a segment: joined from its answers, and repeated for the rows that share a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.domain.tables import Table

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
