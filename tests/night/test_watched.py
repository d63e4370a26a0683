"""Monitoring of nights from outside: metrics, a probe, JSON for programs, a message with the changes' address."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import shutil
import socket
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlparse
from urllib.request import url2pathname, urlopen

import pyarrow.parquet as pq
import pytest
from free_port import free_port
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as prometheus_text
from s3_server import s3_server
from tiny_night import receiving, rows, settings_in
from typer.testing import CliRunner

from pipeline.cli.commands import app
from pipeline.cli.status import NightTooOld
from pipeline.domain.errors import NightauditError, SettingsError
from pipeline.lake import Lake
from pipeline.lake.ledger import published_sweeps
from pipeline.lake.raw import landed
from pipeline.lake.simulated import SIMULATED
from pipeline.night.latest import latest_sweep
from pipeline.night.metrics import metrics
from pipeline.night.night import Night
from pipeline.night.night_sweep import collect, start
from pipeline.night.nightly import announce, run_night
from pipeline.night.outlook import cost_history
from pipeline.night.step_lines import line_of
from pipeline.night.verify import verify
from pipeline.plan.estimate import TimedStep
from pipeline.process.log_lines import JsonLines, about_sweep
from pipeline.publish import publish
from pipeline.publish.pull import LakeInStore, pull

NIGHT_AT = datetime(2026, 10, 1, 2, tzinfo=UTC)


LOGGED: list[dict[str, object]] = []


@contextmanager
def logged(name):
    """Keep what happens, as NIGHTAUDIT_LOG_FORMAT=json writes it."""
    handler = logging.Handler()
    handler.emit = lambda record: LOGGED.append(json.loads(JsonLines().format(record)))
    logger, level = logging.getLogger(name), logging.getLogger(name).level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A night of the sandbox that was announced: its lake, and what the receiver was sent."""
    folder = tmp_path_factory.mktemp("watched")
    with receiving() as (address, got), logged("pipeline"):
        given = settings_in(folder, sandbox_clock=NIGHT_AT, published_webhook=address)
        run_night(Night(given, Lake(given.lake)))
    return Lake(given.lake), got


def command(lake: Lake, monkeypatch, *arguments: str, clock: str = "2026-10-02T02:00:00Z"):
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    monkeypatch.setenv("NIGHTAUDIT_SANDBOX_CLOCK", clock)
    return CliRunner().invoke(app, arguments)


@pytest.mark.slow
def test_metrics_are_openmetrics_and_add_up_to_what_is_published(made):
    lake, _ = made
    text = metrics(lake, datetime(2026, 10, 2, 2, tzinfo=UTC))
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    ((planned, offers, searches),) = rows(lake, "SELECT planned, offers, searches FROM mart.sweep")
    assert found["nightaudit_published_age_seconds",] == 24 * 3600
    assert found["nightaudit_published_timestamp_seconds",] == NIGHT_AT.timestamp()
    assert found["nightaudit_published_readable",] == 1
    assert {name[1] for name in found if name[0] == "nightaudit_findings"} == {"high", "low", "medium"}
    assert sum(value for name, value in found.items() if name[0] == "nightaudit_night_cells") == planned
    assert sum(value for name, value in found.items() if name[0] == "nightaudit_night_searches") == searches
    assert found["nightaudit_night_offers",] == offers
    assert {name[1] for name in found if name[0] == "nightaudit_night_latency_seconds"} == {"0.5", "0.9", "0.99"}
    (swept,) = cost_history(lake).durations[TimedStep.SWEEP]
    assert found["nightaudit_night_paced_seconds",] == swept.paced_seconds > 0
    panels = json.loads((Path(__file__).parents[2] / "flows" / "dashboard.json").read_text())["panels"]
    shown = {name for panel in panels for to in panel["targets"] for name in re.findall(r"nightaudit_\w+", to["expr"])}
    assert shown <= {name for name, *_ in found}
    assert {name[1] for name in found if name[0] == "nightaudit_night_step_seconds"} == {
        str(step) for step in TimedStep
    }
    assert found["nightaudit_night_step_seconds", "sweep"] == swept.seconds
    ((ended_at,),) = rows(lake, "SELECT finished_at FROM mart.sweep")
    (entry,) = published_sweeps(lake)
    (published,) = cost_history(lake).durations[TimedStep.PUBLISH]
    # The ledger notes when publishing begins, and readers see the night when it ends.
    readable_at = entry.published_at + timedelta(seconds=published.seconds)
    assert found["nightaudit_night_lag_seconds",] == max((readable_at - ended_at).total_seconds(), 0)


@pytest.mark.slow
def test_every_step_of_a_night_that_a_plan_estimates_is_measured(made):
    durations = cost_history(made[0]).durations
    assert [len(durations[step]) for step in TimedStep] == [1] * len(TimedStep)
    ((searches,),) = rows(made[0], "SELECT searches FROM mart.sweep")
    assert durations[TimedStep.SWEEP][0].searches == searches


def test_a_clock_set_back_shows_no_negative_time(made):
    text = metrics(made[0], datetime(2026, 9, 1, 2, tzinfo=UTC))
    seconds = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "seconds" in sample.name
    }
    assert seconds["nightaudit_published_age_seconds"] == 0
    assert min(seconds.values()) >= 0


def test_a_lake_that_holds_nothing_has_metrics_too(tmp_path):
    assert metrics(Lake(str(tmp_path / "lake")), NIGHT_AT).endswith("# EOF\n")


def test_a_published_file_that_cannot_be_read_is_a_metric(made, tmp_path):
    shutil.copytree(made[0].root, tmp_path / "lake")
    lake = Lake(str(tmp_path / "lake"))
    lake.published_file.write_bytes(b"damaged")
    assert "nightaudit_published_readable 0.0\n" in metrics(lake, NIGHT_AT)


def test_a_lake_that_was_moved_and_not_published_again_fails_probe_and_doctor_and_is_a_metric(
    made, monkeypatch, tmp_path
):
    lake = Lake(str(shutil.copytree(made[0].root, tmp_path / "lake")))
    assert "nightaudit_published_readable 0.0\n" in metrics(lake, NIGHT_AT)
    assert "The lake was moved" in str(command(lake, monkeypatch, "health").exception)
    (files,) = [
        check
        for check in map(json.loads, command(lake, monkeypatch, "doctor", "--format", "json").stdout.splitlines())
        if check["check"] == "files"
    ]
    assert not files["is_passed"]
    assert files["hint"].startswith("Point it to this folder: nightaudit publish")


def test_a_link_to_a_lake_is_no_other_lake(made, monkeypatch, tmp_path):
    (tmp_path / "link").symlink_to(made[0].root)
    assert command(Lake(str(tmp_path / "link")), monkeypatch, "health").exit_code == 0


def test_a_published_file_whose_tables_are_gone_is_a_metric(made, tmp_path, caplog):
    lake = Lake(str(shutil.copytree(made[0].root, tmp_path / "lake")))
    publish(lake, lake.sweep_ids()[-1], NIGHT_AT)
    assert "nightaudit_published_readable 1.0\n" in metrics(lake, NIGHT_AT)
    for file in (lake.root / "tables" / "search").rglob("*.parquet"):
        file.unlink()
    text = metrics(lake, NIGHT_AT)
    assert "nightaudit_published_readable 0.0\n" in text
    assert "nightaudit_night_" not in text
    assert "cannot be read" in caplog.text


def test_a_webhook_that_cannot_be_reached_is_not_said_to_be_told(made, tmp_path):
    lake = Lake(str(shutil.copytree(made[0].root, tmp_path / "lake")))
    (lake.root / "notify" / "published.json").unlink()
    given = settings_in(tmp_path, sandbox_clock=NIGHT_AT, published_webhook=f"http://127.0.0.1:{free_port()}/")
    with lake.writing("a message"):
        night = announce(Night(given, lake, latest_sweep(lake)))
    assert line_of("announce", night) == "The webhook could not be reached."


def test_a_probe_passes_while_the_night_is_young_and_fails_when_it_is_not(made, monkeypatch, tmp_path):
    lake, _ = made
    assert command(lake, monkeypatch, "health", "--older-than", "25").exit_code == 0
    assert isinstance(command(lake, monkeypatch, "health", "--older-than", "23").exception, NightTooOld)
    nothing = command(Lake(str(tmp_path / "none")), monkeypatch, "health")
    assert isinstance(nothing.exception, NightauditError)


def test_a_night_that_begins_after_now_fails_the_probe_as_no_night_can_follow_it(made, monkeypatch):
    lake, _ = made
    before = (NIGHT_AT - timedelta(days=1)).isoformat()
    error = command(lake, monkeypatch, "health", clock=before).exception
    assert isinstance(error, NightTooOld)
    assert "begins in 24.0 hours" in str(error)
    a_minute_before = (NIGHT_AT - timedelta(minutes=1)).isoformat()
    assert command(lake, monkeypatch, "health", clock=a_minute_before).exit_code == 0, "clocks differ a little"


def test_a_sweep_serves_its_metrics_while_it_runs_and_no_longer(tmp_path):
    port, seen = free_port(), []

    def watch(_):
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            seen.append(answer.read().decode())

    given = settings_in(tmp_path, sandbox_clock=NIGHT_AT, metrics_port=port)
    collected = collect_night(given, watch)
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in prometheus_text(seen[-1])
        for sample in family.samples
    }
    assert values["nightaudit_sweep_requests_total",] == collected.tally.requests
    assert values["nightaudit_sweep_answers_total", "200"] > 0
    assert values["nightaudit_sweep_wire_bytes_total",] == collected.tally.wire_bytes
    assert values["nightaudit_sweep_latency_seconds_count",] == collected.tally.searches
    assert values["nightaudit_sweep_paced_seconds",] > 0
    assert values["nightaudit_sweep_searches", "landed"] <= collected.landed_searches
    assert values["nightaudit_sweep_info", collected.sweep_id] == 1
    with pytest.raises(URLError):
        watch(None)


def test_a_port_that_is_taken_is_refused_before_anything_is_sent(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        given = settings_in(tmp_path, sandbox_clock=NIGHT_AT, metrics_port=taken.getsockname()[1])
        with pytest.raises(SettingsError, match="NIGHTAUDIT_METRICS_PORT cannot be used: Address already in use"):
            collect_night(given, lambda _: None)
    lake = Lake(given.lake)
    assert not landed(lake, lake.sweep_ids()[0])


def collect_night(given, watch):
    lake = Lake(given.lake)
    with lake.writing("a sweep"):
        manifest = start(given, lake, given.clock())
        return asyncio.run(collect(Night(given, lake, manifest, watch=watch)))


def test_metrics_are_written_to_a_file_in_one_step(made, monkeypatch, tmp_path):
    file = tmp_path / "nightaudit.prom"
    assert command(made[0], monkeypatch, "metrics", "--output", str(file)).exit_code == 0
    assert file.read_text().endswith("# EOF\n")
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("called", [["status"], ["plan"], ["verify"]])
def test_what_commands_show_is_json_for_programs(made, monkeypatch, called):
    result = command(made[0], monkeypatch, *called, "--format", "json")
    assert result.exit_code == 0, result.exception
    assert [json.loads(line) for line in result.stdout.splitlines()]


def test_a_published_night_is_announced_once_with_the_address_of_its_changes(made):
    lake, got = made
    (message,) = got
    said = dict(line.split(": ", 1) for line in message["text"].splitlines()[1:])
    files = list(Path(url2pathname(urlparse(said["changes"]).path)).glob("*.parquet"))
    ((changes,),) = rows(lake, "SELECT count(*) FROM lake.offer_change")
    assert sum(pq.read_metadata(file).num_rows for file in files) == changes > 0
    assert message["subject"] == "nightaudit: published 2026-10-01"
    assert message["text"].endswith(SIMULATED)


def test_a_published_night_of_a_lake_on_s3_is_announced_by_what_a_pull_brings(tmp_path, monkeypatch):
    monkeypatch.setenv("NIGHTAUDIT_LAKE_COPY", str(tmp_path / "copy"))
    with s3_server() as server, receiving() as (receiver, got):
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        given = settings_in(tmp_path, lake="s3://bucket/team/lake", sandbox_clock=NIGHT_AT, published_webhook=receiver)
        made = run_night(Night(given, Lake(given.lake)))
        said = dict(line.split(": ", 1) for line in got[0]["text"].splitlines()[1:])
        pulled = pull(LakeInStore(said["lake"]), tmp_path / "pulled")
    assert said["lake"] == given.lake
    assert said["sweep"] == made.sweep_id
    assert tmp_path / "pulled" / said["published"] == pulled.file
    files = list((tmp_path / "pulled" / said["changes"]).glob("*.parquet"))
    ((changes,),) = rows(Lake(str(tmp_path / "pulled")), "SELECT count(*) FROM lake.offer_change")
    assert sum(pq.read_metadata(file).num_rows for file in files) == changes > 0
    # Other machines do not have this one's copy.
    assert str(tmp_path) not in got[0]["text"]


def test_a_line_of_the_log_is_json_with_the_sweep_that_it_is_about():
    record = logging.makeLogRecord({"name": "pipeline.night", "levelno": 20, "levelname": "INFO", "msg": "a\nb"})
    with about_sweep("20261001T020000Z"):
        line = JsonLines().format(record)
    assert "\n" not in line
    reported = json.loads(line)
    assert (reported["message"], reported["sweep_id"], reported["level"]) == ("a\nb", "20261001T020000Z", "info")
    assert "sweep_id" not in json.loads(JsonLines().format(record))


def test_the_line_of_each_step_names_its_sweep_from_the_first_on(made):
    lake, _ = made
    steps = [(line["step"], line.get("sweep_id")) for line in LOGGED if "step" in line]
    assert steps[0][0] == "begin"
    assert {sweep_id for _, sweep_id in steps} == set(lake.sweep_ids())


def test_each_block_of_searches_that_lands_is_one_line_of_the_log(made):
    lake, _ = made
    shards = {path.stem for path in (lake.root / "raw").glob("*/*.parquet")}
    lines = [line["message"] for line in LOGGED if line["message"].startswith("Landed ")]
    assert {line.split()[1].rstrip(":") for line in lines} == shards
    ((searches,),) = rows(lake, "SELECT searches FROM mart.sweep")
    assert f" {searches} of {searches} searches so far" in lines[-1]


@pytest.mark.slow
def test_a_copy_of_a_lake_restored_elsewhere_publishes_the_same(made, tmp_path):
    lake, _ = made
    before = rows(lake, "FROM mart.offer_latest ORDER BY ALL")
    restored = tmp_path / "restored"
    shutil.copytree(lake.root, restored)
    copy = Lake(str(restored))
    assert verify(copy, is_deep=True).damages == ()
    copy.published_file.unlink()
    publish(copy, copy.sweep_ids()[-1], NIGHT_AT)
    # Nothing of it leads back to where it was.
    assert [sql for (sql,) in rows(copy, "SELECT sql FROM duckdb_views()") if str(lake.root) in sql] == []
    assert rows(copy, "FROM mart.offer_latest ORDER BY ALL") == before
