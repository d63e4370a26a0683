"""A night from settings to published file: what the commands and the Prefect flow both do, step by step.

The steps hand on a sweep's manifest and nothing else; each can be run again, in another process, on another day.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.domain.addresses import host_and_port
from pipeline.domain.errors import CallsUsedUp, InputError, NightauditError, SettingsError, UnknownSweep
from pipeline.domain.search import Operation, Search
from pipeline.domain.shards import SEARCHES_PER_SHARD, Partition
from pipeline.domain.tables import TABLES
from pipeline.inputs.branded import unbranded_ids
from pipeline.lake import Lake
from pipeline.lake.allowance import DailyCalls
from pipeline.lake.delta import refuse_broken_logs
from pipeline.lake.raw import Manifest, drop_sweep, has_answer, landed, read_ending, read_manifest
from pipeline.lake.user_query import Bounds, user_query
from pipeline.night.choose_detail import choose_detail
from pipeline.night.demo_lake import demo_spec, story_nights
from pipeline.night.order import refuse_earlier
from pipeline.notify.ways import Ways
from pipeline.plan import SweepPlan
from pipeline.publish import published_sweeps
from pipeline.settings import Clock, Settings
from pipeline.spec import SAMPLE_SPEC, SweepSpec, read_spec, resolve_properties
from pipeline.supplier.client import SupplierClient
from pipeline.supplier.pacer import Unlimited
from pipeline.supplier.requests import request_for
from pipeline.sweep import SweepOptions, SweepProgress, begin, close, run
from pipeline.sweep.load import is_sweep_loaded

if TYPE_CHECKING:
    from pipeline.sandbox.server.launch import SandboxProcess

logger = logging.getLogger(__name__)

SANDBOX_NAME = "sandbox"


@dataclass(frozen=True, slots=True)
class Supplier:
    """Where searches go. The secret is never shown."""

    base_url: str
    client_id: str
    client_secret: str

    def __repr__(self) -> str:
        return f"Supplier({self.base_url})"


def read_spec_of(settings: Settings, snapshot_date: date) -> tuple[SweepSpec, tuple[int, ...]]:
    """Read the spec that the settings name, and resolve its properties.

    Raises SettingsError where no spec is named although the supplier is real, and SpecError for a spec or a property
    source that cannot be used.
    """
    path = settings.spec or demo_spec(settings)
    if path is None:
        if not settings.is_simulated:
            raise SettingsError(
                "No sweep spec is set (NIGHTAUDIT_SPEC), and the sample spec asks about properties of the sandbox.",
                kept="Nothing was started.",
                hint=f"Write a spec for your properties; {SAMPLE_SPEC} shows every key.",
            )
        path = SAMPLE_SPEC
    spec = read_spec(path, snapshot_date)
    ids = resolve_properties(
        spec.properties,
        Path(path).parent,
        resolve_query=_query_resolver(settings),
        resolve_sandbox=_sandbox_resolver(settings) if settings.is_simulated else None,
    )
    return spec, ids[: settings.property_limit]


def supplier_name(settings: Settings) -> str:
    """Return what a supplier is known by in the lake: the sandbox's name, or the host and port of its address."""
    return SANDBOX_NAME if settings.is_simulated else host_and_port(settings.base_url or "")


def _another_supplier(manifest: Manifest, supplier: str, instead: str = "") -> InputError:
    return InputError(
        f"The sweep {manifest.sweep_id} of this lake asked {manifest.supplier}; the settings name {supplier}.",
        kept="The lake is as it was.",
        hint="Use the settings that it was begun with (NIGHTAUDIT_BASE_URL), or another lake (NIGHTAUDIT_LAKE)."
        + instead,
    )


def what_else(sweep_id: str, *, has_landed: bool) -> str:
    """Return what can be done about an unfinished sweep while the settings name another supplier than its own."""
    if has_landed:
        return f"Give up its rest with: nightaudit resume --close {sweep_id}"
    return "Nothing of it has landed; begin another in its place with: nightaudit sweep"


def _make_way(lake: Lake, supplier: str) -> None:
    """See that a sweep of `supplier` may follow on those of this lake: prices of two suppliers are no series.

    A sweep that was never answered ties nobody down, such as one that a mistyped address began; where nothing of it
    has landed and it has not ended, it is taken away. Raises InputError where the latest other sweep asked somebody
    else; nothing is taken away then.
    """
    in_vain = []
    for sweep_id in reversed(lake.sweep_ids()):
        manifest = read_manifest(lake, sweep_id)
        if manifest.supplier == supplier:
            break
        if has_answer(lake, sweep_id):
            raise _another_supplier(manifest, supplier)
        in_vain.append(manifest)
    for manifest in in_vain:
        if not landed(lake, manifest.sweep_id) and read_ending(lake, manifest.sweep_id) is None:
            drop_sweep(lake, manifest.sweep_id)
            logger.warning(
                "The sweep %s asked %s, which never answered: it is taken away.", manifest.sweep_id, manifest.supplier
            )


def refuse_before_making(settings: Settings, lake: Lake, now: datetime) -> None:
    """Read the spec while there is no lake yet, so that a mistake in it leaves none behind. Raises SpecError."""
    if not lake.root.exists():
        read_spec_of(settings, now.date())


def start(settings: Settings, lake: Lake, now: datetime) -> Manifest:
    """Begin a new sweep: read the spec, and write down what will be asked.

    Raises InputError where the lake has a sweep of that instant or later: its history is made in order.
    """
    refuse_earlier(lake, now, is_new=True)
    refuse_broken_logs(lake, TABLES.values())
    spec, ids = read_spec_of(settings, now.date())
    supplier = supplier_name(settings)
    chosen = choose_detail(spec, ids, now.date(), lake.published_file, Path(settings.spec or SAMPLE_SPEC).parent)
    detail_ids = None if chosen is None else chosen.property_ids
    if refusal := endless(SweepPlan.of(spec, ids, now.date(), detail_ids).partitions, settings.daily_calls):
        raise SettingsError(refusal, kept="No sweep was begun.", hint=_ENOUGH_CALLS)
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


async def collect(
    settings: Settings,
    lake: Lake,
    manifest: Manifest,
    *,
    now: Clock | None = None,
    watch: Callable[[SweepProgress], None] = lambda _: None,
    sandbox: SandboxProcess | None = None,
) -> SweepProgress:
    """Ask what has not landed of a sweep, normalise it and load it. See `pipeline.sweep.run`.

    `now` stands above the clock of the settings; `sandbox` is one that runs already. Raises InputError where it is
    earlier than the lake's latest sweep.
    """
    now = now or settings.clock
    refuse_earlier(lake, now())
    options = SweepOptions(settings.in_flight, settings.workers, settings.max_body_bytes)

    unbranded = unbranded_ids(lake)

    def request_of(search: Search) -> bytes:
        search = as_sent(search, unbranded)
        # Judged by the day of the plan: a stay that has begun since is asked for, and its refusal is its outcome.
        request = request_for(search, today=manifest.snapshot_date, send_rate_type=manifest.send_rate_type)
        return request.to_wire()

    has_ended = read_ending(lake, manifest.sweep_id) is not None
    refuse_broken_logs(lake, TABLES.values())
    if not has_ended and (refusal := endless(manifest.partitions, settings.daily_calls)):
        raise SettingsError(
            refusal,
            kept=f"Nothing was asked; the sweep {manifest.sweep_id} stays begun.",
            hint=f"{_ENOUGH_CALLS} Then: nightaudit resume {manifest.sweep_id}",
        )
    allowance = Unlimited() if settings.daily_calls is None else DailyCalls(lake, settings.daily_calls, now)
    with supplier_of(settings, lake, manifest, is_needed=not has_ended, sandbox=sandbox) as supplier:
        client = SupplierClient.of(
            settings,
            base_url=supplier.base_url if manifest.is_simulated else None,
            client_id=supplier.client_id,
            client_secret=supplier.client_secret,
            allowance=allowance,
            now=now,
        )
        async with client:
            return await run(
                lake, manifest, client.ask, request_of, options, now=now, watch=watch, covers=allowance.covers
            )


_ENOUGH_CALLS = "Set it to at least as many, better to twice as much, for further attempts count too."


def endless(partitions: Iterable[Partition], daily_calls: int | None) -> str:
    """Say so where a whole day's calls do not suffice for what lands at once: no day would get further; else ''."""
    least = max((min(partition.searches, SEARCHES_PER_SHARD) for partition in partitions), default=0)
    if daily_calls is None or daily_calls >= least:
        return ""
    return (
        f"NIGHTAUDIT_DAILY_CALLS is {daily_calls}, but {least} searches of this sweep land together: it would never "
        "get further."
    )


def as_sent(search: Search, unbranded: Mapping[int, int]) -> Search:
    """Return a search as it goes out: about an opaque offer, a single search names the unbranded property."""
    if search.operation is not Operation.SINGLE:
        return search
    return replace(search, property_ids=tuple(unbranded.get(own, own) for own in search.property_ids))


async def collect_within_cap(
    settings: Settings,
    lake: Lake,
    manifest: Manifest,
    *,
    now: Clock | None = None,
    watch: Callable[[SweepProgress], None] = lambda _: None,
) -> SweepProgress:
    """Collect a sweep; where the daily cap on calls ends it early, close it and load what there is.

    Raises what `collect` raises, and CallsUsedUp only where nothing at all has landed.
    """
    now = now or settings.clock
    try:
        return await collect(settings, lake, manifest, now=now, watch=watch)
    except CallsUsedUp as error:
        if not landed(lake, manifest.sweep_id):
            raise
        logger.warning("%s The sweep is closed, and what has landed is published.", error.message)
    give_up_rest(lake, manifest, now())
    return await collect(settings, lake, manifest, now=now, watch=watch)


def latest_unpublished(lake: Lake) -> Manifest | None:
    """Return the latest sweep, unless it is published: a run that was cut short, at whatever step, has left it."""
    published = {entry.sweep_id for entry in published_sweeps(lake)}
    latest = lake.sweep_ids()[-1:]
    return read_manifest(lake, latest[0]) if latest and latest[0] not in published else None


def start_or_go_on(settings: Settings, lake: Lake, now: datetime) -> Manifest:
    """Begin a sweep, or go on with the one that was begun today and is not published yet."""
    begun = latest_unpublished(lake)
    if begun is None or begun.snapshot_date != now.date() or _is_in_vain(lake, begun, supplier_name(settings)):
        return start(settings, lake, now)
    spec, ids = read_spec_of(settings, now.date())
    if (spec.canonical_json().decode(), tuple(sorted(set(ids)))) != (begun.spec, begun.property_ids):
        raise InputError(
            f"Today's sweep {begun.sweep_id} is not published yet, and asks something else than the spec does now.",
            kept="It is as it was.",
            hint=f"Finish it first: nightaudit resume {begun.sweep_id} (or --close it), then: nightaudit publish",
        )
    if is_sweep_loaded(lake, begun.sweep_id):
        logger.warning(
            "The sweep %s of today is loaded and not published: it is judged again, and nothing is asked.",
            begun.sweep_id,
        )
    else:
        logger.info("Going on with the sweep %s of today.", begun.sweep_id)
    return begun


def _is_in_vain(lake: Lake, manifest: Manifest, supplier: str) -> bool:
    """Whether going on with a sweep leads nowhere: never answered, and it has ended or asked somebody else."""
    is_open = manifest.supplier == supplier and read_ending(lake, manifest.sweep_id) is None
    return not is_open and not has_answer(lake, manifest.sweep_id)


async def publish_left_over(
    settings: Settings,
    lake: Lake,
    today: date,
    now: Clock | None = None,
    ways: Ways | None = None,
) -> Manifest | None:
    """Give up the rest of a sweep that an earlier day has left unpublished, load it and publish it.

    Its check-ins may have passed and its prices are of that day, so it is not gone on with. A sweep that cannot be
    published, or does not pass its audit, stays as it is, and does not keep today's from being made: why it did
    not pass is told, by the webhook of the settings and by `ways`. Returns the sweep that was published, if any.
    """
    left = latest_unpublished(lake)
    now = now or settings.clock
    if left is None or left.snapshot_date >= today:
        return None
    # A sweep by itself judges nothing, and these import much.
    from pipeline.audit import stored_audit
    from pipeline.night.gate import audit_and_publish

    # One that was audited has something to tell, whatever its answers were.
    if _is_in_vain(lake, left, supplier_name(settings)) and stored_audit(lake, left.sweep_id) is None:
        return None
    try:
        give_up_rest(lake, left, now())
        await collect(settings, lake, left, now=now)
        audit_and_publish(settings, lake, left.sweep_id, now(), ways)
    except NightauditError as error:
        logger.warning("The sweep %s of %s is left unpublished: %s", left.sweep_id, left.snapshot_date, error.message)
        return None
    logger.info("The unfinished sweep %s of %s was closed and published.", left.sweep_id, left.snapshot_date)
    return left


def give_up_rest(lake: Lake, manifest: Manifest, now: datetime) -> None:
    """End a sweep early: cells that have not landed become `not_swept`."""
    close(lake, manifest, now)


def latest_unfinished(lake: Lake) -> Manifest:
    """Return the latest sweep that has not been loaded whole. Raises UnknownSweep where there is none."""
    for sweep_id in reversed(lake.sweep_ids()):
        if not is_sweep_loaded(lake, sweep_id):
            return read_manifest(lake, sweep_id)
    raise UnknownSweep(f"The lake {lake.root} holds no unfinished sweep.", hint="See what it holds: nightaudit status")


def latest_loaded(lake: Lake) -> str:
    """Return the id of the latest loaded sweep. Raises UnknownSweep where there is none."""
    for sweep_id in reversed(lake.sweep_ids()):
        if is_sweep_loaded(lake, sweep_id):
            return sweep_id
    raise UnknownSweep(f"The lake {lake.root} holds no loaded sweep.", hint="Make one: nightaudit sweep")


@contextmanager
def supplier_of(
    settings: Settings,
    lake: Lake,
    manifest: Manifest,
    *,
    is_needed: bool = True,
    sandbox: SandboxProcess | None = None,
) -> Iterator[Supplier]:
    """Give the supplier that a sweep asks: the one of the settings, or a sandbox that lives as long as this.

    A sandbox answers as it did when the sweep began, so that a resumed sweep is the sweep that it would have been. One
    that runs already is turned to that night, and left running.
    Raises InputError where the settings name another supplier than the sweep has asked, if it is needed at all.
    """
    if is_needed and manifest.supplier != supplier_name(settings):
        has_landed = bool(landed(lake, manifest.sweep_id))
        raise _another_supplier(
            manifest, supplier_name(settings), " " + what_else(manifest.sweep_id, has_landed=has_landed)
        )
    if not manifest.is_simulated or not is_needed:
        secret = settings.client_secret.get_secret_value() if settings.client_secret else ""
        yield Supplier(settings.base_url or "http://127.0.0.1", settings.client_id or "-", secret or "-")
        return
    from pipeline.sandbox.server.launch import SandboxProcess

    sweeps = lake.sweep_ids()
    night, opened = sweeps.index(manifest.sweep_id), read_manifest(lake, sweeps[0]).snapshot_date
    if sandbox is not None:
        clock = settings.sandbox_clock.isoformat() if settings.sandbox_clock else None
        sandbox.control("night", {"night": night, "today": manifest.snapshot_date.isoformat(), "clock": clock})
        yield Supplier(sandbox.base_url, sandbox.client_id, sandbox.client_secret)
        return
    with SandboxProcess(
        seed=settings.sandbox_seed,
        night=night,
        opened=opened,
        today=manifest.snapshot_date,
        clock=settings.sandbox_clock,
        properties=settings.sandbox_properties,
        story=story_nights(lake),
    ) as own:
        yield Supplier(own.base_url, own.client_id, own.client_secret)


def _sandbox_resolver(settings: Settings) -> Callable[[int], Iterable[int]]:
    from pipeline.sandbox.world.identifiers import property_ids

    def resolve(wanted: int) -> Iterable[int]:
        return property_ids(settings.sandbox_seed, settings.sandbox_properties)[:wanted]

    return resolve


def _query_resolver(settings: Settings) -> Callable[[str], Iterable[int]] | None:
    file = Lake(settings.lake).published_file
    if not file.exists():
        return None

    def resolve(query: str) -> Iterable[int]:
        with user_query(file, query, Bounds(settings.query_seconds, settings.query_memory_mb)) as answer:
            yield from (row[0] for row in answer.rows())

    return resolve
