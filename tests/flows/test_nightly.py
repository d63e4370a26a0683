"""The nightly flow, run by Prefect against the sandbox over HTTP."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.domain.errors import CallsUsedUp, InputError, LakeBusy, SettingsError, SupplierDown, TooManyFailures
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.night import steps
from pipeline.publish import published_sweeps
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.settings import utc_now

SECRET = "never-to-be-seen-7f3a"


def run_nightly(*args, **kwargs):
    from flows.nightly import run_nightly as run

    return run(*args, **kwargs)


def published(lake: Lake) -> list[str]:
    return [entry.sweep_id for entry in published_sweeps(lake)]


def artifacts() -> dict[str, object]:
    """The data of the latest artifact of each key."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = client.request("POST", "/artifacts/filter", json={"sort": "CREATED_DESC"}).json()
    return {item["key"]: item["data"] for item in reversed(found)}


def last_run() -> dict[str, object]:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        body = {"sort": "START_TIME_DESC", "limit": 1}
        return client.request("POST", "/flow_runs/filter", json=body).json()[0]


@contextmanager
def outside_supplier(settings, write_spec, **faults) -> Iterator[tuple[SandboxProcess, object]]:
    """A supplier that is not the bundled one, as far as the settings can tell."""
    with SandboxProcess(properties=50, client_id="shop", client_secret=SECRET) as sandbox:
        ids = sandbox.control("properties")["property_ids"][:3]
        if faults.pop("poison", False):
            faults["poisoned_property_ids"] = ids[:1]
        sandbox.control("faults", faults)
        yield (
            sandbox,
            settings(
                base_url=sandbox.base_url,
                client_id="shop",
                client_secret=SECRET,
                spec=write_spec(ids=ids, days=10),
                requests_per_second=500,
                attempts=1,
            ),
        )


def test_two_nights_in_a_row_are_published_and_the_second_counts_from_the_first(settings):
    shown, watched = [], []
    first = run_nightly(settings(), show=shown.append, watch=watched.append)
    second = run_nightly(settings(), show=shown.append)

    assert shown == [first, second]
    assert (first.previous_date, second.previous_date) == (None, first.snapshot_date)
    assert first.is_simulated
    assert first.planned == sum(count for _, count in first.cells) == 8
    assert watched[-1].landed_searches == watched[-1].planned_searches
    lake = Lake(settings().lake)
    assert published(lake) == [first.sweep_id, second.sweep_id]
    with query_published(second.file, "SELECT count(*) FROM mart.offer_history") as rows:
        assert rows.fetchall()[0][0] >= first.offers > 0
    with query_published(second.file, second.query) as rows:
        assert rows.fetchall()

    kept = artifacts()
    assert kept["nightly-progress"] == 100.0
    assert second.sweep_id in kept["nightly-summary"].replace("\\", "")
    assert "Simulated" in kept["nightly-summary"]


def test_what_was_begun_today_is_gone_on_with_and_not_begun_anew(settings):
    given, lake = settings(), Lake(settings().lake)
    begun = steps.start(given, lake, utc_now())

    assert run_nightly(given).sweep_id == begun.sweep_id
    assert lake.sweep_ids() == [begun.sweep_id]


def test_a_run_that_was_cut_short_before_publishing_asks_nothing_again(settings):
    given, lake = settings(), Lake(settings().lake)
    begun = steps.start(given, lake, utc_now())
    asyncio.run(steps.collect(given, lake, begun))
    raw = {file: file.stat().st_mtime_ns for file in lake.local(lake.raw_folder(begun.sweep_id)).iterdir()}

    assert run_nightly(given).sweep_id == begun.sweep_id
    after = {file: file.stat().st_mtime_ns for file in lake.local(lake.raw_folder(begun.sweep_id)).iterdir()}
    assert after == raw


def test_what_an_earlier_day_left_unfinished_is_closed_and_published_before_todays_night(settings, write_spec):
    given, lake = settings(spec=write_spec(days=20)), Lake(settings().lake)
    left = steps.start(given, lake, utc_now() - timedelta(days=1))
    with pytest.raises(CallsUsedUp):
        asyncio.run(steps.collect(given.model_copy(update={"daily_calls": 45}), lake, left))

    today = run_nightly(given)

    assert published(lake) == [left.sweep_id, today.sweep_id]
    assert dict(today.cells)["not_swept"] == 0
    with query_published(today.file, "SELECT state, not_swept > 0 FROM mart.sweep ORDER BY started_at") as rows:
        assert rows.fetchall() == [("closed", True), ("complete", False)]


def test_a_used_up_daily_cap_closes_the_sweep_and_publishes_what_there_is(settings, write_spec):
    summary = run_nightly(settings(spec=write_spec(days=20), daily_calls=45))

    assert not summary.is_complete
    assert dict(summary.cells)["not_swept"] > 0
    assert summary.planned == sum(count for _, count in summary.cells)
    assert summary.offers > 0


def test_a_cap_that_lets_nothing_land_is_refused_and_publishes_nothing(settings, write_spec):
    given = settings(spec=write_spec(days=20), daily_calls=2)
    with pytest.raises(SettingsError, match="land together"):
        run_nightly(given)
    assert published(Lake(given.lake)) == []


def test_a_supplier_that_is_down_leaves_the_last_night_published_and_no_secret_anywhere(
    settings, write_spec, prefect_records
):
    with outside_supplier(settings, write_spec) as (sandbox, given):
        first = run_nightly(given)
        before = first.file.read_bytes()
        sandbox.control("faults", {"status_500_rate": 1.0})
        with pytest.raises(SupplierDown) as caught:
            run_nightly(given)

    lake = Lake(given.lake)
    assert "resume" in caught.value.hint
    assert caught.value.__cause__ is None
    assert first.file.read_bytes() == before
    assert published(lake) == [first.sweep_id]
    assert len(lake.sweep_ids()) == 2
    assert last_run()["state"]["type"] == "FAILED"
    assert "SupplierDown" in last_run()["state"]["message"]

    records = b"".join(file.read_bytes() for file in prefect_records.parent.iterdir() if file.is_file())
    assert first.sweep_id.encode() in records
    for seen in (SECRET, base64.b64encode(f"shop:{SECRET}".encode()).decode().rstrip("=")):
        assert seen.encode() not in records


def test_a_second_run_at_the_same_time_is_refused(settings):
    given = settings()
    lake = Lake(given.lake)
    with lake.writing("a test"), pytest.raises(LakeBusy):
        run_nightly(given)
    assert lake.sweep_ids() == []


def test_a_mistake_in_the_alert_rules_is_told_before_anything_is_asked(settings, tmp_path):
    given = settings(alerts=tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read"):
        run_nightly(given)
    assert not Path(given.lake).exists()


def test_rules_that_cannot_be_asked_cost_the_alerts_alone(settings, tmp_path):
    file, shown = tmp_path / "alerts.toml", []
    file.write_text(
        '[[rule]]\nname = "x"\nrelation = "mart.none"\nwho = ["me"]\n[receiver.me]\nwebhook_from = "ADDRESS"\n'
    )
    given = settings(alerts=file)
    with pytest.raises(InputError, match="cannot be asked"):
        run_nightly(given, show=shown.append)
    assert published(Lake(given.lake)) == [shown[0].sweep_id]
    assert shown[0].reports.exists()


def test_too_many_failed_cells_end_with_an_error_once_the_night_is_published(settings, write_spec):
    shown = []
    with outside_supplier(settings, write_spec, poison=True) as (_, given), pytest.raises(TooManyFailures) as caught:
        run_nightly(given, show=shown.append)

    assert caught.value.exit_code == 4
    assert published(Lake(given.lake)) == [shown[0].sweep_id]
    assert shown[0].failed_share > given.tolerated_failed_share


def test_an_error_meant_for_users_is_logged_once_and_without_a_traceback(caplog):
    from flows.logs import tell_our_errors_once

    tell_our_errors_once()
    error = LakeBusy("The lake is being written.", hint="Wait.")
    for name in ("prefect.task_runs", "prefect.flow_runs"):
        logging.getLogger(name).error("Encountered exception during execution: %r", error, exc_info=error)

    assert [record.getMessage() for record in caplog.records] == ["The lake is being written.\nWait."]
    assert caplog.records[0].exc_info is None
