"""Making the demo: each night is the steps of a night, at its own instant, from one sandbox that runs throughout.

Auditing and publishing follow in two other processes, while later nights are swept: each step has work throughout.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pipeline.demo.beside import await_steps, behind, process_beside
from pipeline.demo.inputs import MARKETS, MARKUP_PCT, choose, demo_spec_text, input_files, shop_prices
from pipeline.domain.errors import InputError, SettingsError
from pipeline.inputs.load import load
from pipeline.lake import Lake
from pipeline.lake.checksums import FOLDER as CHECKSUMS
from pipeline.lake.files import PASSING
from pipeline.lake.mark import MARK
from pipeline.night import night_sweep
from pipeline.night.gate import accept, audit_at
from pipeline.night.night import Night
from pipeline.night.quotes import WRITE_SCOPE, quote
from pipeline.night.read_spec import demo_spec, mark_as_demo
from pipeline.process.child import begun
from pipeline.process.event_loop import run_in_loop
from pipeline.publish import publish
from pipeline.publish.refresh import refresh
from pipeline.quote.sample import Sample
from pipeline.report.write import write_reports
from pipeline.report.written_pages import reports_page
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.sandbox.world.identifiers import property_id
from pipeline.sandbox.world.world import World
from pipeline.settings import Settings

# When each night begins (UTC).
_AT: Final = time(2, 30)
# Number of nights that are published together. A shop's prices are observed then.
_PUBLISHED_EVERY: Final = 5
_PRICES_AFTER: Final = timedelta(minutes=10)
# Number of quotes requested on the last night.
_QUOTES: Final = 8
_WHY_PUBLISHED: Final = "A night of the demo: simulated, and of few properties."


@dataclass(frozen=True, slots=True)
class DemoProgress:
    """Progress of a demo: `made` of `nights`, and the one being made."""

    made: int
    nights: int
    night: date
    step: str


@dataclass(frozen=True, slots=True)
class Demo:
    """A finished demo: its nights, its properties, and where its reports are."""

    first: date
    last: date
    properties: int
    reports: Path


Watch = Callable[[DemoProgress], None]

# What a lake has before its first night, for example after a night that was refused.
_OF_ANY_LAKE = PASSING | {MARK, CHECKSUMS}


def make_demo(settings: Settings, nights: int, last: date, watch: Watch = lambda _: None) -> Demo:
    """Make the nights of a demo in an empty lake, the last one on `last`, and the reports of that one.

    Raises SettingsError if a supplier is set, and InputError if the lake is not empty or `last` has not ended.
    """
    lake = Lake(settings.lake)
    refuse_demo(settings, lake, last)
    days = [last - timedelta(days=back) for back in reversed(range(nights))]
    world = World(settings.sandbox_seed, 0, days[0], settings.sandbox_properties)
    chosen = choose(world, tuple(MARKETS), last)
    ids = [property_id(settings.sandbox_seed, index) for index in chosen.indices]
    with (
        lake.writing("the demo"),
        process_beside() as publisher,
        behind(publisher),
        SandboxProcess(
            seed=settings.sandbox_seed,
            opened=days[0],
            today=days[0],
            properties=settings.sandbox_properties,
            story=nights,
        ) as sandbox,
        TemporaryDirectory() as folder,
        process_beside() as auditor,
    ):
        markup_pct = settings.what_if_markup_pct or float(MARKUP_PCT)
        settings = settings.model_copy(update={"what_if_markup_pct": markup_pct})
        spec = mark_as_demo(lake, demo_spec_text(ids, chosen.watched), nights, markup_pct)
        for kind, text in input_files(settings.sandbox_seed, settings.sandbox_properties, chosen.indices, days).items():
            _load(lake, kind, Path(folder), text, _instant(days[0]))
        following: list[Future[None]] = []
        due: deque[tuple[Future[None], Callable[[], Future[None]]]] = deque()
        for made, day in enumerate(days):
            night = _Night(_at(settings, spec, day), lake, sandbox, partial(_say, watch, made, nights, day))
            sweep_id = night.sweep()
            following.append(night.audit(auditor, sweep_id))
            if made % _PUBLISHED_EVERY == _PUBLISHED_EVERY - 1 or day == last:
                due.append((following[-1], partial(night.publish, publisher, sweep_id, Path(folder))))
            while due and due[0][0].done():
                following.append(due.popleft()[1]())
            await_steps(step for step in following if step.done())
        night.watch("publish")
        for audited, publish_it in due:
            await_steps([audited])
            following.append(publish_it())
        await_steps(following)
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

    def sweep(self) -> str:
        settings, lake = self.settings, self.lake
        self.watch("sweep")
        night = Night(settings, lake, night_sweep.start(settings, lake, settings.clock()), sandbox=self.sandbox)
        run_in_loop(lambda: night_sweep.collect(night))
        return night.sweep.sweep_id

    def audit(self, auditor: ProcessPoolExecutor, sweep_id: str) -> Future[None]:
        """Let another process audit the sweep; see `_audit`."""
        return begun(auditor, _audit, self.settings, self.lake, sweep_id, self.settings.clock())

    def publish(self, publisher: ProcessPoolExecutor, sweep_id: str, folder: Path) -> Future[None]:
        """Let another process publish the nights since the last time, up to this one; see `_publish`."""
        return begun(publisher, _publish, self.lake, sweep_id, self.settings.clock(), folder)

    def ask_quotes(self) -> None:
        """Request a few quotes for this night, the last one, and show them and the shop's prices."""
        self.watch("quotes")
        sample = Sample(_QUOTES)
        run_in_loop(lambda: quote(self.settings, self.lake, sample, is_confirmed=True, sandbox=self.sandbox))
        refresh(self.lake)


def _audit(settings: Settings, lake: Lake, sweep_id: str, now: datetime) -> None:
    """Audit a sweep, and enter it in the ledger of what is published.

    Later nights may be swept meanwhile, and earlier ones published: these steps read nothing that an audit writes but
    the ledger.
    """
    audit_at(settings, lake, sweep_id, now)
    # With few properties, prices hardly move on some nights, and a demo shows all of its nights. The reason is
    # recorded, and the quality page shows what failed.
    accept(lake, sweep_id, now, _WHY_PUBLISHED, settings.analysis)


def _publish(lake: Lake, sweep_id: str, now: datetime, folder: Path) -> None:
    """Publish the nights up to a sweep, and load a shop's prices of that time: the next publication shows them.

    Nights that were audited meanwhile have to wait: what they are compared with is loaded after this publication.
    """
    publish(lake, sweep_id, now, with_later=False)
    # Later than the publication, so that replaying the night leaves them out.
    _load(lake, "prices", folder, shop_prices(lake, now), now + _PRICES_AFTER)


def _say(watch: Watch, made: int, nights: int, day: date, step: str) -> None:
    watch(DemoProgress(made, nights, day, step))


def refuse_demo(settings: Settings, lake: Lake, last: date) -> None:
    """Raise SettingsError or InputError if no demo can be made; see `make_demo`."""
    if not settings.is_simulated:
        raise SettingsError(
            "The demo needs the bundled sandbox, but NIGHTAUDIT_BASE_URL names a supplier.",
            hint="Unset it, or run a night with that supplier: nightaudit nightly",
        )
    if lake.root.exists() and not _OF_ANY_LAKE.issuperset(place.name for place in lake.root.iterdir()):
        is_left_over = demo_spec(settings) is not None and not reports_page(lake).exists()
        holds = "holds a demo that was stopped before its end" if is_left_over else "is not empty"
        start_again = "Remove that folder, then: nightaudit demo\n" if is_left_over else ""
        raise InputError(
            f"The demo needs an empty lake, and {lake.root} {holds}.",
            kept="The lake is unchanged.",
            hint=f"{start_again}Name another one: NIGHTAUDIT_LAKE=demo-lake nightaudit demo",
        )
    if last >= settings.clock().date():
        raise InputError(
            f"The demo's nights are in the past, but {last} has not ended yet.",
            kept="Nothing was started.",
            hint="Omit --until to end with yesterday; nightaudit nightly then adds tonight.",
        )


def _at(settings: Settings, spec: Path, day: date) -> Settings:
    return settings.model_copy(
        update={
            "sandbox_clock": _instant(day),
            "spec": spec,
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
