"""Exact money: numbers of a body become DECIMAL(18,4) or are refused, never rounded."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.domain.tables import MONEY, MONEY_SCALE

_UNIT = 10**MONEY_SCALE
# Below this, doubles are closer together than ten-thousandths: each amount of four decimals has its own, and scaling,
# rounding and dividing back proves that a double is the nearest to such an amount.
_EXACT_BELOW = 2.0**39
# Above it, a double still represents any decimal of this many digits, but not of more.
_DIGITS = 15
_LARGEST = 10**18 - 1


class UnfitMoney(ValueError):
    """A number has more than four decimals or more digits than DECIMAL(18,4) holds."""


def money_columns(columns: Sequence[Sequence[float | None]]) -> list[pa.Array]:
    """Return columns of one length as DECIMAL(18,4). Raises UnfitMoney if a value would have to be rounded.

    All columns at once, because for a few hundred offers the calls cost as much as the work.
    """
    numbers = np.array(list(chain.from_iterable(columns)), dtype=np.float64).reshape(len(columns), -1)
    is_stated = ~np.isnan(numbers)
    numbers = np.where(is_stated, numbers, 0.0)
    if (np.abs(numbers) < _EXACT_BELOW).all():
        units = _scaled(numbers)
    else:
        units = np.array([[0 if value is None else _units(value) for value in values] for values in columns])
    return [_decimals(*column) for column in zip(units, is_stated, strict=True)]


def refuse_unfit(values: Iterable[float | None]) -> None:
    """Raise UnfitMoney like `money_columns`, for the few amounts of one policy."""
    for value in values:
        if value is None or (abs(value) < _EXACT_BELOW and round(value * _UNIT) / _UNIT == value):
            continue
        _units(value)


def _scaled(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    scaled = np.rint(numbers * _UNIT)
    if not (scaled / _UNIT == numbers).all():
        culprit = float(numbers[scaled / _UNIT != numbers][0])
        raise UnfitMoney(f"{culprit!r} has more than {MONEY_SCALE} decimals")
    units: npt.NDArray[np.int64] = scaled.astype(np.int64)
    return units


def _units(value: float) -> int:
    # repr() gives the shortest decimal that reads back as this double: the original of any value of up to 15 digits.
    shortest = Decimal(repr(value)).normalize()
    units = shortest * _UNIT
    is_named = abs(value) < _EXACT_BELOW or len(shortest.as_tuple().digits) <= _DIGITS
    if not is_named or units != units.to_integral_value() or abs(units) > _LARGEST:
        raise UnfitMoney(f"{value!r} does not fit into DECIMAL(18,{MONEY_SCALE})")
    return int(units)


def _decimals(units: npt.NDArray[np.int64], is_stated: npt.NDArray[np.bool_]) -> pa.Array:
    words = np.empty((len(units), 2), dtype=np.int64)
    words[:, 0] = units
    words[:, 1] = units >> 63
    nulls = len(units) - int(np.count_nonzero(is_stated))
    validity = pa.py_buffer(np.packbits(is_stated, bitorder="little")) if nulls else None
    return pa.Decimal128Array.from_buffers(MONEY, len(units), [validity, pa.py_buffer(words)], nulls)
