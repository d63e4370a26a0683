"""The shards of a sweep in progress, and their records: opened as there is room, landed once their searches have ended.

While failures may turn out to be an outage, a shard that ends among them is held. If it landed, its searches would
count as requested; if it is discarded, they are requested again.
"""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pipeline.domain.search import Operation, Search
from pipeline.domain.shards import Shard
from pipeline.lake import Lake
from pipeline.lake.raw import RawRecord, encode_shard
from pipeline.supplier.answer import Answer

# In addition to those that the requests in flight keep open. A slow search keeps its shard open while others continue.
EXTRA_OPEN_SHARDS = 2


class Landing(Protocol):
    """Where shards land: a lake, or the store on the way to one."""

    def put_new(self, path: str, data: bytes) -> bool:
        """Write a file of the lake that must not exist yet. False: it existed."""


@dataclass(slots=True, eq=False)
class OpenShard:
    """A shard, the number of its searches that have not ended, and the records of those that have."""

    shard: Shard
    left: int
    records: list[RawRecord] = field(default_factory=list)
    is_landed_elsewhere: bool = False

    def drop(self) -> None:
        """Discard the records, as another machine has landed the shard."""
        self.is_landed_elsewhere = True
        self.records.clear()


class OpenShards:
    """Opens and lands the shards of one sweep."""

    def __init__(
        self, landing: Landing, sweep_id: str, in_flight: int, on_landed: Callable[[Shard], Awaitable[None]]
    ) -> None:
        self._landing = landing
        self._sweep_id = sweep_id
        self._on_landed = on_landed
        self._room = asyncio.Semaphore(in_flight // 16 + EXTRA_OPEN_SHARDS)
        self._open: list[OpenShard] = []
        # Complete, but ended among failures that may mean that the supplier is down: then they are requested again.
        self._held: list[OpenShard] = []
        # Held until the failures turned out not to be an outage: these land next.
        self._cleared: deque[OpenShard] = deque()
        self._has_left = asyncio.Event()

    @property
    def is_any_open(self) -> bool:
        """Whether a shard is open."""
        return bool(self._open)

    @property
    def searches_left(self) -> int:
        """Searches of open shards that have not ended."""
        return sum(opened.left for opened in self._open)

    @property
    def unlanded_records(self) -> int:
        """Answers that are lost if the collection ends now."""
        return sum(len(opened.records) for opened in (*self._open, *self._held, *self._cleared))

    async def room(self) -> None:
        """Wait until one more shard may be open."""
        await self._room.acquire()

    def give_room_back(self) -> None:
        """Let another shard be open instead of the one that room was made for."""
        self._room.release()

    def open(self, shard: Shard) -> OpenShard:
        """Open a shard; there is room."""
        opened = OpenShard(shard, shard.searches)
        self._open.append(opened)
        return opened

    async def wait_for_one_to_leave(self) -> None:
        """Wait until an open shard has ended. Its searches may have needed fewer calls than were counted for it."""
        self._has_left.clear()
        await self._has_left.wait()

    async def end(self, opened: OpenShard, *, may_be_outage: bool) -> None:
        """Land a shard whose last search has ended, or hold it while its failures may be an outage."""
        if opened.is_landed_elsewhere or not may_be_outage:
            await self._land(opened)
            return
        self._held.append(opened)
        # It makes room for another one, because only further answers show what its failures mean.
        self._leave(opened)

    def clear_held(self) -> None:
        """Treat the failures so far as no outage: the held shards land next."""
        self._cleared.extend(self._held)
        self._held.clear()

    async def land_cleared(self) -> None:
        """Land the shards that are no longer held."""
        while self._cleared:
            await self._land(self._cleared.popleft())

    async def put(self, name: str, records: Sequence[RawRecord]) -> None:
        """Write a shard's file."""
        await asyncio.to_thread(self._put, name, records)

    def _leave(self, opened: OpenShard) -> None:
        self._open.remove(opened)
        self._has_left.set()
        self._room.release()

    async def _land(self, opened: OpenShard) -> None:
        await _to_its_end(asyncio.to_thread(self._put_whole, opened))
        if opened in self._open:
            self._leave(opened)
        await self._on_landed(opened.shard)

    def _put_whole(self, opened: OpenShard) -> None:
        if opened.is_landed_elsewhere:
            return
        self._put(opened.shard.name, opened.records)
        # What follows may hold the worker back for long; the bodies must not wait in memory with it.
        opened.records.clear()

    def _put(self, name: str, records: Sequence[RawRecord]) -> None:
        self._landing.put_new(Lake.shard_path(self._sweep_id, name), encode_shard(records))


async def _to_its_end(work: Coroutine[object, object, None]) -> None:
    """Await what a thread does, also when cancelled: the thread continues anyway, and what it lands has landed."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        # The failure that cancelled this is reported; another one with the same cause is retrieved and dropped.
        if not task.cancelled():
            task.exception()
        raise


def record_of(search: Search, request: bytes, answer: Answer, *, is_split: bool) -> RawRecord:
    """Return the raw record of a search."""
    return RawRecord(
        search_id=search.id,
        request=request,
        http_status=answer.http_status,
        content_type=answer.content_type,
        content_encoding=answer.content_encoding,
        headers=json.dumps(dict(answer.headers_of_interest), sort_keys=True),
        body=answer.body,
        started_at=answer.started_at,
        ended_at=answer.ended_at,
        attempts=answer.attempts,
        failure=answer.failure or "",
        failure_detail=answer.failure_detail,
        is_split=is_split,
        own_property_id=search.property_ids[0] if search.operation is Operation.SINGLE else None,
    )
