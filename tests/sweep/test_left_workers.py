"""A run that continues a sweep whose earlier run has left workers behind sends what they do not."""

from __future__ import annotations

import asyncio
import sys

import pytest
from fake_supplier import answered
from raw_answers import record, request
from small_sweep import NOW, small_spec

from pipeline.domain.servers import Workforce
from pipeline.lake.raw import encode_shard, landed
from pipeline.sweep import Asking, SweepOptions, begin, run
from pipeline.sweep.left_workers import note_workers

SEARCHES = 32


@pytest.fixture
def sweep(lake, tmp_path):
    """A sweep of three shards and a bit."""
    spec = small_spec(tmp_path, days=100, markets=["GB"])
    manifest = begin(lake, spec, [1, 2], now=NOW, supplier="supplier", is_simulated=False)
    assert len(list(manifest.shards())) == 4
    return manifest


def run_and_record(lake, sweep, after_each=lambda _: None) -> list[int]:
    """Run the sweep with one search in flight; return the numbers of the searches that were sent."""
    sent = []

    def request_of(search):
        sent.append(search.number)
        return request(search.property_ids, search.operation)

    async def ask(_operation, _body, *, attempts=None):
        after_each(len(sent))
        return answered(body=b'{"properties":[]}', attempts=attempts or 1)

    asking = Asking(ask, request_of)
    asyncio.run(run(lake, sweep, asking, SweepOptions(1, 1_000_000, Workforce(1)), now=lambda: NOW))
    return sent


def shards_of(sent: list[int]) -> list[int]:
    return list(dict.fromkeys(number // SEARCHES for number in sent))


def test_a_sweep_that_had_no_workers_is_sent_in_order_and_looks_for_nothing(lake, sweep, monkeypatch):
    monkeypatch.setattr(sys.modules["pipeline.sweep.run"], "has_landed", None)
    assert run_and_record(lake, sweep) == list(range(sum(part.searches for part in sweep.partitions)))


def test_what_workers_may_have_begun_is_sent_last(lake, sweep):
    note_workers(lake, sweep.sweep_id)
    sent = run_and_record(lake, sweep)
    assert sorted(sent) == list(range(sum(part.searches for part in sweep.partitions)))
    assert shards_of(sent) == [3, 2, 1, 0]


def test_once_a_worker_has_landed_a_shard_no_more_of_its_searches_are_sent(lake, sweep):
    note_workers(lake, sweep.sweep_id)
    shards = list(sweep.shards())
    left = shards[3].stop - shards[3].start

    def land(sent: int) -> None:
        if sent == left + 5:
            for shard in (shards[2], shards[0]):
                records = [record(number, {"properties": []}) for number in range(shard.start, shard.stop)]
                lake.put_new(lake.shard_path(sweep.sweep_id, shard.name), encode_shard(records))

    sent = run_and_record(lake, sweep, land)
    # The last shard, five searches of the third one until it had landed, and the second one.
    assert [number // SEARCHES for number in sent] == [3] * left + [2] * 5 + [1] * SEARCHES
    assert len(landed(lake, sweep.sweep_id)) == 4
