"""Whose turn it is: late nights, two sweeps of one spec, a busy lake, and what a form may send."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import httpx
import pytest
from prefect_runs import call
from tiny_night import published

from pipeline.lake import Lake
from pipeline.settings import read_settings


@pytest.fixture
def nightly(settings, in_environment, server):  # noqa: ARG001 - runs report to it
    import flows.nightly

    in_environment(settings())
    return flows.nightly


def last_run(server) -> dict[str, object]:
    # Other tests leave runs behind that wait for their time.
    begun = {"flow_runs": {"start_time": {"is_null_": False}}, "sort": "START_TIME_DESC", "limit": 1}
    return call(server, "flow_runs/filter", begun)[0]


def test_a_night_long_after_its_time_is_skipped_with_a_reason_and_asks_nothing(nightly, settings, server):
    state = nightly.nightly(catch_up_hours=0, return_state=True)
    assert (state.type.value, state.name) == ("CANCELLED", "Skipped")
    assert last_run(server)["state"]["name"] == "Skipped"
    assert "hours ago" in state.message
    assert not Lake(settings().lake).root.exists()


def test_a_run_whose_machine_died_again_and_again_is_not_begun_once_more():
    from flows.turns import MOST_RUNS, refused

    assert refused(None, MOST_RUNS, 12) is None
    state = refused(None, MOST_RUNS + 1, 12)
    assert state is not None
    assert state.is_failed()


def test_a_dry_run_leaves_a_plan_and_asks_nothing(nightly, settings, server):
    assert nightly.nightly(dry_run=True, markets=("GB",), limit=1) is None
    found = call(server, "artifacts/filter", {"sort": "CREATED_DESC", "limit": 1})[0]
    assert found["key"] == "nightly-plan"
    assert "| properties | 1 |" in found["data"]
    assert "| markets | GB |" in found["data"]
    assert not Lake(settings().lake).root.exists()
    assert last_run(server)["name"].startswith(settings().spec.stem)


def test_two_runs_never_sweep_one_spec_at_once_wherever_they_are(nightly, settings, monkeypatch):
    import flows.turns

    with flows.turns.one_sweep_of(settings().spec.stem):
        # Only the second run is impatient: a busy server may take longer than this to give the first its place.
        monkeypatch.setattr(flows.turns, "_TAKEN_SECONDS", 0.3)
        with pytest.raises(flows.turns.SpecBusy, match="limit nightaudit-sweep-"):
            nightly.nightly()
    assert not Lake(settings().lake).root.exists()


@pytest.mark.slow
def test_a_scheduled_night_waits_for_a_busy_lake_and_goes_on(nightly, settings, monkeypatch):
    lake, run_night, tries = Lake(settings().lake), nightly.run_night, []

    def busy_at_first(*given):
        tries.append(given)
        if len(tries) > 1:
            return run_night(*given)
        with lake.writing("care of the lake"):
            return run_night(*given)

    monkeypatch.setattr(nightly, "run_night", busy_at_first)
    # More tries than the lake needs: a slow server may be late with the spec's place, and that costs a try too.
    monkeypatch.setattr(nightly, "WAITS", (0.1,) * 5)
    monkeypatch.setattr(nightly, "deployment", SimpleNamespace(id="a deployment"))
    made = nightly.nightly()
    assert len(tries) == 2
    assert published(lake) == [made.sweep_id]


@pytest.mark.parametrize("wrong", [{"markets": ["XX"]}, {"limit": 0}, {"dry_run": "perhaps"}])
def test_prefects_server_refuses_parameters_that_no_night_could_have(server, wrong):
    from flows.deploy import deployments_of

    async def apply() -> str:
        made = await deployments_of(read_settings(_env_file=None))
        return str(await made[0].apply())

    deployment = asyncio.run(apply())
    with pytest.raises(httpx.HTTPStatusError, match=r"409|422"):
        call(server, f"deployments/{deployment}/create_flow_run", {"parameters": wrong})
