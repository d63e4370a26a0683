"""The ledger as rows of the table `quote`: each run once, when nobody is asking any more."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pipeline.delta import commit_rows, is_committed
from pipeline.domain.tables import QUOTE
from pipeline.lake import Lake
from pipeline.quote import ledger
from pipeline.quote.ledger import Entry, Run
from pipeline.quote.outcomes import result_of
from pipeline.quote.sample import Identity


def load_ledger(lake: Lake, max_body_bytes: int) -> None:
    """Load every run that is not loaded yet. The caller holds the lake's writer lock, so none is under way.

    A quote whose answer was never written down is `unknown` from now on.
    """
    for run in ledger.runs(lake):
        if is_committed(lake, QUOTE, run.run_id):
            continue
        rows = [row_of(lake, run, entry, max_body_bytes) for entry in ledger.entries(lake, run.run_id)]
        if rows:
            table = pa.Table.from_pylist(rows, schema=QUOTE.schema)
            commit_rows(lake, QUOTE, table, run.run_id, "quotes", run.run_id)


def asked_so_far(lake: Lake, max_body_bytes: int) -> tuple[set[Identity], set[tuple[str, Identity]]]:
    """Return the offers that may hold a reservation nobody knows, and all quoted ones, each with its sweep."""
    unknown: set[Identity] = set()
    asked: set[tuple[str, Identity]] = set()
    for run in ledger.runs(lake):
        for entry in ledger.entries(lake, run.run_id):
            offer = entry.intent.offer
            asked.add((offer.sweep_id, offer.identity))
            is_known = entry.answer is not None and entry.answer.reservation_id is not None
            if not is_known and result_of(entry, max_body_bytes).is_reservation_possible:
                unknown.add(offer.identity)
    return unknown, asked


def row_of(lake: Lake, run: Run, entry: Entry, max_body_bytes: int) -> dict[str, Any]:
    """Return a quote as a row of the table."""
    intent, answer, offer = entry.intent, entry.answer, entry.intent.offer
    result = result_of(entry, max_body_bytes)
    # Where nothing was sent there is no time of sending either.
    quoted_at = answer.started_at if answer else None
    names = ("source", "offer_key", "property_id", "market", "product_type", "check_in", "nights", "party",
             "currency_asked", "room_stay_id", "room_id", "board_id", "policy_key", "product_id", "currency",
             "sweep_id", "search_id", "offer_no", "searched_at")  # fmt: skip
    return {name: getattr(offer, name) for name in names} | {
        "run_id": run.run_id,
        "quote_no": intent.quote_no,
        "is_simulated": run.is_simulated,
        "sent_property_id": intent.sent_property_id,
        "search_total": offer.total,
        "intended_at": intent.intended_at,
        "quoted_at": quoted_at,
        "answered_at": answer.ended_at if answer else None,
        "age_seconds": round((quoted_at - offer.searched_at).total_seconds()) if quoted_at else None,
        "outcome": result.outcome.value,
        "code": result.code,
        "failure": result.failure,
        "http_status": answer.http_status if answer else None,
        "is_reservation_possible": result.is_reservation_possible,
        "reservation_id": answer.reservation_id if answer else None,
        "quote_currency": result.currency,
        "quote_total": result.total,
        "quote_room_id": result.room_id,
        "quote_board_id": result.board_id,
        "quote_policy_key": result.policy_key,
        "quote_rate_type": result.rate_type,
        "property_remarks": result.property_remarks,
        "raw_address": ledger.address(lake, run.run_id, entry),
    }
