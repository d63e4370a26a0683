"""Which run may start: late nights, two sweeps of one spec, a busy lake, and what a form may send."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from prefect.exceptions import CancelledRun, FailedRun
from prefect.states import Failed
from prefect_runs import ROOT, call, environment
from tiny_night import published

from pipeline.domain.errors import ClusterAway, LakeBusy, LakeError, NothingSent, StoreAway, SupplierDown, TokenRefused
from pipeline.lake import Lake
from pipeline.night.supplier import supplier_name
from pipeline.settings import Settings, read_settings
from pipeline.supplier.store_away import RateStoreAway


@pytest.fixture
def nightly(settings, in_environment, server):  # noqa: ARG001 - runs report to it
    import flows.nightly

    in_environment(settings())
    return flows.nightly


@pytest.mark.parametrize(
    ("error", "is_retried"),
    [
        (RateStoreAway("Redis"), True), (StoreAway("S3"), True), (ClusterAway("Dask"), True),
        (LakeBusy("a night"), True), (SupplierDown("all"), True), (LakeError("damaged"), False),
        (TokenRefused("secret"), False), (OSError(), False),
    ],
)  # fmt: skip
def test_a_night_is_tried_again_where_waiting_helps(error, is_retried):
    from flows.turns import waiting_helps

    assert waiting_helps(None, None, Failed(data=error)) is is_retried


def last_run(server) -> dict[str, object]:
    # Other tests leave runs behind that wait for their time.
    begun = {"flow_runs": {"start_time": {"is_null_": False}}, "sort": "START_TIME_DESC", "limit": 1}
    return call(server, "flow_runs/filter", begun)[0]


def test_a_night_long_after_its_time_is_skipped_with_a_reason_and_sends_no_request(nightly, settings, server):
    state = nightly.nightly(catch_up_hours=0, return_state=True)
    assert (state.type.value, state.name) == ("CANCELLED", "Skipped")
    assert last_run(server)["state"]["name"] == "Skipped"
    assert "hours ago" in state.message
    assert not Lake(settings().lake).root.exists()


@pytest.mark.parametrize("ended", [CancelledRun("It was due 13.0 hours ago."), FailedRun("Its process died 3 times.")])
def test_a_state_in_which_a_flow_ends_itself_is_logged_without_a_traceback(ended, caplog):
    """Prefect logs the state with its message, and after it this error, as if the run had crashed."""
    from flows.logs import tell_our_errors_once

    tell_our_errors_once()
    logging.getLogger("prefect.flow_runs").error("Engine execution exited with unexpected exception", exc_info=ended)
    assert caplog.records == []


def test_a_run_whose_machine_died_again_and_again_is_not_begun_once_more():
    from flows.turns import MOST_RUNS, refused

    assert refused(None, MOST_RUNS, 12) is None
    state = refused(None, MOST_RUNS + 1, 12)
    assert state is not None
    assert state.is_failed()


# Prefect's form gives no characters for a text that was cleared.
@pytest.mark.parametrize("given", [{}, {"spec": ""}])
def test_a_dry_run_leaves_a_plan_and_asks_nothing(nightly, settings, server, given):
    assert nightly.nightly(dry_run=True, markets=("GB",), limit=1, **given) is None
    found = call(server, "artifacts/filter", {"sort": "CREATED_DESC", "limit": 1})[0]
    assert found["key"] == "nightly-plan"
    assert "| properties | 1 |" in found["data"]
    assert "| markets | GB |" in found["data"]
    assert not Lake(settings().lake).root.exists()
    assert last_run(server)["name"].startswith(settings().spec.stem)


def test_two_runs_never_sweep_one_spec_at_once_wherever_they_are(nightly, settings):
    import flows.turns

    with (
        flows.turns.one_sweep_of(settings().spec.stem),
        pytest.raises(flows.turns.SpecBusy, match="limit nightaudit-sweep-"),
    ):
        nightly.nightly()
    assert not Lake(settings().lake).root.exists()


def test_of_two_runs_that_saw_the_place_of_a_spec_free_one_gets_it(server, monkeypatch):  # noqa: ARG001 - it keeps them
    import flows.turns

    with flows.turns.one_sweep_of("seen-free"):
        monkeypatch.setattr(flows.turns, "_is_held", lambda _: False)
        monkeypatch.setattr(flows.turns, "_TAKEN_SECONDS", 0.3)
        with pytest.raises(flows.turns.SpecBusy), flows.turns.one_sweep_of("seen-free"):
            pass


@pytest.mark.slow
def test_a_scheduled_night_waits_for_a_busy_lake_and_continues(nightly, settings, monkeypatch):
    lake, run_night, tries = Lake(settings().lake), nightly.run_night, []

    def busy_at_first(*given):
        tries.append(given)
        if len(tries) > 1:
            return run_night(*given)
        with lake.writing("lake maintenance"):
            return run_night(*given)

    monkeypatch.setattr(nightly, "run_night", busy_at_first)
    # More tries than the lake needs: a slow server may be late with the spec's place, and that costs a try too.
    monkeypatch.setattr(nightly, "WAITS", (0.1,) * 5)
    monkeypatch.setattr(nightly, "deployment", SimpleNamespace(id="a deployment"))
    made = nightly.nightly()
    assert len(tries) == 2
    assert published(lake) == [made.sweep_id]


def test_alerts_that_query_flags_again_do_so_in_a_turn_at_the_supplier(nightly, monkeypatch):
    """Another run may be in the middle of its sweep then."""
    from pipeline.night.nightly import alert

    turns, seen = [], []

    @contextmanager
    def turn(_):
        turns.append("a turn")
        try:
            yield
        finally:
            turns.pop()

    async def confirm(*_, **__):
        seen.append(("asked", *turns))
        raise NothingSent("It is only a test.")

    def tell_alerts(*_, **given):
        seen.append(("told", *turns))
        return list(given["confirm"](["a flag"]))

    monkeypatch.setenv("NIGHTAUDIT_ALERTS", "alerts.toml")
    monkeypatch.setattr("pipeline.night.nightly.read_rules", lambda _: None)
    monkeypatch.setattr("pipeline.night.send_alerts.written_case_pages", lambda _: {})
    monkeypatch.setattr("pipeline.night.send_alerts.tell_alerts", tell_alerts)
    monkeypatch.setattr("pipeline.night.confirm.choose_flags", lambda *_: [])
    monkeypatch.setattr("pipeline.night.confirm.confirm", confirm)
    monkeypatch.setattr(nightly, "turn_at_supplier", turn)
    monkeypatch.setattr(nightly, "run_night", lambda night, as_run: as_run(alert)(night) and None)
    nightly.nightly()
    # Messages go out meanwhile: they wait for no turn.
    assert seen == [("told",), ("asked", "a turn")]
    assert turns == []


def test_runs_of_several_lakes_take_turns_at_a_supplier_with_a_second_between_them(server, tmp_path):
    rate, requests, seen = 20, 20, []

    class Supplier(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            seen.append((time.monotonic(), self.path))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Supplier) as supplier:
        threading.Thread(target=supplier.serve_forever, daemon=True).start()
        known = environment(tmp_path, tmp_path / "sweep.toml", PREFECT_API_URL=server)
        given = [f"http://127.0.0.1:{supplier.server_port}", str(rate), str(requests)]
        taker = [sys.executable, str(Path(__file__).with_name("turn_taker.py")), *given]
        runs = [subprocess.Popen([*taker, name], cwd=ROOT, env=known | {"PYTHONPATH": str(ROOT)}) for name in "abc"]
        assert [run.wait(timeout=300) for run in runs] == [0, 0, 0]
        supplier.shutdown()
    assert len(seen) == 3 * requests
    changes = [at - last for (last, path), (at, next_path) in pairwise(seen) if path != next_path]
    assert len(changes) == 2
    assert min(changes) >= 1


def test_a_waiting_run_begins_at_its_first_look_after_the_turn_before_has_ended(server, monkeypatch):
    """Prefect would let it wait for about as long as a turn takes, and for up to half a minute."""
    import flows.turns

    outside = {"base_url": "https://long.example", "client_id": "shop", "client_secret": "x"}
    given = Settings(_env_file=None, **outside)
    name = flows.turns._limit("supplier", supplier_name(given))
    limit = {"filter": {"name": {"any_": [name]}}}
    looks = []
    with ExitStack() as other:
        other.enter_context(flows.turns._place(name, 30))

        def sleep(seconds: float) -> None:
            looks.append(seconds)
            if len(looks) == 3:
                other.close()

        monkeypatch.setattr(flows.turns, "time", SimpleNamespace(sleep=sleep))
        with flows.turns.turn_at_supplier(given):
            assert len(looks) == 3
            (found,) = [each for each in call(server, "v2/concurrency_limits/filter", limit) if each["name"] == name]
            assert found["active_slots"] == 1


def test_with_a_rate_store_or_the_sandbox_no_run_waits_for_another(settings, monkeypatch):
    import flows.turns

    monkeypatch.setattr(flows.turns, "_place", None)
    outside = {"base_url": "https://supplier.example", "client_id": "shop", "client_secret": "x"}
    for given in (settings(), settings(**outside, rate_store="rediss://store.example")):
        with flows.turns.turn_at_supplier(given):
            pass


@pytest.mark.parametrize("wrong", [{"markets": ["XX"]}, {"limit": 0}, {"dry_run": "perhaps"}])
def test_prefects_server_refuses_parameters_that_no_night_could_have(server, wrong):
    from flows.deploy import deployments_of

    async def apply() -> str:
        made = await deployments_of(read_settings(_env_file=None))
        return str(await made[0].apply())

    deployment = asyncio.run(apply())
    with pytest.raises(httpx.HTTPStatusError, match=r"409|422"):
        call(server, f"deployments/{deployment}/create_flow_run", {"parameters": wrong})
