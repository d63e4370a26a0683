"""A sandbox world with planted anomalies, swept over some nights and published: what detectors are measured on."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import duckdb
from sandbox_settings import settings_asking

from pipeline.inputs.load import load
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.night import night_sweep
from pipeline.night.night import Night
from pipeline.publish import publish
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.sandbox.world import planted
from pipeline.sandbox.world.profiles import Profile
from pipeline.sandbox.world.world import World
from pipeline.settings import Settings
from pipeline.sweep import normalisers

OPENED = date(2030, 4, 1)
CHECK_IN = date(2030, 6, 10)
REFERENCE = "GB"
OTHER = "DE"
# Above it lie the floors that are planted, and no others.
MARKUP_PCT = 20
SPEC = """
[properties]
ids = {ids}
[stays]
nights = [{nights}]
check_in = {check_ins}
[ask]
markets = {markets}
parties = ["{party}"]
currencies = {currencies}
currency_by_market = {{ {by_market} }}
product_types = {product_types}
operations = {operations}
"""


class Questions(NamedTuple):
    """The stays that are requested from a world."""

    check_ins: tuple[date, ...]
    currencies: tuple[str, ...]
    product_types: tuple[str, ...]
    operations: tuple[str, ...]
    kinds: frozenset[str]
    """Kinds of planted anomalies that some of its properties carry."""
    nights: int = 3
    party: str = "2"


_ROUND_THE_YEAR = frozenset({planted.PACKAGE_LEAK, planted.GONE_QUIET, planted.ROOM_LADDER})
# One stay over weeks, in lists and details of all markets concerned: what prices, fees and promotions are measured on.
ONE_STAY = Questions(
    (CHECK_IN,), ("EUR",), ("Hotel",), ("multi", "single"), frozenset(planted.MEANING) - _ROUND_THE_YEAR
)
# Stays of every month, in lists, two currencies and packages: what needs several stays, or both of something.
MANY_STAYS = Questions(
    tuple(date(2030 + month // 12, month % 12 + 1, 10) for month in range(4, 16)),
    ("EUR", "GBP"),
    ("Hotel", "Package"),
    ("multi",),
    _ROUND_THE_YEAR,
)
# One night for one guest, round the year: where a total in whole units of money is off by percents of it.
CHEAP_STAYS = Questions(MANY_STAYS.check_ins, ("EUR", "GBP"), ("Hotel", "Package"), ("multi",), frozenset(), 1, "1")
# Plain properties with cheap stays: enough that some of either kind of home currency round to whole units.
CHEAP_PROPERTIES = 40


class Course(NamedTuple):
    """What happens to the nights of a world besides what is planted in it."""

    supplier: str | None = None
    """Base address of what stands between the pipeline and the sandbox; None: nothing does."""
    before: Callable[[int], None] = lambda _number: None
    """Called with the number of each night before it."""
    currencies: Callable[[str, int], tuple[str, ...]] = lambda _market, _number: ()
    """Currencies that a market is asked in on a night, where they are not those of the questions."""
    rate: Callable[[int], float] = lambda _number: 1.0
    """What the reference rates of a night are multiplied by; the supplier keeps its own."""
    besides: tuple[str, ...] = ()
    """Markets that are asked beside those that what is planted is seen in."""


class PlantedWorld(NamedTuple):
    """A published lake, its requested stays, and what was planted in it: kind and size by the cells they are in."""

    lake: Lake
    settings: Settings
    planted: list[dict[str, Any]]
    markets: list[str]
    hotels: dict[int, Profile]
    """What is fixed about the properties, by id."""
    questions: Questions


def chosen(
    anomalies: Sequence[dict[str, Any]],
    ids: Sequence[int],
    of_a_kind: int,
    plain: int,
    questions: Questions = ONE_STAY,
) -> tuple[list[int], list[str]]:
    """Some properties of every kind that the stays meet, as many plain ones, and the markets that show them all."""
    months = {check_in.month for check_in in questions.check_ins}
    by_kind = defaultdict(list)
    for entry in anomalies:
        if entry["kind"] in questions.kinds and months & set(entry["check_in_months"]):
            # The reference market is a special case: only all other markets together can show that it deviates.
            by_kind[entry["kind"], entry["market"] == REFERENCE].append(entry)
    taken = [entry for entries in by_kind.values() for entry in entries[:of_a_kind]]
    markets = sorted({entry["market"] for entry in taken if entry["market"]} | {REFERENCE, OTHER})
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
    questions: Questions = ONE_STAY,
    course: Course | None = None,
    **given: Any,
) -> PlantedWorld:
    """Sweep and publish the given nights of the sandbox; `given` are settings."""
    course = course or Course()
    anomalies = sandbox.control("planted")["anomalies"]
    ids, markets = chosen(anomalies, sandbox.control("properties")["property_ids"], of_a_kind, plain, questions)
    markets = sorted({*markets, *course.besides})
    spec = home / "spec.toml"
    settings = settings_asking(
        sandbox,
        base_url=course.supplier or sandbox.base_url,
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
    load_rates(lake, home / "rates.csv", sandbox.control("rates")["rates"], nights, course.rate)
    # A process of its own for each sweep takes longer than all that it does here.
    with mock.patch.object(normalisers, "ProcessPoolExecutor", lambda workers, *_, **__: ThreadPoolExecutor(workers)):
        for number in nights:
            at = datetime.combine(OPENED, datetime.min.time(), UTC) + timedelta(days=number, hours=2)
            sandbox.control("night", {"night": number, "today": at.date().isoformat()})
            course.before(number)
            others = {market: codes for market in markets if (codes := course.currencies(market, number))}
            spec.write_text(spec_text(ids, markets, questions, others))
            manifest = night_sweep.start(settings, lake, at)
            asyncio.run(night_sweep.collect(Night(settings, lake, manifest, clock=lambda at=at: at)))
            publish(lake, manifest.sweep_id, at + timedelta(hours=1), analysis=settings.analysis)
            if number == nights[-2]:
                seen_at = at + timedelta(days=nights[-1] - number)
                load_prices(lake, home / "prices.csv", seen_at, loaded_at=at + timedelta(hours=2))
    health = sandbox.control("health")
    world = World(health["seed"], 0, OPENED, health["properties"])
    hotels = {identifier: hotel for identifier in ids if (hotel := world.find(identifier))}
    return PlantedWorld(lake, settings, anomalies, markets, hotels, questions)


def spec_text(
    ids: Sequence[int], markets: Sequence[str], questions: Questions, others: Mapping[str, Sequence[str]]
) -> str:
    """Return the spec of a night; `others` are markets that are asked in currencies of their own."""
    return SPEC.format(
        ids=ids,
        nights=questions.nights,
        party=questions.party,
        check_ins=json.dumps([each.isoformat() for each in questions.check_ins]),
        markets=json.dumps(markets),
        currencies=json.dumps(questions.currencies),
        by_market=", ".join(f"{market} = {json.dumps(codes)}" for market, codes in others.items()),
        product_types=json.dumps(questions.product_types),
        operations=json.dumps(questions.operations),
    )


def load_rates(
    lake: Lake,
    file: Path,
    rates: Mapping[str, float],
    nights: Sequence[int],
    factor: Callable[[int], float] = lambda _number: 1.0,
) -> None:
    """Load the sandbox's own reference rates for the day of each night."""
    names = sorted(name for name in rates if name != "EUR")
    days = [
        f"{OPENED + timedelta(days=number)},{','.join(f'{rates[name] * factor(number):.8f}' for name in names)}"
        for number in nights
    ]
    file.write_text("\n".join([f"Date,{','.join(names)}", *days]) + "\n")
    load(lake, "rates", file, datetime.combine(OPENED, datetime.min.time(), UTC))


def load_prices(lake: Lake, file: Path, observed_at: datetime, *, loaded_at: datetime) -> None:
    """Load the prices of a seller who adds the mark-up to the cost of each offer without promotion."""
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


def rows(lake: Lake, query: str) -> list[tuple[Any, ...]]:
    """What a query over the published file gives."""
    return query_published(lake.published_file, query).fetchall()
