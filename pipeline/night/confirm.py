"""Re-checks flags before alerting: the cells that they rest on are requested again, within a cap.

A run is recorded before its first search, and each answer lands in the raw zone at once. The results follow from both
alone, so the next run settles one that was killed: landed answers are judged, and the other flags are not confirmable.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from pipeline.domain.errors import NightauditError
from pipeline.domain.search import Search
from pipeline.inputs.branded import unbranded_ids
from pipeline.lake import Lake
from pipeline.lake.raw import encode_shard, read_manifest
from pipeline.lake.records import write_record
from pipeline.night.confirm_plan import AskedAgain, ConfirmRun, choose_flags, plan_run, shard_of
from pipeline.night.confirm_settle import settle, settle_left_over
from pipeline.night.latest import refuse_earlier
from pipeline.night.search_body import body_of
from pipeline.night.supplier import allowance_of, open_client
from pipeline.process.event_loop import run_in_loop
from pipeline.process.failures import one_failure
from pipeline.publish import published_sweeps
from pipeline.publish.refresh import catch_up, refresh
from pipeline.replay.finding import Row
from pipeline.settings import Clock, Settings
from pipeline.supplier.answer import Ask
from pipeline.sweep.open_shards import record_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConfirmSummary:
    """The result of a run: planned = confirmed + gone + not_confirmable. `left` flags did not fit under the cap."""

    run_id: str
    is_simulated: bool
    searches: int
    left: int
    rows: tuple[Row, ...]

    @property
    def outcomes(self) -> dict[str, int]:
        """Number of flags by outcome."""
        counted = Counter(row["outcome"] for row in self.rows)
        return {outcome: counted[outcome] for outcome in ("confirmed", "gone", "not_confirmable")}


async def confirm(settings: Settings, lake: Lake, flags: Sequence[Row], *, now: Clock | None = None) -> ConfirmSummary:
    """Re-query the cells of some flags and return the result of each. The caller holds the lake's writer lock.

    Raises what the supplier's client raises, after judging and storing the landed answers.
    """
    now = now or settings.clock
    refuse_earlier(lake, now())
    settle_left_over(lake, settings.max_body_bytes)
    catch_up(lake)
    manifest = read_manifest(lake, published_sweeps(lake)[-1].sweep_id)
    begun_at = now()
    today = manifest.snapshot_date if manifest.is_simulated else begun_at.date()
    run, left = plan_run(lake, flags, manifest.sweep_id, begun_at, today, settings.confirm_cap)
    allowance = allowance_of(settings, lake, now)
    request_of = body_of(unbranded_ids(lake), today, send_rate_type=settings.send_rate_type)
    async with open_client(settings, lake, manifest, now=now, allowance=allowance) as client:
        write_record(lake, lake.confirmation_path(run.run_id), run)
        rows: list[Row] = []
        try:
            await _ask_all(lake, run, client.ask, request_of, settings.in_flight)
        except NightauditError as error:
            rows = settle(lake, run, settings.max_body_bytes, f"it was not requested: {error.message}")
            raise
        finally:
            rows = rows or settle(lake, run, settings.max_body_bytes)
            refresh(lake)
    return ConfirmSummary(run.run_id, run.is_simulated, len(run.searches), left, tuple(rows))


def confirmer(
    settings: Settings,
    lake: Lake,
    now: Clock | None = None,
    turn: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Callable[[Sequence[str]], set[str]]:
    """Return a function that re-queries flags and returns those found again. The caller holds the lake's writer lock.

    It re-queries at most `confirm_cap` flags, with at most as many searches; further flags, and those without an
    answer, are not returned. If the supplier cannot be asked, it returns none and logs a warning. `turn` is held while
    requests are sent.
    """

    def found_again(flag_ids: Sequence[str]) -> set[str]:
        try:
            flags = choose_flags(lake, flag_ids[: settings.confirm_cap], (), settings.confirm_cap)
            with turn():
                summary = run_in_loop(lambda: confirm(settings, lake, flags, now=now))
        except NightauditError as error:
            logger.warning(
                "%d flags could not be re-queried and are not reported yet: %s", len(flag_ids), error.message
            )
            return set()
        return {row["flag_id"] for row in summary.rows if row["outcome"] == "confirmed"}

    return found_again


async def _ask_all(
    lake: Lake, run: ConfirmRun, ask: Ask, request_of: Callable[[Search], bytes], in_flight: int
) -> None:
    waiting = asyncio.Semaphore(in_flight)

    async def one(number: int, asked: AskedAgain) -> None:
        async with waiting:
            search = asked.search(number)
            request = request_of(search)
            answer = await ask(search.operation, request)
            record = record_of(search, request, answer, is_split=False)
            await asyncio.to_thread(lake.put_new, shard_of(run, number), encode_shard([record]))

    async with one_failure(), asyncio.TaskGroup() as group:
        for number, asked in enumerate(run.searches):
            group.create_task(one(number, asked))
