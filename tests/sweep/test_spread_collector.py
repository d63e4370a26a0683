"""Blocks of shards given to workers: every shard is sent once, whatever becomes of a block."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.domain.errors import CallsUsedUp, LakeError, NightauditError, SettingsError, SupplierError
from pipeline.domain.search import Operation
from pipeline.domain.shards import Partition, Shard
from pipeline.lake import Lake
from pipeline.supplier.pacer import Unlimited
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


class Shelf:
    """A lake in which a shard has landed once a worker has handed it over and it was fetched."""

    shard_path = staticmethod(Lake.shard_path)

    def __init__(self):
        self.handed, self.fetched = set(), set()

    def receive(self, _sweep_id, paths):
        self.fetched |= self.handed & set(paths)

    def exists(self, path):
        return path in self.fetched


class Calls:
    """The calls of a day that the lake counts."""

    def __init__(self, cap):
        self.cap, self.counted = cap, 0

    def covers(self, calls):
        return self.counted + calls <= self.cap

    def count(self, calls):
        self.counted += calls


def collected(ask_block, many=40, stop=None, calls=None, hands_over=True):
    """Collect `many` shards; return what this machine sent, which shards were reported as landed, and the error."""
    own, landed, shelf = Own(), [], Shelf()

    def asked(lake, sweep_id, block, in_flight):
        tally = ask_block(lake, sweep_id, block, in_flight)
        if hands_over:
            shelf.handed |= {Lake.shard_path(sweep_id, shard.name) for shard in block}
        return tally

    async def on_landed(shard):
        landed.append(shard)
        if stop is not None and len(landed) == stop:
            spread.stop()

    def missing():
        return ((shard, ()) for shard in shards(many) if shard not in landed)

    spread = SpreadCollector(
        shelf, "sweep", asked, Workers(), own, in_flight=16, on_landed=on_landed, lake_calls=calls or Unlimited()
    )
    try:
        asyncio.run(spread.collect(missing))
    except NightauditError as error:
        return own, landed, error
    return own, landed, None


def test_workers_send_every_shard_once_and_what_they_sent_adds_up():
    lock, sent, in_flights = threading.Lock(), [], set()

    def ask_block(_lake, _sweep_id, block, in_flight):
        with lock:
            sent.extend(block)
            in_flights.add(in_flight)
        return Tally(searches=len(block) * SEARCHES, wire_bytes=7, paced_seconds=0.5)

    own, landed, _ = collected(ask_block)
    assert sorted(sent, key=lambda shard: shard.number) == shards(40)
    assert sorted(landed, key=lambda shard: shard.number) == shards(40)
    assert (own.sent, own.tally.searches) == ([], 40 * SEARCHES)
    assert own.tally.paced_seconds == own.tally.wire_bytes / 14 > 0
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


def test_a_block_whose_shards_are_not_in_the_lake_has_not_landed():
    """Otherwise its cells would count as never sent, without a word."""
    own, landed, error = collected(lambda *_: Tally(), hands_over=False)
    assert isinstance(error, LakeError)
    assert "they are not in the lake" in error.message
    assert (own.sent, landed) == ([], [])


def test_no_block_is_given_out_that_the_calls_of_the_lake_do_not_cover():
    calls = Calls(cap=10 * SEARCHES)

    def ask_block(_lake, _sweep_id, block, _in_flight):
        return Tally(requests=len(block) * SEARCHES)

    own, landed, error = collected(ask_block, many=40, calls=calls)
    assert isinstance(error, CallsUsedUp)
    assert own.sent == []
    assert 0 < calls.counted == len(landed) * SEARCHES <= calls.cap


def test_the_calls_of_a_block_that_failed_are_counted_for_what_it_landed():
    calls = Calls(cap=1000 * SEARCHES)

    def ask_block(_lake, _sweep_id, _block, _in_flight):
        raise SupplierError("The supplier is down.")

    _, landed, error = collected(ask_block, calls=calls)
    assert error.message == "The supplier is down."
    assert (calls.counted, landed) == (0, [])
