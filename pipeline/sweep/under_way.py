"""What follows landing while a sweep runs: segments are normalised, partitions loaded."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import TracebackType
from typing import Self

from pipeline.domain.errors import NightauditError
from pipeline.domain.search import Search
from pipeline.domain.shards import Partition, Segment, Shard, segments
from pipeline.lake import Lake
from pipeline.lake.raw import Manifest, landed
from pipeline.normalise.request import Asked, asked_of_search
from pipeline.normalise.segment import SegmentResult, done
from pipeline.plan import SweepPlan
from pipeline.sweep.load import is_loaded, load_partitions
from pipeline.sweep.normalisers import Normalisers
from pipeline.sweep.progress import SweepProgress
from pipeline.sweep.stop import Stopping

logger = logging.getLogger(__name__)

_SIGNAL_SECONDS = 0.2

# Requests again the properties that a segment's answers leave open or in doubt; returns whether it requested any.
LookAgain = Callable[[Segment, SegmentResult], Awaitable[bool]]


class UnderWay:
    """The segments of a sweep on their way to its tables.

    On exit, segments in progress are finished if an error of ours or a user ended the sweep, and discarded otherwise;
    the next run normalises them.
    """

    def __init__(
        self, lake: Lake, manifest: Manifest, normalisers: Normalisers, progress: SweepProgress, stopping: Stopping
    ) -> None:
        self.lake = lake
        self.manifest = manifest
        self.normalisers = normalisers
        self.progress = progress
        self.stopping = stopping
        self._sweep_id = manifest.sweep_id
        self._segment_of = {
            shard.name: segment
            for partition in manifest.partitions
            for segment in segments(partition)
            for shard in segment.shards
        }
        self._landed = landed(lake, manifest.sweep_id) & self._segment_of.keys()
        self._loaded = {part.name for part in manifest.partitions if is_loaded(lake, manifest.sweep_id, part)}
        self._tasks: set[asyncio.Task[None]] = set()
        self._begun: set[str] = set()
        self._left_to_load: defaultdict[str, set[str]] = defaultdict(set)
        for segment in self._segments:
            self._left_to_load[segment.partition.name].add(segment.name)
        self._to_load: list[Partition] = []
        self._loading = asyncio.Lock()
        # Set while the sweep is open: what is open in an ended sweep stays so.
        self.look_again: LookAgain | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, NightauditError):
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def is_all_landed(self) -> bool:
        """Whether no shard is missing."""
        return len(self._landed) >= len(self._segment_of)

    def missing(self, plan: SweepPlan, *, is_last_first: bool) -> Iterator[tuple[Shard, Iterable[Search]]]:
        """Yield the shards that have not landed, with their searches, in the order of the plan or in reverse."""
        shards = list(self.manifest.shards())
        for shard in reversed(shards) if is_last_first else shards:
            if shard.name not in self._landed:
                yield shard, plan.searches(shard.start, shard.stop)

    async def on_landed(self, shard: Shard) -> None:
        """Record a landed shard, and begin its segment if it was the last one; waits while the pool is full."""
        self._landed.add(shard.name)
        progress = self.progress
        progress.landed_searches += shard.searches
        logger.info(
            "Landed %s: %d of %d searches so far, with %d requests of this run.",
            shard.name,
            progress.landed_searches,
            progress.planned_searches,
            progress.tally.requests,
        )
        await self.begin_whole([self._segment_of[shard.name]])
        await self.raise_failures()

    async def begin_whole(self, candidates: Iterable[Segment] | None = None) -> None:
        """Begin each of the segments, by default of all, whose shards have all landed."""
        for segment in candidates or self._segments:
            if not self.stopping.is_asked and all(shard.name in self._landed for shard in segment.shards):
                await self._begin(segment, {})

    async def finish(self, plan: SweepPlan | None) -> None:
        """Normalise and load the rest, once no further shard will land; `plan` has the searches never sent."""
        for segment in self._segments:
            missing = [shard for shard in segment.shards if shard.name not in self._landed]
            await self._begin(segment, _unasked(plan, missing) if plan else {})
            await self.raise_failures()
            self.stopping.raise_if_asked()
        await self.wait()
        self.stopping.raise_if_asked()

    async def wait(self) -> None:
        """Wait for all segments in progress; raises the first failure."""
        await asyncio.gather(*self._tasks)

    async def raise_failures(self) -> None:
        """Raise the failure of a segment that has ended, if there is one."""
        finished = {task for task in self._tasks if task.done()}
        self._tasks -= finished
        # All are retrieved, as asyncio logs the traceback of a failure that is not.
        for failed in [task for task in finished if task.cancelled() or task.exception()]:
            await failed

    @property
    def _segments(self) -> Iterable[Segment]:
        return dict.fromkeys(self._segment_of.values())

    async def _begin(self, segment: Segment, unasked: dict[int, Asked]) -> None:
        """Submit a segment to the pool; waits while its queue is full."""
        if segment.name in self._begun:
            return
        self._begun.add(segment.name)
        await self.normalisers.places.acquire()
        self._tasks.add(asyncio.create_task(self._normalise(segment, unasked)))

    async def _normalise(self, segment: Segment, unasked: dict[int, Asked]) -> None:
        try:
            result = done(self.lake, self._sweep_id, segment)
            if result is None and segment.partition.name in self._loaded:
                # Its rows are in the tables; its other files may have been used up and removed.
                return
            if result is None:
                result = await self._normalised(segment, unasked)
            if self.look_again and await self.look_again(segment, result):
                result = await self._normalised(segment, unasked)
            self._count(result)
        finally:
            self.normalisers.places.release()
        left = self._left_to_load[segment.partition.name]
        left.discard(segment.name)
        if not left:
            self._to_load.append(segment.partition)
            # One commit at a time, because the tables' logs are shared; partitions that become ready meanwhile join the
            # next one.
            async with self._loading:
                ready, self._to_load = self._to_load, []
                await asyncio.to_thread(self._load, ready)

    async def _normalised(self, segment: Segment, unasked: dict[int, Asked]) -> SegmentResult:
        try:
            return await self.normalisers.normalise(segment, unasked)
        except NightauditError:
            # A service manager ends the whole process group, so a killed worker does not mean a lack of memory; its
            # end may be noticed just before the signal.
            await asyncio.sleep(_SIGNAL_SECONDS)
            self.stopping.raise_if_asked()
            raise

    def _load(self, ready: Iterable[Partition]) -> None:
        missing = [partition for partition in ready if not is_loaded(self.lake, self._sweep_id, partition)]
        if missing:
            load_partitions(self.lake, self._sweep_id, missing)

    def _count(self, result: SegmentResult) -> None:
        self.progress.offers += result.offers
        self.progress.rejects += result.rejects
        self.progress.normalised.update(result.cells_by_status)


def _unasked(plan: SweepPlan, shards: Iterable[Shard]) -> dict[int, Asked]:
    return {search.id: asked_of_search(search) for shard in shards for search in plan.searches(shard.start, shard.stop)}
