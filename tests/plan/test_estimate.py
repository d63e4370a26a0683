import pytest

from pipeline.domain.search import Operation
from pipeline.plan import PlanCounts
from pipeline.plan.estimate import ASSUMED, RAW_BYTES_PER_SEARCH, Bound, CostHistory, OperationCost, estimate

MULTI, SINGLE = Operation.MULTI, Operation.SINGLE


def counts(multi=3600, single=0):
    searches = {MULTI: multi} | ({SINGLE: single} if single else {})
    cells = {MULTI: multi * 100} | ({SINGLE: single} if single else {})
    return PlanCounts(sum(cells.values()), sum(searches.values()), cells, searches)


def test_a_patient_rate_bounds_the_hours():
    found = estimate(counts(3600), rate_per_second=1, in_flight=4)
    assert (found.hours, found.bound) == (1.0, Bound.RATE)


def test_latency_bounds_the_hours_where_few_searches_are_in_flight():
    history = CostHistory(3, {MULTI: OperationCost(1, 1, latency_seconds=2)})
    found = estimate(counts(3600), rate_per_second=100, in_flight=1, history=history)
    assert (found.hours, found.bound) == (2.0, Bound.IN_FLIGHT)


def test_what_was_measured_is_preferred_to_what_is_assumed():
    history = CostHistory(1, {MULTI: OperationCost(wire_bytes_per_cell=10, table_bytes_per_cell=5, latency_seconds=1)})
    found = estimate(counts(10, single=7), 5, 4, history)
    assert found.wire_bytes == 10 * 100 * 10 + 7 * ASSUMED[SINGLE].wire_bytes_per_cell
    assert found.table_bytes == 10 * 100 * 5 + 7 * ASSUMED[SINGLE].table_bytes_per_cell
    assert found.raw_bytes == found.wire_bytes + 17 * RAW_BYTES_PER_SEARCH
    assert found.assumed == (SINGLE,)


def test_without_history_every_operation_is_assumed():
    assert estimate(counts(1, single=1), 5, 4).assumed == (MULTI, SINGLE)


@pytest.mark.parametrize(("daily_calls", "days"), [(None, None), (1000, 4), (3600, 1), (3599, 2)])
def test_a_daily_cap_spreads_the_searches_over_days(daily_calls, days):
    assert estimate(counts(3600), 5, 4, daily_calls=daily_calls).days == days


def test_an_empty_plan_costs_nothing():
    found = estimate(counts(0), 5, 4, daily_calls=10)
    assert (found.wire_bytes, found.raw_bytes, found.hours, found.days) == (0, 0, 0, 0)
