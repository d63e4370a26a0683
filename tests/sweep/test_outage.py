"""A market or a property that fails costs itself; what fails everywhere ends the sweep, after few requests."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from datetime import date

import pytest
from fake_supplier import SWEEP, answered, searches
from small_sweep import NOW, rows, small_spec, sweep_once
from spoiler import Spoiler

from pipeline.domain.errors import NothingUsable, SupplierDown
from pipeline.lake.raw import landed
from pipeline.plan import SweepPlan
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.sandbox.world.identifiers import property_ids
from pipeline.supplier.answer import Failure
from pipeline.sweep.outage import GIVE_UP_AFTER, samples_of

IDS = property_ids(3, 12)
REFUSED = [answered(401, failure=Failure.UNEXPECTED_STATUS), answered(403, failure=Failure.UNEXPECTED_STATUS)]
FAILED = [
    *REFUSED,
    answered(500, failure=Failure.SERVER_ERROR),
    answered(200, failure=Failure.NOT_JSON),
    answered(302, failure=Failure.REDIRECT),
    answered(404, failure=Failure.UNEXPECTED_STATUS),
    answered(None, failure=Failure.TIMEOUT),
]
BATCH = tuple(range(1, 101))


def samples(markets, count, ids=BATCH):
    """One search of each partition, as a sweep has several."""
    return [next(searches(number * count, number * count + 1, ids, market)) for number, market in enumerate(markets)]


def cells_of(collecting):
    """Of each market: how many of its cells were answered, and how many failed."""
    found = Counter()
    for record in collecting.records():
        if not record.is_split:
            asked = record.request.decode().partition('"market": ')[2][1:3], not record.failure
            found[asked] += record.request.count(b",") - 1
    return found


@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize("how", FAILED, ids=lambda how: f"{how.http_status}-{how.failure}")
def test_a_market_that_fails_from_the_first_search_on_costs_its_own_cells(collecting, supplier, how, in_flight):
    supplier, markets = supplier(how=how, markets={"AA"}), ["AA", "AB", "AC", "AD"]
    shards = collecting.partitions(4, 10, itertools.repeat(BATCH))
    tally = collecting.run(supplier, shards, in_flight=in_flight, samples=samples(markets, 10))
    assert cells_of(collecting) == {("AA", False): 1000} | {(market, True): 1000 for market in markets[1:]}
    assert tally.cells == 4000
    # Each of its searches alone, not in 199 parts.
    assert len(supplier.asked) < 40 + 100


@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_where_one_market_alone_answers_it_lands(collecting, supplier, in_flight, place):
    markets = ["AA", "AB", "AC", "AD"]
    supplier = supplier(how=REFUSED[1], markets=set(markets) - {markets[place]})
    shards = collecting.partitions(4, 10, itertools.repeat(BATCH))
    collecting.run(supplier, shards, in_flight=in_flight, samples=samples(markets, 10))
    assert cells_of(collecting) == {(market, market == markets[place]): 1000 for market in markets}


def test_markets_of_few_searches_that_fail_at_the_end_cost_themselves(collecting, supplier):
    markets = ["AA", "AB"]
    supplier = supplier(how=REFUSED[1], markets={"AB"})
    collecting.run(supplier, collecting.partitions(2, 4), samples=samples(markets, 4, (1,)))
    assert len(landed(collecting.lake, SWEEP)) == 2


def test_a_market_that_answers_again_is_asked_in_halves_again(collecting, supplier):
    supplier = supplier({7}, how=REFUSED[1], markets={"AA"})
    shards = collecting.partitions(1, 32, itertools.repeat(BATCH))

    async def until_it_is_back(_collector):
        while len(supplier.asked) < 50:  # noqa: ASYNC110 - the fake has no event to wait for
            await asyncio.sleep(0)
        supplier.markets.clear()

    other = next(searches(500, 501, (500,), "AB"))
    collecting.run(supplier, shards, in_flight=1, samples=[other], meanwhile=until_it_is_back)
    found = cells_of(collecting)
    assert found["AA", True] + found["AA", False] == 32 * 100
    # From then on the poisoned property alone: what fails more is of the time before.
    assert found["AA", True] > 15 * 99
    assert supplier.asked[-1] in {(7,), (8,)}


@pytest.mark.parametrize("how", FAILED, ids=lambda how: f"{how.http_status}-{how.failure}")
@pytest.mark.parametrize("in_flight", [1, 4, 64])
def test_what_fails_in_every_market_ends_after_a_bounded_number_of_requests(collecting, supplier, how, in_flight):
    markets = [f"{chr(ord('A') + number // 26)}{chr(ord('A') + number % 26)}" for number in range(36)]
    supplier = supplier(how=how, markets=markets)
    shards = collecting.partitions(36, 10, itertools.repeat(BATCH))
    with pytest.raises(NothingUsable if how in REFUSED else SupplierDown) as ended:
        collecting.run(supplier, shards, in_flight=in_flight, samples=samples(markets, 10))
    assert len(supplier.asked) < GIVE_UP_AFTER + 5 * in_flight + 2 * 36
    assert landed(collecting.lake, SWEEP) == set()
    if how in REFUSED:
        assert ended.value.exit_code == 4
        assert str(how.http_status) in ended.value.message
        assert "NIGHTAUDIT_SCOPES" in ended.value.hint


def test_a_supplier_that_asks_for_patience_everywhere_is_not_asked_in_every_market(collecting, supplier):
    markets = [f"A{chr(ord('A') + number)}" for number in range(26)]
    supplier = supplier(how=answered(429, failure=Failure.THROTTLED), markets=markets)
    with pytest.raises(SupplierDown):
        collecting.run(supplier, collecting.partitions(26, 10), in_flight=1, samples=samples(markets, 10, (1,)))
    assert len(supplier.asked) <= GIVE_UP_AFTER + 3


def spec_of_four_markets(folder):
    return small_spec(folder, days=10, markets=["SE", "GB", "DE", "FI"])


def sweep(lake, supplier, sandbox, folder):
    return sweep_once(lake, supplier.base_url, sandbox, spec_of_four_markets(folder), IDS)


def failed_by_market(lake, sweep_id):
    asked = rows(lake, "search", sweep_id)
    return {row["market"] for row in asked if row["outcome"] == "failed"}, len({row["market"] for row in asked})


@pytest.fixture
def between():
    with (
        SandboxProcess(seed=3, properties=12, today=date(2030, 1, 1)) as sandbox,
        Spoiler(sandbox.base_url) as supplier,
    ):
        yield sandbox, supplier


@pytest.mark.parametrize(("market", "status"), [("SE", 401), ("GB", 403), ("FI", 401)])
def test_a_sweep_of_which_one_market_is_refused_lands_all_others(lake, between, tmp_path, market, status):
    sandbox, supplier = between
    supplier.refuse = lambda asked, _request: status if asked == market else None
    assert failed_by_market(lake, sweep(lake, supplier, sandbox, tmp_path)) == ({market}, 4)


@pytest.mark.parametrize("status", [401, 403])
def test_a_sweep_that_is_refused_everywhere_ends_soon_and_resume_continues_where_it_is_allowed(
    lake, between, tmp_path, status
):
    sandbox, supplier = between
    supplier.refuse = lambda _market, _request: status
    for _ in range(2):
        supplier.asked = 0
        with pytest.raises(NothingUsable) as ended:
            sweep(lake, supplier, sandbox, tmp_path)
        assert supplier.asked < 100
        assert "0 of 40 searches have landed" in ended.value.kept
        assert "nightaudit resume" in ended.value.hint
    supplier.refuse = lambda asked, _request: status if asked == "SE" else None
    assert failed_by_market(lake, sweep(lake, supplier, sandbox, tmp_path)) == ({"SE"}, 4)


def test_a_property_that_is_refused_in_every_market_costs_itself_alone(lake, between, tmp_path):
    sandbox, supplier = between
    supplier.refuse = lambda _market, request: 403 if str(IDS[0]).encode() in request else None
    sweep_id = sweep(lake, supplier, sandbox, tmp_path)
    cells = rows(lake, "cell", sweep_id)
    assert {cell["property_id"] for cell in cells if cell["status"] == "failed"} == {IDS[0]}
    assert len(cells) == 40 * len(IDS)


def test_samples_are_of_every_market_and_of_several_properties(tmp_path):
    spec = spec_of_four_markets(tmp_path)
    chosen = samples_of(SweepPlan.of(spec, IDS, NOW.date()))
    for market in spec.ask.markets:
        asked = [search for search in chosen if search.market == market]
        assert all(len(search.property_ids) == 1 for search in asked)
        assert len({search.property_ids for search in asked}) == 4
        assert len({search.stay for search in asked}) == 4
