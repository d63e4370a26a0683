"""The quote check and the backfill, run by Prefect over a night of the sandbox."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest
from tiny_night import settings_in

from pipeline.domain.errors import InputError
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.night import night_sweep
from pipeline.night.night import Night
from pipeline.publish import publish
from pipeline.settings import utc_now

TABLES = ("search", "cell", "offer", "penalty", "promotion", "offer_change", "room", "quote", "quote_offer")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Settings of a lake with one published night."""
    given = settings_in(tmp_path_factory.mktemp("published"), quote_cap=5, scopes="read_rooms write_rooms")
    lake = Lake(given.lake)
    now = utc_now()
    manifest = night_sweep.start(given, lake, now)
    asyncio.run(night_sweep.collect(Night(given, lake, manifest)))
    publish(lake, manifest.sweep_id, now)
    return given


@pytest.fixture
def published(made, in_environment, server):  # noqa: ARG001 - flows report to it
    """The lake of both tests, and an environment that points to it."""
    in_environment(made)
    return Lake(made.lake)


def rows(lake: Lake) -> dict[str, list[tuple[object, ...]]]:
    return {name: query_published(lake.published_file, f"FROM lake.{name} ORDER BY ALL").fetchall() for name in TABLES}


def test_the_quote_flow_requests_only_if_confirmed_and_never_retries(published):
    from flows.quote_check import quote_check

    runs = published.names("quotes")
    with pytest.raises(InputError, match="up to 3 reservations"):
        quote_check(3)
    assert published.names("quotes") == runs
    summary = quote_check(3, yes_make_reservations=True)
    assert summary.chosen == sum(summary.outcomes.values()) == 3
    asked = "SELECT count(*) FROM mart.quote_check WHERE run_id = $run"
    assert query_published(published.published_file, asked, {"run": summary.run_id}).fetchone() == (3,)


REFUSED = "from flows.quote_check import quote_check; quote_check(3, return_state=True)"


@pytest.mark.usefixtures("published")
def test_a_refused_quote_check_is_logged_once_and_without_a_traceback(server):
    # In a process of its own: the flows of other tests have changed Prefect's loggers.
    given = {**os.environ, "PREFECT_API_URL": server}
    done = subprocess.run([sys.executable, "-c", REFUSED], env=given, capture_output=True, text=True, timeout=300)
    assert "\nNothing was sent.\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_confirmation_of_a_rule_that_does_not_exist_fails(published):
    """It would complete every day, and confirm nothing."""
    from flows.confirmation import confirmation

    assert published.published_file.exists()
    ended = confirmation(rules=("floor_breech",), return_state=True)
    assert ended.is_failed()
    assert "There is no rule floor_breech." in ended.message


def test_a_confirmation_without_an_open_flag_completes_and_says_so(published):
    """A schedule must not alarm anyone because there is nothing to confirm."""
    from flows.confirmation import confirmation

    flags = "FROM report.flag WHERE rule = 'floor_breach'"
    assert query_published(published.published_file, flags).fetchall() == []
    ended = confirmation(rules=("floor_breach",), return_state=True)
    assert ended.is_completed()
    assert "No flag of the rule floor_breach is open." in ended.message


@pytest.mark.usefixtures("published")
def test_a_confirmation_long_after_its_time_is_skipped_with_a_reason():
    """After an outage of days, one confirmation is enough, of the day that it is."""
    from flows.confirmation import confirmation

    ended = confirmation(catch_up_hours=0, return_state=True)
    assert (ended.type.value, ended.name) == ("CANCELLED", "Skipped")
    assert "hours ago" in ended.message


@pytest.mark.slow
def test_the_flow_of_the_backfill_rebuilds_the_same_tables(published):
    from flows.backfill import backfill
    from flows.quote_check import quote_check

    quote_check(3, yes_make_reservations=True)
    before = rows(published)
    made = backfill()
    assert made.tables != made.former
    assert rows(Lake(str(published.root))) == before
    assert all(before.values())
