"""The ledger: one object before each call and one right after. Both are created once and never changed.

<lake>/quotes/<run>/run.json              what was chosen, of which supplier
<lake>/quotes/<run>/<number>-intent.json  this quote is about to be asked: the offer and the request
<lake>/quotes/<run>/<number>-answer.json  what came back, byte by byte, with the reservation id
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from pipeline.lake import Lake
from pipeline.lake.records import read_record, write_record
from pipeline.quote.sample import ChosenOffer, Sample

T = TypeVar("T")

_ADDRESS = re.compile(r"quotes/(?P<run>[^/]+)/(?P<number>\d{6,9})-(?P<part>intent|answer)\.json")


@dataclass(frozen=True, slots=True)
class Run:
    """A run of quotes."""

    run_id: str
    begun_at: datetime
    is_simulated: bool
    supplier: str
    sample: Sample
    chosen: int


@dataclass(frozen=True, slots=True)
class Intent:
    """That a quote is about to be asked."""

    quote_no: int
    intended_at: datetime
    offer: ChosenOffer
    request: str


@dataclass(frozen=True, slots=True)
class QuoteAnswer:
    """What a quote came to. `body` holds the wire bytes; `failure` says why there is no answer, if there is none."""

    http_status: int | None
    content_encoding: str
    body: bytes
    started_at: datetime
    ended_at: datetime
    failure: str
    failure_detail: str
    reservation_id: int | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A quote as the ledger knows it. Without an answer its outcome is unknown."""

    intent: Intent
    answer: QuoteAnswer | None


def begin(lake: Lake, run: Run) -> bool:
    """Write down a run. False: there was one of that id."""
    return write_record(lake, f"{lake.quotes_folder(run.run_id)}/run.json", run)


def intend(lake: Lake, run_id: str, intent: Intent) -> bool:
    """Write down an intent, before the call. False: it was written before, and must not be asked."""
    return write_record(lake, _path(lake, run_id, intent.quote_no, "intent"), intent)


def answered(lake: Lake, run_id: str, quote_no: int, answer: QuoteAnswer) -> None:
    """Write down an answer."""
    write_record(lake, _path(lake, run_id, quote_no, "answer"), answer)


def runs(lake: Lake) -> list[Run]:
    """Return all runs, oldest first."""
    found = (name for name in sorted(lake.names(lake.quotes_folder(""))))
    return [_read(lake, f"{lake.quotes_folder(name)}/run.json", Run) for name in found if _has_run(lake, name)]


def entries(lake: Lake, run_id: str) -> Iterator[Entry]:
    """Yield the quotes of a run in their order."""
    for name in sorted(lake.names(lake.quotes_folder(run_id), "-intent.json")):
        yield _entry(lake, run_id, int(name))


def entry_at(lake: Lake, address: str) -> tuple[str, Entry] | None:
    """Return the run and the quote that an address of an intent or an answer tells of; None: there is none such.

    Raises CorruptObject.
    """
    match = _ADDRESS.fullmatch(address)
    # Names with dots alone would lead out of the ledger.
    if not match or match["run"] in {".", ".."}:
        return None
    run_id, number = match["run"], int(match["number"])
    if not lake.exists(_path(lake, run_id, number, match["part"])):
        return None
    return run_id, _entry(lake, run_id, number)


def address(lake: Lake, run_id: str, entry: Entry) -> str:
    """Return the object that tells most of a quote."""
    return _path(lake, run_id, entry.intent.quote_no, "intent" if entry.answer is None else "answer")


def _entry(lake: Lake, run_id: str, number: int) -> Entry:
    intent = _read(lake, _path(lake, run_id, number, "intent"), Intent)
    path = _path(lake, run_id, number, "answer")
    return Entry(intent, _read(lake, path, QuoteAnswer) if lake.exists(path) else None)


def _has_run(lake: Lake, name: str) -> bool:
    return lake.exists(f"{lake.quotes_folder(name)}/run.json")


def _path(lake: Lake, run_id: str, quote_no: int, part: str) -> str:
    return f"{lake.quotes_folder(run_id)}/{quote_no:06d}-{part}.json"


def _read(lake: Lake, path: str, kind: type[T]) -> T:
    hint = "Restore it from a backup; it may record a reservation."
    return read_record(lake, path, kind, kept="Nothing was sent.", hint=hint)
