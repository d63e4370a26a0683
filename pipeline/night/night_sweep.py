"""The sweep of a night, by the settings: begin it, or resume it, and collect it.

The steps `begin` and `collect` of `nightly` do this, and so do single commands.
"""

import logging
import time
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial

from pipeline.domain.errors import InputError, SettingsError
from pipeline.domain.shards import SEARCHES_PER_SHARD, Partition
from pipeline.domain.tables import TABLES
from pipeline.inputs.branded import unbranded_ids
from pipeline.lake import Lake
from pipeline.lake.allowance import DailyCalls
from pipeline.lake.delta import refuse_broken_logs
from pipeline.lake.raw import Manifest, drop_sweep, has_answer, landed, read_ending
from pipeline.night.ask_block import ask_block
from pipeline.night.choose_detail import choose_detail
from pipeline.night.durations import note_duration
from pipeline.night.latest import latest_first, latest_unpublished, leads_nowhere, refuse_earlier
from pipeline.night.night import Night
from pipeline.night.read_spec import read_spec_of, spec_folder
from pipeline.night.search_body import body_of
from pipeline.night.senders import store_of_workers
from pipeline.night.supplier import allowance_of, another_supplier, open_client, supplier_name
from pipeline.plan import SweepPlan
from pipeline.plan.estimate import Duration, TimedStep
from pipeline.process.limits import refuse_tight_limits
from pipeline.settings import Settings
from pipeline.supplier.answer import Ask
from pipeline.supplier.pacer import Unlimited
from pipeline.supplier.rate_mark import marked
from pipeline.supplier.shared_calls import SharedCalls
from pipeline.sweep import Asking, SweepOptions, SweepProgress, begin, run
from pipeline.sweep.load import is_sweep_loaded

logger = logging.getLogger(__name__)


def start(settings: Settings, lake: Lake, now: datetime) -> Manifest:
    """Begin a new sweep: read the spec and record the plan.

    Raises InputError if the lake has a sweep of that time or later.
    """
    refuse_earlier(lake, now, is_new=True)
    refuse_broken_logs(lake, TABLES.values())
    spec, ids = read_spec_of(settings, now.date())
    supplier = supplier_name(settings)
    chosen = choose_detail(spec, ids, now.date(), lake.published_file, spec_folder(settings))
    detail_ids = None if chosen is None else chosen.property_ids
    if refusal := endless(SweepPlan.of(spec, ids, now.date(), detail_ids).partitions, settings.daily_calls):
        raise SettingsError(refusal, kept="No sweep was started.", hint=_ENOUGH_CALLS)
    _make_way(lake, supplier)
    return begin(
        lake,
        spec,
        ids,
        now=now,
        supplier=supplier,
        is_simulated=settings.is_simulated,
        send_rate_type=settings.send_rate_type,
        detail_ids=detail_ids,
    )


def start_or_go_on(settings: Settings, lake: Lake, now: datetime) -> Manifest:
    """Begin a sweep, or resume today's if it is not published yet."""
    begun = latest_unpublished(lake)
    if begun is None or begun.snapshot_date != now.date() or leads_nowhere(lake, begun, supplier_name(settings)):
        return start(settings, lake, now)
    spec, ids = read_spec_of(settings, now.date())
    if (spec.canonical_json().decode(), tuple(sorted(set(ids)))) != (begun.spec, begun.property_ids):
        raise InputError(
            f"Today's sweep {begun.sweep_id} is not published yet, and its spec differs from the current one.",
            kept="It is unchanged.",
            hint=f"Finish it first: nightaudit resume {begun.sweep_id} (or --close it)\nThen: nightaudit publish",
        )
    if is_sweep_loaded(lake, begun.sweep_id):
        logger.warning(
            "Today's sweep %s is loaded but not published: auditing it again, without new requests.", begun.sweep_id
        )
    else:
        logger.info("Resuming today's sweep %s.", begun.sweep_id)
    return begun


async def collect(night: Night) -> SweepProgress:
    """Send the searches of a night's sweep that have not landed, normalise and load them. See `pipeline.sweep.run`.

    Raises InputError if the night's clock is earlier than the lake's latest sweep, or the settings name another
    supplier than the sweep's.
    """
    settings, lake, manifest = night.settings, night.lake, night.sweep
    refuse_tight_limits(more_descriptors=settings.in_flight)
    refuse_earlier(lake, night.now())
    refuse_broken_logs(lake, TABLES.values())
    options = SweepOptions(settings.in_flight, settings.max_body_bytes, settings.workforce)
    if read_ending(lake, manifest.sweep_id) is not None:
        return await run(lake, manifest, None, options, now=night.now, watch=night.watch)
    if refusal := endless(manifest.partitions, settings.daily_calls):
        raise SettingsError(
            refusal,
            kept=f"Nothing was sent; the sweep {manifest.sweep_id} can be resumed.",
            hint=f"{_ENOUGH_CALLS} Then: nightaudit resume {manifest.sweep_id}",
        )
    allowance = allowance_of(settings, lake, night.now)
    async with AsyncExitStack() as opened:
        client = await opened.enter_async_context(
            open_client(settings, lake, manifest, now=night.now, allowance=allowance, sandbox=night.sandbox)
        )
        asking = _asking(night, client.ask, allowance, opened)
        began, watch = time.perf_counter(), night.watch
        if settings.metrics_port is not None:
            # A slow import.
            from pipeline.night.metrics import served

            metrics = opened.enter_context(served(settings.metrics_port, manifest.sweep_id))
            asking = replace(asking, ask=metrics.counted(client.ask))
            watch = metrics.watching(watch, client)
        collected = await run(lake, manifest, asking, options, now=night.now, watch=watch)
        took = Duration(
            time.perf_counter() - began,
            manifest.cells,
            collected.planned_searches - collected.landed_before,
            settings.rate,
            settings.in_flight,
            is_spread=asking.ask_block is not None,
            paced_seconds=client.paced_seconds + collected.tally.paced_seconds,
        )
    if took.searches:
        note_duration(lake, manifest.sweep_id, TimedStep.SWEEP, took)
    return collected


def _asking(night: Night, ask: Ask, allowance: SharedCalls | DailyCalls | Unlimited, opened: AsyncExitStack) -> Asking:
    """Return how the searches of a night are sent: from here or, while a mark is `opened`, by workers at one rate."""
    settings, lake, manifest, unbranded = night.settings, night.lake, night.sweep, unbranded_ids(night.lake)
    bodies = body_of(unbranded, manifest.snapshot_date, send_rate_type=manifest.send_rate_type)
    asking = Asking(ask, bodies, allowance.covers)
    if (store := store_of_workers(settings)) is None:
        return asking
    handed = lake.copy.handed if lake.copy is not None else None
    probe = opened.enter_context(marked(store))
    by_workers = partial(
        ask_block,
        rate=settings.rate,
        daily_calls=settings.daily_calls,
        unbranded=unbranded,
        handed=handed,
        shares_rate=probe,
    )
    # In a shared folder, workers count their calls in the lake themselves.
    lake_calls = allowance.own if handed is not None and isinstance(allowance, SharedCalls) else asking.lake_calls
    return replace(asking, ask_block=by_workers, probe=probe, lake_calls=lake_calls)


def _make_way(lake: Lake, supplier: str) -> None:
    """Check that a sweep of `supplier` may follow those of this lake, as prices of two suppliers do not form a series.

    Sweeps without any answer, such as those with a mistyped address, are ignored, and removed if nothing has landed and
    they have not ended. Raises InputError, and removes nothing, if the latest other sweep used another supplier.
    """
    unanswered = []
    for manifest in latest_first(lake, logging.WARNING):
        if manifest.supplier == supplier:
            break
        if read_ending(lake, manifest.sweep_id) is None:
            lake.receive(manifest.sweep_id)
        if has_answer(lake, manifest.sweep_id):
            raise another_supplier(manifest, supplier)
        unanswered.append(manifest)
    for manifest in unanswered:
        if not landed(lake, manifest.sweep_id) and read_ending(lake, manifest.sweep_id) is None:
            drop_sweep(lake, manifest.sweep_id)
            logger.warning("Removed sweep %s: its supplier %s never answered.", manifest.sweep_id, manifest.supplier)


_ENOUGH_CALLS = "Set it to at least that number; twice that is better, because retries count too."


def endless(partitions: Iterable[Partition], daily_calls: int | None) -> str:
    """Return why no day's calls are enough for a shard, so that the sweep would never end; empty: they are enough."""
    least = max((min(partition.searches, SEARCHES_PER_SHARD) for partition in partitions), default=0)
    if daily_calls is None or daily_calls >= least:
        return ""
    return (
        f"NIGHTAUDIT_DAILY_CALLS is {daily_calls}, but {least} searches of this sweep land together: it would never "
        "make progress."
    )
