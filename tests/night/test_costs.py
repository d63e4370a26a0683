from __future__ import annotations

import audited_nights as nights
import pytest
from nights import load_night, started_at, sweep_id

from pipeline.domain.search import Operation
from pipeline.lake.raw import read_manifest
from pipeline.night.durations import duration_of, note_duration, timed
from pipeline.night.gate import publish_checked
from pipeline.night.outlook import cost_history
from pipeline.plan.estimate import Duration, TimedStep


def searches(*latencies_ms: int, **given) -> list[dict[str, object]]:
    usual = {"properties": 100, "wire_bytes": 5000, "offers": 400}
    return [usual | {"search_id": 256 * n + 1, "latency_ms": ms} | given for n, ms in enumerate(latencies_ms)]


def test_a_lake_without_sweeps_says_nothing(lake):
    assert cost_history(lake) is None


def test_a_loaded_sweep_has_the_cost_of_its_searches_before_it_is_published(lake):
    load_night(lake, 0, search=searches(200, 400))
    found = cost_history(lake)
    cost = found.by_operation[Operation.MULTI]
    assert (cost.latency_seconds, cost.wire_bytes_per_cell, cost.table_bytes_per_cell) == (0.3, 50, 80)
    assert (found.sweeps, set(found.by_operation)) == (1, {Operation.MULTI})


def test_searches_without_an_answer_say_nothing(lake):
    load_night(lake, 0, search=[*searches(200), *searches(60_000, 60_000, outcome="failed")])
    assert cost_history(lake).by_operation[Operation.MULTI].latency_seconds == 0.2


def test_only_the_last_five_sweeps_count(lake):
    for night in range(7):
        load_night(lake, night, search=searches(100 if night > 1 else 90_000))
    found = cost_history(lake)
    assert (found.sweeps, found.by_operation[Operation.MULTI].latency_seconds) == (5, 0.1)


@pytest.mark.slow
def test_steps_of_a_night_are_timed_where_they_are_run(lake):
    assert nights.audited(lake, 0, nights.clean_night(0)).is_passed
    publish_checked(lake, sweep_id(0), started_at(0))
    found = cost_history(lake).durations
    cells = read_manifest(lake, sweep_id(0)).cells
    assert {step: [each.cells for each in found[step]] for step in (TimedStep.AUDIT, TimedStep.PUBLISH)} == {
        TimedStep.AUDIT: [cells],
        TimedStep.PUBLISH: [cells],
    }
    assert found[TimedStep.AUDIT][0].seconds > 0
    # It already exists, so its time would show nothing.
    before = found[TimedStep.PUBLISH]
    publish_checked(lake, sweep_id(0), started_at(0))
    assert cost_history(lake).durations[TimedStep.PUBLISH] == before


@pytest.fixture
def manifest(lake):
    load_night(lake, 0, search=searches(100))
    return read_manifest(lake, sweep_id(0))


def test_a_step_that_fails_is_not_timed(lake, manifest):
    with pytest.raises(RuntimeError, match="half way"), timed(lake, manifest, TimedStep.REPORT):
        raise RuntimeError("half way")
    assert cost_history(lake).durations[TimedStep.REPORT] == ()


def test_what_a_sweep_was_allowed_is_kept_with_its_time(lake, manifest):
    took = Duration(7.5, 100, 1, rate_per_second=5, in_flight=4, paced_seconds=2.5)
    note_duration(lake, manifest.sweep_id, TimedStep.SWEEP, took)
    assert cost_history(lake).durations[TimedStep.SWEEP] == (took,)
    assert duration_of(lake, manifest.sweep_id, TimedStep.SWEEP) == took
    assert duration_of(lake, manifest.sweep_id, TimedStep.REPORT) is None


def test_a_step_on_a_cluster_is_known_as_one_and_one_of_an_earlier_version_is_not(lake, manifest):
    with timed(lake, manifest, TimedStep.AUDIT, is_spread=True):
        pass
    lake.put(f"durations/{manifest.sweep_id}/publish.json", b'{"seconds": 1.5, "cells": 10, "searches": 1}')
    found = cost_history(lake).durations
    assert [found[step][0].is_spread for step in (TimedStep.AUDIT, TimedStep.PUBLISH)] == [True, False]


def test_a_duration_that_cannot_be_kept_does_not_cost_the_step(lake, manifest, caplog):
    lake.local("durations").write_text("in the way")
    with timed(lake, manifest, TimedStep.REPORT):
        pass
    assert "The duration of report was not recorded" in caplog.text


def test_a_damaged_duration_is_left_out(lake, manifest, caplog):
    lake.put(f"durations/{manifest.sweep_id}/audit.json", b"{")
    assert cost_history(lake).durations[TimedStep.AUDIT] == ()
    assert "left out of the estimate" in caplog.text
