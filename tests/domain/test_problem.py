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
