"""Maintenance removes files and nights that nothing needs, and no row that is shown anywhere."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime

import duckdb
import pytest
from deltalake import DeltaTable
from nights import load_night, sweep_id
from typer.testing import CliRunner

from pipeline.cli.commands import app
from pipeline.domain.errors import LakeError
from pipeline.domain.tables import OFFER, SEARCH, TABLES
from pipeline.domain.texts import literal
from pipeline.lake import Lake
from pipeline.lake.delta import commit_files
from pipeline.lake.raw import is_retired
from pipeline.lake.sweep_files import sweep_files
from pipeline.night.care import plan_care, take_care
from pipeline.night.verify import verify
from pipeline.publish import publish
from pipeline.settings import Settings

NIGHTS = 2

# Each test publishes nights of its own.
pytestmark = pytest.mark.slow


@pytest.fixture
def lake(tmp_path) -> Lake:
    """Two published nights; each answered the one cell in two segments, with another price each night."""
    lake = Lake(str(tmp_path / "lake"))
    for night in range(NIGHTS):
        _publish_night(lake, night)
    return lake


def _publish_night(lake: Lake, night: int) -> None:
    search = {"search_id": 1, "property_ids": [1], "raw_address": "raw/x#0"}
    cell = {"search_id": 1, "check_in": datetime(2030, 3, 1, tzinfo=UTC).date()}
    offers = [{"search_id": 1, "offer_no": no, "room_id": no, "total": 100 + no + night} for no in (1, 2)]
    known = {"search": [_known(SEARCH, search)], "cell": [_known(TABLES["cell"], cell)]}
    sweep = load_night(lake, night, **known, offer=[_known(OFFER, offer) for offer in offers])
    for name in ("search", "cell", "offer"):
        folder = lake.table_root(name) / sweep
        (first,) = folder.glob("*.parquet")
        # A second segment that has nothing to tell.
        with duckdb.connect(":memory:") as session:
            second = folder / "multi-GB-00001.parquet"
            session.execute(f"COPY (FROM {literal(str(first))} LIMIT 0) TO {literal(str(second))}")
        paths = [file.relative_to(lake.root).as_posix() for file in sorted(folder.glob("*.parquet"))]
        commit_files(lake, TABLES[name], {f"{sweep}/multi-GB": paths})
    publish(lake, sweep, datetime(2030, 1, 1 + night, 4, tzinfo=UTC))


def _known(table, given):
    names = {column.name for column in table.columns}
    return {name: value for name, value in given.items() if name in names}


def settings(**given) -> Settings:
    return Settings(_env_file=None, **{"observation_nights": 0, "grace_hours": 24} | given)


def rows(lake: Lake) -> dict[str, list[tuple[object, ...]]]:
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH {literal(str(lake.published_file))} AS nightaudit (READ_ONLY)")
        session.execute("USE nightaudit")
        session.execute("SET disabled_optimizers = 'common_subplan,statistics_propagation'")
        names = session.execute(
            "SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE database_name = 'nightaudit'"
        ).fetchall()
        return {name: sorted(session.execute(f"FROM {name}").fetchall(), key=repr) for (name,) in names}


def test_compaction_leaves_every_row_and_one_file_a_night_and_table(lake):
    before = rows(lake)
    done = take_care(settings(), lake)
    assert {care.kind for care in done} == {"compact"}
    assert rows(lake) == before
    assert all(
        len(files) == 1 for name in ("search", "cell", "offer") for files in sweep_files(lake, TABLES[name]).values()
    )
    assert DeltaTable(lake.table_root("offer")).to_pyarrow_table().num_rows == 2 * NIGHTS
    assert plan_care(settings(), lake) == []


def test_open_readers_of_the_published_file_keep_the_files_that_compaction_replaced(lake):
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH {literal(str(lake.published_file))} AS nightaudit (READ_ONLY)")
        before = session.execute("SELECT count(*) FROM nightaudit.lake.offer").fetchall()
        take_care(settings(), lake)
        assert session.execute("SELECT count(*) FROM nightaudit.lake.offer").fetchall() == before


def test_replaced_files_go_once_the_grace_period_is_over(lake):
    take_care(settings(), lake)
    assert len(list((lake.table_root("offer") / sweep_id(0)).glob("*.parquet"))) == 2
    before = rows(lake)
    removed = take_care(settings(grace_hours=0), lake)
    assert {care.kind for care in removed} == {"remove"}
    assert list((lake.table_root("offer") / sweep_id(0)).glob("*.parquet")) == []
    assert rows(lake) == before
    # These nights were loaded without raw answers, which is reported; no file of a table is missing or changed.
    assert [
        damage
        for damage in verify(lake, is_deep=True).damages
        if damage.path.startswith("tables") and ".parquet" in damage.path
    ] == []


def test_retention_takes_offers_of_old_nights_and_nothing_that_anything_else_shows(lake):
    before = rows(lake)
    take_care(settings(observation_nights=1, grace_hours=0), lake)
    after = rows(lake)
    assert {row[0] for row in after["lake.offer"]} == {sweep_id(NIGHTS - 1)}
    observations = {"lake.offer", "lake.penalty", "lake.promotion"}
    assert {name: rows for name, rows in after.items() if name not in observations} == {
        name: rows for name, rows in before.items() if name not in observations
    }


def test_a_night_that_the_latest_offers_lead_back_to_is_kept_however_old_it_is(lake):
    # Three more nights that do not ask about the one cell.
    for night in range(NIGHTS, 2 * NIGHTS):
        publish(lake, load_night(lake, night), datetime(2030, 1, 1 + night, 4, tzinfo=UTC))
    before = rows(lake)
    assert before["mart.offer_latest"]
    take_care(settings(observation_nights=1, grace_hours=0), lake)
    assert [row for row in before["lake.offer"] if row[0] == sweep_id(NIGHTS - 1)] == rows(lake)["lake.offer"]


def test_history_is_not_built_again_from_nights_whose_offers_are_gone(lake):
    take_care(settings(observation_nights=1), lake)
    shutil.rmtree(lake.root / "published" / "state", ignore_errors=True)
    shutil.rmtree(lake.root / "state", ignore_errors=True)
    lake.published_file.unlink()
    with pytest.raises(LakeError, match="NIGHTAUDIT_OBSERVATION_NIGHTS") as refused:
        publish(lake, sweep_id(NIGHTS - 1), datetime(2030, 1, 9, tzinfo=UTC))
    assert "nightaudit rebuild" in refused.value.hint


def test_files_that_a_killed_process_left_go_after_the_grace_period_but_not_those_of_an_open_sweep(lake):
    left = [
        lake.table_root("offer") / sweep_id(0) / ".multi-GB-00009.parquet",
        lake.root / "raw" / sweep_id(0) / "multi-GB-000000.parquet#1",
    ]
    of_an_open_sweep = lake.table_root("offer") / "20300109T020000Z-aaaaaa" / "multi-GB-00000.parquet"
    for place in (*left, of_an_open_sweep):
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(b"half")
        os.utime(place, (0, 0))
    take_care(settings(), lake)
    assert not any(place.exists() for place in left)
    assert of_an_open_sweep.exists()


def test_raw_answers_go_by_a_setting_alone_and_are_no_damage(lake):
    shards = [lake.shard_path(sweep_id(night), "multi-GB-000000") for night in range(NIGHTS)]
    for shard in shards:
        lake.put(shard, b"raw")
    take_care(settings(), lake)
    assert all(lake.exists(shard) for shard in shards)
    take_care(settings(raw_nights=1), lake)
    assert [lake.exists(shard) for shard in shards] == [False, True]
    assert is_retired(lake, sweep_id(0))
    assert not [
        damage for damage in verify(lake, is_deep=False).damages if damage.path.startswith(f"raw/{sweep_id(0)}")
    ]


def test_without_apply_the_command_shows_and_changes_nothing(lake, monkeypatch):
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    files = {file for file in lake.root.rglob("*") if file.is_file()}
    said = CliRunner().invoke(app, ["lake"])
    assert said.exit_code == 0, said.output
    assert "nightaudit lake --apply" in said.output
    assert "table offer" in said.output
    assert {file for file in lake.root.rglob("*") if file.is_file()} == files
    assert CliRunner().invoke(app, ["lake", "--apply", "--growth"]).exit_code == 0
    assert (lake.root / "reports" / "growth.svg").read_text().startswith("<svg")
