"""Waits between attempts, without waiting."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.supplier.answer import Failure
from pipeline.supplier.retries import RETRIED, RETRY_AFTER_CAP_SECONDS, Backoff, retry_after_seconds

NOW = datetime(2031, 5, 10, 2, 30, tzinfo=UTC)


@given(st.integers(0, 10**15))
def test_seconds_are_taken_at_their_word_up_to_the_cap(seconds):
    assert retry_after_seconds(f" {seconds} ", NOW) == min(seconds, RETRY_AFTER_CAP_SECONDS)


@given(st.integers(-(10**8), 10**8))
def test_a_date_means_the_time_until_then_never_less_than_nothing(seconds):
    header = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    assert retry_after_seconds(header, NOW) == min(max(seconds, 0), RETRY_AFTER_CAP_SECONDS)


@pytest.mark.parametrize(
    "header",
    [
        "Sat, 10 May 2031 04:30:20 +0200",
        "Sat, 10 May 2031 02:30:20 -0000",
        "Saturday, 10-May-31 02:30:20 GMT",
        "Sat May 10 02:30:20 2031",
    ],
)
def test_other_ways_to_write_a_date_are_read_too(header):
    assert retry_after_seconds(header, NOW) == 20.0


@pytest.mark.parametrize("header", [None, "", "  ", "soon", "-5", "1.5", "٣", "Sat, 99 May 2031 02:30:20 GMT"])
def test_what_is_neither_is_no_retry_after(header):
    assert retry_after_seconds(header, NOW) is None


@given(st.text(max_size=60))
def test_no_header_makes_it_fail_or_wait_beyond_the_cap(header):
    seconds = retry_after_seconds(header, NOW)
    assert seconds is None or 0 <= seconds <= RETRY_AFTER_CAP_SECONDS


@given(st.integers(1, 10_000), st.integers())
def test_a_backoff_doubles_up_to_its_cap_and_half_of_it_is_chance(attempts, seed):
    longest = min(0.5 * 2 ** min(attempts - 1, 20), 30)
    assert longest / 2 <= Backoff(chance=Random(seed)).seconds(attempts) <= longest  # noqa: S311 - a wait is no secret


def test_searches_that_failed_together_do_not_come_back_together():
    backoff = Backoff(chance=Random(1))  # noqa: S311 - a wait is no secret
    assert len({backoff.seconds(1) for _ in range(10)}) == 10


def test_what_would_only_come_back_the_same_is_not_tried_again():
    assert set(Failure) - RETRIED == {Failure.BODY_TOO_LARGE, Failure.UNEXPECTED_STATUS}
