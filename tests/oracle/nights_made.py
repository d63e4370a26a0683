"""The lake that the oracle recomputes: some nights of a sandbox that fails, in markets with their own currencies.

A market is dearer as a whole until it is not, and changes its currency; one sells nothing for a night; one says all
twice; all prices rise, and so do the reference rates.

What makes it is the pipeline itself, from the first request to the published file. Nothing here computes what is
expected of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.csv
from market_events import NO_OFFER, dearer, market_events, repeated
from sandbox_settings import settings_asking

from pipeline.inputs.load import load
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.night import night_sweep
from pipeline.night.night import Night
from pipeline.publish import publish
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.sandbox.world import planted
from pipeline.sandbox.world.omissions import chosen_paths
from pipeline.sweep import normalisers

OPENED = date(2030, 4, 1)
REFERENCE_MARKET = "DE"
MARKETS = ("DE", "FR", "GB", "SE")
MISSING_SHARE = 0.25
PLANTED = {
    planted.FLOOR_BREACH,
    planted.PHANTOM_PROMOTION,
    planted.UNNAMED_PROMOTION,
    planted.WRONG_DISCOUNT,
    planted.TOTAL_ABOVE_REFERENCE,
    planted.MARKET_DISPARITY,
    planted.PACKAGE_LEAK,
    planted.GONE_QUIET,
}
# By night: what goes wrong in it, drawn by the content of each request. The second check-in passes with night 3.
UNREADABLE = ["html_200", "cut_json", "empty_200", "empty_object", "null_envelope"]
SPOILED = ["wrong_types", "number_as_string", "extra_fields", "both_keys", "bare_errors", "other_error_shape"]
FAULTS: Mapping[int, Mapping[str, Any]] = {
    0: {},
    1: {"status_500_rate": 0.1, "garbage_rate": 0.15, "garbage_kinds": UNREADABLE, "by": "content"},
    3: {"status_503_rate": 0.05, "retry_after_s": 0, "garbage_rate": 0.3, "garbage_kinds": SPOILED, "by": "content"},
    4: {"garbage_rate": 0.1, "garbage_kinds": SPOILED, "by": "content"},
}
# What befalls whole nights: a market that is dearer until a night, and asked in another currency on the first; one that
# sells nothing; one that repeats itself, once for more; all prices rise; and so do the reference rates.
DEAR, DEAR_UNTIL = "FR", 3
SILENT, SILENT_ON = "SE", 3
REPEATING, REPEATED_FOR = "GB", {1: 1.0, 4: 1.01}
RISEN_FROM, RATES_RISEN_FROM = 4, 4
_SPEC = """
[properties]
ids = {ids}
[stays]
nights = [1, 2]
check_in = ["2030-04-04", "2030-04-20", "2030-04-21"]
[ask]
markets = {markets}
currencies = ["EUR"]
currency_by_market = {{ FR = "{of_dear}", GB = ["GBP", "EUR"], SE = "SEK" }}
parties = ["1", "2", "2+1"]
product_types = ["Hotel", "Package"]
operations = ["multi", "single"]
single_properties = 2
batch = 10
"""


def made(home: Path) -> str:
    """Make the lake and return its folder."""
    with SandboxProcess(seed=5, properties=2000, plant_share=0.6, missing_share=MISSING_SHARE) as sandbox:
        spec = home / "spec.toml"
        ids = chosen(sandbox)
        settings = settings_asking(
            sandbox,
            requests_per_second=5000,
            concurrency=8,
            workers=1,
            attempts=1,
            lake=str(home / "lake"),
            spec=spec,
            reference_market=REFERENCE_MARKET,
        )
        lake = Lake(settings.lake)
        load(lake, "rates", rates_file(home, sandbox.control("rates")["rates"]), _at(0))
        # A process of its own for each sweep takes longer than all that it does here.
        threads = mock.patch.object(
            normalisers, "ProcessPoolExecutor", lambda workers, *_, **__: ThreadPoolExecutor(workers)
        )
        with threads:
            for number, faults in FAULTS.items():
                sandbox.control("night", {"night": number, "today": _at(number).date().isoformat()})
                sandbox.control("faults", dict(faults))
                spec.write_text(_SPEC.format(ids=ids, markets=list(MARKETS), of_dear="EUR" if number else "USD"))
                manifest = night_sweep.start(settings, lake, _at(number))
                with market_events(partial(_befallen, number)):
                    asyncio.run(night_sweep.collect(Night(settings, lake, manifest, clock=partial(_at, number))))
                publish(lake, manifest.sweep_id, _at(number) + timedelta(hours=1), analysis=settings.analysis)
                if number == max(FAULTS) - 1:
                    prices_of(lake, home / "prices.csv", _at(number) + timedelta(hours=5))
                    load(lake, "prices", home / "prices.csv", _at(number) + timedelta(hours=6))
    return settings.lake


def _befallen(number: int, market: str, said: Any) -> Any:
    if market == SILENT and number == SILENT_ON:
        return NO_OFFER
    if number >= RISEN_FROM:
        said = dearer(said, 1.08)
    if market == DEAR and number <= DEAR_UNTIL:
        said = dearer(said, 1.07)
    if market == REPEATING and number in REPEATED_FOR:
        said = repeated(said, REPEATED_FOR[number])
    return said


def chosen(sandbox: SandboxProcess) -> list[int]:
    """Return a property of each planted kind and market, one without an id in lists, and some lacking other fields."""
    seed, ids = sandbox.control("health")["seed"], sandbox.control("properties")["property_ids"]
    lacking = {
        identifier: {path for path, _ in chosen_paths(seed, index, MISSING_SHARE, "multi")}
        for index, identifier in enumerate(ids)
    }
    nameless = [identifier for identifier, paths in lacking.items() if "propertyId" in paths][:1]
    by_kind = {
        (each["kind"], each["market"]): each["property_id"]
        for each in sandbox.control("planted")["anomalies"]
        if each["kind"] in PLANTED
        and each["market"] in {None, *MARKETS}
        and 4 in each["check_in_months"]
        and "propertyId" not in lacking[each["property_id"]]
    }
    return sorted({*nameless, *by_kind.values(), *[identifier for identifier, paths in lacking.items() if paths][:4]})


def rates_file(home: Path, rates: Mapping[str, float]) -> Path:
    """Write reference rates for a working day before each night, which move a little each day and once by much."""
    names = sorted(name for name in rates if name != "EUR")
    factors = {number: (1 + number / 1000) * (1.04 if number >= RATES_RISEN_FROM else 1) for number in FAULTS}
    days = [
        f"{OPENED + timedelta(days=number - 1)}," + ",".join(f"{rates[name] * factor:.6f}" for name in names)
        for number, factor in factors.items()
    ]
    file = home / "rates.csv"
    file.write_text("\n".join([f"Date,{','.join(names)}", *days]) + "\n")
    return file


def prices_of(lake: Lake, file: Path, observed_at: datetime) -> None:
    """Write prices around the floors on sale: of an offer, of a board, of a stay, and some in another currency."""
    cell = "property_id, market, product_type, check_in, nights, party"
    query = f"""
        WITH floor AS (
            SELECT {cell}, currency, room_id, board_id, policy_key, min(floor) AS floor,
                row_number() OVER (ORDER BY min(offer_key)) AS no
            FROM mart.offer_latest
            WHERE source = 'multi' AND currency IS NOT NULL AND floor > 0
            GROUP BY ALL
        )
        SELECT {cell}, CASE WHEN no % 7 = 0 THEN 'USD' ELSE currency END AS currency,
            CASE WHEN no % 3 = 0 THEN room_id END AS room_id,
            CASE WHEN no % 3 < 2 THEN board_id END AS board_id,
            CASE WHEN no % 3 = 0 THEN policy_key END AS policy_key,
            min(round(floor * len(string_split(party, '+')) * (96 + no % 8) / 100, 2)) AS price,
            '{observed_at.isoformat()}' AS observed_at
        FROM floor WHERE no % 2 = 0 GROUP BY ALL ORDER BY ALL
    """
    pyarrow.csv.write_csv(query_published(lake.published_file, query).to_arrow_table(), file)


def _at(number: int) -> datetime:
    return datetime.combine(OPENED, time(2), UTC) + timedelta(days=number)
