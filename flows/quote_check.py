"""The quote check as a Prefect flow. It makes reservations, so it does nothing unless that is confirmed twice.

    quote_check(sample=20, yes_make_reservations=True)

No quote is ever retried, by Prefect or by the pipeline, because one without an answer may have made a reservation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from pydantic import Field

from flows.logs import log_steps, tell_our_errors_once
from flows.parameters import Market
from flows.turns import turn_at_supplier
from pipeline.lake import Lake
from pipeline.night.quotes import QuoteSummary, quote
from pipeline.quote.sample import Sample
from pipeline.settings import read_settings

tell_our_errors_once()
log_steps()

OUTCOMES_KEY = "quote-outcomes"


@flow(name="quote-check", persist_result=False, retries=0)
def quote_check(
    sample: Annotated[int, Field(ge=1, le=1000)],
    markets: Sequence[Market] = (),
    properties: Sequence[int] = (),
    seed: int = 1,
    yes_make_reservations: bool = False,
) -> QuoteSummary:
    """Request quotes for a sample of the published offers, and publish the outcomes.

    Args:
        sample: Number of quotes to request; at most NIGHTAUDIT_QUOTE_CAP.
        markets: Only these markets. Empty: all.
        properties: Only these properties. Empty: all.
        seed: A different seed chooses different offers.
        yes_make_reservations: Confirms that each quote may make a reservation with the supplier.
    """
    wanted = Sample(sample, tuple(markets), tuple(properties), seed)
    summary = ask_quotes(wanted, is_confirmed=yes_make_reservations)
    outcomes: list[dict[str, object]] = [{"outcome": name, "quotes": count} for name, count in summary.outcomes.items()]
    create_table_artifact(outcomes, key=OUTCOMES_KEY, description=f"Run {summary.run_id}")
    return summary


@task(name="ask-quotes", cache_policy=NO_CACHE, persist_result=False, retries=0)
def ask_quotes(sample: Sample, *, is_confirmed: bool) -> QuoteSummary:
    """Request them one by one, each recorded in the ledger before it is sent."""
    settings = read_settings()
    lake = Lake(settings.lake)
    with turn_at_supplier(settings), lake.writing("a quote check"):
        return asyncio.run(quote(settings, lake, sample, is_confirmed=is_confirmed))
