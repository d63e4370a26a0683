"""The rows of a segment, collected search by search and turned into Arrow tables at its end."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.domain import tables
from pipeline.domain.codes import ERROR_CODES, CodeKind
from pipeline.domain.search import CellStatus, Operation
from pipeline.lake.raw import RawRecord
from pipeline.normalise.content import SegmentContent
from pipeline.normalise.interned import Distinct, Interned, Note, PenaltyRow
from pipeline.normalise.money import money_columns
from pipeline.normalise.read_answer import Offers, Reading
from pipeline.normalise.request import Asked

Index = npt.NDArray[Any]
Verdict = tuple[CellStatus, int | None]
"""The status of a cell, with the code that goes with it."""

_SOURCES = {Operation.MULTI: "multi", Operation.SINGLE: "detail"}
_PRODUCT_PATHS = {
    Operation.MULTI: "properties[].roomStays[].products[]",
    Operation.SINGLE: "property.roomStays[].products[]",
}
_STATUS_OF_KIND = {
    CodeKind.NO_AVAILABILITY: CellStatus.NO_OFFER,
    CodeKind.VALIDATION: CellStatus.REJECTED,
    CodeKind.SERVER: CellStatus.FAILED,
}
_OFFERED: Verdict = (CellStatus.OFFERED, None)
_FAILED: Verdict = (CellStatus.FAILED, None)
_STATUSES = [status.value for status in CellStatus]
_STATUS_NUMBERS = {status: number for number, status in enumerate(CellStatus)}


class SegmentRows:
    """Collects the rows of one segment; `arrow_tables()` gives them all."""

    def __init__(self, sweep_id: str, operation: Operation, market: str, number: int) -> None:
        self.interned = Interned()
        self._sweep_id = sweep_id
        self._operation = operation
        self._market = market
        self._number = number
        self._asked: list[Asked] = []
        self._search_ids: list[int] = []
        self._searched_at: list[Any] = []
        self._addresses: list[str] = []
        self._searches: list[dict[str, Any]] = []
        self._cells = _Cells()
        self._offers: list[tuple[int, Offers]] = []
        self._rejects: list[dict[str, Any]] = []
        self._content = SegmentContent()
        self._drift: Counter[tuple[str, str, str]] = Counter()
        self._drift_example: dict[tuple[str, str, str], str] = {}

    # Collecting -------------------------------------------------------------------------------------------

    def add_unasked(self, search_id: int, asked: Asked) -> None:
        """Add a planned search that was never sent: its cells are not swept."""
        position = self._add_asked(search_id, asked, None, "")
        self._cells.add_all(position, asked.property_ids, CellStatus.NOT_SWEPT)

    def add_split(self, record: RawRecord, asked: Asked, address: str) -> None:
        """Add a batch that failed and whose halves were asked instead: it has no cells of its own."""
        self._add_asked(record.search_id, asked, record.started_at, address)
        self._add_search(record, asked, address, outcome="split")

    def add_failed(
        self, record: RawRecord, asked: Asked, address: str, codes: Sequence[int], messages: Sequence[str] = ()
    ) -> None:
        """Add a search whose retries were used up."""
        position = self._add_asked(record.search_id, asked, record.started_at, address)
        self._add_search(record, asked, address, outcome="failed", codes=codes, messages=messages)
        self._cells.add_all(position, asked.property_ids, CellStatus.FAILED, _first_int32(codes))

    def add_rejected(
        self, record: RawRecord, asked: Asked, address: str, codes: Sequence[int], messages: Sequence[str] = ()
    ) -> None:
        """Add a search that the supplier refused (400)."""
        position = self._add_asked(record.search_id, asked, record.started_at, address)
        self._add_search(record, asked, address, outcome="rejected", codes=codes, messages=messages)
        self._cells.add_all(position, asked.property_ids, CellStatus.REJECTED, _first_int32(codes))

    def add_answered(
        self, record: RawRecord, asked: Asked, address: str, reading: Reading, body_bytes: int | None
    ) -> None:
        """Add a search that was answered with 200, whatever could be read of it."""
        position = self._add_asked(record.search_id, asked, record.started_at, address)
        if reading.offers is not None:
            self._offers.append((position, reading.offers))
        if reading.content is not None:
            self._content.add(record.search_id, reading.content)
        self._add_answered_cells(position, asked, reading)
        self._add_search(
            record,
            asked,
            address,
            outcome="failed" if reading.is_unreadable else "answered",
            codes=reading.codes,
            messages=reading.messages,
            failure="unreadable" if reading.is_unreadable else None,
            body_bytes=body_bytes,
            offers=sum(reading.returned.values()),
            rejects=len(reading.refusals),
        )
        for number, refusal in enumerate(reading.refusals):
            self._rejects.append(
                {
                    "search_id": record.search_id,
                    "reject_no": number,
                    "property_id": refusal.property_id,
                    "part": refusal.part,
                    "path": refusal.path,
                    "reason": refusal.reason,
                    "sample": refusal.sample,
                    "raw_address": address,
                }
            )
        for deviation in reading.deviations:
            self._note((deviation.path, deviation.kind, deviation.detail), address)

    def _add_answered_cells(self, position: int, asked: Asked, reading: Reading) -> None:
        unlisted, code = self._status_of_unlisted(reading)
        listed_empty = (CellStatus.NO_OFFER, code if unlisted is CellStatus.NO_OFFER else None)
        verdicts: list[Verdict] = []
        offers = [reading.returned.get(property_id) for property_id in asked.property_ids]
        for property_id, found in zip(asked.property_ids, offers, strict=True):
            if found:
                verdicts.append(_OFFERED)
            elif reading.is_unreadable or property_id in reading.unreadable:
                verdicts.append(_FAILED)
            else:
                verdicts.append((unlisted, code) if found is None else listed_empty)
        self._cells.add(position, asked.property_ids, verdicts, [found or 0 for found in offers])

    def _status_of_unlisted(self, reading: Reading) -> tuple[CellStatus, int | None]:
        """Return what an answer says of the properties that it does not list."""
        if not reading.has_errors:
            return (CellStatus.ABSENT if self._operation is Operation.MULTI else CellStatus.NO_OFFER), None
        documented = [ERROR_CODES[code] for code in reading.codes if code in ERROR_CODES]
        for kind, status in _STATUS_OF_KIND.items():
            for error in documented:
                if error.kind is kind:
                    return status, error.code
        # An unknown code, or none that could be read: that is no word about what is on sale.
        return CellStatus.FAILED, reading.codes[0] if reading.codes else None

    def _add_asked(self, search_id: int, asked: Asked, searched_at: Any, address: str) -> int:  # noqa: ANN401
        self._asked.append(asked)
        self._search_ids.append(search_id)
        self._searched_at.append(searched_at)
        self._addresses.append(address)
        return len(self._asked) - 1

    def _add_search(
        self,
        record: RawRecord,
        asked: Asked,
        address: str,
        *,
        outcome: str,
        codes: Sequence[int] = (),
        messages: Sequence[str] = (),
        failure: str | None = None,
        body_bytes: int | None = None,
        offers: int = 0,
        rejects: int = 0,
    ) -> None:
        detail = ": ".join(part for part in (record.failure, record.failure_detail) if part)
        self._searches.append(
            {
                "search_id": record.search_id,
                "operation": self._operation.value,
                "product_type": asked.product_type,
                "check_in": asked.check_in,
                "nights": asked.nights,
                "party": asked.party,
                "currency_asked": asked.currency,
                "properties": len(asked.property_ids),
                "sent_property_id": asked.sent_property_id,
                "outcome": outcome,
                "http_status": record.http_status,
                "codes": ",".join(map(str, codes)) or None,
                "messages": "\n".join(messages) or None,
                "failure": failure or detail or None,
                "attempts": record.attempts,
                "started_at": record.started_at,
                "ended_at": record.ended_at,
                "latency_ms": round((record.ended_at - record.started_at).total_seconds() * 1000),
                "wire_bytes": len(record.body),
                "body_bytes": body_bytes,
                "body_sha256": hashlib.sha256(record.body).hexdigest() if record.body else None,
                "offers": offers,
                "rejects": rejects,
                "raw_address": address,
            }
        )

    def _note(self, what: tuple[str, str, str], address: str, occurrences: int = 1) -> None:
        self._drift[what] += occurrences
        self._drift_example.setdefault(what, address)

    # Tables -----------------------------------------------------------------------------------------------

    def arrow_tables(self) -> dict[str, pa.Table]:
        """Return every table of the segment that has rows, in the declared schemas."""
        offers = _JoinedOffers(self._offers, self.interned)
        self._note_interned(offers)
        built = {
            "search": self._from_rows(tables.SEARCH, self._searches),
            "offer": self._offer_table(offers),
            "penalty": self._child_table(tables.PENALTY, "penalty_no", offers, offers.policy, self._penalties()),
            "promotion": self._child_table(
                tables.PROMOTION, "promotion_no", offers, offers.promotions, self._promotions()
            ),
            "reject": self._from_rows(tables.REJECT, self._rejects),
            "drift": self._from_rows(tables.DRIFT, self._drift_rows()),
            **self._content.arrow_tables(self._sweep_id),
            # Last, because its file says that the segment is done.
            "cell": self._cell_table(),
        }
        return {name: table for name, table in built.items() if table.num_rows}

    def _from_rows(self, table: tables.Table, rows: list[dict[str, Any]]) -> pa.Table:
        same = {"sweep_id": self._sweep_id, "market": self._market}
        return pa.Table.from_pylist([same | row for row in rows], schema=table.schema)

    def _drift_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "operation": self._operation.value,
                "segment": self._number,
                "path": path,
                "kind": kind,
                "detail": detail,
                "occurrences": count,
                "example_raw_address": self._drift_example[path, kind, detail],
            }
            for (path, kind, detail), count in sorted(self._drift.items())
        ]

    def _note_interned(self, offers: _JoinedOffers) -> None:
        prefix = _PRODUCT_PATHS[self._operation]
        for indexes, distinct in (
            (offers.board, self.interned.boards),
            (offers.promotions, self.interned.promotions),
            (offers.policy, self.interned.policies),
        ):
            self._note_distinct(indexes, distinct, offers, prefix)

    def _note_distinct(self, indexes: Index, distinct: Distinct[Any], offers: _JoinedOffers, prefix: str) -> None:
        noted = [number for number, notes in enumerate(distinct.notes) if notes]
        if not noted:
            return
        counts = np.bincount(indexes, minlength=len(distinct.notes))
        for number in noted:
            if not counts[number]:
                continue
            first = int(np.argmax(indexes == number))
            address = self._addresses[int(offers.search[first])]
            note: Note
            for note in distinct.notes[number]:
                self._note((f"{prefix}.{note.path}", note.kind, note.detail), address, int(counts[number]))

    def _constant(self, value: str, count: int) -> pa.Array:
        return _spread([value], pa.string(), np.zeros(count, dtype=np.int32))

    def _asked_columns(self, search: Index) -> dict[str, pa.Array]:
        asked = self._asked
        return {
            "sweep_id": self._constant(self._sweep_id, len(search)),
            "search_id": _spread(self._search_ids, pa.int64(), search),
            "searched_at": _spread(self._searched_at, tables.INSTANT, search),
            "market": _spread([a.market for a in asked], pa.string(), search),
            "product_type": _spread([a.product_type for a in asked], pa.string(), search),
            "check_in": _spread([a.check_in for a in asked], pa.date32(), search),
            "nights": _spread([a.nights for a in asked], pa.int16(), search),
            "party": _spread([a.party for a in asked], pa.string(), search),
            "currency_asked": _spread([a.currency for a in asked], pa.string(), search),
        }

    def _cell_table(self) -> pa.Table:
        cells = self._cells
        search = np.array(cells.search, dtype=np.int32)
        columns = self._asked_columns(search) | {
            "operation": self._constant(self._operation.value, len(search)),
            "property_id": pa.array(cells.property_id, pa.int64()),
            "status": _spread(_STATUSES, pa.string(), np.array(cells.status, dtype=np.int32)),
            "code": pa.array(cells.code, pa.int32()),
            "offers": pa.array(cells.offers, pa.int32()),
        }
        return _table(tables.CELL, columns, len(search))

    def _offer_table(self, offers: _JoinedOffers) -> pa.Table:
        boards = self.interned.boards.values_in_order
        policies = self.interned.policies.values_in_order
        promotions = self.interned.promotions.values_in_order
        columns = self._asked_columns(offers.search) | {
            "offer_no": pa.array(offers.offer_no),
            "source": self._constant(_SOURCES[self._operation], offers.count),
            "property_id": offers.property_id,
            "currency": offers.currency,
            "room_stay_id": offers.room_stay_id,
            "room_id": offers.room_id,
            "room_name": offers.room_name,
            "rate_type": offers.rate_type,
            "available_rooms": offers.available_rooms,
            "product_id": offers.product_id,
            "board_id": _spread([b.id for b in boards], pa.int32(), offers.board),
            "board_name": _spread([b.name for b in boards], pa.string(), offers.board),
            "board_detail": _spread([b.detail for b in boards], pa.string(), offers.board),
            "policy_key": _spread([p.key for p in policies], pa.int64(), offers.policy),
            "refundability": _spread([p.refundability for p in policies], pa.string(), offers.policy),
            "free_cancel_hours": _spread([p.free_cancel_hours for p in policies], pa.int32(), offers.policy),
            "free_cancel_until": _spread([p.free_cancel_until for p in policies], tables.INSTANT, offers.policy),
            "promotion_key": _spread([p.key for p in promotions], pa.int64(), offers.promotions),
            "discount_pct": offers.discount_pct,
            **offers.money,
        }
        return _table(tables.OFFER, columns, offers.count)

    def _child_table(
        self,
        table: tables.Table,
        number_column: str,
        offers: _JoinedOffers,
        owner: Index,
        children: tuple[list[int], dict[str, pa.Array]],
    ) -> pa.Table:
        """Spread the rows of each distinct text over the offers that carry it."""
        sizes, values = children
        size_of = np.array(sizes, dtype=np.int64)
        start_of = np.cumsum(size_of) - size_of
        counts = size_of[owner] if len(owner) else np.zeros(0, dtype=np.int64)
        total = int(counts.sum())
        parent = np.repeat(np.arange(offers.count), counts)
        position = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        row = np.repeat(start_of[owner], counts) + position
        columns = {
            "sweep_id": self._constant(self._sweep_id, total),
            "search_id": _spread(self._search_ids, pa.int64(), offers.search[parent]),
            "offer_no": pa.array(offers.offer_no[parent]),
            number_column: pa.array(position.astype(np.int16)),
            "property_id": offers.property_id.take(pa.array(parent)),
            "market": self._constant(self._market, total),
            **{name: _spread_array(value, row) for name, value in values.items()},
        }
        return _table(table, columns, total)

    def _penalties(self) -> tuple[list[int], dict[str, pa.Array]]:
        policies = self.interned.policies.values_in_order
        rows: list[PenaltyRow] = [row for policy in policies for row in policy.rows]
        return [len(policy.rows) for policy in policies], {
            "window_hours": pa.array([row.terms.window_hours for row in rows], pa.int32()),
            "penalty_pct": pa.array([row.terms.penalty_pct for row in rows], pa.float64()),
            "penalty_nights": pa.array([row.terms.penalty_nights for row in rows], pa.float64()),
            "is_refundable": pa.array([row.terms.is_refundable for row in rows], pa.bool_()),
            "start_at": pa.array([row.start_at for row in rows], tables.INSTANT),
            "start_offset": pa.array([row.start_offset for row in rows], pa.string()),
            "end_at": pa.array([row.end_at for row in rows], tables.INSTANT),
            "end_offset": pa.array([row.end_offset for row in rows], pa.string()),
            "amount": money_columns([[row.terms.amount for row in rows]])[0],
        }

    def _promotions(self) -> tuple[list[int], dict[str, pa.Array]]:
        held = self.interned.promotions.values_in_order
        rows = [row for promotions in held for row in promotions.rows]
        return [len(promotions.rows) for promotions in held], {
            "promo_type": pa.array([row.promo_type for row in rows], pa.string()),
            "description": pa.array([row.description for row in rows], pa.string()),
        }


class _Cells:
    """The cells of a segment, one list a column."""

    def __init__(self) -> None:
        self.search: list[int] = []
        self.property_id: list[int] = []
        self.status: list[int] = []
        self.code: list[int | None] = []
        self.offers: list[int] = []

    def add(self, search: int, property_ids: Sequence[int], verdicts: Sequence[Verdict], offers: Sequence[int]) -> None:
        """Add the cells of one search, a verdict and a number of offers each."""
        self.search += [search] * len(property_ids)
        self.property_id += property_ids
        self.status += [_STATUS_NUMBERS[status] for status, _ in verdicts]
        self.code += [code for _, code in verdicts]
        self.offers += offers

    def add_all(self, search: int, property_ids: Sequence[int], status: CellStatus, code: int | None = None) -> None:
        """Add the cells of a search of which one thing is to be said, and no offers."""
        count = len(property_ids)
        self.add(search, property_ids, [(status, code)] * count, [0] * count)


class _JoinedOffers:
    """The offers of all answers of a segment, each column one array as long as there are offers."""

    def __init__(self, held: Sequence[tuple[int, Offers]], interned: Interned) -> None:
        offers = [found for _, found in held]
        per_room = np.array([n for found in offers for n in found.products_of_room], dtype=np.int64)
        per_property = np.array([n for found in offers for n in found.products_of_property], dtype=np.int64)
        per_answer = np.array([len(found.offer_no) for found in offers], dtype=np.int64)
        room = np.repeat(np.arange(len(per_room), dtype=np.int32), per_room)
        prop = np.repeat(np.arange(len(per_property), dtype=np.int32), per_property)
        self.search: Index = np.repeat(np.array([position for position, _ in held], dtype=np.int32), per_answer)
        self.count = len(self.search)
        self.property_id = _spread_array(_joined([o.property_id for o in offers], pa.int64()), prop)
        self.currency = _spread([c for o in offers for c in o.currency], pa.string(), prop)
        self.room_stay_id = _spread_array(_joined([o.room_stay_id for o in offers], pa.int32()), room)
        self.room_id = _spread_array(_joined([o.room_id for o in offers], pa.int64()), room)
        self.room_name = _spread([n for o in offers for n in o.room_name], pa.string(), room)
        self.rate_type = _spread([r for o in offers for r in o.rate_type], pa.string(), room)
        self.available_rooms = _spread_array(_joined([o.available_rooms for o in offers], pa.int32()), room)
        self.offer_no: Index = _concatenated([o.offer_no for o in offers])
        self.product_id = _joined([o.product_id for o in offers], pa.int64())
        self.board, self.promotions, self.policy = interned.apart(_concatenated([o.threes for o in offers]))
        self.discount_pct = _joined([o.discount_pct for o in offers], pa.float64())
        names = {name: None for o in offers for name in o.money}
        self.money = {
            name: _joined([o.money.get(name, pa.nulls(len(o.offer_no), tables.MONEY)) for o in offers], tables.MONEY)
            for name in names
        }


def _first_int32(codes: Sequence[int]) -> int | None:
    return next((code for code in codes if -(2**31) <= code < 2**31), None)


def _concatenated(parts: Sequence[Index]) -> Index:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)


def _joined(parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays(parts) if parts else pa.array([], kind)


def _spread(values: Sequence[Any], kind: pa.DataType, index: Index) -> pa.Array:
    return _spread_array(pa.array(values, kind), index)


def _spread_array(values: pa.Array, index: Index) -> pa.Array:
    """Repeat `values` by `index`. Texts stay a dictionary, so that each is written once."""
    if not pa.types.is_string(values.type):
        return values.take(pa.array(index))
    encoded = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(pa.array(index)), encoded.dictionary)


def _table(table: tables.Table, columns: dict[str, pa.Array], count: int) -> pa.Table:
    """Order the columns as declared; those that this kind of answer does not have are NULL."""
    arrays = [
        columns[column.name] if column.name in columns else pa.nulls(count, column.type) for column in table.columns
    ]
    return pa.Table.from_arrays(arrays, names=[column.name for column in table.columns])
