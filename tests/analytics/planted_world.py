"""A sandbox world with planted anomalies, swept over some nights and published: what detectors are measured on."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import duckdb

from pipeline import night
from pipeline.inputs.loading import load
from pipeline.lake import Lake
from pipeline.publish import publish
from pipeline.sandbox import planted
from pipeline.sandbox.process import SandboxProcess
from pipeline.settings import Settings
from pipeline.sweep import normalisers

OPENED = date(2030, 4, 1)
CHECK_IN = date(2030, 6, 10)
REFERENCE = "GB"
# Above it lie the floors that are planted, and no others.
MARKUP_PCT = 20
SPEC = """
[properties]
ids = {ids}
[stays]
nights = [3]
check_in = ["{check_in}"]
[ask]
markets = {markets}
parties = ["2"]
currencies = ["EUR"]
product_types = ["Hotel"]
operations = ["multi", "single"]
"""


class PlantedWorld(NamedTuple):
    """A published lake, and what was planted in it: kind and size by property, market and product type."""

    lake: Lake
    settings: Settings
    planted: list[dict[str, Any]]
    markets: list[str]


def chosen(
    anomalies: Sequence[dict[str, Any]], ids: Sequence[int], of_a_kind: int, plain: int
) -> tuple[list[int], list[str]]:
    """Some properties of every kind that the stay meets, as many plain ones, and the markets that show them all."""
    by_kind = defaultdict(list)
    for entry in anomalies:
        if CHECK_IN.month in entry["check_in_months"]:
            # The reference market is a kind of its own: that it stands apart, all others must tell.
            by_kind[entry["kind"], entry["market"] == REFERENCE].append(entry)
    # Its fees would be seen in each of the others.
    by_kind.pop((planted.MARKET_FEES, True), None)
    taken = [entry for entries in by_kind.values() for entry in entries[:of_a_kind]]
    markets = sorted({entry["market"] for entry in taken if entry["market"]} | {REFERENCE})
    known = {entry["property_id"] for entry in anomalies}
    honest = [each for each in ids if each not in known][:plain]
    return sorted({entry["property_id"] for entry in taken} | set(honest)), markets


def made(
    home: Path,
    sandbox: SandboxProcess,
    nights: Sequence[int],
    *,
    of_a_kind: int = 4,
    plain: int = 20,
    **given: Any,
) -> PlantedWorld:
    """Sweep and publish the given nights of the sandbox; `given` are settings."""
    anomalies = sandbox.control("planted")["anomalies"]
    ids, markets = chosen(anomalies, sandbox.control("properties")["property_ids"], of_a_kind, plain)
    spec = home / "spec.toml"
    quoted = "[" + ", ".join(f'"{market}"' for market in markets) + "]"
    spec.write_text(SPEC.format(ids=ids, check_in=CHECK_IN, markets=quoted))
    settings = Settings(
        _env_file=None,
        base_url=sandbox.base_url,
        client_id=sandbox.client_id,
        client_secret=sandbox.client_secret,
        requests_per_second=5000,
        concurrency=8,
        workers=1,
        lake=str(home / "lake"),
        spec=spec,
        reference_market=REFERENCE,
        what_if_markup_pct=MARKUP_PCT,
        **given,
    )
    lake = Lake(settings.lake)
    # A process of its own for each sweep takes longer than all that it does here.
    with mock.patch.object(normalisers, "ProcessPoolExecutor", lambda workers, *_, **__: ThreadPoolExecutor(workers)):
        for number in nights:
            at = datetime.combine(OPENED, datetime.min.time(), UTC) + timedelta(days=number, hours=2)
            sandbox.control("night", {"night": number, "today": at.date().isoformat()})
            manifest = night.start(settings, lake, at)
            asyncio.run(night.collect(settings, lake, manifest, now=lambda at=at: at))
            publish(lake, manifest.sweep_id, at + timedelta(hours=1), analysis=settings.analysis)
            if number == nights[-2]:
                seen_at = at + timedelta(days=nights[-1] - number)
                load_prices(lake, home / "prices.csv", seen_at, loaded_at=at + timedelta(hours=2))
    return PlantedWorld(lake, settings, anomalies, markets)


def load_prices(lake: Lake, file: Path, observed_at: datetime, *, loaded_at: datetime) -> None:
    """Load the prices that a seller asks who adds the mark-up to what each offer costs without promotion."""
    cell = "property_id, market, product_type, check_in, nights, party, currency, room_id, board_id, policy_key"
    price = f"round(max(coalesce(pre_promo_total, total)) * {1 + MARKUP_PCT / 100}, 2)"
    query = (
        f"SELECT {cell}, {price} AS price, '{observed_at.isoformat()}' AS observed_at "  # noqa: S608 - our own names
        "FROM mart.offer_latest WHERE source = 'multi' AND currency IS NOT NULL AND total IS NOT NULL GROUP BY ALL"
    )
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH '{lake.published_file}' AS held (READ_ONLY)")
        session.execute("USE held")
        session.execute(f"COPY ({query}) TO '{file}'")
    load(lake, "prices", file, loaded_at)
