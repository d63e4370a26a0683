"""Blocks of shards given to workers: every shard is sent once, whatever becomes of a block."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.domain.errors import SettingsError, SupplierError
from pipeline.domain.search import Operation
from pipeline.domain.shards import Partition, Shard
from pipeline.sweep.collect import Tally
from pipeline.sweep.spread_collector import SpreadCollector

SEARCHES = 32


class Workers:
    """Three threads in place of three machines."""

    size = 3

    def __init__(self):
        self._pool = ThreadPoolExecutor(self.size)

    def submit(self, work, *args):
        return self._pool.submit(work, *args)


class Own:
    """What this machine sends itself."""

    def __init__(self):
        self.tally, self.sent = Tally(), []

    async def collect(self, shards):
        self.sent += [shard for shard, _ in shards]

    def stop(self):
        return 0


def shards(many: int) -> list[Shard]:
    part = Partition(Operation.MULTI, "GB", 0, many * SEARCHES)
    return [Shard(part, number, number * SEARCHES, (number + 1) * SEARCHES) for number in range(many)]


def collected(ask_block, many=40, stop=None):
    """Collect `count` shards; return what this machine sent, which shards were reported as landed, and the error."""
    own, landed = Own(), []

    async def on_landed(shard):
        landed.append(shard)
        if stop is not None and len(landed) == stop:
            spread.stop()

    def missing():
        return ((shard, ()) for shard in shards(many) if shard not in landed)

    spread = SpreadCollector(None, "sweep", ask_block, Workers(), own, in_flight=16, on_landed=on_landed)
    try:
        asyncio.run(spread.collect(missing))
    except SupplierError as error:
        return own, landed, error
    return own, landed, None


def test_workers_send_every_shard_once_and_what_they_sent_adds_up():
    lock, sent, in_flights = threading.Lock(), [], set()

    def ask_block(_lake, _sweep_id, block, in_flight):
        with lock:
            sent.extend(block)
            in_flights.add(in_flight)
        return Tally(searches=len(block) * SEARCHES, wire_bytes=7)

    own, landed, _ = collected(ask_block)
    assert sorted(sent, key=lambda shard: shard.number) == shards(40)
    assert sorted(landed, key=lambda shard: shard.number) == shards(40)
    assert (own.sent, own.tally.searches) == ([], 40 * SEARCHES)
    # Together as many as one machine has in flight, rounded up.
    assert in_flights == {6}


def test_a_worker_without_the_suppliers_settings_leaves_the_rest_to_this_machine(caplog):
    def ask_block(_lake, _sweep_id, block, _in_flight):
        if block[0].number >= 20:
            raise SettingsError("This worker has no supplier.")
        return Tally()

    own, landed, _ = collected(ask_block)
    assert sorted({*own.sent, *landed}, key=lambda shard: shard.number) == shards(40)
    assert not set(own.sent) & set(landed)
    assert "Searches are sent from this machine alone: This worker has no supplier." in caplog.text


def test_after_a_failure_begun_blocks_are_finished_and_no_more_are_given_out():
    lock, begun, ended = threading.Lock(), [], []

    def ask_block(_lake, _sweep_id, block, _in_flight):
        with lock:
            begun.append(block)
        if block[0].number == 0:
            raise SupplierError("The supplier is down.")
        with lock:
            ended.append(block)
        return Tally()

    own, landed, error = collected(ask_block, many=400)
    assert error.message == "The supplier is down."
    assert own.sent == []
    assert {shard for block in ended for shard in block} == set(landed)
    assert sum(map(len, begun)) < 400


@pytest.mark.parametrize("at", [1, 9])
def test_a_stop_lets_workers_finish_their_blocks(at):
    own, landed, _ = collected(lambda *_: Tally(), many=400, stop=at)
    assert at <= len(landed) < 400
    assert own.sent == []
