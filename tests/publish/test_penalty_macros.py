"""What cancelling costs, asked of the published file as an analyst opens it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import duckdb
import pytest
from cancel_costs import steps
from nights import load_night, started_at, sweep_id

from pipeline.domain.penalties import Penalty
from pipeline.lake import Lake
from pipeline.publish import publish

pytestmark = pytest.mark.slow


def test_the_published_file_has_the_cost_of_cancelling_at_any_moment(lake):
    day = {"check_in": date(2030, 3, 1)}
    offer = day | {"total": 200, "currency": "EUR", "policy_key": 5}
    penalties = [
        {"penalty_no": 0, "window_hours": 48, "penalty_pct": 50.0, "penalty_nights": 1.0, "is_refundable": True},
        {"penalty_no": 1, "window_hours": 24, "penalty_pct": 100.0, "is_refundable": True},
    ]
    load_night(lake, 0, cell=[day | {"offers": 1}], offer=[offer, offer | {"offer_no": 1}], penalty=penalties)
    file = publish(lake, sweep_id(0), started_at(0)).file
    with duckdb.connect(str(file), read_only=True) as session:
        found = session.execute(
            "SELECT offer_no, step_no, from_hours::INTEGER, amount, currency, rule "
            "FROM mart.penalty_step(?) ORDER BY ALL",
            [sweep_id(0)],
        ).fetchall()
        at_once = session.execute(
            "SELECT offer_no, amount, rule FROM mart.penalty_at(?, '2030-02-28 00:00:00+00'::TIMESTAMPTZ) ORDER BY ALL",
            [sweep_id(0)],
        ).fetchall()
    assert found == [
        (0, 0, None, Decimal(0), "EUR", "free"),
        (0, 1, 48, Decimal(50), "EUR", "nights"),
        (0, 2, 24, Decimal(200), "EUR", "percentage"),
        (1, 0, None, None, "EUR", "not_stated"),
    ]
    assert at_once == [(0, Decimal(50), "nights"), (1, None, "not_stated")]


CHECK_IN = datetime(2030, 3, 1, 15, tzinfo=UTC)


def before(hours: float) -> datetime:
    return CHECK_IN - timedelta(hours=hours)


# Of a stay of two nights for 200: penalties, and what cancelling costs over time, as (hours before check-in, amount,
# rule, penalty that counts). None: since ever.
FREE = (None, 0, "free", None)
GOLDEN = {
    "overlapping windows, the later one dearer": (
        [{"window_hours": 72, "penalty_pct": 10.0}, {"window_hours": 24, "penalty_pct": 80.0}],
        [FREE, (72, 20, "percentage", 0), (24, 160, "percentage", 1)],
    ),
    "overlapping windows, the wider one dearer": (
        [{"window_hours": 72, "penalty_pct": 80.0}, {"window_hours": 24, "penalty_pct": 10.0}],
        [FREE, (72, 160, "percentage", 0)],
    ),
    "overlapping dates, the larger one counts while both apply": (
        [
            {"start_at": before(72), "end_at": before(24), "penalty_pct": 50.0},
            {"start_at": before(48), "end_at": before(0), "penalty_pct": 10.0},
        ],
        [FREE, (72, 100, "percentage", 0), (24, 20, "percentage", 1), (0, 0, "free", None)],
    ),
    "dates that touch": (
        [
            {"start_at": before(72), "end_at": before(24), "penalty_pct": 100.0, "penalty_nights": 1.0},
            {"start_at": before(24), "end_at": before(0), "penalty_pct": 100.0},
        ],
        [FREE, (72, 100, "nights", 0), (24, 200, "percentage", 1), (0, 0, "free", None)],
    ),
    "dates win over the window": (
        [{"window_hours": 999, "start_at": before(48), "penalty_pct": 50.0}],
        [FREE, (48, 100, "percentage", 0)],
    ),
    "inverted dates are ignored, the window counts": (
        [{"window_hours": 24, "start_at": before(48), "end_at": before(60), "penalty_pct": 50.0}],
        [FREE, (24, 100, "percentage", 0)],
    ),
    "dates of no length are ignored, the window counts": (
        [{"window_hours": 24, "start_at": before(48), "end_at": before(48), "penalty_pct": 50.0}],
        [FREE, (24, 100, "percentage", 0)],
    ),
    "inverted dates and no window: always": (
        [{"start_at": before(48), "end_at": before(60), "penalty_pct": 50.0}],
        [(None, 100, "percentage", 0)],
    ),
    "no time at all: always": ([{"penalty_pct": 50.0}], [(None, 100, "percentage", 0)]),
    "an end alone: ever since, until then": (
        [{"end_at": before(24), "penalty_pct": 50.0}],
        [(None, 100, "percentage", 0), (24, 0, "free", None)],
    ),
    "a window after check-in": (
        [{"window_hours": -6, "penalty_pct": 100.0}],
        [FREE, (-6, 200, "percentage", 0)],
    ),
    "a stated amount wins": (
        [{"window_hours": 24, "penalty_pct": 100.0, "penalty_nights": 1.0, "amount": 33.25}],
        [FREE, (24, 33.25, "amount", 0)],
    ),
    "nights without a percentage": (
        [{"window_hours": 24, "penalty_nights": 1.0}],
        [FREE, (24, None, "undetermined", 0)],
    ),
    "no nights: of the total": (
        [{"window_hours": 24, "penalty_pct": 25.0, "penalty_nights": 0.0}],
        [FREE, (24, 50, "percentage", 0)],
    ),
    "only that nothing is refunded": ([{"is_refundable": False}], [(None, 200, "not_refundable", 0)]),
    "nothing said": ([{}], [(None, None, "undetermined", 0)]),
    "an unknown penalty next to known ones": (
        [{"window_hours": 72, "penalty_pct": 10.0}, {"window_hours": 48, "penalty_nights": 1.0}],
        [FREE, (72, 20, "percentage", 0), (48, None, "undetermined", 1)],
    ),
    "two alike: the first is named": (
        [{"window_hours": 24, "penalty_pct": 50.0}, {"window_hours": 24, "penalty_pct": 50.0}],
        [FREE, (24, 100, "percentage", 0)],
    ),
    "no penalty": ([], [(None, None, "not_stated", None)]),
}


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """The published steps of each golden case, one offer a case."""
    lake = Lake(str(tmp_path_factory.mktemp("golden") / "lake"))
    day = {"check_in": CHECK_IN.date()}
    offer = day | {"total": 200, "currency": "EUR", "nights": 2, "source": "detail"}
    penalties = [
        {"offer_no": number, "penalty_no": place} | penalty
        for number, (held, _) in enumerate(GOLDEN.values())
        for place, penalty in enumerate(held)
    ]
    offers = [offer | {"offer_no": number, "board_id": number} for number in range(len(GOLDEN))]
    load_night(lake, 0, cell=[day | {"operation": "single", "offers": len(offers)}], offer=offers, penalty=penalties)
    file = publish(lake, sweep_id(0), started_at(0)).file
    query = "SELECT offer_no, from_at, amount, rule, penalty_no FROM mart.penalty_step(?) ORDER BY offer_no, step_no"
    with duckdb.connect(str(file), read_only=True) as session:
        found = session.execute("SET TimeZone = 'UTC'").execute(query, [sweep_id(0)]).fetchall()
    return {name: [row[1:] for row in found if row[0] == number] for number, name in enumerate(GOLDEN)}


@pytest.mark.parametrize("case", GOLDEN)
def test_each_awkward_policy_costs_what_was_decided_in_sql_and_in_python(golden, case):
    penalties, expected = GOLDEN[case]
    wanted = [
        (None if hours is None else before(hours), None if amount is None else Decimal(str(amount)), rule, number)
        for hours, amount, rule, number in expected
    ]
    assert golden[case] == wanted
    held = [
        Penalty(**(penalty | {"amount": Decimal(str(penalty["amount"]))} if "amount" in penalty else penalty))
        for penalty in penalties
    ]
    reported = steps(held, Decimal(200), 2, CHECK_IN)
    assert [(step.from_at, step.cost.amount, step.cost.rule, step.cost.penalty_no) for step in reported] == wanted
