"""A back-up, restored as `flows/README.md` says, is the lake that it was made of."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from night_machine import Machine, assert_same, contents, night

from pipeline.domain.tables import CASE_NOTE
from pipeline.lake import Lake
from pipeline.lake.delta import commit_rows

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Path:
    """Two nights, a loaded file, and what a person said about a case."""
    usual = Machine(tmp_path_factory.mktemp("nights") / "usual", None, NIGHTAUDIT_LAKE="lake")
    usual.run("nightly", **night(1))
    (usual.folder / "weights.csv").write_text("property_id,market,weight\n97583664,,2.0\n")
    usual.run("load", "weights", "weights.csv", **night(1))
    said = {"case_id": "case-1", "noted_at": datetime(2026, 10, 1, 9, tzinfo=UTC), "action": "note", "value": "called"}
    made = Lake(str(usual.root))
    with made.writing("a test"):
        commit_rows(made, CASE_NOTE, pa.Table.from_pylist([said], schema=CASE_NOTE.schema), "case-x", "case-1", "1")
    usual.run("nightly", **night(2))
    return usual.root


def restored(folder: Path, lake: Path, *kept: str) -> Machine:
    """Another machine, with a copy of what is kept of a lake."""
    machine = Machine(folder, None, NIGHTAUDIT_LAKE="lake")
    machine.root.mkdir()
    for name in kept:
        place = lake / name
        (machine.root / name).parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            shutil.copytree(place, machine.root / name)
        else:
            shutil.copy2(place, machine.root / name)
    return machine


def assert_goes_on(machine: Machine, lake: Path) -> None:
    file = machine.root / "published/nightaudit.duckdb"
    assert_same(contents(file), contents(lake / "published/nightaudit.duckdb"))
    machine.run("verify", "--deep")
    machine.run("nightly", **night(3))
    machine.run("verify", "--deep")


def test_a_copy_of_all_of_it_is_published_where_it_is_now(tmp_path, lake):
    machine = restored(tmp_path / "other", lake, *(place.name for place in lake.iterdir()))
    machine.run("verify", "--deep")
    machine.run("publish")
    assert_goes_on(machine, lake)


def test_of_what_cannot_be_made_again_the_rest_is_made(tmp_path, lake):
    tables = [f"{Lake(str(lake)).tables_folder}/{name}" for name in ("case_note", "confirmation")]
    kept = [name for name in ("raw", "nights", "quotes", "notify", "lake.json", *tables) if (lake / name).exists()]
    machine = restored(tmp_path / "other", lake, *kept)
    machine.run("rebuild")
    machine.run("report")
    machine.run("lake", "--apply")
    assert_goes_on(machine, lake)
