"""Sending searches from the workers of a cluster: each sends one block of shards after another, and lands it.

If a worker is lost, another one repeats its block without the shards that have landed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice

from pipeline.domain.errors import CallsUsedUp, InputError, LakeError, NightauditError
from pipeline.domain.search import Search
from pipeline.domain.shards import Shard
from pipeline.lake import Lake
from pipeline.supplier.pacer import Allowance
from pipeline.sweep.collect import Collector
from pipeline.sweep.normalisers import Normalisers
from pipeline.sweep.progress import Tally

logger = logging.getLogger(__name__)

# Each worker gets at least this many blocks of a large sweep, so that all end at about the same time.
_BLOCKS_A_WORKER = 4
# Few, because after Ctrl-C the night waits for the blocks that workers have begun.
_SHARDS_A_BLOCK = 8

# Sends the searches of the shards that have not landed, at most N at a time, and lands them.
AskBlock = Callable[[Lake, str, Sequence[Shard], int], Tally]

# The shards that have not landed, with their searches.
Missing = Callable[[], Iterable[tuple[Shard, Iterable[Search]]]]


@dataclass(slots=True)
class SpreadCollector:
    """Gives blocks of shards to the workers that also normalise. What they cannot send, `own` sends from here."""

    lake: Lake
    sweep_id: str
    ask_block: AskBlock
    workers: Normalisers
    own: Collector
    _: KW_ONLY
    in_flight: int
    on_landed: Callable[[Shard], Awaitable[None]]
    lake_calls: Allowance
    _running: dict[asyncio.Future[Tally], Sequence[Shard]] = field(default_factory=dict, init=False)
    _stopping: bool = field(default=False, init=False)

    def stop(self) -> int:
        """Give out no further block; return the searches of those that workers have."""
        self._stopping = True
        return self.own.stop() + self._given_out

    @property
    def _given_out(self) -> int:
        return sum(map(_searches, self._running.values()))

    async def collect(self, missing: Missing) -> None:
        """Send all searches of the missing shards and land them. Raises what `Collector.collect` raises.

        After a failure, blocks that workers have begun are finished. If a worker cannot send searches, because it lacks
        the supplier's settings, all that are left are sent from here.
        """
        refusals = await self._give_out(_blocks([shard for shard, _ in missing()], self.workers.size))
        if refusals and not self._stopping:
            logger.warning("Searches are sent from this machine alone: %s", " ".join(refusals))
            await self.own.collect(missing())

    async def _give_out(self, blocks: Iterator[Sequence[Shard]]) -> list[str]:
        """Let workers send blocks, and return why some of them cannot; raises the first failure."""
        # All workers together have as many searches in flight as one machine alone.
        in_flight = -(-self.in_flight // self.workers.size)
        refusals: dict[str, None] = {}
        failure: NightauditError | None = None
        while True:
            is_open = not self._stopping and not refusals and failure is None
            # One more than there are workers, so that none waits for its next block.
            for block in islice(blocks, max(0, self.workers.size + 1 - len(self._running)) if is_open else 0):
                if not self.lake_calls.covers(self._given_out + _searches(block)):
                    failure = CallsUsedUp.before(_searches(block))
                    break
                task = self.workers.submit(self.ask_block, self.lake, self.sweep_id, block, in_flight)
                self._running[asyncio.wrap_future(task)] = block
            if not self._running:
                break
            ended, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
            for each in ended:
                block = self._running.pop(each)
                try:
                    await self._when_ended(block, each)
                except InputError as error:
                    refusals[error.message] = None
                except NightauditError as error:
                    failure = failure or error
        if failure is not None:
            raise failure
        return list(refusals)

    async def _when_ended(self, block: Sequence[Shard], ended: asyncio.Future[Tally]) -> None:
        """Take in what a block has landed. Raises the failure of the block."""
        failure = ended.exception()
        await asyncio.to_thread(self.lake.receive, self.sweep_id, [self._path(shard) for shard in block])
        if failure is not None:
            # How many calls it took is not known; at least those of what has landed.
            self.lake_calls.count(_searches([shard for shard in block if self._has_landed(shard)]))
            raise failure
        tally = ended.result()
        self.own.tally.add(tally)
        # A worker that was lost may have sent a part of it.
        self.lake_calls.count(max(tally.requests, _searches(block)))
        for shard in block:
            if not self._has_landed(shard):
                raise LakeError(
                    f"A worker has sent the searches of {shard.name}, but they are not in the lake.",
                    kept="All answers that have landed are kept.",
                    hint="Check that all workers use this lake, then run the same command again.",
                )
            await self.on_landed(shard)

    def _path(self, shard: Shard) -> str:
        return self.lake.shard_path(self.sweep_id, shard.name)

    def _has_landed(self, shard: Shard) -> bool:
        return self.lake.exists(self._path(shard))


def _searches(block: Sequence[Shard]) -> int:
    return sum(shard.searches for shard in block)


def _blocks(shards: Sequence[Shard], workers: int) -> Iterator[Sequence[Shard]]:
    size = max(1, min(_SHARDS_A_BLOCK, len(shards) // (_BLOCKS_A_WORKER * workers)))
    return (tuple(shards[start : start + size]) for start in range(0, len(shards), size))
