import hashlib
import tracemalloc
from datetime import date, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.domain.errors import SpecError
from pipeline.domain.search import Operation, Search
from pipeline.domain.stay import Stay
from pipeline.plan import PLAN_VERSION, SweepPlan
from pipeline.plan.plan import check_ins, passed_check_ins
from pipeline.spec.model import Stays, SweepSpec

SNAPSHOT = date(2027, 1, 4)


def spec_of(ask=None, **stays) -> SweepSpec:
    return SweepSpec.model_validate(
        {
            "properties": {"ids": [1]},
            "stays": {"nights": [1], **(stays or {"horizon": [{"to_days": 3}]})},
            "ask": {"markets": ["GB"], "parties": ["2"], **(ask or {})},
        }
    )


def plan(spec, property_ids, day=SNAPSHOT, start=0, stop=None):
    return SweepPlan.of(spec, property_ids, day).searches(start, stop)


def some_of(*values):
    return st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True)


@st.composite
def horizons(draw):
    reached, found = 0, []
    for _ in range(draw(st.integers(1, 3))):
        span = draw(st.integers(1, 20))
        found.append({"to_days": reached + span, "every_days": draw(st.integers(1, span))})
        reached += span
    return found


@st.composite
def specs(draw):
    ask = {
        "markets": draw(some_of("GB", "SE", "US", "NO")),
        "parties": draw(some_of("2", "1", "2c5-9", "2+1")),
        "product_types": draw(some_of("Hotel", "Package")),
        "currencies": draw(st.none() | some_of("EUR", "USD")),
        "operations": draw(some_of("multi", "single")),
        "batch": draw(st.integers(1, 5)),
    }
    if "single" in ask["operations"]:
        ask["single_properties"] = draw(st.none() | st.integers(1, 10))
    ask["currency_by_market"] = draw(st.sampled_from([{}, {ask["markets"][0]: ["SEK", "NOK"]}]))
    return spec_of(
        ask,
        nights=draw(some_of(1, 2, 7)),
        horizon=draw(horizons()),
        anchor=draw(st.sampled_from(["lead_days", "calendar"])),
        check_in=draw(st.sampled_from([None, ["2027-02-28", "2027-12-31"]])),
    )


ids = st.lists(st.integers(1, 2**63 - 1), max_size=13)


def nested_loops(spec, property_ids):
    """The order of the plan, written down as plainly as can be."""
    found = []
    everybody = sorted(set(property_ids))
    for operation in spec.ask.operations:
        size = spec.ask.batch if operation is Operation.MULTI else 1
        asked = everybody if operation is Operation.MULTI else everybody[: spec.ask.single_properties]
        for market in spec.ask.markets:
            for first in range(0, len(asked), size):
                batch = tuple(asked[first : first + size])
                for product_type in spec.ask.product_types:
                    for party in spec.ask.parties:
                        for currency in spec.ask.currency_by_market.get(market) or spec.ask.currencies or [None]:
                            for nights in sorted(spec.stays.nights):
                                for day in check_ins(spec.stays, SNAPSHOT):
                                    stay = Stay(day, day + timedelta(days=nights))
                                    number = len(found)
                                    found.append(
                                        Search(number, operation, market, product_type, stay, party, currency, batch)
                                    )
    return found


@settings(max_examples=60)
@given(specs(), ids)
def test_a_plan_is_the_nested_loops_over_its_axes(spec, property_ids):
    assert list(plan(spec, property_ids, SNAPSHOT)) == nested_loops(spec, property_ids)


@settings(max_examples=60)
@given(specs(), ids)
def test_counting_by_arithmetic_is_counting_by_walking(spec, property_ids):
    counts = SweepPlan.of(spec, property_ids, SNAPSHOT).counts()
    walked = list(plan(spec, property_ids, SNAPSHOT))
    assert counts.searches == len(walked)
    assert counts.cells == sum(len(search.property_ids) for search in walked)
    for operation in spec.ask.operations:
        mine = [search for search in walked if search.operation is operation]
        assert counts.searches_by_operation[operation] == len(mine)
        assert counts.cells_by_operation[operation] == sum(len(search.property_ids) for search in mine)


@settings(max_examples=60)
@given(specs(), ids)
def test_partitions_follow_each_other_and_hold_one_operation_and_market_each(spec, property_ids):
    found = SweepPlan.of(spec, property_ids, SNAPSHOT).partitions
    assert [(each.operation, each.market) for each in found] == [
        (operation, market) for operation in spec.ask.operations for market in spec.ask.markets
    ]
    assert [each.start for each in found] == [0, *(each.stop for each in found[:-1])]
    for each in found:
        held = list(plan(spec, property_ids, SNAPSHOT, each.start, each.stop))
        assert {(search.operation, search.market) for search in held} <= {(each.operation, each.market)}
        assert (len(held), sum(len(search.property_ids) for search in held)) == (
            each.searches,
            SweepPlan.of(spec, property_ids, SNAPSHOT).cells_of(each),
        )


@settings(max_examples=60)
@given(specs(), ids, st.data())
def test_any_stretch_is_that_slice_of_the_plan(spec, property_ids, data):
    sweep = SweepPlan.of(spec, property_ids, SNAPSHOT)
    every = list(sweep.searches())
    start = data.draw(st.integers(0, len(every) + 2))
    stop = data.draw(st.integers(0, len(every) + 2) | st.none())
    assert list(sweep.searches(start, stop)) == every[start:stop]
    if start < len(every):
        assert sweep.search_at(start) == every[start]
    else:
        with pytest.raises(IndexError, match=str(start)):
            sweep.search_at(start)


@settings(max_examples=60)
@given(specs(), ids)
def test_no_cell_is_requested_twice_by_one_operation(spec, property_ids):
    cells = [
        (s.operation, s.market, s.product_type, s.stay, s.party, s.currency, each)
        for s in plan(spec, property_ids, SNAPSHOT)
        for each in s.property_ids
    ]
    assert len(cells) == len(set(cells))


@settings(max_examples=60)
@given(specs(), ids, st.randoms())
def test_the_order_and_repetition_of_ids_do_not_matter(spec, property_ids, random):
    shuffled = property_ids * 2
    random.shuffle(shuffled)
    assert list(plan(spec, shuffled, SNAPSHOT)) == list(plan(spec, property_ids, SNAPSHOT))


def test_the_order_of_this_version_has_not_changed():
    """Where this fails, searches have other numbers than before: raise PLAN_VERSION, then note the new digest."""
    spec = spec_of(
        {
            "markets": ["SE", "GB"],
            "parties": ["2", "2c9-5"],
            "product_types": ["Package", "Hotel"],
            "currencies": ["EUR", "USD"],
            "currency_by_market": {"GB": "GBP"},
            "operations": ["single", "multi"],
            "single_properties": 2,
            "batch": 3,
        },
        nights=[3, 1],
        horizon=[{"to_days": 4}, {"to_days": 20, "every_days": 7}],
    )
    digest = hashlib.sha256()
    for s in plan(spec, range(10, 0, -1), SNAPSHOT):
        stay = f"{s.stay.check_in}/{s.stay.check_out}"
        line = f"{s.id} {s.operation} {s.market} {s.product_type} {stay} {s.party} {s.currency} {s.property_ids}\n"
        digest.update(line.encode())
    assert (PLAN_VERSION, digest.hexdigest()[:16]) == (1, "f7726ac97f3ea9e8")


def test_the_last_of_many_millions_is_found_at_once():
    sweep = SweepPlan.of(spec_of({"markets": "all"}, horizon=[{"to_days": 365}]), range(1, 300_001), SNAPSHOT)
    assert sweep.counts().cells == 36 * 365 * 300_000
    last = sweep.search_at(sweep.counts().searches - 1)
    assert (last.market, last.property_ids[-1]) == ("GR", 300_000)
    assert last.stay.check_in == SNAPSHOT + timedelta(days=365)


def test_planning_ten_million_cells_takes_the_memory_of_planning_few():
    sweep = SweepPlan.of(spec_of(horizon=[{"to_days": 365}]), range(1, 30_001), SNAPSHOT)
    assert sweep.counts().cells > 10_000_000

    def peak(searches):
        tracemalloc.start()
        for _ in islice(sweep.searches(), searches):
            pass
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return held

    assert peak(None) < peak(1000) + 50_000


def test_searches_share_their_parties_stays_and_ids():
    first, second = islice(plan(spec_of({"markets": ["GB", "SE"]}), [1, 2], SNAPSHOT), 2)
    assert first.party is second.party
    assert first.property_ids is second.property_ids
    sweep = SweepPlan.of(spec_of({"markets": ["GB", "SE"]}), [1, 2], SNAPSHOT)
    assert sweep.search_at(0).stay is sweep.search_at(3).stay


def test_a_plan_without_properties_is_empty():
    assert list(plan(spec_of(), [], SNAPSHOT)) == []
    assert SweepPlan.of(spec_of(), [], SNAPSHOT).counts().cells == 0


def lead_days(snapshot=SNAPSHOT, **stays):
    return [(day - snapshot).days for day in check_ins(Stays.model_validate({"nights": [1], **stays}), snapshot)]


def test_each_horizon_begins_where_the_one_before_it_ends():
    horizon = [{"to_days": 30}, {"to_days": 90, "every_days": 3}, {"to_days": 365, "every_days": 7}]
    found = lead_days(horizon=horizon)
    assert found == [*range(1, 31), *range(33, 91, 3), *range(97, 366, 7)]


def test_a_horizon_of_one_stretch_may_be_thin():
    assert lead_days(horizon=[{"to_days": 30, "every_days": 7}]) == [7, 14, 21, 28]


def test_explicit_dates_join_the_horizon_and_are_asked_once():
    assert lead_days(horizon=[{"to_days": 2}], check_in=["2027-01-06", "2027-01-10"]) == [1, 2, 6]


@given(horizons(), st.integers(0, 400))
def test_days_of_the_calendar_stay_the_same_from_night_to_night(horizon, passed):
    stays = Stays.model_validate({"nights": [1], "horizon": horizon, "anchor": "calendar"})
    tonight = SNAPSHOT + timedelta(days=passed)
    before = 0
    for stretch in stays.horizon:
        nights = (check_ins(stays, tonight), check_ins(stays, tonight + timedelta(days=1)))
        within = [{day for day in days if before + 1 < (day - tonight).days <= stretch.to_days} for days in nights]
        assert within[0] == within[1]
        before = stretch.to_days


@given(horizons(), st.integers(0, 400), st.sampled_from(["lead_days", "calendar"]))
def test_every_stretch_has_a_day_every_night_and_no_gap_is_wider_than_its_density(horizon, passed, anchor):
    snapshot = SNAPSHOT + timedelta(days=passed)
    found = lead_days(snapshot, horizon=horizon, anchor=anchor)
    before = 0
    for stretch in horizon:
        inside = [before, *(lead for lead in found if before < lead <= stretch["to_days"])]
        assert len(inside) > 1
        assert all(later - earlier <= stretch["every_days"] for earlier, later in pairwise(inside))
        before = stretch["to_days"]


def test_check_ins_that_have_passed_are_dropped_and_refused_where_none_is_left():
    spec = spec_of(check_in=["2027-01-01", "2027-01-04", "2027-01-05"])
    assert {search.stay.check_in for search in plan(spec, [1], SNAPSHOT)} == {date(2027, 1, 5)}
    assert passed_check_ins(spec.stays, SNAPSHOT) == [date(2027, 1, 1), date(2027, 1, 4)]
    with pytest.raises(SpecError, match="has passed") as refused:
        plan(spec_of(check_in=["2027-01-01", "2027-01-04"]), [1], SNAPSHOT)
    assert "Nothing was started" in str(refused.value)
    with pytest.raises(SpecError, match="2031-01-01"):
        plan(spec_of(check_in=["2027-01-05", "2031-01-01"]), [1], SNAPSHOT)
    assert refused.value.exit_code == 2
