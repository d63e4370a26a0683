"""A run of quotes, from settings to published file, for the command and the Prefect flow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import xxhash

from pipeline.domain.errors import NothingSent
from pipeline.lake import Lake
from pipeline.lake.raw import read_manifest
from pipeline.night.latest import refuse_earlier
from pipeline.night.supplier import allowance_of, open_client
from pipeline.publish import published_sweeps
from pipeline.publish.refresh import catch_up, refresh
from pipeline.quote import ledger
from pipeline.quote.ask import Asking, ask_quotes
from pipeline.quote.ledger import Run
from pipeline.quote.load import asked_so_far, load_ledger
from pipeline.quote.outcomes import result_of
from pipeline.quote.sample import Sample, choose
from pipeline.settings import Clock, Settings

if TYPE_CHECKING:
    from pipeline.sandbox.server.launch import SandboxProcess

WRITE_SCOPE = "write_rooms"


@dataclass(frozen=True, slots=True)
class QuoteSummary:
    """The result of a run of quotes."""

    run_id: str
    begun_at: datetime
    is_simulated: bool
    chosen: int
    outcomes: dict[str, int]
    reservations: int
    possible_reservations: int


def refuse_unless_meant(settings: Settings, sample: Sample, *, is_confirmed: bool) -> None:
    """Raise NothingSent unless settings, sample and user all allow a run of quotes."""
    if not settings.quote_cap:
        raise NothingSent(
            "Quotes are switched off, because each may make a reservation (NIGHTAUDIT_QUOTE_CAP is 0).",
            hint="To allow up to 20 in a run, set NIGHTAUDIT_QUOTE_CAP=20.",
        )
    if sample.size > settings.quote_cap:
        raise NothingSent(
            f"A sample of {sample.size} exceeds the cap of {settings.quote_cap} quotes per run (NIGHTAUDIT_QUOTE_CAP).",
            hint="Request fewer quotes, or raise the cap.",
        )
    if WRITE_SCOPE not in settings.scopes.split():
        raise NothingSent(
            f"Quotes need the scope {WRITE_SCOPE}, which is not requested (NIGHTAUDIT_SCOPES is {settings.scopes!r}).",
            hint=f'If the supplier granted it, set NIGHTAUDIT_SCOPES="read_rooms {WRITE_SCOPE}"',
        )
    if not is_confirmed:
        raise NothingSent(
            f"This would make up to {sample.size} reservations with the supplier.",
            hint="To confirm, add: --yes-make-reservations",
        )


async def quote(
    settings: Settings,
    lake: Lake,
    sample: Sample,
    *,
    is_confirmed: bool,
    now: Clock | None = None,
    watch: Callable[[int], None] = lambda _: None,
    sandbox: SandboxProcess | None = None,
) -> QuoteSummary:
    """Request quotes for a sample of the published offers and load the ledger. The caller holds the lake's writer lock.

    Raises NothingSent before anything is sent, and what `ask_quotes` raises; the ledger then holds
    every quote, and the next run loads those that this one did not.
    """
    refuse_unless_meant(settings, sample, is_confirmed=is_confirmed)
    now = now or settings.clock
    refuse_earlier(lake, now())
    max_body_bytes = settings.max_body_bytes
    load_ledger(lake, max_body_bytes)
    catch_up(lake)
    published = published_sweeps(lake)
    if not published:
        raise NothingSent("Nothing is published yet.", hint="Run a night: nightaudit nightly")
    manifest = read_manifest(lake, published[-1].sweep_id)
    begun_at = now()
    unknown, asked = asked_so_far(lake, max_body_bytes)
    offers = choose(lake.published_file, sample, begun_at.date(), never=unknown, asked_before=asked)
    if not offers:
        raise NothingSent(
            "No published offer can be quoted: it must be on sale, have a known product for each room, and not have "
            "been quoted since the last night.",
            hint="Widen --market and --property, or wait for the next night: nightaudit nightly",
        )
    run_id = f"{begun_at:%Y%m%dT%H%M%S%fZ}-{xxhash.xxh3_64_hexdigest(repr(sample).encode())[:6]}"
    run = Run(run_id, begun_at, manifest.is_simulated, manifest.supplier, sample, len(offers))
    asking = Asking(settings.quote_cap, begun_at.date(), settings.send_rate_type, max_body_bytes)
    allowance = allowance_of(settings, lake, now)
    # A product id may be valid only in its own night, so the sandbox of that night is used.
    async with open_client(settings, lake, manifest, now=now, allowance=allowance, sandbox=sandbox) as client:
        ledger.begin(lake, run)
        try:
            await ask_quotes(lake, run.run_id, offers, client.ask, asking, now=now, watch=watch)
        finally:
            load_ledger(lake, max_body_bytes)
            refresh(lake)
    return summary_of(lake, run, max_body_bytes)


def summary_of(lake: Lake, run: Run, max_body_bytes: int) -> QuoteSummary:
    """Return the summary of a run from the ledger."""
    entries = list(ledger.entries(lake, run.run_id))
    results = [result_of(entry, max_body_bytes) for entry in entries]
    return QuoteSummary(
        run_id=run.run_id,
        begun_at=run.begun_at,
        is_simulated=run.is_simulated,
        chosen=run.chosen,
        outcomes=dict(Counter(result.outcome.value for result in results).most_common()),
        reservations=sum(entry.answer is not None and entry.answer.reservation_id is not None for entry in entries),
        possible_reservations=sum(result.is_reservation_possible for result in results),
    )


def all_summaries(lake: Lake, max_body_bytes: int) -> list[QuoteSummary]:
    """Return the summaries of all runs, oldest first."""
    return [summary_of(lake, run, max_body_bytes) for run in ledger.runs(lake)]
