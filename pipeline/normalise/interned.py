"""Boards, promotions and policies of a segment, decoded once per distinct text.

An offer then holds three small numbers, and its penalties and promotions are expanded by vector operations at the end
of the segment. A segment has few distinct texts in multi answers and at most one per offer in detail answers, so an
instance lives as long as its segment.
"""

import re
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Generic, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from pipeline.domain import keys
from pipeline.domain.codes import BOARDS, is_known_promotion
from pipeline.domain.penalties import Penalty, free_cancel_hours, free_cancel_until, refundability
from pipeline.normalise.money import refuse_unfit
from pipeline.normalise.parts import Deviation
from pipeline.supplier import wire
from pipeline.supplier.bodies import names_and_nulls_in
from pipeline.supplier.date_times import instant_of

T = TypeVar("T")
Indexes = npt.NDArray[np.int32]

_DIGIT = re.compile(r"\d")
_TEXTS = attrgetter("board", "promotions", "penalties")
# Two counts share one number: an answer has fewer nulls than this.
_NULLS = 2**31
# Never part of a JSON text.
_BETWEEN = b"\0"
_NO_PENALTIES: tuple[wire.Penalty[float], ...] = ()


@dataclass(frozen=True, slots=True)
class PenaltyRow:
    """A penalty with its exact dates as instants, and their offsets as sent."""

    terms: wire.Penalty[float]
    start_at: datetime | None
    start_offset: str | None
    end_at: datetime | None
    end_offset: str | None


@dataclass(frozen=True, slots=True)
class Policy:
    """The penalties of an offer, and the values that depend on them alone."""

    key: int
    rows: tuple[PenaltyRow, ...]
    refundability: str
    free_cancel_hours: int | None
    free_cancel_until: datetime | None


@dataclass(frozen=True, slots=True)
class Promotions:
    """The promotions of an offer, in order."""

    key: int
    rows: tuple[wire.Promotion, ...]


class Distinct(dict[bytes, int], Generic[T]):
    """Distinct texts in the order of their first appearance, each decoded once.

    Looking up a new text decodes it; if the decoder raises, the instance is unchanged.
    """

    def __init__(self, decode: Callable[[bytes], tuple[T, list[Deviation]]]) -> None:
        super().__init__()
        self._decode = decode
        self.values_in_order: list[T] = []
        self.notes: list[list[Deviation]] = []

    def __missing__(self, text: bytes) -> int:
        value, notes = self._decode(text)
        self[text] = index = len(self.values_in_order)
        self.values_in_order.append(value)
        self.notes.append(notes)
        return index


class Interned:
    """The distinct boards, promotions and policies of a segment, and the combinations (threes) that products have."""

    def __init__(self) -> None:
        self.boards: Distinct[wire.Board] = Distinct(_board)
        self.promotions: Distinct[Promotions] = Distinct(_promotions)
        self.policies: Distinct[Policy] = Distinct(_policy)
        self._threes: Distinct[tuple[int, int, int]] = Distinct(self._three)
        # For each three: the number of field names in its texts, and how many of them are null.
        self._names: list[int] = []
        self._counted = np.zeros(0, np.int64)

    def threes_of(self, products: Sequence[wire.Product]) -> Indexes:
        """Return the three of each product; `apart` separates them.

        Raises OverflowError, UnfitMoney and msgspec's errors for a text that cannot be stored.
        """
        # The hottest line of a night: one look-up per product instead of three, without a step in Python.
        joined = map(_BETWEEN.join, map(_TEXTS, products))
        return np.fromiter(map(self._threes.__getitem__, joined), np.int32, len(products))

    def apart(self, threes: Indexes) -> tuple[Indexes, Indexes, Indexes]:
        """Return the indexes of the boards, promotions and policies of `threes`."""
        known = np.array(self._threes.values_in_order, np.int32).reshape(-1, 3)
        board, promotions, policy = known[threes].T
        return board, promotions, policy

    def names_in(self, threes: Indexes) -> tuple[int, int]:
        """Return how many field names the texts of `threes` have, including their own, and how many are null."""
        if len(self._counted) != len(self._names):
            self._counted = np.array(self._names, np.int64)
        return divmod(int(self._counted[threes].sum()), _NULLS)

    def _three(self, joined: bytes) -> tuple[tuple[int, int, int], list[Deviation]]:
        texts = board, promotions, policy = joined.split(_BETWEEN)
        three = self.boards[board], self.promotions[promotions], self.policies[policy]
        names, nulls = names_and_nulls_in(b"".join(texts))
        if names - nulls != self._fields_read(*three):
            raise ValueError("boardBasis, promotions or cancelPenalties has a field twice")
        self._names.append((names + 3 - texts.count(b"null")) * _NULLS + nulls)
        return three, []

    def _fields_read(self, board: int, promotions: int, policy: int) -> int:
        rows = (
            self.boards.values_in_order[board],
            *self.promotions.values_in_order[promotions].rows,
            *(row.terms for row in self.policies.values_in_order[policy].rows),
        )
        return sum(len(fields) - fields.count(None) for fields in map(msgspec.structs.astuple, rows))


_decode_penalties = msgspec.json.Decoder(list[wire.Penalty[float]] | None).decode


def _board(text: bytes) -> tuple[wire.Board, list[Deviation]]:
    board = wire.decode_board(text) or wire.Board()
    notes = []
    if board.id is not None and board.id not in BOARDS:
        notes.append(Deviation("boardBasis.id", "new_value", str(board.id)))
    return board, notes


def _promotions(text: bytes) -> tuple[Promotions, list[Deviation]]:
    rows = tuple(wire.decode_promotions(text) or ())
    _can_be_numbered(rows, "promotions")
    notes = [
        Deviation("promotions[].promoType", "new_value", row.promo_type[:100])
        for row in rows
        if row.promo_type is not None and not is_known_promotion(row.promo_type)
    ]
    return Promotions(keys.promotion_key((row.promo_type, row.description) for row in rows), rows), notes


def _policy(text: bytes) -> tuple[Policy, list[Deviation]]:
    penalties = _decode_penalties(text) or _NO_PENALTIES
    _can_be_numbered(penalties, "cancelPenalties")
    notes: list[Deviation] = []
    rows = []
    for penalty in penalties:
        start_at, start_offset = _instant(penalty.starts, "penaltyStartDate", notes)
        end_at, end_offset = _instant(penalty.ends, "penaltyEndDate", notes)
        rows.append(PenaltyRow(penalty, start_at, start_offset, end_at, end_offset))
    refuse_unfit(penalty.amount for penalty in penalties)
    stated = [_stated(row) for row in rows]
    return Policy(
        key=keys.policy_key((p.window_hours, p.penalty_pct, p.penalty_nights, p.is_refundable) for p in penalties),
        rows=tuple(rows),
        refundability=refundability(penalty.is_refundable for penalty in stated),
        free_cancel_hours=free_cancel_hours(stated),
        free_cancel_until=free_cancel_until(stated),
    ), notes


def _stated(row: PenaltyRow) -> Penalty:
    terms = row.terms
    amount = None if terms.amount is None else Decimal(repr(terms.amount))
    stated = (terms.window_hours, terms.penalty_pct, terms.penalty_nights, terms.is_refundable)
    return Penalty(*stated, row.start_at, row.end_at, amount)


def _instant(text: str | None, field: str, notes: list[Deviation]) -> tuple[datetime | None, str | None]:
    """Return the instant of a text and its offset; other texts are noted and left out."""
    if text is None:
        return None, None
    found = instant_of(text)
    if found is None:
        # Only its form, as a night has too many dates to list each.
        notes.append(Deviation(f"cancelPenalties[].{field}", "changed_type", _DIGIT.sub("9", text[:40])))
        return None, None
    return found


def _can_be_numbered(children: Sized, field: str) -> None:
    if len(children) > wire.MOST_CHILDREN:
        raise OverflowError(f"{field} has {len(children)} items; at most {wire.MOST_CHILDREN} are read")
