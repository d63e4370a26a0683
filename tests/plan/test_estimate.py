import pytest

from pipeline.domain.search import Operation
from pipeline.plan import PlanCounts
from pipeline.plan.estimate import (
    ASSUMED,
    ASSUMED_STEPS,
    RAW_BYTES_PER_SEARCH,
    Bound,
    CostHistory,
    Duration,
    OperationCost,
    StepEstimate,
    TimedStep,
    estimate,
)

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


def swept(seconds, searches, rate=5, in_flight=4):
    return CostHistory(1, durations={TimedStep.SWEEP: [Duration(seconds, searches * 100, searches, rate, in_flight)]})


def test_a_sweep_is_expected_to_go_as_earlier_ones_went_that_were_allowed_the_same():
    found = estimate(counts(3600), rate_per_second=5, in_flight=4, history=swept(600, 1200))
    assert (found.hours, found.bound) == (0.5, Bound.PACE)
    assert found.steps[TimedStep.SWEEP].nights == 1


def test_how_fast_a_sweep_went_under_another_rate_says_nothing():
    found = estimate(counts(3600), 5, 4, swept(60_000, 3600, rate=1))
    assert (found.steps[TimedStep.SWEEP].nights, found.bound) == (0, Bound.IN_FLIGHT)
    assert found.hours == estimate(counts(3600), 5, 4).hours


def test_no_sweep_is_expected_to_be_faster_than_the_rate_allows():
    found = estimate(counts(3600), 1, 4, swept(360, 3600, rate=1))
    assert (found.hours, found.bound) == (1.0, Bound.RATE)


def test_a_pace_that_is_the_rate_is_called_so():
    assert estimate(counts(3600), 1, 4, swept(3640, 3600, rate=1)).bound == Bound.RATE


def test_the_sandbox_is_not_expected_to_answer_from_a_continent_away():
    found = estimate(counts(36_500), rate_per_second=500, in_flight=8, is_simulated=True)
    # Ten minutes is what such a sweep took.
    assert 0.1 < found.hours < 0.25


def night_of(step, *measured):
    return CostHistory(1, durations={step: [Duration(seconds, cells, 1) for seconds, cells in measured]})


@pytest.mark.parametrize("step", ASSUMED_STEPS)
def test_a_step_takes_what_it_took_with_as_many_cells(step):
    found = estimate(counts(3600), 5, 4, night_of(step, (70, 360_000)))
    assert (found.steps[step].seconds, found.steps[step].nights) == (70, 1)
    others = [each for each in ASSUMED_STEPS if each is not step]
    assert [found.steps[each].nights for each in others] == [0] * len(others)


def test_a_step_with_twice_the_cells_takes_twice_the_time_but_for_its_beginning():
    begin = ASSUMED_STEPS[TimedStep.AUDIT].begin_seconds
    found = estimate(counts(3600), 5, 4, night_of(TimedStep.AUDIT, (begin + 10, 180_000)))
    assert found.steps[TimedStep.AUDIT].seconds == begin + 20


def test_a_tiny_night_says_nothing_of_a_large_one():
    found = estimate(counts(3600), 5, 4, night_of(TimedStep.PUBLISH, (3, 500)))
    assert found.steps[TimedStep.PUBLISH].nights == 0
    assert found.steps[TimedStep.PUBLISH].seconds == estimate(counts(3600), 5, 4).steps[TimedStep.PUBLISH].seconds


def test_one_night_that_took_long_does_not_move_the_estimate_of_the_others():
    found = estimate(counts(3600), 5, 4, night_of(TimedStep.REPORT, (50, 360_000), (5000, 360_000), (51, 360_000)))
    assert (found.steps[TimedStep.REPORT].seconds, found.steps[TimedStep.REPORT].nights) == (51, 3)


def test_a_step_on_a_cluster_takes_what_it_took_on_one_and_before_that_what_it_took_on_one_machine():
    def found(*durations: Duration, is_spread: bool):
        history = CostHistory(1, durations={TimedStep.PUBLISH: durations})
        return estimate(counts(3600), 5, 4, history, is_spread=is_spread).steps[TimedStep.PUBLISH]

    alone, spread = Duration(70, 360_000, 1), Duration(40, 360_000, 1, is_spread=True)
    assert found(alone, spread, is_spread=True) == StepEstimate(40, 1, is_spread=True)
    assert found(alone, spread, is_spread=False) == StepEstimate(70, 1)
    assert found(alone, is_spread=True) == StepEstimate(70, 1)
    assert found(spread, is_spread=False).nights == 0
