"""A damaged file costs only what it holds: later nights continue without it, and a warning names its repair."""

from __future__ import annotations

import re
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "notebooks"))

from sandbox_nights import swept
from sandbox_settings import settings_asking

from pipeline.domain.errors import CorruptObject
from pipeline.domain.tables import QUALITY
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.lake.ledger import copies_of_entry, restore_entries
from pipeline.lake.raw import read_manifest
from pipeline.night.gate import audit_at
from pipeline.night.night import Night
from pipeline.night.nightly import run_night
from pipeline.night.summary import NightSummary
from pipeline.night.verify import verify
from pipeline.publish import publish, published_sweeps
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.settings import Settings

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(once_a_run) -> Path:
    def make(folder: Path) -> Path:
        lake = swept(folder).both
        for sweep_id in lake.sweep_ids():
            audit_at(settings_of(lake), lake, sweep_id, read_manifest(lake, sweep_id).started_at)
        return lake.root

    return once_a_run("nights-to-damage", make)


@pytest.fixture
def lake(made, tmp_path) -> Lake:
    shutil.copytree(made, tmp_path / "lake")
    return Lake(str(tmp_path / "lake"))


def settings_of(lake: Lake) -> Settings:
    return Settings(_env_file=None, lake=str(lake.root))


def cut(place: Path) -> None:
    place.write_bytes(place.read_bytes()[: place.stat().st_size // 2])


def flip(place: Path) -> None:
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(data)


def damaged(lake: Lake) -> dict[str, str]:
    return {damage.path: damage.repair for damage in verify(lake, is_deep=False).damages}


@pytest.mark.parametrize("damage", [cut, flip])
def test_an_entry_of_the_ledger_that_is_damaged_is_read_from_its_copy_and_reported(lake, caplog, damage):
    entries = published_sweeps(lake)
    path, copy = copies_of_entry(entries[0].sweep_id)
    damage(lake.local(path))
    assert published_sweeps(lake) == entries
    restore_entries(lake)
    assert f"{path} is damaged" in caplog.text
    assert "Its other copy is read." in caplog.text
    assert list(damaged(lake)) == [path]
    assert damaged(lake)[path].startswith("move it away, then: nightaudit publish ")
    damage(lake.local(copy))
    with pytest.raises(CorruptObject, match="is damaged"):
        published_sweeps(lake)


def test_an_audit_that_is_damaged_costs_its_rows_and_is_made_again(lake):
    first, second = lake.sweep_ids()
    (of_audit,) = lake.table_root(QUALITY.name).glob(f"{first}/*.parquet")
    cut(of_audit)
    now = datetime(2030, 5, 1, tzinfo=UTC)
    with lake.writing("a test"):
        lake.published_file.unlink()
        publish(lake, second, now)
    held = "SELECT DISTINCT sweep_id FROM mart.quality"
    assert {row[0] for row in query_published(lake.published_file, held).fetchall()} == {second}
    path = of_audit.relative_to(lake.root).as_posix()
    assert damaged(lake)[path] == f"nightaudit audit {first}"
    with lake.writing("a test"):
        audit_at(settings_of(lake), lake, first, now)
        # As the next night would.
        lake.published_file.unlink()
        publish(lake, second, now)
    assert {row[0] for row in query_published(lake.published_file, held).fetchall()} == {first, second}
    assert damaged(lake) == {}


SPEC = """
[properties]
ids = {ids}
[stays]
nights = [2]
check_in = ["2030-06-10"]
[ask]
markets = ["GB", "SE"]
parties = ["2"]
currencies = ["EUR"]
"""


def test_cut_files_of_the_oldest_night_are_reported_before_a_night_is_asked_and_keep_it_from_nothing(tmp_path, caplog):
    with SandboxProcess(seed=1, properties=400) as sandbox:
        spec, lake = tmp_path / "spec.toml", Lake(str(tmp_path / "lake"))
        spec.write_text(SPEC.format(ids=sandbox.control("properties")["property_ids"][:4]))
        settings = settings_asking(
            sandbox,
            requests_per_second=5000,
            workers=1,
            lake=str(lake.root),
            spec=spec,
        )

        def make_night(number: int) -> None:
            at = datetime(2030, 4, 1 + number, 2, tzinfo=UTC)
            sandbox.control("night", {"night": number, "today": at.date().isoformat()})
            summaries.append(run_night(Night(settings, lake, clock=lambda: at)))

        summaries: list[NightSummary] = []
        make_night(0)
        make_night(1)
        oldest = lake.sweep_ids()[0]
        # A rule reads searches of all nights, and says so if it cannot.
        folders = [folder for folder in sorted(lake.root.glob(f"tables/*/{oldest}")) if folder.parent.name != "search"]
        files = [sorted(folder.glob("*.parquet"))[0] for folder in folders]
        for file in files:
            cut(file)
        with caplog.at_level("WARNING"):
            make_night(2)
    assert [entry.sweep_id for entry in published_sweeps(lake)] == lake.sweep_ids()
    assert len(lake.sweep_ids()) == 3
    (line,) = [each.getMessage() for each in caplog.records if "nightaudit rebuild" in each.getMessage()]
    assert re.search(rf"has [0-9,]+ bytes, .*, and {len(files) - 2} more. The night continues", line)
    assert [each.files_left_out for each in summaries] == [0, 0, len(files)]
    assert set(damaged(lake)) == {file.relative_to(lake.root).as_posix() for file in files}
