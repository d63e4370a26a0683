"""Nights made at an instant that is set: a lake on the sandbox takes a clock, and its history is made in order."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from pipeline.cli.doctor import _lake
from pipeline.domain.errors import InputError
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.night import night_sweep
from pipeline.night.care import plan_care
from pipeline.night.done_steps import note_done
from pipeline.night.gate import audit_sweep, publish_checked
from pipeline.night.night import Night
from pipeline.night.nightly import run_night
from pipeline.night.overview import overview
from pipeline.night.verify import verify
from pipeline.publish import published_sweeps
from pipeline.settings import Settings
from pipeline.sweep import normalisers

pytestmark = pytest.mark.slow

FIRST = datetime(2026, 10, 1, 2, tzinfo=UTC)
SPEC = """
[properties]
sandbox = 4
[stays]
nights = [1]
[[stays.horizon]]
to_days = 2
every_days = 1
[ask]
markets = ["GB", "SE"]
parties = ["2"]
currencies = ["EUR"]
operations = ["multi", "single"]
"""


@pytest.fixture(autouse=True)
def workers_of_this_process(monkeypatch):
    monkeypatch.setattr(normalisers, "ProcessPoolExecutor", lambda workers, *_, **__: ThreadPoolExecutor(workers))


def settings_at(folder: Path, at: datetime | None, **given) -> Settings:
    folder.mkdir(exist_ok=True)
    (folder / "spec.toml").write_text(SPEC)
    return Settings(
        _env_file=None, lake=str(folder / "lake"), spec=folder / "spec.toml", sandbox_clock=at, workers=1, **given
    )


def sweep_at(settings: Settings) -> str:
    """Sweep and load a night with the settings' clock alone; return its sweep."""
    lake = Lake(settings.lake)
    manifest = night_sweep.start_or_go_on(settings, lake, settings.clock())
    asyncio.run(night_sweep.collect(Night(settings, lake, manifest)))
    return manifest.sweep_id


def night_at(folder: Path, at: datetime) -> None:
    """Make and publish a night with the settings' clock alone."""
    settings = settings_at(folder, at)
    lake, sweep_id = Lake(settings.lake), sweep_at(settings)
    audit_sweep(settings, lake, sweep_id, settings.clock())
    publish_checked(lake, sweep_id, settings.clock(), analysis=settings.analysis)


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory):
    """A lake with two nights, a week apart."""
    folder = tmp_path_factory.mktemp("simulated")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalisers, "ProcessPoolExecutor", lambda workers, *_, **__: ThreadPoolExecutor(workers))
        night_at(folder, FIRST)
        night_at(folder, FIRST + timedelta(days=7))
    return folder


def rows(folder: Path, query: str) -> list[tuple]:
    return query_published(Lake(str(folder / "lake")).published_file, query).fetchall()


def test_nights_at_set_instants_pass_the_gate_and_carry_their_instants_everywhere(two_nights):
    later = FIRST + timedelta(days=7)
    assert rows(two_nights, "SELECT DISTINCT started_at, ended_at FROM lake.search ORDER BY 1") == [
        (FIRST, FIRST),
        (later, later),
    ]
    nights = "FROM (SELECT sweep_id[:16], snapshot_date, started_at, finished_at, audit, is_simulated FROM mart.sweep)"
    assert rows(two_nights, f"{nights} ORDER BY ALL") == [
        ("20261001T020000Z", FIRST.date(), FIRST, FIRST, "passed", True),
        ("20261008T020000Z", later.date(), later, later, "passed", True),
    ]
    entered = [entry.published_at for entry in published_sweeps(Lake(str(two_nights / "lake")))]
    assert entered == [FIRST, later]
    assert rows(two_nights, "SELECT sum(quarantined) FROM mart.sweep") == [(0,)]
    assert rows(two_nights, "SELECT max(last_seen_at) FROM mart.offer_latest") == [(later,)]


def test_the_same_seed_and_the_same_clock_land_the_same_bytes(two_nights, tmp_path):
    sweep_id = sweep_at(settings_at(tmp_path / "again", FIRST))

    def raw(folder: Path) -> dict[str, bytes]:
        place = Lake(str(folder / "lake")).local(Lake.raw_folder(sweep_id))
        return {file.name: file.read_bytes() for file in place.iterdir()}

    assert raw(tmp_path / "again") == raw(two_nights)


@pytest.mark.parametrize("back", [timedelta(0), timedelta(seconds=1), timedelta(days=7, hours=1)], ids=str)
def test_a_clock_behind_the_lakes_latest_night_is_refused(two_nights, back):
    settings = settings_at(two_nights, FIRST + timedelta(days=7) - back)
    with pytest.raises(InputError, match="A lake records nights in order") as caught:
        night_sweep.start(settings, Lake(settings.lake), settings.clock())
    assert "2026-10-08 02:00:00 UTC" in str(caught.value)
    assert "Set NIGHTAUDIT_SANDBOX_CLOCK to a later instant" in caught.value.hint


def test_the_real_time_is_refused_if_the_lake_has_a_later_night(tmp_path):
    settings = settings_at(tmp_path, datetime(2199, 1, 1, tzinfo=UTC))
    lake = Lake(settings.lake)
    night_sweep.start(settings, lake, settings.clock())
    today = settings_at(tmp_path, None)
    with pytest.raises(InputError, match="sweep of 2199-01-01 00:00:00 UTC"):
        night_sweep.start(today, lake, today.clock())
    # Every night from now on would be refused, so the doctor must not call this lake well.
    with pytest.raises(InputError, match="sweep of 2199-01-01 00:00:00 UTC"):
        _lake(today)


@pytest.mark.parametrize("stage", ["unfinished", "loaded"])
def test_status_names_no_command_that_the_clock_refuses(tmp_path, nightaudit, stage):
    settings = settings_at(tmp_path, FIRST)
    if stage == "loaded":
        sweep_id = sweep_at(settings)
    else:
        sweep_id = night_sweep.start(settings, Lake(settings.lake), settings.clock()).sweep_id

    def status(at: datetime) -> str:
        return nightaudit(tmp_path, "status", NIGHTAUDIT_LAKE="lake", NIGHTAUDIT_SANDBOX_CLOCK=at.isoformat()).stdout

    command = f"nightaudit {'resume' if stage == 'unfinished' else 'audit'} {sweep_id}"
    assert f"Continue with: {command}" in status(FIRST)
    before = " ".join(status(FIRST - timedelta(days=1)).split())
    assert "Continue with" not in before
    assert "The clock shows 2026-09-30 02:00:00 UTC, but this lake has a sweep of 2026-10-01 02:00:00 UTC." in before
    assert "Set NIGHTAUDIT_SANDBOX_CLOCK to a later instant" in before


def test_neither_collecting_nor_the_gate_goes_by_an_earlier_clock(tmp_path):
    settings = settings_at(tmp_path, FIRST)
    lake = Lake(settings.lake)
    manifest = night_sweep.start(settings, lake, FIRST)
    earlier = settings_at(tmp_path, FIRST - timedelta(hours=1))
    with pytest.raises(InputError, match="in order"):
        asyncio.run(night_sweep.collect(Night(earlier, lake, manifest)))
    asyncio.run(night_sweep.collect(Night(settings, lake, manifest)))
    with pytest.raises(InputError, match="in order"):
        audit_sweep(earlier, lake, manifest.sweep_id, earlier.clock())
    audit_sweep(settings, lake, manifest.sweep_id, FIRST)
    with pytest.raises(InputError, match="in order"):
        publish_checked(lake, manifest.sweep_id, earlier.clock())
    assert published_sweeps(lake) == []


def test_a_night_that_was_stopped_is_resumed_at_its_own_instant(tmp_path):
    settings = settings_at(tmp_path, FIRST)
    lake = Lake(settings.lake)
    begun = night_sweep.start(settings, lake, settings.clock())
    assert night_sweep.start_or_go_on(settings, lake, settings.clock()) == begun


def test_a_damaged_manifest_of_the_first_sweep_costs_no_later_night(tmp_path):
    night_at(tmp_path, FIRST)
    night_at(tmp_path, FIRST + timedelta(days=1))
    lake = Lake(str(tmp_path / "lake"))
    (lake.root / "raw" / lake.sweep_ids()[0] / "sweep.json").write_text("{")
    third = sweep_at(settings_at(tmp_path, FIRST + timedelta(days=2)))
    assert lake.sweep_ids()[-1] == third


def test_a_damaged_manifest_of_the_latest_sweep_costs_that_sweep_and_no_later_night(tmp_path, caplog):
    night_at(tmp_path, FIRST)
    night_at(tmp_path, FIRST + timedelta(days=1))
    lake = Lake(str(tmp_path / "lake"))
    damaged = lake.root / "raw" / lake.sweep_ids()[-1] / "sweep.json"
    damaged.write_bytes(damaged.read_bytes()[:100])
    seen = overview(lake).latest_published
    assert seen is not None
    assert (seen.sweep_id, seen.state, seen.planned_cells) == (damaged.parent.name, "damaged", seen.counts["planned"])
    with pytest.raises(InputError, match="A lake records nights in order"):
        # The sweep's id still says when it began.
        night_sweep.start(settings_at(tmp_path, FIRST), lake, FIRST)
    later = FIRST + timedelta(days=2)
    settings = settings_at(tmp_path, later).model_copy(update={"published_webhook": SecretStr("http://127.0.0.1:9/")})
    caplog.clear()
    run_night(Night(settings, lake, clock=lambda: later))
    reported = [record.message for record in caplog.records if record.message.startswith("Skipped")]
    assert len(reported) == 1
    assert str(damaged) in reported[0]
    assert "nightaudit verify --deep" in reported[0]
    assert [entry.sweep_id for entry in published_sweeps(lake)] == lake.sweep_ids()
    assert len(lake.sweep_ids()) == 3
    assert plan_care(settings.model_copy(update={"observation_nights": 1, "raw_nights": 1}), lake)


def test_damage_of_what_can_be_made_again_costs_no_later_night(tmp_path, caplog):
    night_at(tmp_path, FIRST)
    lake = Lake(str(tmp_path / "lake"))
    (first,) = lake.sweep_ids()
    note_done(lake, first, "publish")
    for damaged in (lake.published_file, lake.root / "nights" / f"{first}.json"):
        damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
    assert {damage.path for damage in verify(lake, is_deep=False).damages} == {
        "published/nightaudit.duckdb",
        f"nights/{first}.json",
    }
    later = FIRST + timedelta(days=1)
    run_night(Night(settings_at(tmp_path, later), lake, clock=lambda: later))
    assert [entry.sweep_id for entry in published_sweeps(lake)] == lake.sweep_ids()
    assert rows(tmp_path, "SELECT count(*) FROM mart.sweep") == [(2,)]
    assert "It is rebuilt from the tables." in caplog.text
    assert f"The sweep {first} of {FIRST.date()} stays unfinished: " in caplog.text
