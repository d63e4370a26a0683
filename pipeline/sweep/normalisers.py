"""The processes that normalise, behind a bounded queue of segments."""

import asyncio
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import forkserver
from typing import Self, TypeVar

from pipeline.domain.errors import NightauditError
from pipeline.domain.servers import Workforce
from pipeline.domain.shards import Segment, Shard
from pipeline.domain.tables import SEGMENT_TABLES
from pipeline.lake import Lake
from pipeline.lake.mark import MARK
from pipeline.lake.raw import second_look
from pipeline.normalise import worker
from pipeline.normalise.request import Asked
from pipeline.normalise.segment import SegmentResult, normalise_segment
from pipeline.process.carrier import Probe
from pipeline.process.child import begun, interrupts_held_back, run_tracker
from pipeline.process.cluster_pool import open_pool, processes_of, size_of

# Segments per process that wait or are being normalised; with more of them, the collection waits.
SEGMENTS_PER_WORKER = 2


T = TypeVar("T")


class Normalisers:
    """A pool of processes, or of workers of a cluster, for the segments of one sweep."""

    def __init__(
        self,
        lake: Lake,
        sweep_id: str,
        max_body_bytes: int,
        workforce: Workforce,
        probe: Probe | None = None,
    ) -> None:
        self._lake = lake
        self._sweep_id = sweep_id
        self._max_body_bytes = max_body_bytes
        self._pool = open_pool(
            workforce.cluster, lake.root, lambda: processes(processes_of(workforce)), lake.carrier(_read_for), probe
        )
        # Starting a process waits for the fork server's imports. The event loop must not wait, because requests are
        # paced; nor may the threads that land answers meanwhile.
        self._starter = ThreadPoolExecutor(1)
        self.size = size_of(self._pool, workforce)
        self.places = asyncio.Semaphore(self.size * SEGMENTS_PER_WORKER)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._starter.shutdown(wait=False, cancel_futures=True)
        run_tracker()
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)

    def submit(self, work: Callable[..., T], *args: object) -> Future[T]:
        """Give other work of the sweep to a worker: see `_read_for`."""
        return self._pool.submit(work, *args)

    async def normalise(self, segment: Segment, unasked: dict[int, Asked]) -> SegmentResult:
        """Normalise one segment in a process of the pool."""
        try:
            loop = asyncio.get_running_loop()
            running = await loop.run_in_executor(self._starter, self._begin, segment, unasked)
            return await asyncio.wrap_future(running)
        # The last two: the fork server was ended before it had started the process.
        except (BrokenProcessPool, EOFError, ConnectionError):
            raise NightauditError(
                "A worker process was killed, perhaps because memory ran out.",
                kept="All raw answers that have landed are kept.",
                hint="If memory is short, lower NIGHTAUDIT_WORKERS.",
            ) from None

    def _begin(self, segment: Segment, unasked: dict[int, Asked]) -> Future[SegmentResult]:
        return begun(self._pool, normalise_segment, self._lake, self._sweep_id, segment, self._max_body_bytes, unasked)


def _read_for(lake: Lake, sweep_id: str, segment: Segment | Sequence[Shard], *_: object) -> Iterator[str]:
    """Return the files of the lake that normalising a segment reads: also what an earlier attempt has made of it.

    Sending the searches of a block of shards reads the manifest only.
    """
    yield MARK
    yield lake.manifest_path(sweep_id)
    if not isinstance(segment, Segment):
        return
    shards = [name for shard in segment.shards for name in (shard.name, second_look(shard.name))]
    tables = [lake.table_file(table, sweep_id, segment.name) for table in SEGMENT_TABLES]
    yield from filter(lake.exists, [*(lake.shard_path(sweep_id, name) for name in shards), *tables])


def processes(workers: int) -> ProcessPoolExecutor:
    """Return a pool of processes, each forked from one that has imported what normalising needs."""
    # Not fork: the object store's threads do not survive it. A fork server has none of them, and its imports are
    # available in each worker. Outside Linux, forking is unreliable.
    has_server = sys.platform == "linux"
    context = multiprocessing.get_context("forkserver" if has_server else "spawn")
    context.set_forkserver_preload([worker.__name__])
    if has_server:
        # It imports while the first answers come in.
        with interrupts_held_back():
            forkserver.ensure_running()
    return ProcessPoolExecutor(workers, context, initializer=worker.prepare)
