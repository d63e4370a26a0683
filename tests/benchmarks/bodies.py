"""Answers as a supplier gives them: the sandbox's own, computed in this process, without a server."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

from raw_answers import SWEEP, record, request

from pipeline.domain.search import Operation
from pipeline.domain.shards import Partition, Segment, segments
from pipeline.lake import Lake
from pipeline.lake.raw import encode_shard
from pipeline.sandbox.server.answers import answer
from pipeline.sandbox.world.documented import Guests, Search
from pipeline.sandbox.world.world import World

TODAY = date(2030, 1, 1)


def property_ids(number: int = 0) -> list[int]:
    """Return a hundred properties."""
    return World(1, 0, TODAY, 100 * (number + 1)).property_ids()[-100:]


def bodies(count: int, hotels: int = 5) -> Iterator[tuple[list[int], date, bytes]]:
    """Yield properties, check-in and body of `count` multi answers, over `hotels` hundreds of properties."""
    world = World(1, 0, TODAY, 100 * hotels)
    ids = world.property_ids()
    for number in range(count):
        asked = ids[number % hotels * 100 :][:100]
        check_in = TODAY + timedelta(days=2 + 3 * (number // hotels))
        search = Search(
            "multi", tuple(asked), check_in, check_in + timedelta(days=2), "GB", "EUR", "BAR", "Hotel", (Guests(2, ()),)
        )
        yield asked, check_in, answer(world, search).body


def land_bodies(lake: Lake, count: int, sweep_id: str = SWEEP) -> tuple[Partition, list[Segment]]:
    """Land a number of answers as a sweep's raw shards, gzipped as a supplier would send them."""
    partition = Partition(Operation.MULTI, "GB", 0, count)
    cut = list(segments(partition))
    answers = bodies(count)
    for shard in (shard for segment in cut for shard in segment.shards):
        records = []
        for number in range(shard.start, shard.stop):
            asked, check_in, body = next(answers)
            stay = {"checkIn": str(check_in), "checkOut": str(check_in + timedelta(days=2))}
            records.append(
                record(number, gzip.compress(body, 6), content_encoding="gzip", request=request(asked, **stay))
            )
        lake.put_new(lake.shard_path(sweep_id, shard.name), encode_shard(records))
    return partition, cut


def plain_bodies(folder: str | Path) -> list[bytes]:
    """Return the bodies that were written to a folder, in order."""
    return [file.read_bytes() for file in sorted(Path(folder).glob("*.json"))]
