"""Rebuilding: from raw alone, the same tables as were loaded night by night, and never half of it."""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import duckdb
import pytest

from pipeline.domain.errors import CorruptObject, LakeError, LakeFull, LakeTooNew, SweepStopped
from pipeline.domain.servers import Workforce
from pipeline.lake import Lake
from pipeline.lake.database import open_published, query_published
from pipeline.night import night_sweep
from pipeline.night import rebuild as rebuilding
from pipeline.night.night import Night
from pipeline.night.rebuild import rebuild
from pipeline.publish import publish
from pipeline.settings import Settings
from pipeline.sweep import SweepOptions, close, normalisers

# Each test rebuilds a lake of several nights.
pytestmark = pytest.mark.slow

SPEC = """
[properties]
sandbox = 12
[stays]
nights = [1]
anchor = "calendar"
[[stays.horizon]]
to_days = 2
[ask]
markets = ["GB", "SE"]
parties = ["2"]
currencies = ["EUR"]
operations = ["multi", "single"]
single_properties = 3
"""
OPTIONS = SweepOptions(4, 64_000_000, Workforce(1))
NOW = datetime(2030, 5, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module", autouse=True)
def one_process():
    """Normalise in a thread: a separate process for each sweep takes longer than its work here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalisers, "ProcessPoolExecutor", lambda workers, *_, **__: ThreadPoolExecutor(workers))
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with `made`, a lake of two published nights, of which the second was abandoned."""
    home = tmp_path_factory.mktemp("home")
    spec = home / "sweep.toml"
    spec.write_text(SPEC)
    settings = Settings(lake=str(home / "lake"), spec=spec, workers=1, sandbox_properties=40, _env_file=None)
    lake = Lake(settings.lake)
    for number in range(2):
        at = NOW + timedelta(days=number)
        manifest = night_sweep.start(settings, lake, at)
        if number == 1:
            close(lake, manifest, at)
        asyncio.run(night_sweep.collect(Night(settings, lake, manifest, clock=lambda at=at: at)))
        publish(lake, manifest.sweep_id, at)
    lake.root.rename(home / "made")
    return home


@pytest.fixture
def lake(home):
    """A copy of that lake, where it was made: the published file names the place of its tables."""
    shutil.rmtree(home / "lake", ignore_errors=True)
    shutil.copytree(home / "made", home / "lake")
    return Lake(str(home / "lake"))


def run(lake, **given):
    return asyncio.run(rebuild(lake, OPTIONS, now=lambda: NOW, **given))


def contents(file) -> dict[str, list[tuple]]:
    """Every row of every table and view of the published file, but for where the files of its state lie."""
    # One session for all: each opens the file, and there are two hundred relations.
    with open_published(file) as session:
        names = session.execute(
            "SELECT table_schema || '.' || table_name FROM information_schema.tables "
            "WHERE table_catalog = 'nightaudit' AND table_schema || '.' || table_name <> 'state.file' ORDER BY ALL"
        ).fetchall()
        return {name: session.execute(f"FROM {name} ORDER BY ALL").fetchall() for (name,) in names}


def test_a_rebuild_equals_the_original_table_by_table(lake):
    before = contents(lake.published_file)
    done = run(lake)
    after = contents(lake.published_file)
    assert after.keys() == before.keys()
    for name, rows in before.items():
        assert after[name] == rows, name
    for name in (
        "lake.offer",
        "lake.penalty",
        "lake.offer_change",
        "lake.room",
        "lake.room_image",
        "mart.offer_history",
    ):
        assert before[name], name
    assert done.sweeps == tuple(lake.sweep_ids())
    assert Lake(str(lake.root)).tables_folder == "tables-2"
    assert (
        "tables-2"
        in query_published(lake.published_file, "SELECT sql FROM duckdb_views() WHERE view_name = 'search'").fetchone()[
            0
        ]
    )


def test_a_reader_that_has_the_former_file_open_reads_on(lake):
    with duckdb.connect(":memory:") as reader:
        reader.execute(f"ATTACH '{lake.published_file}' AS old (READ_ONLY)")
        before = reader.execute("SELECT count(*), sum(total) FROM old.lake.offer").fetchall()
        run(lake)
        assert reader.execute("SELECT count(*), sum(total) FROM old.lake.offer").fetchall() == before


def test_rebuilding_twice_keeps_one_former_folder_and_the_next_night_continues(lake):
    run(lake)
    before = contents(lake.published_file)
    run(Lake(str(lake.root)))
    assert sorted(path.name for path in lake.root.glob("tables*")) == ["tables-2", "tables-3"]
    assert contents(lake.published_file) == before
    again = publish(Lake(str(lake.root)), lake.sweep_ids()[-1], NOW)
    assert not again.is_new


@pytest.mark.parametrize("point", ["_keep_quarantine", "republish_all"])
def test_a_stop_before_the_end_leaves_all_as_it_was(lake, monkeypatch, point):
    before = contents(lake.published_file)

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(rebuilding, point, stop)
    with pytest.raises(KeyboardInterrupt):
        run(lake)
    assert [path.name for path in lake.root.glob("tables*")] == ["tables"]
    assert Lake(str(lake.root)).tables_folder == "tables"
    assert contents(lake.published_file) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_rebuild_stopped_by_a_signal_names_what_is_unchanged_and_how_to_start_again(lake, number):
    stop = iter([True])
    with pytest.raises(SweepStopped) as stopped:
        run(lake, watch=lambda _: next(stop, None) and os.kill(os.getpid(), number))
    assert stopped.value.exit_code == 128 + number
    assert "The tables and the published file are unchanged." in str(stopped.value)
    assert str(stopped.value).endswith("Continue with: nightaudit rebuild")
    assert [path.name for path in lake.root.glob("tables*")] == ["tables"]


def test_a_rebuild_without_space_ends_with_code_6_and_names_how_to_start_again(lake, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(importlib.import_module("pipeline.publish.publish"), "_build", full)
    with pytest.raises(LakeFull) as caught:
        run(lake)
    assert caught.value.hint.endswith("nightaudit rebuild")
    assert [path.name for path in lake.root.glob("tables*")] == ["tables"]


def test_a_crash_between_the_two_swaps_leaves_a_readable_file_and_the_next_rebuild_repairs_it(lake, monkeypatch):
    before = contents(lake.published_file)
    real = Lake.adopt_tables

    def crash(self):
        real(self)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "adopt_tables", crash)
        with pytest.raises(KeyboardInterrupt):
            run(lake)
    assert contents(lake.published_file) == before
    reopened = Lake(str(lake.root))
    assert reopened.tables_folder == "tables-2"
    run(reopened)
    assert contents(lake.published_file) == before


def test_missing_raw_answers_are_reported_before_anything_is_changed(lake):
    sweep = lake.sweep_ids()[0]
    shard = sorted(lake.local(lake.raw_folder(sweep)).glob("*.parquet"))[0]
    held = shard.read_bytes()
    shard.unlink()
    with pytest.raises(LakeError, match="are missing"):
        run(lake)
    damaged = bytearray(held)
    damaged[len(damaged) // 2] ^= 0xFF
    shard.write_bytes(damaged)
    with pytest.raises(CorruptObject):
        run(lake)
    shutil.rmtree(lake.local(lake.raw_folder(sweep)))
    with pytest.raises(LakeError, match="are gone"):
        run(lake)
    assert [path.name for path in lake.root.glob("tables*")] == ["tables"]


def test_a_writer_that_opened_the_lake_before_a_rebuild_writes_to_the_new_tables(lake):
    early = Lake(str(lake.root))
    run(lake)
    with early.writing("a test"):
        assert early.tables_folder == "tables-2"


def test_an_older_version_refuses_a_rebuilt_lake_and_reads_any_other(lake, monkeypatch):
    from pipeline.lake import mark

    monkeypatch.setattr(mark, "_FORMAT", 1)
    assert Lake(str(lake.root)).tables_folder == "tables"
    monkeypatch.undo()
    run(lake)
    monkeypatch.setattr(mark, "_FORMAT", 1)
    with pytest.raises(LakeTooNew):
        Lake(str(lake.root))


def test_the_command_says_what_was_made(lake, tmp_path, nightaudit):
    done = nightaudit(tmp_path, "rebuild", NIGHTAUDIT_LAKE=str(lake.root), NIGHTAUDIT_WORKERS="1")
    assert not done.returncode
    assert "2 sweeps" in done.stdout
    assert "tables-2" in done.stdout
