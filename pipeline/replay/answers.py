"""The raw answers behind findings, each compared with its rows in the tables."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import msgspec
import pyarrow as pa

from pipeline.domain.errors import CorruptObject, LakeError
from pipeline.domain.tables import CELL, SEARCH
from pipeline.lake import Lake
from pipeline.lake.database import connect, rows_of, select_files
from pipeline.lake.raw import RawRecord, read_shard
from pipeline.lake.raw_answer import RESTORE, Evidence, evidence_at
from pipeline.lake.sweep_files import sweep_files
from pipeline.normalise.request import asked_of_request
from pipeline.publish import published_sweeps
from pipeline.replay.finding import Row

_ASKED = ("market", "product_type", "check_in", "nights", "party", "currency_asked")

Answers = dict[tuple[str, int], tuple[Row, Evidence]]
"""By sweep and search: the row of the table `search`, and its raw answer."""


def answers_behind(lake: Lake, flags: Iterable[Row]) -> Answers:
    """Return every answer about the cells of some flags, from their first evidence to their last.

    The nights between the two are evidence too, as nothing else was seen in them. A finding about a complete property
    rests on observations without an offer, and on every answer about it.
    """
    items = [item for flag in flags for item in flag["evidence"]]
    if not items:
        return {}
    named = {(item["sweep_id"], item["search_id"]) for item in items}
    properties = sorted({item["property_id"] for item in items})
    first, last = min(sweep for sweep, _ in named), max(sweep for sweep, _ in named)
    sweeps = [entry.sweep_id for entry in published_sweeps(lake) if first <= entry.sweep_id <= last]
    held = {table.name: sweep_files(lake, table) for table in (CELL, SEARCH)}
    files = {name: [file for sweep in sweeps for file in of.get(sweep, [])] for name, of in held.items()}
    asked = ", ".join(_ASKED)
    with connect(lake) as session:
        session.register("named", pa.table({"sweep_id": [s for s, _ in named], "search_id": [n for _, n in named]}))
        whole = sorted({item["property_id"] for item in items if item["offer_key"] is None})
        session.register("whole", pa.table({"property_id": pa.array(whole, pa.int64())}))
        session.execute(f"CREATE TEMP VIEW cell AS {select_files('cell', files['cell'])}")
        session.execute(f"CREATE TEMP VIEW search AS {select_files('search', files['search'])}")
        ids = ", ".join(map(str, properties))
        same = " AND ".join(
            f"wanted.{name} IS NOT DISTINCT FROM about.{name}" for name in ("operation", "property_id", *_ASKED)
        )
        # A cell that was not swept has no answer.
        query = f"""
            WITH about AS (
                SELECT * FROM cell WHERE property_id IN ({ids}) AND status <> 'not_swept'
            ),
            wanted AS (
                SELECT DISTINCT operation, property_id, {asked} FROM about
                SEMI JOIN named ON named.sweep_id = about.sweep_id AND named.search_id = about.search_id
            )
            SELECT DISTINCT search.* FROM (
                FROM about SEMI JOIN wanted ON {same}
                UNION ALL
                FROM about
                SEMI JOIN whole ON whole.property_id = about.property_id
                SEMI JOIN wanted ON wanted.property_id = about.property_id AND wanted.operation = about.operation
            ) AS asked
            INNER JOIN search ON search.sweep_id = asked.sweep_id AND search.search_id = asked.search_id
            ORDER BY search.raw_address
            """  # noqa: S608 - our own names, and numbers
        rows = rows_of(session.execute(query))
    lost = sorted(named - {(row["sweep_id"], row["search_id"]) for row in rows})
    if lost:
        raise _gone(lost[0][0])
    # Answers of one shard are adjacent, so that each shard is read once.
    records_of = lru_cache(maxsize=2)(read_shard)
    return {(row["sweep_id"], row["search_id"]): (row, _raw(lake, row, records_of)) for row in rows}


def _raw(lake: Lake, search: Row, records_of: Callable[[Lake, str, str], Sequence[RawRecord]]) -> Evidence:
    address = search["raw_address"]
    if not lake.exists(address.partition("#")[0]):
        raise _gone(search["sweep_id"])
    evidence = evidence_at(lake, address, records_of=records_of, loaded=(search["body_sha256"],))
    if changed := _changed(search, evidence.record):
        raise CorruptObject(
            f"The raw record at {address} is not the one that was loaded: its {changed} differs from lake.search.",
            hint=RESTORE,
        )
    return evidence


def _changed(search: Row, record: RawRecord) -> str:
    """Return which part of a record, other than its body, differs from the tables; empty: none."""
    if record.started_at != search["started_at"]:
        return "start (started_at)"
    if record.http_status != search["http_status"]:
        return "status (http_status)"
    try:
        asked = asked_of_request(record.request)
    except msgspec.MsgspecError:
        return "request"
    sent = (asked.market, asked.product_type, asked.check_in, asked.nights, asked.party, asked.currency)
    return "" if sent == tuple(search[name] for name in _ASKED) else "request"


def _gone(sweep_id: str) -> LakeError:
    return LakeError(
        f"The raw answers of the sweep {sweep_id} are gone, so the verdict cannot be recomputed.",
        kept="The flag stays in report.flag_history, with its finding and its numbers.",
        hint="Retention may have removed them (NIGHTAUDIT_RAW_NIGHTS). Restore raw/ from a backup if there is one.",
    )
