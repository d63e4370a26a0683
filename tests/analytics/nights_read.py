"""Nights of a sandbox whose answers are changed on their way, published and read one by one as a manager reads them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from planted_world import OPENED, rows
from sandbox_settings import settings_asking
from spoiler import Spoiler

from pipeline.inputs.load import load
from pipeline.lake import Lake
from pipeline.night import night_sweep
from pipeline.night.night import Night
from pipeline.publish import publish
from pipeline.report.write import write_reports
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.settings import Settings
from pipeline.sweep import normalisers

WAITING = """
    SELECT rule, scope, market, property_id FROM report.finding_case WHERE status IN ('new', 'open')
"""


class Read(NamedTuple):
    """A night after its publication: the cases that need a decision, and the digest."""

    number: int
    waiting: set[tuple[Any, ...]]
    digest: dict[str, Any]


class Supplied(NamedTuple):
    """A sandbox, what changes its answers, and a lake on it."""

    sandbox: SandboxProcess
    between: Spoiler
    settings: Settings
    lake: Lake


@contextmanager
def supplied(home: Path, seed: int, **given: Any) -> Iterator[Supplied]:
    """Start a sandbox without plants, with a place between it and the lake where answers are changed."""
    with (
        SandboxProcess(seed=seed, properties=400, plant_share=0.0, missing_share=0.0) as sandbox,
        Spoiler(sandbox.base_url) as between,
        mock.patch.object(normalisers, "ProcessPoolExecutor", lambda workers, *_, **__: ThreadPoolExecutor(workers)),
    ):
        settings = settings_asking(
            sandbox,
            base_url=between.base_url,
            requests_per_second=5000,
            workers=1,
            lake=str(home / "lake"),
            spec=home / "spec.toml",
            **given,
        )
        yield Supplied(sandbox, between, settings, Lake(settings.lake))


def read_nights(made: Supplied, numbers: Iterable[int], spec_of: Callable[[int], str]) -> Iterator[Read]:
    """Sweep, publish and read nights; `spec_of` gives the spec of each, and may change what the supplier does."""
    for number in numbers:
        at = datetime.combine(OPENED, datetime.min.time(), UTC) + timedelta(days=number, hours=2)
        made.sandbox.control("night", {"night": number, "today": at.date().isoformat()})
        (Path(made.settings.lake).parent / "spec.toml").write_text(spec_of(number))
        manifest = night_sweep.start(made.settings, made.lake, at)
        asyncio.run(night_sweep.collect(Night(made.settings, made.lake, manifest, clock=lambda at=at: at)))
        publish(made.lake, manifest.sweep_id, at, analysis=made.settings.analysis)
        (page,) = write_reports(made.lake, ["digest"])
        yield Read(number, set(rows(made.lake, WAITING)), json.loads(page.file.with_name("digest.json").read_text()))


def load_course(made: Supplied, home: Path, course: Mapping[str, Mapping[int, float]], numbers: Iterable[int]) -> None:
    """Load the reference rates of the working days among these: shares of the sandbox's own."""
    own = made.sandbox.control("rates")["rates"]
    days = [number for number in numbers if (OPENED + timedelta(days=number)).weekday() < 5]
    lines = [
        f"{OPENED + timedelta(days=number)},{','.join(f'{own[name] * course[name][number]:.8f}' for name in course)}"
        for number in days
    ]
    if lines:
        file = home / "rates.csv"
        file.write_text("\n".join([f"Date,{','.join(course)}", *lines]) + "\n")
        load(made.lake, "rates", file, datetime.combine(OPENED, datetime.min.time(), UTC) + timedelta(days=days[-1]))
