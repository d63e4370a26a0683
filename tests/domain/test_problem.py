"""Problems in words."""

from datetime import UTC, datetime, timedelta

import pytest

from pipeline.domain.problem import status_of

FIRST = datetime(2030, 1, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "opened_at", "said"),
    [
        ("new", FIRST, "new"),
        ("new", FIRST + timedelta(days=9), "back"),
        ("open", FIRST + timedelta(days=9), "open"),
        ("new", None, "new"),
    ],
)
def test_a_new_case_that_had_ended_before_is_back(status, opened_at, said):
    assert status_of({"status": status, "opened_at": opened_at, "first_seen_at": FIRST}) == said


@pytest.mark.parametrize(
    ("scope", "rule", "said"),
    [
        ("property", "market_disparity", "back"),
        ("market", "market_disparity", "new"),
        ("supplier", "wrong_discount", "new"),
        ("market", "fx_markup", "back"),
    ],
)
def test_a_case_of_a_market_is_not_back_because_its_properties_were_cases_before(scope, rule, said):
    case = {"scope": scope, "rule": rule, "opened_at": FIRST + timedelta(days=1)}
    assert status_of({"status": "new", "first_seen_at": FIRST, **case}) == said
