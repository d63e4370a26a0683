"""The ledger as rows of the tables of quotes: each run once, after its end."""

from typing import Any

import pyarrow as pa

from pipeline.domain.tables import QUOTE, QUOTE_OFFER, QUOTE_PENALTY, QUOTE_PROMOTION, QUOTE_TABLES
from pipeline.lake import Lake
from pipeline.lake.delta import commit_rows, is_committed
from pipeline.quote import ledger
from pipeline.quote.ledger import Entry, Run
from pipeline.quote.outcomes import QuoteResult, result_of
from pipeline.quote.products import offer_row, penalty_rows, promotion_rows
from pipeline.quote.sample import Identity


def load_ledger(lake: Lake, max_body_bytes: int) -> None:
    """Load every run that is not loaded yet. The caller holds the lake's writer lock, so no run is in progress.

    A quote whose answer was never recorded becomes `unknown`.
    """
    for run in ledger.runs(lake):
        if is_committed(lake, QUOTE, run.run_id):
            continue
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in QUOTE_TABLES}
        for entry in ledger.entries(lake, run.run_id):
            for name, found in rows_of(lake, run, entry, max_body_bytes).items():
                rows[name] += found
        # `quote` is last, as its rows show that the run is loaded.
        for name, table in reversed(QUOTE_TABLES.items()):
            if rows[name]:
                made = pa.Table.from_pylist(rows[name], schema=table.schema)
                commit_rows(lake, table, made, run.run_id, "quotes", run.run_id)


def asked_so_far(lake: Lake, max_body_bytes: int) -> tuple[set[Identity], set[tuple[str, Identity]]]:
    """Return identities of offers: those that may have an unknown reservation, and all quoted ones with their sweep."""
    unknown: set[Identity] = set()
    asked: set[tuple[str, Identity]] = set()
    for run in ledger.runs(lake):
        for entry in ledger.entries(lake, run.run_id):
            offer = entry.intent.offer
            asked.update((offer.sweep_id, each) for each in offer.identities)
            is_known = entry.answer is not None and entry.answer.reservation_id is not None
            if not is_known and result_of(entry, max_body_bytes).is_reservation_possible:
                unknown.update(offer.identities)
    return unknown, asked


def rows_of(lake: Lake, run: Run, entry: Entry, max_body_bytes: int) -> dict[str, list[dict[str, Any]]]:
    """Return a quote as rows of the tables of quotes."""
    result = result_of(entry, max_body_bytes)
    rows: dict[str, list[dict[str, Any]]] = {
        QUOTE.name: [_quote_row(lake, run, entry, result)],
        QUOTE_OFFER.name: [],
        QUOTE_PENALTY.name: [],
        QUOTE_PROMOTION.name: [],
    }
    offer = entry.intent.offer
    answered = result.rooms or (None,) * len(offer.rooms)
    for number, (asked, room) in enumerate(zip(offer.rooms, answered, strict=True)):
        place = {
            "run_id": run.run_id,
            "quote_no": entry.intent.quote_no,
            "room_no": number,
            "property_id": offer.property_id,
            "market": offer.market,
        }
        row = place | {
            "offer_key": asked.offer_key,
            "offer_no": asked.offer_no,
            "asked_product_id": asked.product_id,
            "search_total": asked.total,
        }
        if room is not None and room.product is not None:
            row |= offer_row(room, room.product, result.currency)
            rows[QUOTE_PENALTY.name] += [place | each for each in penalty_rows(room.product)]
            rows[QUOTE_PROMOTION.name] += [place | each for each in promotion_rows(room.product)]
        rows[QUOTE_OFFER.name].append(row)
    return rows


def _quote_row(lake: Lake, run: Run, entry: Entry, result: QuoteResult) -> dict[str, Any]:
    intent, answer, offer = entry.intent, entry.answer, entry.intent.offer
    quoted_at = answer.started_at if answer else None
    names = ("source", "property_id", "sent_property_id", "market", "product_type", "check_in", "nights", "party",
             "currency_asked", "room_id", "board_id", "policy_key", "currency", "sweep_id", "search_id",
             "searched_at")  # fmt: skip
    of_first_room = ("offer_key", "offer_no", "room_stay_id", "product_id")
    return (
        {name: getattr(offer, name) for name in names}
        | {name: getattr(offer.rooms[0], name) for name in of_first_room}
        | {
            "run_id": run.run_id,
            "quote_no": intent.quote_no,
            "is_simulated": run.is_simulated,
            "rooms": len(offer.rooms),
            "search_total": offer.total,
            "intended_at": intent.intended_at,
            "quoted_at": quoted_at,
            "answered_at": answer.ended_at if answer else None,
            "age_seconds": round((quoted_at - offer.searched_at).total_seconds()) if quoted_at else None,
            "outcome": result.outcome.value,
            "code": result.code,
            "codes": ",".join(map(str, result.codes)) or None,
            "messages": "\n".join(result.messages) or None,
            "failure": result.failure,
            "http_status": answer.http_status if answer else None,
            "is_reservation_possible": result.is_reservation_possible,
            "reservation_id": answer.reservation_id if answer else None,
            "quote_property_id": result.property_id,
            "quote_currency": result.currency,
            "quote_total": result.total,
            "property_remarks": result.property_remarks,
            "raw_address": ledger.address(lake, run.run_id, entry),
        }
    )
