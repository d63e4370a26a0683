"""A back-up, restored as `flows/README.md` says, is the lake that it was made of."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from night_machine import Machine, assert_same, contents, night

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Path:
    """Two nights."""
    usual = Machine(tmp_path_factory.mktemp("nights") / "usual", None, NIGHTAUDIT_LAKE="lake")
    for number in (1, 2):
        usual.run("nightly", **night(number))
    return usual.root


def restored(folder: Path, lake: Path, *kept: str) -> Machine:
    """Another machine, with a copy of what is kept of a lake."""
    machine = Machine(folder, None, NIGHTAUDIT_LAKE="lake")
    machine.root.mkdir()
    for name in kept:
        place = lake / name
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
    kept = [name for name in ("raw", "nights", "quotes", "lake.json") if (lake / name).exists()]
    machine = restored(tmp_path / "other", lake, *kept)
    machine.run("rebuild")
    machine.run("report")
    machine.run("lake", "--apply")
    assert_goes_on(machine, lake)
