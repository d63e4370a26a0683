"""Running a sweep: collect, land, normalise and load side by side."""

import asyncio
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from pipeline.domain.errors import CallsUsedUp, NightauditError, SweepStopped
from pipeline.domain.search import NODES_PER_SEARCH, Search
from pipeline.domain.servers import Workforce
from pipeline.domain.shards import Segment
from pipeline.lake import Lake
from pipeline.lake.raw import Ending, Manifest, read_ending, second_look, write_ending
from pipeline.normalise.segment import SegmentResult
from pipeline.normalise.segment import unanswered as left_open_by
from pipeline.plan import SweepPlan
from pipeline.process.carrier import Probe
from pipeline.supplier.answer import Answer, Ask
from pipeline.supplier.pacer import Allowance, Unlimited
from pipeline.sweep.begin import plan_of
from pipeline.sweep.collect import Collector, Covers
from pipeline.sweep.doubts import worth_asking
from pipeline.sweep.left_workers import has_landed, may_have_workers, note_workers
from pipeline.sweep.load import load_sweep
from pipeline.sweep.normalisers import Normalisers
from pipeline.sweep.outage import samples_of
from pipeline.sweep.progress import SweepProgress, Watch, progress_of, watched
from pipeline.sweep.spread_collector import AskBlock, SpreadCollector
from pipeline.sweep.stop import stopping_on_signals
from pipeline.sweep.under_way import UnderWay


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """How a sweep is run; none of these options changes what is stored."""

    in_flight: int
    max_body_bytes: int
    workforce: Workforce


@dataclass(frozen=True, slots=True)
class Asking:
    """How searches are sent: by which client, with which bodies, and within which daily cap."""

    ask: Ask
    request_of: Callable[[Search], bytes]
    covers: Covers = lambda _: True
    ask_block: AskBlock | None = None
    """How a worker of the cluster sends searches; None: only this machine does."""
    probe: Probe | None = None
    """What a worker checks before it is given searches."""
    lake_calls: Allowance = field(default_factory=Unlimited)
    """The day's calls that the lake counts, if workers cannot count theirs there."""


@dataclass(frozen=True, slots=True)
class PartOf:
    """The larger command that a sweep is part of: what is kept if it stops, and how to continue it."""

    kept: str
    go_on: str


async def run(
    lake: Lake,
    manifest: Manifest,
    asking: Asking | None,
    options: SweepOptions,
    *,
    now: Callable[[], datetime],
    watch: Watch = lambda _: None,
    part_of: PartOf | None = None,
) -> SweepProgress:
    """Send the searches that have not landed, then normalise and load the sweep. An ended sweep needs no `asking`.

    A first SIGINT or SIGTERM lets open shards and segments finish and then raises SweepStopped; a second one discards
    them. Raises what `Collector.collect` raises. Whatever happens, `run` can be called again.
    """
    sweep_id = manifest.sweep_id
    if read_ending(lake, sweep_id) is None:
        # What workers landed before an earlier run stopped.
        await asyncio.to_thread(lake.receive, sweep_id)
    progress = progress_of(lake, manifest)
    with stopping_on_signals() as stopping:
        try:
            async with watched(progress, watch):
                async with (
                    Normalisers(
                        lake,
                        sweep_id,
                        options.max_body_bytes,
                        options.workforce,
                        asking.probe if asking is not None else None,
                    ) as normalisers,
                    UnderWay(lake, manifest, normalisers, progress, stopping) as under_way,
                ):
                    if read_ending(lake, sweep_id) is None:
                        assert asking is not None  # noqa: S101 - an open sweep is asked
                        await _collect(under_way, asking, options)
                        await asyncio.to_thread(_end, lake, sweep_id, Ending(now(), is_complete=True))
                    progress.step = "normalising"
                    await under_way.finish(None if under_way.is_all_landed else plan_of(manifest))
                progress.step = "loading"
                await asyncio.to_thread(load_sweep, lake, manifest)
        except NightauditError as error:
            raise _resumable(error, lake, manifest, part_of) from None
        except asyncio.CancelledError:
            if not stopping.is_given_up:
                raise
            stopping.task.uncancel()
            at_once = SweepStopped("Stopped at once, as requested.", signal_number=stopping.signal_number)
            raise _resumable(at_once, lake, manifest, part_of) from None
        if stopping.is_asked:
            stopped = SweepStopped("Stopped as requested.", signal_number=stopping.signal_number)
            step = part_of or PartOf(f"The sweep {sweep_id} is loaded.", f"nightaudit audit {sweep_id}")
            stopped.at_step(step.kept, step.go_on)
            raise stopped
    return progress


def close(lake: Lake, manifest: Manifest, now: datetime) -> None:
    """End a sweep early: cells that have not landed become `not_swept`. `run` then normalises and loads the rest."""
    _end(lake, manifest.sweep_id, Ending(now, is_complete=False))


def _end(lake: Lake, sweep_id: str, ending: Ending) -> None:
    lake.receive(sweep_id)
    write_ending(lake, sweep_id, ending)
    if lake.copy is not None:
        # Only once the store has the ending: before, workers must be able to send what the next run gives them.
        lake.commit()
        lake.copy.handed.end(sweep_id)


async def _collect(under_way: UnderWay, asking: Asking, options: SweepOptions) -> None:
    """Send the searches that have not landed, from here or from workers, and what their answers leave open."""
    lake, sweep_id, stopping = under_way.lake, under_way.manifest.sweep_id, under_way.stopping
    plan = plan_of(under_way.manifest)
    has_left_workers = may_have_workers(lake, sweep_id)
    if asking.ask_block is not None:
        await asyncio.to_thread(note_workers, lake, sweep_id)
    collector = Collector(
        lake,
        sweep_id,
        asking.ask,
        asking.request_of,
        in_flight=options.in_flight,
        on_landed=under_way.on_landed,
        tally=under_way.progress.tally,
        covers=asking.covers,
        samples=samples_of(plan),
        has_landed=partial(has_landed, lake, sweep_id) if asking.ask_block or has_left_workers else None,
    )
    under_way.look_again = partial(_look_again, lake, sweep_id, collector, plan, options.max_body_bytes)
    await under_way.begin_whole()
    # Workers that an earlier run has left behind send the first ones.
    missing = partial(under_way.missing, plan, is_last_first=has_left_workers)
    if asking.ask_block is None:
        stopping.tell(collector.stop)
        await collector.collect(missing())
    else:
        under_way.progress.is_counted_in_blocks = True
        spread = SpreadCollector(
            lake,
            sweep_id,
            asking.ask_block,
            under_way.normalisers,
            collector,
            in_flight=options.in_flight,
            on_landed=under_way.on_landed,
            lake_calls=asking.lake_calls,
        )
        stopping.tell(spread.stop)
        await spread.collect(missing)
    if under_way.is_all_landed:
        await under_way.wait()
    await under_way.raise_failures()
    stopping.raise_if_asked()


async def _look_again(
    lake: Lake,
    sweep_id: str,
    collector: Collector,
    plan: SweepPlan,
    max_body_bytes: int,
    segment: Segment,
    read: SegmentResult,
) -> bool:
    """Request the properties that answers left open once more, while the sweep is open; return whether any were.

    Properties in doubt that were on sale before are requested too, unless the daily cap may not be enough.
    """
    operation = segment.partition.operation

    def left_open(search: Search, answer: Answer) -> tuple[int, ...]:
        if answer.failure is not None or answer.http_status != 200:
            return ()
        return left_open_by(answer.body, answer.content_encoding, operation, search.property_ids, max_body_bytes)

    def of_search(key: int, property_ids: tuple[int, ...]) -> Search:
        whole = plan.search_at(key // NODES_PER_SEARCH).at_node(key % NODES_PER_SEARCH)
        return replace(whole, property_ids=property_ids)

    doubts = {of_search(key, property_ids): parts for key, (parts, property_ids) in read.in_doubt.items()}
    known = await asyncio.to_thread(worth_asking, lake, doubts) if doubts else {}
    affordable = {key: property_ids for key, property_ids in known.items() if collector.affords(2 * len(property_ids))}
    has_asked = False
    for shard in segment.shards:
        again = second_look(shard.name)
        numbers = range(shard.start, shard.stop)
        searches = [
            of_search(key, property_ids)
            for key, property_ids in (read.unanswered | affordable).items()
            if key // NODES_PER_SEARCH in numbers
        ]
        if searches and not lake.exists(lake.shard_path(sweep_id, again)):
            await collector.look_again(shard, searches, left_open)
            has_asked = True
    return has_asked


def _resumable(error: NightauditError, lake: Lake, manifest: Manifest, part_of: PartOf | None) -> NightauditError:
    # Counted in the lake, because shards may have landed while the workers were stopped.
    sweep_id, progress = manifest.sweep_id, progress_of(lake, manifest)
    landed_of = f"{progress.landed_searches} of {progress.planned_searches}"
    kept = f"Sweep {sweep_id}: {landed_of} searches have landed and are kept."
    resumable = copy(error)
    step = part_of or PartOf(kept, f"nightaudit resume {sweep_id}")
    resumable.at_outer_step(step.kept, step.go_on)
    if isinstance(error, CallsUsedUp) and part_of is None:
        resumable.hint += (
            f"\nOr publish what has landed: nightaudit resume --close {sweep_id}, then nightaudit publish {sweep_id}"
        )
    return resumable
