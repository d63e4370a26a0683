"""A supplier in memory, and a collector that sends it requests."""

from __future__ import annotations

import asyncio
import itertools
import json
from datetime import UTC, date, datetime

from pipeline.domain.search import Operation, ProductType, Search
from pipeline.domain.shards import Partition, segments
from pipeline.domain.stay import Party, Stay
from pipeline.lake.raw import landed, read_shard
from pipeline.supplier.answer import Answer, Failure
from pipeline.sweep.collect import Collector

SWEEP = "20300101T020000Z-aaaaaa"
AT = datetime(2030, 1, 1, 2, tzinfo=UTC)


def answered(status=200, body=b"{}", failure=None, attempts=1):
    return Answer(status, "application/json", "", body, AT, AT, attempts, failure)


class FakeSupplier:
    """Fails each search for a poisoned property or market, and records every request."""

    def __init__(self, poisoned=(), how=None, markets=()) -> None:
        self.poisoned = set(poisoned)
        self.markets = set(markets)
        self.how = how or answered(500, failure=Failure.SERVER_ERROR)
        self.asked: list[tuple[int, ...]] = []
        self.attempts: list[int | None] = []
        self.in_flight = self.most_in_flight = 0
        self.slow: dict[int, asyncio.Event] = {}

    async def ask(self, _operation, body, *, attempts=None) -> Answer:
        asked = json.loads(body)
        self.asked.append(tuple(asked["ids"]))
        self.attempts.append(attempts)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(0)
        if asked["number"] in self.slow:
            await self.slow[asked["number"]].wait()
        self.in_flight -= 1
        if self.poisoned.intersection(asked["ids"]) or asked["market"] in self.markets:
            return self.how
        return answered(body=b'{"n":%d}' % asked["number"])


def request_of(search: Search) -> bytes:
    return json.dumps({"number": search.number, "ids": search.property_ids, "market": search.market}).encode()


def searches(start, stop, property_ids=(1, 2, 3), market="GB"):
    stay = Stay.of(date(2030, 2, 1), 2)
    for number in range(start, stop):
        yield Search(number, Operation.MULTI, market, ProductType.HOTEL, stay, Party.parse("2"), None, property_ids)


class Collecting:
    """One collection: shards of `count` searches for the same properties."""

    def __init__(self, lake) -> None:
        self.lake = lake
        self.landed: list[str] = []
        self.opened: list[int] = []
        self.collector: Collector | None = None

    def shards(self, count, property_ids=(1, 2, 3)):
        for segment in segments(Partition(Operation.MULTI, "GB", 0, count)):
            for shard in segment.shards:
                self.opened.append(shard.number)
                yield shard, searches(shard.start, shard.stop, property_ids)

    def partitions(self, count, searches_each, ids=None):
        """Partitions of one shard each; every search is for the next of `ids`, or for a new property."""
        ids = ids or itertools.cycle([(number,) for number in range(1, 100)])
        for number in range(count):
            start = number * searches_each
            market = f"{chr(ord('A') + number // 26)}{chr(ord('A') + number % 26)}"
            for segment in segments(Partition(Operation.MULTI, market, start, start + searches_each)):
                for shard in segment.shards:
                    self.opened.append(shard.number)
                    asked = (next(searches(at, at + 1, next(ids), market)) for at in range(shard.start, shard.stop))
                    yield shard, asked

    def run(
        self,
        supplier,
        shards,
        *,
        in_flight=4,
        on_landed=None,
        meanwhile=None,
        **others,
    ):
        async def go():
            self.collector = Collector(
                self.lake,
                SWEEP,
                supplier.ask,
                request_of,
                in_flight=in_flight,
                on_landed=on_landed or self._note,
                **others,
            )
            if meanwhile is None:
                await self.collector.collect(shards)
            else:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self.collector.collect(shards))
                    group.create_task(meanwhile(self.collector))
            return self.collector.tally

        return asyncio.run(go())

    async def _note(self, shard) -> None:
        self.landed.append(shard.name)

    def records(self):
        return [record for name in sorted(landed(self.lake, SWEEP)) for record in read_shard(self.lake, SWEEP, name)]
