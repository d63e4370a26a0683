"""What cancelling costs, at any moment: each rule of domain.md, and SQL and Python agreeing on all of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import duckdb
import pytest
from cancel_costs import Cost, Rule, Step, penalty_at, steps
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.domain.penalties import Penalty, free_cancel_hours, free_cancel_until, refundability
from pipeline.lake.relations import sql_folder

CHECK_IN = datetime(2030, 3, 1, 15, tzinfo=UTC)
HOUR = timedelta(hours=1)
EVER = datetime(2029, 1, 1, tzinfo=UTC)


def cost(*penalties, total="200", nights=2, hours=0):
    return penalty_at(penalties, None if total is None else Decimal(total), nights, CHECK_IN, CHECK_IN - hours * HOUR)


@pytest.mark.parametrize(
    ("penalty", "expected"),
    [
        (Penalty(24, 50.0, 1.0, True, amount=Decimal("33.3333")), (Decimal("33.3333"), Rule.AMOUNT)),
        (Penalty(24, 50.0, 1.0, True), (Decimal(50), Rule.NIGHTS)),
        (Penalty(24, 50.0, 0.0, True), (Decimal(100), Rule.PERCENTAGE)),
        (Penalty(24, 50.0, None, True), (Decimal(100), Rule.PERCENTAGE)),
        (Penalty(24, 0.0, None, True), (Decimal(0), Rule.PERCENTAGE)),
        (Penalty(24, None, 1.0, True), (None, Rule.UNDETERMINED)),
        (Penalty(24, None, 1.0, False), (None, Rule.UNDETERMINED)),
        (Penalty(24, None, None, False), (Decimal(200), Rule.NOT_REFUNDABLE)),
        (Penalty(24, 30.0, None, False), (Decimal(60), Rule.PERCENTAGE)),
        (Penalty(24, None, None, True), (None, Rule.UNDETERMINED)),
        (Penalty(24, None, None, None), (None, Rule.UNDETERMINED)),
        (Penalty(24, 33.3333333, None, True), (None, Rule.UNDETERMINED)),
        (Penalty(24, 33.333333, None, True), (Decimal("66.6667"), Rule.PERCENTAGE)),
        (Penalty(24, 100.0, 1.3333333, True), (None, Rule.UNDETERMINED)),
        (Penalty(24, 1e300, None, True), (None, Rule.UNDETERMINED)),
    ],
)
def test_an_amount_is_computed_by_the_first_rule_that_applies(penalty, expected):
    found = cost(penalty)
    assert (found.amount, found.rule) == expected


def test_only_a_division_rounds_and_halves_go_up():
    assert cost(Penalty(1, 12.5), total="0.0004").amount == Decimal("0.0001")
    assert cost(Penalty(1, 100.0, 1.0), total="100", nights=3).amount == Decimal("33.3333")
    assert cost(Penalty(1, 100.0, 1.0), total="200", nights=3).amount == Decimal("66.6667")
    assert cost(Penalty(1, 12.5), total="-0.0004").amount == Decimal("-0.0001")


def test_no_total_leaves_only_stated_amounts():
    assert cost(Penalty(24, 50.0), total=None) == Cost(None, Rule.UNDETERMINED, 0)
    assert cost(Penalty(24, None, None, False), total=None) == Cost(None, Rule.UNDETERMINED, 0)
    assert cost(Penalty(24, amount=Decimal(5)), total=None) == Cost(Decimal(5), Rule.AMOUNT, 0)


def test_before_any_window_cancelling_is_free_and_no_penalty_at_all_says_nothing():
    assert cost(Penalty(24, 50.0), hours=25) == Cost(Decimal(0), Rule.FREE)
    assert cost(Penalty(24, 50.0), hours=24).rule is Rule.PERCENTAGE
    assert cost() == Cost(None, Rule.NOT_STATED)


def test_what_is_not_refunded_is_never_free_and_its_cost_is_unknown_if_the_terms_come_to_nothing():
    lost, not_lost = Penalty(24, 50.0, None, False), Penalty(12, 50.0, None, True)
    assert cost(Penalty(None, 0.0, None, False)) == Cost(None, Rule.UNDETERMINED, 0)
    assert cost(Penalty(None, 100.0, None, False, amount=Decimal(0))) == Cost(None, Rule.UNDETERMINED, 0)
    assert cost(lost, hours=25) == Cost(None, Rule.UNDETERMINED)
    assert cost(lost, hours=24) == Cost(Decimal(100), Rule.PERCENTAGE, 0)
    assert cost(lost, not_lost, hours=25) == Cost(Decimal(0), Rule.FREE)


def test_of_overlapping_penalties_the_larger_one_counts_whatever_their_order():
    cheap, dear = Penalty(72, 10.0), Penalty(24, 80.0)
    for order in ((cheap, dear), (dear, cheap)):
        assert [cost(*order, hours=hours).amount for hours in (100, 72, 24, 0)] == [0, 20, 160, 160]
    assert cost(dear, Penalty(48, None, 1.0, True)).rule is Rule.UNDETERMINED


def test_exact_dates_win_over_the_window_and_end_before_their_end():
    penalty = Penalty(24, 50.0, start_at=CHECK_IN - 48 * HOUR, end_at=CHECK_IN - 2 * HOUR)
    assert [cost(penalty, hours=hours).rule for hours in (49, 48, 3, 2)] == ["free", "percentage", "percentage", "free"]
    only_end = Penalty(24, 50.0, end_at=CHECK_IN - 2 * HOUR)
    assert [cost(only_end, hours=hours).rule for hours in (9999, 2)] == ["percentage", "free"]


@pytest.mark.parametrize("hours", [48, 60])
def test_dates_in_no_order_are_ignored_and_the_window_counts(hours):
    penalty = Penalty(24, 50.0, start_at=CHECK_IN - 48 * HOUR, end_at=CHECK_IN - hours * HOUR)
    assert [cost(penalty, hours=at).rule for at in (48, 25, 24)] == ["free", "free", "percentage"]
    assert free_cancel_until([penalty]) is None


def test_a_penalty_that_says_no_time_always_applies():
    assert cost(Penalty(None, 50.0), hours=99999).amount == Decimal(100)


def test_steps_follow_the_windows_and_equal_neighbours_are_one():
    found = steps([Penalty(72, 10.0), Penalty(24, 80.0), Penalty(48, 80.0)], Decimal(200), 2, CHECK_IN)
    assert found == [
        Step(None, Cost(Decimal(0), Rule.FREE)),
        Step(CHECK_IN - 72 * HOUR, Cost(Decimal(20), Rule.PERCENTAGE, 0)),
        Step(CHECK_IN - 48 * HOUR, Cost(Decimal(160), Rule.PERCENTAGE, 2)),
        Step(CHECK_IN - 24 * HOUR, Cost(Decimal(160), Rule.PERCENTAGE, 1)),
    ]


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ([], "unknown"),
        ([None], "unknown"),
        ([True, None], "refundable"),
        ([False, None], "non_refundable"),
        ([True, False], "mixed"),
    ],
)
def test_refundability_is_what_all_penalties_say_together(stated, expected):
    assert refundability(stated) == expected


def test_the_free_deadline_is_the_earliest_start_of_what_costs():
    free, costly = (
        Penalty(99, 0.0, None, True, CHECK_IN - 99 * HOUR),
        Penalty(24, 5.0, None, True, CHECK_IN - 24 * HOUR),
    )
    assert free_cancel_until([free, costly]) == CHECK_IN - 24 * HOUR
    assert free_cancel_hours([free, costly]) == 24
    assert free_cancel_until([Penalty(24, 5.0, None, False, CHECK_IN)]) is None


DATED, HALF = CHECK_IN - 24 * HOUR, Penalty(None, 50.0)


@pytest.mark.parametrize(
    ("stated", "until", "hours"),
    [
        ([Penalty(end_at=DATED, amount=Decimal(10)), Penalty(start_at=DATED, amount=Decimal(100))], None, None),
        ([HALF, Penalty(None, 100.0, start_at=DATED)], None, None),
        ([Penalty(720, 50.0), Penalty(None, 100.0, start_at=DATED)], None, None),
        ([Penalty(48, is_refundable=False), Penalty(24, 100.0, None, True)], None, 48),
        ([HALF, Penalty(48, 100.0)], None, None),
        ([Penalty(24, 100.0), Penalty(-(10**7), 100.0)], None, 24),
        ([Penalty(24, 50.0, amount=Decimal(0)), Penalty(12, 50.0)], None, 12),
        ([Penalty(10**7, 50.0), Penalty(12, 50.0)], None, None),
        ([Penalty(72, None, None, True, DATED), Penalty(24, 0.0, start_at=EVER)], DATED, 72),
    ],
)
def test_no_deadline_is_stated_before_which_cancelling_may_cost(stated, until, hours):
    for order in (stated, stated[::-1]):
        assert (free_cancel_until(order), free_cancel_hours(order)) == (until, hours)


numbers = (
    st.none()
    | st.sampled_from([0.0, 1.0, 2.0, 12.5, 50.0, 100.0, 33.333333, 33.3333333, -5.0, 1e300, 0.1, 1e-7])
    | st.floats(0, 1000)
)
hours = st.none() | st.integers(-100, 400) | st.sampled_from([2**31 - 1, -(2**31), 10**6, 10**6 + 1])
moments = st.none() | st.integers(-300, 50).map(lambda h: CHECK_IN + h * HOUR)
money = st.decimals("-0.5", 10**13, places=4, allow_nan=False)
penalties = st.builds(Penalty, hours, numbers, numbers, st.none() | st.booleans(), moments, moments, st.none() | money)
offers = st.lists(
    st.tuples(st.lists(penalties, max_size=4), st.none() | money, st.integers(1, 30)), min_size=1, max_size=30
)


@given(
    stated=st.lists(penalties, max_size=4),
    total=st.decimals(1, 10**9, places=2),
    nights=st.integers(1, 30),
    earlier=st.integers(1, 500),
)
def test_before_a_deadline_nothing_is_to_pay(stated, total, nights, earlier):
    until, hours = free_cancel_until(stated), free_cancel_hours(stated)
    if until is not None:
        assert penalty_at(stated, total, nights, CHECK_IN, until - earlier * HOUR).amount == 0
    # Dates win over windows, and need not say the same.
    if hours is not None and not any(penalty.has_ordered_dates for penalty in stated):
        at = CHECK_IN - (hours + earlier) * HOUR
        assert penalty_at(stated, total, nights, CHECK_IN, at).amount == 0


@pytest.fixture(scope="module")
def warehouse():
    """A session with the macros over tables as the published file has them."""
    with duckdb.connect(":memory:") as session:
        session.execute("SET TimeZone = 'UTC'; CREATE SCHEMA lake; CREATE SCHEMA mart")
        session.execute(
            "CREATE TABLE lake.offer (sweep_id VARCHAR, search_id BIGINT, offer_no INTEGER, property_id BIGINT, "
            "currency VARCHAR, total DECIMAL(18,4), nights SMALLINT, check_in DATE)"
        )
        session.execute(
            "CREATE TABLE lake.penalty (sweep_id VARCHAR, search_id BIGINT, offer_no INTEGER, penalty_no SMALLINT, "
            "window_hours INTEGER, penalty_pct DOUBLE, penalty_nights DOUBLE, is_refundable BOOLEAN, "
            "start_at TIMESTAMPTZ, end_at TIMESTAMPTZ, amount DECIMAL(18,4))"
        )
        session.execute("CREATE SCHEMA ref")
        session.execute("CREATE TABLE ref.analysis AS SELECT 15 AS check_in_hour, 'UTC' AS check_in_time_zone")
        session.execute(
            "CREATE TABLE mart.property_check_in (property_id BIGINT, check_in_time VARCHAR, time_zone VARCHAR)"
        )
        for name in ("check_in_at", "penalty_of_units", "penalty_cost", "penalty_span", "penalty_step", "penalty_at"):
            session.execute((sql_folder() / "macro" / f"{name}.sql").read_text())
        yield session


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(held=offers, at=st.integers(-300, 50).map(lambda h: CHECK_IN + h * HOUR))
def test_sql_and_python_agree_to_the_ten_thousandth(warehouse, held, at):
    warehouse.execute("TRUNCATE lake.offer; TRUNCATE lake.penalty")
    for number, (stated, total, nights) in enumerate(held):
        warehouse.execute(
            "INSERT INTO lake.offer VALUES ('s', 1, ?, 7, 'EUR', ?, ?, '2030-03-01')", [number, total, nights]
        )
        if stated:
            rows = [
                [
                    "s",
                    1,
                    number,
                    n,
                    p.window_hours,
                    p.penalty_pct,
                    p.penalty_nights,
                    p.is_refundable,
                    p.start_at,
                    p.end_at,
                    p.amount,
                ]
                for n, p in enumerate(stated)
            ]
            warehouse.executemany("INSERT INTO lake.penalty VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    found = warehouse.execute(
        "SELECT offer_no, from_at, amount, rule, penalty_no FROM mart.penalty_step('s') ORDER BY offer_no, step_no"
    ).fetchall()
    expected = [
        (number, step.from_at, step.cost.amount, step.cost.rule, step.cost.penalty_no)
        for number, (stated, total, nights) in enumerate(held)
        for step in steps(stated, total, nights, CHECK_IN)
    ]
    assert found == expected
    at_once = warehouse.execute(
        "SELECT amount, rule, penalty_no FROM mart.penalty_at('s', ?) ORDER BY offer_no", [at]
    ).fetchall()
    reported = [penalty_at(stated, total, nights, CHECK_IN, at) for stated, total, nights in held]
    assert at_once == [(each.amount, each.rule, each.penalty_no) for each in reported]


def test_the_hour_that_windows_are_counted_from_can_be_given(warehouse):
    warehouse.execute("TRUNCATE lake.offer; TRUNCATE lake.penalty")
    warehouse.execute("INSERT INTO lake.offer VALUES ('s', 1, 0, 7, 'EUR', 100, 1, '2030-03-01')")
    warehouse.execute("INSERT INTO lake.penalty VALUES ('s', 1, 0, 0, 24, 50, NULL, TRUE, NULL, NULL, NULL)")
    found = warehouse.execute(
        "SELECT from_at, until_at, from_hours, amount, rule "
        "FROM mart.penalty_step('s', check_in_hour := 12) ORDER BY from_at"
    ).fetchall()
    start = datetime(2030, 2, 28, 12, tzinfo=UTC)
    assert found == [(start, None, 24.0, Decimal(50), "percentage"), (None, start, None, Decimal(0), "free")]
