"""The rows of a segment, collected search by search and turned into Arrow tables at its end."""

import hashlib
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import asdict, astuple
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.domain import tables
from pipeline.domain.codes import storable_code
from pipeline.domain.search import CellStatus, Operation
from pipeline.lake.raw import RawRecord
from pipeline.normalise.cells import Cells, verdicts
from pipeline.normalise.columns import AskedSearches
from pipeline.normalise.content import SegmentContent
from pipeline.normalise.interned import Interned
from pipeline.normalise.offer_tables import JoinedOffers, offer_table, penalty_table, promotion_table
from pipeline.normalise.offers import Offers
from pipeline.normalise.parts import MORE_DEVIATIONS, MOST_DEVIATIONS
from pipeline.normalise.read_answer import Reading
from pipeline.normalise.refusals import is_nameless
from pipeline.normalise.request import Asked

_PRODUCT_PATHS = {
    Operation.MULTI: "properties[].roomStays[].products[]",
    Operation.SINGLE: "property.roomStays[].products[]",
}


class SegmentRows:
    """Collects the rows of one segment; `arrow_tables()` gives them all."""

    def __init__(self, sweep_id: str, operation: Operation, market: str, number: int) -> None:
        self.interned = Interned()
        self._sweep_id = sweep_id
        self._operation = operation
        self._market = market
        self._number = number
        self._asked_searches = AskedSearches(sweep_id)
        self._searches: list[dict[str, Any]] = []
        self._cells = Cells()
        self._offers: list[tuple[int, Offers]] = []
        self._rejects: list[dict[str, Any]] = []
        self._content = SegmentContent()
        self._drift: Counter[tuple[str, str, str]] = Counter()
        self._drift_example: dict[tuple[str, str, str], str] = {}
        # By search: properties that an answer leaves open; parts without an id, and the properties that may have them.
        self.unanswered: dict[int, tuple[int, ...]] = {}
        self.in_doubt: dict[int, tuple[int, tuple[int, ...]]] = {}

    def add_unasked(self, search_id: int, asked: Asked) -> None:
        """Add a planned search that was never sent: its cells are `not_swept`."""
        position = self._asked_searches.add(search_id, asked, None, "")
        self._cells.add_all(position, asked.property_ids, CellStatus.NOT_SWEPT)

    def add_split(self, record: RawRecord, asked: Asked, address: str) -> None:
        """Add a batch that failed; its cells belong to the halves that were requested instead."""
        self._asked_searches.add(record.search_id, asked, record.started_at, address)
        self._add_search(record, asked, address, outcome="split")

    def add_unanswered(
        self,
        record: RawRecord,
        asked: Asked,
        address: str,
        status: CellStatus,
        codes: Sequence[int],
        texts: Sequence[str],
    ) -> None:
        """Add a search whose retries were used up (failed), or that the supplier refused with 400 (rejected)."""
        position = self._asked_searches.add(record.search_id, asked, record.started_at, address)
        self._add_search(record, asked, address, outcome=status.value, codes=codes, messages=texts)
        self._cells.add_all(position, asked.property_ids, status, storable_code(codes))

    def add_answered(
        self,
        record: RawRecord,
        asked: Asked,
        address: str,
        reading: Reading,
        body_bytes: int | None,
        asked_again: Container[int] = (),
    ) -> None:
        """Add a search that was answered with 200, as far as it could be read.

        Properties that were `asked_again`, because it left them open or in doubt, have their cells there.
        """
        position = self._asked_searches.add(record.search_id, asked, record.started_at, address)
        if reading.offers is not None:
            self._offers.append((position, reading.offers))
        if reading.content is not None:
            self._content.add(record.search_id, reading.content)
        own = [property_id for property_id in asked.property_ids if property_id not in asked_again]
        counts = [reading.returned.get(property_id, 0) for property_id in own]
        self._cells.add(position, own, verdicts(self._operation, reading, own), counts)
        offers = sum(reading.returned.values())
        failure = reading.doubt
        # A part without an id is not a refusal once the properties it may belong to were requested again.
        refusals = [each for each in reading.refusals if not (asked_again and is_nameless(each))]
        self._add_search(
            record,
            asked,
            address,
            outcome="failed" if failure and not offers else "answered",
            codes=reading.codes,
            messages=reading.messages,
            failure=failure,
            body_bytes=body_bytes,
            offers=offers,
            rejects=len(refusals),
        )
        self._rejects += [
            {"search_id": record.search_id, "reject_no": number, "raw_address": address, **asdict(refusal)}
            for number, refusal in enumerate(refusals)
        ]
        for deviation in reading.deviations:
            self._note((deviation.path, deviation.kind, deviation.detail), address)
        if unanswered := reading.unanswered(asked.property_ids):
            self.unanswered[record.search_id] = unanswered
        if in_doubt := reading.in_doubt(asked.property_ids):
            self.in_doubt[record.search_id] = sum(map(is_nameless, reading.refusals)), in_doubt

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
        if len(self._drift) >= MOST_DEVIATIONS and what not in self._drift:
            what = astuple(MORE_DEVIATIONS)
        self._drift[what] += occurrences
        self._drift_example.setdefault(what, address)

    def arrow_tables(self) -> dict[str, pa.Table]:
        """Return every table of the segment that has rows, in the declared schemas."""
        offers = JoinedOffers(self._offers, self.interned)
        self._note_interned(offers)
        built = {
            "search": self._from_rows(tables.SEARCH, self._searches),
            "offer": offer_table(self._operation, self._asked_searches, offers, self.interned),
            "penalty": penalty_table(self._market, self._asked_searches, offers, self.interned),
            "promotion": promotion_table(self._market, self._asked_searches, offers, self.interned),
            "reject": self._from_rows(tables.REJECT, self._rejects),
            "drift": self._from_rows(tables.DRIFT, self._drift_rows()),
            **self._content.arrow_tables(self._sweep_id),
            # Last, because its file says that the segment is done.
            "cell": self._cells.table(self._operation, self._asked_searches),
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

    def _note_interned(self, offers: JoinedOffers) -> None:
        prefix = _PRODUCT_PATHS[self._operation]
        for indexes, distinct in (
            (offers.board, self.interned.boards),
            (offers.promotions, self.interned.promotions),
            (offers.policy, self.interned.policies),
        ):
            counts = np.bincount(indexes, minlength=len(distinct.notes))
            for number, notes in enumerate(distinct.notes):
                if notes and counts[number]:
                    first = int(np.argmax(indexes == number))
                    address = self._asked_searches.addresses[int(offers.search[first])]
                    for note in notes:
                        self._note((f"{prefix}.{note.path}", note.kind, note.detail), address, int(counts[number]))
