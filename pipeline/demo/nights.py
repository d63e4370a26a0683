"""Making the demo: each night is the steps of a night, at its own instant, from one sandbox that runs throughout.

Sweeping keeps one core busy, and so do auditing and publishing: they follow in another process, while later nights are
swept.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pipeline.demo.inputs import MARKUP_PCT, input_files, shop_prices
from pipeline.demo.properties import choose
from pipeline.demo.spec import MARKETS, demo_spec_text
from pipeline.domain.errors import InputError, NightauditError, SettingsError
from pipeline.inputs.load import load
from pipeline.lake import Lake
from pipeline.night import steps
from pipeline.night.demo_lake import mark_as_demo
from pipeline.night.gate import accept, audit_at
from pipeline.night.night import Night
from pipeline.night.quotes import WRITE_SCOPE, quote
from pipeline.normalise import worker
from pipeline.process.tracker import run_tracker
from pipeline.publish import publish
from pipeline.publish.refresh import refresh
from pipeline.quote.sample import Sample
from pipeline.report import reports_page, write_reports
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.sandbox.world.identifiers import property_id
from pipeline.sandbox.world.world import World
from pipeline.settings import Settings
from pipeline.sweep.normalisers import interrupts_held_back

# When each night begins (UTC).
_AT: Final = time(2, 30)
# So many nights are published in one go. A shop's prices are observed then.
_PUBLISHED_EVERY: Final = 5
# So many quotes are asked on the last night.
_QUOTES: Final = 8
_WHY_PUBLISHED: Final = "A night of the demo: simulated, and of few properties."


@dataclass(frozen=True, slots=True)
class DemoProgress:
    """How far a demo has come: `made` of `nights`, and the one that is made now."""

    made: int
    nights: int
    night: date
    step: str


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo that was made: its nights, its properties, and where its reports lie."""

    first: date
    last: date
    properties: int
    reports: Path


Watch = Callable[[DemoProgress], None]


def make_demo(settings: Settings, nights: int, last: date, watch: Watch = lambda _: None) -> Demo:
    """Make the nights of a demo in an empty lake, the last one on `last`, and the reports of that one.

    Raises SettingsError where a supplier is set, and InputError where the lake is not empty or `last` has not ended.
    """
    lake = Lake(settings.lake)
    refuse_demo(settings, lake, last)
    days = [last - timedelta(days=back) for back in reversed(range(nights))]
    world = World(settings.sandbox_seed, 0, days[0], settings.sandbox_properties)
    chosen = choose(world, tuple(MARKETS), last)
    ids = [property_id(settings.sandbox_seed, index) for index in chosen.indices]
    with (
        lake.writing("the demo"),
        SandboxProcess(
            seed=settings.sandbox_seed,
            opened=days[0],
            today=days[0],
            properties=settings.sandbox_properties,
            story=nights,
        ) as sandbox,
        TemporaryDirectory() as folder,
        _process_beside() as beside,
    ):
        spec = mark_as_demo(lake, demo_spec_text(ids, chosen.watched), nights)
        for kind, text in input_files(settings.sandbox_seed, settings.sandbox_properties, chosen.indices, days).items():
            _load(lake, kind, Path(folder), text, _instant(days[0]))
        following: list[Future[None]] = []
        for made, day in enumerate(days):
            night = _Night(_at(settings, spec, day), lake, sandbox, partial(_say, watch, made, nights, day))
            following.append(night.sweep(beside))
            if made % _PUBLISHED_EVERY == _PUBLISHED_EVERY - 1 or day == last:
                following.append(night.publish(beside, Path(folder)))
            _await(step for step in following if step.done())
        night.watch("publish")
        _await(following)
        night.ask_quotes()
        watch(DemoProgress(nights, nights, last, "reports"))
        write_reports(lake)
    return Demo(days[0], last, len(ids), reports_page(lake))


@dataclass(frozen=True, slots=True)
class _Night:
    """One night of the demo. `settings` have its clock."""

    settings: Settings
    lake: Lake
    sandbox: SandboxProcess
    watch: Callable[[str], None]

    def sweep(self, beside: ProcessPoolExecutor) -> Future[None]:
        """Sweep, as `nightaudit nightly` does, and have another process audit the sweep; see `_audit`."""
        settings, lake, now = self.settings, self.lake, self.settings.clock()
        self.watch("sweep")
        night = Night(settings, lake, steps.start(settings, lake, now), sandbox=self.sandbox)
        asyncio.run(steps.collect(night))
        with interrupts_held_back():
            return beside.submit(_audit, settings, lake, night.sweep.sweep_id, now)

    def publish(self, beside: ProcessPoolExecutor, folder: Path) -> Future[None]:
        """Have the other process publish the nights since the last time; see `_publish`."""
        with interrupts_held_back():
            return beside.submit(_publish, self.lake, self.lake.sweep_ids()[-1], self.settings.clock(), folder)

    def ask_quotes(self) -> None:
        """Ask a few quotes about this night, the last one, and show them and the shop's prices."""
        self.watch("quotes")
        sample = Sample(_QUOTES)
        asyncio.run(quote(self.settings, self.lake, sample, is_confirmed=True, sandbox=self.sandbox))
        refresh(self.lake)


def _audit(settings: Settings, lake: Lake, sweep_id: str, now: datetime) -> None:
    """Audit a sweep, and enter it in the ledger of what is published.

    Later nights may be swept meanwhile: none of their steps reads what an audit, or publishing, writes.
    """
    audit_at(settings, lake, sweep_id, now)
    # So few properties hardly move on some nights, and a demo shows all of its nights. The reason stays written
    # down, and the quality page shows what failed.
    accept(lake, sweep_id, now, _WHY_PUBLISHED, settings.analysis)


def _publish(lake: Lake, sweep_id: str, now: datetime, folder: Path) -> None:
    """Publish the nights up to a sweep, and load what a shop asks at that time: the next publication shows it."""
    publish(lake, sweep_id, now)
    _load(lake, "prices", folder, shop_prices(lake, now), now)


@contextmanager
def _process_beside() -> Iterator[ProcessPoolExecutor]:
    """Give a process that audits and publishes while this one sweeps. Where the demo is stopped, it is ended at once.

    Wherever publishing is ended, the last published file stays as it is.
    """
    others = set(multiprocessing.active_children())
    # Not fork: threads of DuckDB and of the object store do not survive it.
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=worker.prepare)
    try:
        yield pool
    finally:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        run_tracker()
        pool.shutdown()


def _await(following: Iterable[Future[None]]) -> None:
    try:
        for step in following:
            step.result()
    except BrokenProcessPool:
        raise NightauditError(
            "The process that audits and publishes the demo's nights was killed, perhaps because memory ran out.",
            kept="The nights that were made stay in the lake.",
            hint="Remove that lake, and when more memory is free: nightaudit demo",
        ) from None


def _say(watch: Watch, made: int, nights: int, day: date, step: str) -> None:
    watch(DemoProgress(made, nights, day, step))


def refuse_demo(settings: Settings, lake: Lake, last: date) -> None:
    """Raise SettingsError or InputError where no demo can be made; see `make_demo`."""
    if not settings.is_simulated:
        raise SettingsError(
            "The demo needs the bundled sandbox, but NIGHTAUDIT_BASE_URL names a supplier.",
            kept="Nothing was started.",
            hint="Unset it, or run a night with that supplier: nightaudit nightly",
        )
    if lake.root.exists() and any(lake.root.iterdir()):
        raise InputError(
            f"The demo needs an empty lake, and {lake.root} is not empty.",
            kept="The lake is unchanged.",
            hint="Name another one: NIGHTAUDIT_LAKE=demo-lake nightaudit demo",
        )
    if last >= settings.clock().date():
        raise InputError(
            f"The demo's nights are in the past, but {last} has not ended yet.",
            kept="Nothing was started.",
            hint="Omit --until to end with yesterday; nightaudit nightly then runs tonight.",
        )


def _at(settings: Settings, spec: Path, day: date) -> Settings:
    return settings.model_copy(
        update={
            "sandbox_clock": _instant(day),
            "spec": spec,
            "what_if_markup_pct": settings.what_if_markup_pct or float(MARKUP_PCT),
            "scopes": f"read_rooms {WRITE_SCOPE}",
            "quote_cap": _QUOTES,
            "daily_calls": None,
        }
    )


def _instant(day: date) -> datetime:
    return datetime.combine(day, _AT, UTC)


def _load(lake: Lake, kind: str, folder: Path, text: str, now: datetime) -> None:
    file = folder / f"{kind}.csv"
    file.write_text(text, encoding="utf-8")
    load(lake, kind, file, now)
