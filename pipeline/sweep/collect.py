"""Collecting: send the plan's searches and land every answer, shard by shard.

This process only fetches and lands. It does not inflate or decode the answer to a search that succeeded. `on_landed` is
called for each shard that has landed; while it waits, the collection waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import replace

from pipeline.domain.codes import ERROR_CODES, SHAPE_CODES
from pipeline.domain.errors import CallsUsedUp
from pipeline.domain.search import NODES_PER_SEARCH, Search
from pipeline.domain.shards import Shard
from pipeline.lake.raw import RawRecord, second_look
from pipeline.process.failures import one_failure
from pipeline.supplier.answer import Answer, Ask
from pipeline.supplier.outcomes import Outcome, Verdict, may_be_poisoned, outcome_of
from pipeline.sweep.open_shards import Landing, OpenShard, OpenShards, record_of
from pipeline.sweep.outage import Failures, Probes
from pipeline.sweep.progress import Tally

logger = logging.getLogger(__name__)

# Halves of a batch that has used up its attempts get fewer.
ATTEMPTS_OF_A_HALF = 2

# The properties that an answer leaves open, to be requested again in halves.
LeftOpen = Callable[[Search, Answer], tuple[int, ...]]

# Whether the rest of the daily cap is enough for this many calls.
Covers = Callable[[int], bool]

# Whether another machine has landed a shard meanwhile.
HasLanded = Callable[[Shard], Awaitable[bool]]


class Collector:
    """Sends searches with a fixed number in flight and lands their answers by shard."""

    def __init__(
        self,
        landing: Landing,
        sweep_id: str,
        ask: Ask,
        request_of: Callable[[Search], bytes],
        *,
        in_flight: int,
        on_landed: Callable[[Shard], Awaitable[None]],
        tally: Tally | None = None,
        covers: Covers = lambda _: True,
        samples: Iterable[Search] = (),
        has_landed: HasLanded | None = None,
    ) -> None:
        self.tally = tally or Tally()
        self._sweep_id = sweep_id
        self._ask = ask
        self._request_of = request_of
        self._in_flight = in_flight
        self._stopping = False
        self._failures = Failures()
        self._probes = Probes(self._ask_one, samples, in_flight)
        self._probing = asyncio.Lock()
        self._reported: set[int] = set()
        self._covers = covers
        self._has_landed = has_landed
        self._on_landed = on_landed
        self._shards = OpenShards(landing, sweep_id, in_flight, on_landed)
        self._next = asyncio.Lock()

    def stop(self) -> int:
        """Open no further shard: `collect` returns once the open ones have landed. Return their remaining searches."""
        self._stopping = True
        return self._shards.searches_left

    async def collect(self, shards: Iterable[tuple[Shard, Iterable[Search]]]) -> None:
        """Send all searches of `shards`, in order, and land each shard once its last search has ended.

        Raises SupplierDown, NothingUsable (all is refused), TokenRefused, SupplierUnreachable, SweepStopped (daily cap)
        or LakeError. Landed shards are kept; the open ones, and those with nothing but the failures of an outage, are
        discarded and will be requested again. No shard is opened that the daily cap does not cover, so only retries and
        halves can use it up before the open shards have landed.
        """
        searches = self._searches(iter(shards))
        try:
            async with one_failure(), asyncio.TaskGroup() as group:
                for _ in range(self._in_flight):
                    group.create_task(self._work(searches))
            await self._land_what_is_held()
        except Exception:
            if lost := self._shards.unlanded_records:
                logger.warning("%d answers of unfinished shards were discarded and will be requested again", lost)
            raise

    async def _searches(
        self, shards: Iterator[tuple[Shard, Iterable[Search]]]
    ) -> AsyncIterator[tuple[OpenShard, Search]]:
        for shard, searches in shards:
            await self._shards.room()
            if self._has_landed is not None and await self._has_landed(shard):
                self._shards.give_room_back()
                await self._on_landed(shard)
                continue
            await self._await_cover(shard.searches)
            if self._stopping:
                return
            opened = self._shards.open(shard)
            for search in searches:
                yield opened, search

    async def _await_cover(self, searches: int) -> None:
        """Wait until the daily cap covers `searches` in addition to the open shards; CallsUsedUp once it will not."""
        while not self._stopping and not self.affords(searches):
            if not self._shards.is_any_open:
                await self._land_what_is_held()
                raise CallsUsedUp.before(searches)
            await self._shards.wait_for_one_to_leave()

    async def _work(self, searches: AsyncIterator[tuple[OpenShard, Search]]) -> None:
        while True:
            # An async generator serves one caller at a time.
            async with self._next:
                taken = await anext(searches, None)
            if taken is None:
                return
            opened, search = taken
            # A search that keeps failing is sent in halves, until a poisoned property is alone.
            records = await self._ask_all([search], _all_if_poisoned, opened)
            if not opened.is_landed_elsewhere:
                opened.records.extend(records)
            opened.left -= 1
            if opened.left == 0:
                await self._shards.end(opened, may_be_outage=self._failures.may_be_outage)
            await self._shards.land_cleared()

    async def _land_what_is_held(self) -> None:
        """Land the held shards once nothing more will be requested; raises if they are part of an outage."""
        if self._failures.are_outage_at_the_end:
            await self._give_up_unless_answered()
        self._shards.clear_held()
        await self._shards.land_cleared()

    def affords(self, searches: int) -> bool:
        """Return whether the daily cap covers this many searches in addition to those of the open shards."""
        return self._covers(self._shards.searches_left + searches)

    async def look_again(self, shard: Shard, unanswered: Iterable[Search], left_open: LeftOpen) -> None:
        """Send the halves of a landed shard's searches that left properties open or in doubt, and land the answers.

        Properties that a half leaves open are halved in turn. A search of one property is sent once more.
        """
        records: list[RawRecord] = []
        for search in unanswered:
            if 2 * search.node + 1 < NODES_PER_SEARCH:
                parts = [half for half in search.halves() if half.property_ids]
                records += await self._ask_all(
                    parts, lambda part, answer: _all_if_poisoned(part, answer) or left_open(part, answer)
                )
        if records:
            await self._shards.put(second_look(shard.name), records)

    async def _ask_all(
        self, searches: Iterable[Search], left_open: LeftOpen, opened: OpenShard | None = None
    ) -> list[RawRecord]:
        """Send searches and what they leave open, unless another machine has landed their shard meanwhile."""
        records: list[RawRecord] = []
        # Both halves before the quarters of either: with one poisoned property, every second search then succeeds.
        waiting = deque(searches)
        while waiting:
            part = waiting.popleft()
            if opened is not None and await self._is_landed_elsewhere(opened):
                break
            request = self._request_of(part)
            attempts = None if part.node == 1 else ATTEMPTS_OF_A_HALF
            answer = await self._ask(part.operation, request, attempts=attempts)
            again = left_open(part, answer) if len(part.property_ids) > 1 else ()
            if again and may_be_poisoned(answer) and await self._probes.is_out(part):
                again = ()
            is_split = len(again) == len(part.property_ids)
            self._count(part, answer, is_split=is_split)
            if self._failures.are_outage:
                await self._give_up_unless_answered()
            records.append(record_of(part, request, answer, is_split=is_split))
            waiting.extend(half for half in replace(part, property_ids=again).halves() if half.property_ids)
        return records

    async def _is_landed_elsewhere(self, opened: OpenShard) -> bool:
        is_known = opened.is_landed_elsewhere
        if not is_known and self._has_landed is not None and await self._has_landed(opened.shard):
            opened.drop()
        return opened.is_landed_elsewhere

    def _count(self, search: Search, answer: Answer, *, is_split: bool) -> None:
        tally = self.tally
        tally.searches += 1
        tally.requests += answer.attempts
        tally.wire_bytes += len(answer.body)
        if not is_split:
            tally.cells += len(search.property_ids)
        outcome = outcome_of(answer)
        if outcome.verdict is not Verdict.FAILED:
            self._end_of_failures()
            self._probes.note(search, outcome.verdict)
            if outcome.verdict is Verdict.REJECTED and not is_split:
                self._report_own_mistakes(outcome)
            return
        self._failures.add(search, answer)
        if not self._failures.may_be_outage:
            self._shards.clear_held()

    def _end_of_failures(self) -> None:
        self._failures = Failures()
        self._shards.clear_held()

    async def _give_up_unless_answered(self) -> None:
        """Raise the error of the failures, unless a probe is answered, or a search has been meanwhile."""
        failures = self._failures
        async with self._probing:
            if self._failures is not failures:
                return
            if not await self._probes.is_anything_answered(failures.places) and self._failures is failures:
                raise failures.error()
            self._end_of_failures()

    async def _ask_one(self, search: Search) -> Answer:
        answer = await self._ask(search.operation, self._request_of(search), attempts=ATTEMPTS_OF_A_HALF)
        self.tally.requests += answer.attempts
        return answer

    def _report_own_mistakes(self, outcome: Outcome) -> None:
        for code in SHAPE_CODES.intersection(outcome.codes) - self._reported:
            self._reported.add(code)
            logger.error(
                "The supplier refused a malformed request with code %d (%s): this is a mistake in nightaudit or its "
                "settings. Please report it; the request is in the raw zone of sweep %s.",
                code,
                ERROR_CODES[code].meaning,
                self._sweep_id,
            )


def _all_if_poisoned(search: Search, answer: Answer) -> tuple[int, ...]:
    return search.property_ids if may_be_poisoned(answer) else ()
