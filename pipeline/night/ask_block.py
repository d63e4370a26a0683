"""A block of a sweep's searches, sent by a worker of a cluster with its own settings.

Each shard lands where every machine finds it: in the lake's shared folder or, on S3, in the store, with a record there.
"""

import asyncio
import math
import random
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache

from pipeline.domain.errors import SettingsError
from pipeline.domain.shards import Shard
from pipeline.lake import Lake
from pipeline.lake.allowance import DailyCalls
from pipeline.lake.raw import Manifest, read_ending, read_manifest
from pipeline.lake.s3.hand_over import HandOver
from pipeline.night.search_body import body_of
from pipeline.night.senders import cannot_send
from pipeline.night.supplier import allowance_of, open_client
from pipeline.plan import SweepPlan
from pipeline.process.cluster_workers import this_worker
from pipeline.process.event_loop import run_in_loop
from pipeline.settings import Settings, read_settings, utc_now
from pipeline.supplier.auth import ClientCredentials
from pipeline.supplier.pacer import Unlimited
from pipeline.supplier.rate_mark import RateProbe
from pipeline.supplier.shared_calls import SharedCalls
from pipeline.sweep import plan_of
from pipeline.sweep.collect import Collector
from pipeline.sweep.outage import samples_of
from pipeline.sweep.progress import Tally

# How often a worker asks the store whether another one has landed a shard: the other searches do not wait for it.
_LOOK_SECONDS = 0.25
# The token of this process outlasts a block: an expiry costs one token request for each worker. So does its share of
# the day's calls: what a block leased and did not use is for the next one.
_credentials: dict[str, ClientCredentials] = {}
_allowances: dict[tuple[object, ...], SharedCalls | DailyCalls | Unlimited] = {}


def ask_block(
    lake: Lake,
    sweep_id: str,
    shards: Sequence[Shard],
    in_flight: int,
    *,
    rate: float,
    daily_calls: int | None,
    unbranded: Mapping[int, int],
    handed: HandOver | None,
    shares_rate: RateProbe,
) -> Tally:
    """Send the searches of the shards that have not landed, land them, and return how many there were.

    `rate`, in requests per second, and `daily_calls` are those of all workers together. `handed` takes the shards of a
    lake on S3.

    Raises InputError if this worker lacks the supplier's settings, and what `Collector.collect` raises.
    """
    settings = read_settings(requests_per_second=rate, daily_calls=daily_calls)
    manifest = read_manifest(lake, sweep_id)
    # The night's first probe lets workers pass that lack what sending needs; this one may also have joined late.
    if why := cannot_send(settings, manifest.supplier) or shares_rate.patiently():
        raise SettingsError(f"The worker {this_worker()} {why.removesuffix('.')}.")
    return run_in_loop(lambda: _sent(settings, lake, manifest, shards, in_flight, unbranded, handed))


async def _sent(
    settings: Settings,
    lake: Lake,
    manifest: Manifest,
    shards: Sequence[Shard],
    in_flight: int,
    unbranded: Mapping[int, int],
    handed: HandOver | None,
) -> Tally:
    async def landed(_: Shard) -> None:
        """The night counts the block as a whole."""

    looked_at: dict[str, float] = {}

    async def has_landed(shard: Shard) -> bool:
        path = lake.shard_path(manifest.sweep_id, shard.name)
        if handed is None:
            return lake.exists(path)
        now = time.monotonic()
        if now - looked_at.get(path, -math.inf) < _LOOK_SECONDS:
            return False
        looked_at[path] = now
        return await asyncio.to_thread(handed.exists, path)

    def has_ended() -> bool:
        if handed is None:
            return read_ending(lake, manifest.sweep_id) is not None
        return handed.has_ended(manifest.sweep_id)

    # The night counts the calls of a lake on S3, as this machine's folder is not the lake.
    plan, allowance = _plan(manifest), _allowance(settings, None if handed else lake)
    async with open_client(settings, lake, manifest, allowance=allowance, tokens=_credentials) as client:
        collector = Collector(
            handed or lake,
            manifest.sweep_id,
            client.ask,
            body_of(unbranded, manifest.snapshot_date, send_rate_type=manifest.send_rate_type),
            in_flight=in_flight,
            on_landed=landed,
            covers=allowance.covers,
            samples=samples_of(plan),
            has_landed=has_landed,
        )
        # This worker may have been cut off for so long that another one was given its block, or the sweep has ended. In
        # an order of its own, each of the two then sends what the other has not begun.
        own_order = random.sample(shards, len(shards))
        await collector.collect((it, plan.searches(it.start, it.stop)) for it in own_order if not has_ended())
        collector.tally.paced_seconds = client.paced_seconds
    return collector.tally


def _allowance(settings: Settings, lake: Lake | None) -> SharedCalls | DailyCalls | Unlimited:
    of = (settings.base_url, settings.rate_store, settings.daily_calls, lake and lake.root)
    return _allowances.setdefault(of, allowance_of(settings, lake, utc_now))


@lru_cache(maxsize=1)
def _plan(manifest: Manifest) -> SweepPlan:
    return plan_of(manifest)
