"""The ledger: one object before each call and one right after. Both are created once and never changed.

<lake>/quotes/<run>/run.json              which offers were chosen, and the supplier
<lake>/quotes/<run>/<number>-intent.json  this quote is about to be requested: the offer and the request
<lake>/quotes/<run>/<number>-answer.json  what came back, byte by byte, with the reservation id
"""

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
    """The intent to request a quote."""

    quote_no: int
    intended_at: datetime
    offer: ChosenOffer
    request: str


@dataclass(frozen=True, slots=True)
class QuoteAnswer:
    """The result of a quote. `body` holds the wire bytes; `failure` is the reason if there is no answer."""

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
    """A quote in the ledger. Without an answer its outcome is unknown."""

    intent: Intent
    answer: QuoteAnswer | None


def begin(lake: Lake, run: Run) -> bool:
    """Record a run. False: its id exists."""
    return write_record(lake, f"{lake.quotes_folder(run.run_id)}/run.json", run)


def intend(lake: Lake, run_id: str, intent: Intent) -> bool:
    """Record an intent before the call. False: it was recorded before, and must not be requested again."""
    return write_record(lake, _path(lake, run_id, intent.quote_no, "intent"), intent)


def answered(lake: Lake, run_id: str, quote_no: int, answer: QuoteAnswer) -> None:
    """Record an answer."""
    write_record(lake, _path(lake, run_id, quote_no, "answer"), answer)


def runs(lake: Lake) -> list[Run]:
    """Return all runs, oldest first."""
    paths = (f"{lake.quotes_folder(name)}/run.json" for name in sorted(lake.names(lake.quotes_folder(""))))
    return [_read(lake, path, Run) for path in paths if lake.exists(path)]


def entries(lake: Lake, run_id: str) -> Iterator[Entry]:
    """Yield the quotes of a run in their order."""
    for name in sorted(lake.names(lake.quotes_folder(run_id), "-intent.json")):
        yield _entry(lake, run_id, int(name))


def entry_at(lake: Lake, address: str) -> tuple[str, Entry] | None:
    """Return the run and the quote of an intent's or answer's address; None: unknown. Raises CorruptObject."""
    match = _ADDRESS.fullmatch(address)
    # Names of only dots would lead out of the ledger.
    if not match or match["run"] in {".", ".."}:
        return None
    run_id, number = match["run"], int(match["number"])
    if not lake.exists(_path(lake, run_id, number, match["part"])):
        return None
    return run_id, _entry(lake, run_id, number)


def address(lake: Lake, run_id: str, entry: Entry) -> str:
    """Return the address of a quote's answer, or of its intent if there is no answer."""
    return _path(lake, run_id, entry.intent.quote_no, "intent" if entry.answer is None else "answer")


def _entry(lake: Lake, run_id: str, number: int) -> Entry:
    intent = _read(lake, _path(lake, run_id, number, "intent"), Intent)
    path = _path(lake, run_id, number, "answer")
    return Entry(intent, _read(lake, path, QuoteAnswer) if lake.exists(path) else None)


def _path(lake: Lake, run_id: str, quote_no: int, part: str) -> str:
    return f"{lake.quotes_folder(run_id)}/{quote_no:06d}-{part}.json"


def _read(lake: Lake, path: str, kind: type[T]) -> T:
    hint = "Restore it from a backup; it may record a reservation."
    return read_record(lake, path, kind, kept="Nothing was sent.", hint=hint)
