"""Running a sweep: collect, land, normalise and load, each as soon as it can."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from pipeline.domain.errors import CallsUsedUp, NightauditError, SweepStopped
from pipeline.domain.search import NODES_PER_SEARCH, Search
from pipeline.domain.shards import Partition, Segment, Shard, segments
from pipeline.lake import Lake
from pipeline.lake.raw import Ending, Manifest, landed, read_ending, second_look, write_ending
from pipeline.normalise.request import Asked, asked_of_search
from pipeline.normalise.segment import SegmentResult, done, is_unreadable
from pipeline.plan import SweepPlan
from pipeline.supplier.answer import Answer
from pipeline.sweep.begin import plan_of
from pipeline.sweep.collect import Ask, Collector, Covers, always
from pipeline.sweep.end import load_sweep
from pipeline.sweep.load import is_loaded, load_partition
from pipeline.sweep.normalisers import Normalisers
from pipeline.sweep.progress import SweepProgress, Watch, progress_of, shards_of, watched
from pipeline.sweep.stop import Stopping, stopping_on_signals


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """How a sweep is run; nothing of it changes what is stored."""

    in_flight: int
    workers: int
    max_body_bytes: int


@dataclass(frozen=True, slots=True)
class Asking:
    """How searches are sent: what asks the supplier, the body of each search, and what the day's calls cover."""

    ask: Ask
    request_of: Callable[[Search], bytes]
    covers: Covers = always


async def run(
    lake: Lake,
    manifest: Manifest,
    asking: Asking | None,
    options: SweepOptions,
    *,
    now: Callable[[], datetime],
    watch: Watch = lambda _: None,
) -> SweepProgress:
    """Ask what has not landed, then normalise and load the whole sweep. One that has ended needs no `asking`.

    A first SIGINT or SIGTERM lets the shards and segments in hand end and then raises SweepStopped; a second one gives
    them up. Raises what `Collector.collect` raises. Whatever happens, `run` can be called again.
    """
    progress = progress_of(lake, manifest)
    with stopping_on_signals() as stopping:
        try:
            async with watched(progress, watch):
                await _stages(lake, manifest, asking, options, now, progress, stopping)
        except asyncio.CancelledError:
            if not stopping.is_given_up:
                raise
            stopping.task.uncancel()
            raise _resumable(
                SweepStopped("Stopped at once, as requested.", signal_number=stopping.signal_number), lake, manifest
            ) from None
    return progress


async def _stages(
    lake: Lake,
    manifest: Manifest,
    asking: Asking | None,
    options: SweepOptions,
    now: Callable[[], datetime],
    progress: SweepProgress,
    stopping: Stopping,
) -> None:
    async with Normalisers(lake, manifest.sweep_id, options.workers, options.max_body_bytes) as normalisers:
        run = _Run(lake, manifest, normalisers, progress, stopping)
        if read_ending(lake, manifest.sweep_id) is None:
            assert asking is not None  # noqa: S101 - an open sweep is asked
            try:
                await run.collect(asking, options)
            finally:
                await run.abandon()
            write_ending(lake, manifest.sweep_id, Ending(now(), is_complete=True))
        progress.step = "normalising"
        try:
            await run.normalise_rest()
        finally:
            await run.abandon()
    progress.step = "loading"
    await asyncio.to_thread(load_sweep, lake, manifest)
    if stopping.is_asked:
        raise SweepStopped(
            "Stopped as asked.",
            kept=f"The sweep {manifest.sweep_id} is loaded.",
            hint=f"Continue with: nightaudit audit {manifest.sweep_id}",
            signal_number=stopping.signal_number,
        )


def close(lake: Lake, manifest: Manifest, now: datetime) -> None:
    """End a sweep early: what has not landed is not swept, for good. `run` then normalises and loads the rest."""
    write_ending(lake, manifest.sweep_id, Ending(now, is_complete=False))


class _Run:
    """The state of one call of `run`."""

    def __init__(
        self, lake: Lake, manifest: Manifest, normalisers: Normalisers, progress: SweepProgress, stopping: Stopping
    ) -> None:
        self._lake = lake
        self._manifest = manifest
        self._sweep_id = manifest.sweep_id
        self._normalisers = normalisers
        self._progress = progress
        self._stopping = stopping
        self._segment_of = {
            shard.name: segment
            for partition in manifest.partitions
            for segment in segments(partition)
            for shard in segment.shards
        }
        self._landed = landed(lake, manifest.sweep_id) & self._segment_of.keys()
        self._loaded = {part.name for part in manifest.partitions if is_loaded(lake, manifest.sweep_id, part)}
        self._under_way: set[asyncio.Task[None]] = set()
        self._begun: set[str] = set()
        self._left_to_load: defaultdict[str, set[str]] = defaultdict(set)
        for segment in self._segment_of.values():
            self._left_to_load[segment.partition.name].add(segment.name)
        self._loading = asyncio.Lock()
        # Set while the sweep is open: what an ended sweep could not read stays so.
        self._second_look: Callable[[Segment, Sequence[int]], Awaitable[bool]] | None = None

    async def collect(self, asking: Asking, options: SweepOptions) -> None:
        """Ask all searches whose shard has not landed, and again those with unreadable answers."""
        plan = plan_of(self._manifest)
        collector = Collector(
            self._lake,
            self._sweep_id,
            asking.ask,
            asking.request_of,
            in_flight=options.in_flight,
            on_landed=self._on_landed,
            tally=self._progress.tally,
            covers=asking.covers,
        )
        self._second_look = partial(self._look_again, collector, plan, options.max_body_bytes)
        self._stopping.tell(collector.stop)
        try:
            await self._begin_complete(self._segments())
            await collector.collect(self._missing(plan))
            if len(self._landed) >= len(self._segment_of):
                await asyncio.gather(*self._under_way)
        except NightauditError as error:
            await self._settle()
            raise _resumable(error, self._lake, self._manifest) from None
        await self._raise_failures()
        await self._end_if_stopping()

    async def normalise_rest(self) -> None:
        """Normalise and load what is left, now that no further shard will land."""
        plan = plan_of(self._manifest) if len(self._landed) < len(self._segment_of) else None
        for segment in self._segments():
            missing = [shard for shard in segment.shards if shard.name not in self._landed]
            await self._begin(segment, _unasked(plan, missing) if plan else {})
            await self._raise_failures()
            await self._end_if_stopping()
        if self._under_way:
            await asyncio.gather(*self._under_way)
        await self._end_if_stopping()

    def _segments(self) -> Iterable[Segment]:
        return dict.fromkeys(self._segment_of.values())

    def _missing(self, plan: SweepPlan) -> Iterator[tuple[Shard, Iterable[Search]]]:
        for partition in self._manifest.partitions:
            for shard in shards_of(partition):
                if shard.name not in self._landed:
                    yield shard, plan.searches(shard.start, shard.stop)

    async def _on_landed(self, shard: Shard) -> None:
        self._landed.add(shard.name)
        self._progress.landed_searches += shard.stop - shard.start
        await self._begin_complete([self._segment_of[shard.name]])
        await self._raise_failures()

    async def _begin_complete(self, candidates: Iterable[Segment]) -> None:
        for segment in candidates:
            if not self._stopping.is_asked and all(shard.name in self._landed for shard in segment.shards):
                await self._begin(segment, {})

    async def _begin(self, segment: Segment, unasked: dict[int, Asked]) -> None:
        """Hand a segment to the pool; waits while its queue is full."""
        if segment.name in self._begun:
            return
        self._begun.add(segment.name)
        await self._normalisers.places.acquire()
        task = asyncio.create_task(self._normalise(segment, unasked))
        self._under_way.add(task)

    async def _normalise(self, segment: Segment, unasked: dict[int, Asked]) -> None:
        try:
            result = done(self._lake, self._sweep_id, segment)
            if result is None and segment.partition.name in self._loaded:
                # Its rows are in the tables; what it kept beside them may be used up and gone.
                return
            if result is None:
                result = await self._normalisers.normalise(segment, unasked)
            if result.unreadable and self._second_look and await self._second_look(segment, result.unreadable):
                result = await self._normalisers.normalise(segment, unasked)
            self._count(result)
        finally:
            self._normalisers.places.release()
        left = self._left_to_load[segment.partition.name]
        left.discard(segment.name)
        if not left:
            # One commit at a time: the tables' logs are shared.
            async with self._loading:
                await asyncio.to_thread(self._load, segment.partition)

    async def _look_again(
        self, collector: Collector, plan: SweepPlan, max_body_bytes: int, segment: Segment, unreadable: Sequence[int]
    ) -> bool:
        """Ask again what could not be read, once, while the sweep is still open. Returns whether anything was asked."""
        operation = segment.partition.operation

        def cannot_be_read(answer: Answer) -> bool:
            is_answered = answer.failure is None and answer.http_status == 200
            return is_answered and is_unreadable(answer.body, answer.content_encoding, operation, max_body_bytes)

        has_asked = False
        for shard in segment.shards:
            again = second_look(shard.name)
            numbers = range(shard.start, shard.stop)
            searches = [
                plan.search_at(key // NODES_PER_SEARCH).at_node(key % NODES_PER_SEARCH)
                for key in unreadable
                if key // NODES_PER_SEARCH in numbers
            ]
            if searches and not self._lake.exists(self._lake.shard_path(self._sweep_id, again)):
                await collector.look_again(shard, searches, cannot_be_read)
                has_asked = True
        return has_asked

    async def abandon(self) -> None:
        """End what is still under way: it is not needed any more."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        self._under_way.clear()

    def _load(self, partition: Partition) -> None:
        if not is_loaded(self._lake, self._sweep_id, partition):
            load_partition(self._lake, self._sweep_id, partition)

    def _count(self, result: SegmentResult) -> None:
        self._progress.offers += result.offers
        self._progress.rejects += result.rejects
        self._progress.normalised.update(result.cells_by_status)

    async def _raise_failures(self) -> None:
        finished = {task for task in self._under_way if task.done()}
        self._under_way -= finished
        # All of them are looked at: a failure that is not looked at would be reported by asyncio, with its trace.
        for failed in [task for task in finished if task.cancelled() or task.exception()]:
            await failed

    async def _end_if_stopping(self) -> None:
        """Raise SweepStopped if a user asked for it, once what is being normalised has ended."""
        if self._stopping.is_asked:
            await self._settle()
            raise _resumable(
                SweepStopped("Stopped as asked.", signal_number=self._stopping.signal_number),
                self._lake,
                self._manifest,
            )

    async def _settle(self) -> None:
        """Let what is being normalised end, whatever comes of it: it will be looked at again by the next run."""
        await asyncio.gather(*self._under_way, return_exceptions=True)


def _unasked(plan: SweepPlan, shards: Iterable[Shard]) -> dict[int, Asked]:
    return {search.id: asked_of_search(search) for shard in shards for search in plan.searches(shard.start, shard.stop)}


def _resumable(error: NightauditError, lake: Lake, manifest: Manifest) -> NightauditError:
    # Counted in the lake: what was landing while the workers were ended has landed too.
    sweep_id, progress = manifest.sweep_id, progress_of(lake, manifest)
    landed_of = f"{progress.landed_searches} of {progress.planned_searches}"
    kept = f"Sweep {sweep_id}: {landed_of} searches have landed and are kept."
    told = copy(error)
    told.kept, told.is_placed = kept, True
    go_on = f"nightaudit resume {sweep_id}"
    if isinstance(error, CallsUsedUp):
        # It says when, and what else can be done.
        told.hint = error.hint
    else:
        told.hint = f"{error.hint} Then continue with: {go_on}" if error.hint else f"Continue with: {go_on}"
    return told
