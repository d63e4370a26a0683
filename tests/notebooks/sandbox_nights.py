"""Two nights of the bundled sandbox, always the same: what the notebooks open, and what the guide shows."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1] / "analytics"))

from planted_world import MARKUP_PCT, REFERENCE, chosen, load_prices
from sandbox_settings import settings_asking

from pipeline.lake import Lake
from pipeline.night import night_sweep
from pipeline.night.gate import audit_sweep
from pipeline.night.night import Night
from pipeline.night.quotes import quote
from pipeline.publish import publish
from pipeline.publish.refresh import refresh
from pipeline.quote.sample import Sample
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.settings import Settings
from pipeline.supplier.client import SupplierClient
from pipeline.sweep import normalisers

OPENED = date(2030, 4, 1)
# The nearer stay is close enough to sell out; the other one lies in the month that anomalies are planted for.
CHECK_INS = ["2030-04-05", "2030-06-10"]
SPEC = """
[properties]
ids = {ids}
[stays]
nights = [3]
check_in = {check_ins}
[ask]
markets = {markets}
parties = ["2"]
currencies = ["EUR"]
product_types = ["Hotel"]
operations = ["multi", "single"]
"""


class Nights(NamedTuple):
    """The lake as it was after the first night, and as it is after the second; what made them; what was planted."""

    first: Lake
    both: Lake
    settings: Settings


def swept(home: Path) -> Nights:
    """Sweep and publish two nights with a few properties of each planted kind; the second is audited, and quoted."""
    with SandboxProcess(seed=1, properties=400, plant_share=0.5, missing_share=0) as process:
        return _swept(home, process)


def _swept(home: Path, process: SandboxProcess) -> Nights:
    planted = process.control("planted")["anomalies"]
    ids, markets = chosen(planted, process.control("properties")["property_ids"], of_a_kind=1, plain=3)
    spec = home / "spec.toml"
    spec.write_text(SPEC.format(ids=ids, check_ins=_quoted(CHECK_INS), markets=_quoted(markets)))
    settings = settings_asking(
        process,
        requests_per_second=5000,
        concurrency=8,
        scopes="read_rooms write_rooms",
        quote_cap=6,
        workers=1,
        lake=str(home / "both"),
        spec=spec,
        reference_market=REFERENCE,
        what_if_markup_pct=MARKUP_PCT,
    )
    # Two nights are history enough for what is shown of promotions.
    analysis = dataclasses.replace(settings.analysis, reference_days=1)
    lake, first = Lake(settings.lake), Lake(str(home / "first"))
    # A process of its own for each sweep takes longer than all that it does here.
    with mock.patch.object(normalisers, "ProcessPoolExecutor", lambda workers, *_, **__: ThreadPoolExecutor(workers)):
        for number in (0, 1):
            at = datetime.combine(OPENED, datetime.min.time(), UTC) + timedelta(days=number, hours=2)
            process.control("night", {"night": number, "today": at.date().isoformat()})
            manifest = night_sweep.start(settings, lake, at)
            with _clock(at):
                asyncio.run(night_sweep.collect(Night(settings, lake, manifest, clock=lambda at=at: at)))
            if number == 1:
                assert audit_sweep(settings, lake, manifest.sweep_id, at + timedelta(hours=1)).is_passed
            publish(
                lake,
                manifest.sweep_id,
                at + timedelta(hours=1),
                audit="passed" if number == 1 else "none",
                analysis=analysis,
            )
            if number == 0:
                shutil.copytree(lake.root, first.root)
                refresh(first)
                load_prices(lake, home / "prices.csv", at + timedelta(days=1), loaded_at=at + timedelta(hours=2))
    with _clock(at + timedelta(hours=2)):
        asyncio.run(quote(settings, lake, Sample(6), is_confirmed=True, now=lambda: at + timedelta(hours=2)))
    return Nights(first, lake, settings)


def _clock(at: datetime):
    """Searches are written down with the clock of the client."""
    return mock.patch.dict(SupplierClient.__init__.__kwdefaults__, wall_clock=lambda: at)


def _quoted(words: list[str]) -> str:
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"
