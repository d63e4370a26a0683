"""What cancelling costs, asked of the published file as an analyst opens it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import duckdb
from nights import load_night, started_at, sweep_id

from pipeline.publish import publish


def test_the_published_file_tells_what_cancelling_costs_at_any_moment(lake):
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
