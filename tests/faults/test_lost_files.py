"""Whatever file of a lake is deleted or emptied, `verify` reports it, and the command that it names repairs it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "notebooks"))

from sandbox_nights import swept
from tiny_night import outside_supplier, settings_in

from pipeline.domain.errors import CorruptObject, LakeError, NightauditError
from pipeline.domain.tables import CONTENT_TABLES, QUALITY, QUOTE_TABLES
from pipeline.inputs.load import KINDS
from pipeline.lake import Lake
from pipeline.lake.checksums import record_as_they_are
from pipeline.lake.delta import commit_rows, refuse_broken_logs
from pipeline.night import night_sweep
from pipeline.night import verify as verifying
from pipeline.night.done_steps import note_done
from pipeline.night.night import Night
from pipeline.night.overview import sweep_rows
from pipeline.night.verify import verify
from pipeline.publish import published_sweeps
from pipeline.publish.pull import LakeFolder, pull
from pipeline.report.write import write_dictionary, write_reports

pytestmark = pytest.mark.slow

# Files that may vanish without a word, each with its reason.
MAY_VANISH = {
    ".lock": "it is made again by the next writer, and holds nothing",
    ".lock.note": "it says who holds the lock",
}


@pytest.fixture(scope="module")
def made(once_a_run) -> Path:
    def make(folder: Path) -> Path:
        both = swept(folder).both
        # One of them: all are written in the same way.
        write_reports(both, ["digest"])
        write_dictionary(both)
        return both.root

    return once_a_run("nights-to-lose", make)


@pytest.fixture
def root(made, tmp_path) -> Path:
    """A copy of two nights, for a test to damage."""
    shutil.copytree(made, tmp_path / "lake")
    return tmp_path / "lake"


def reported(root: Path, *, is_deep: bool = False) -> list[str]:
    """What `verify` finds; that the lake cannot be opened is found as well."""
    try:
        return [f"{damage.path}: {damage.repair}" for damage in verify(Lake(str(root)), is_deep=is_deep).damages]
    except NightauditError as error:
        return [error.message]


def files_of(root: Path) -> list[Path]:
    return sorted(place for place in root.rglob("*") if place.is_file())


# In parts, so that they run side by side.
@pytest.mark.parametrize("tops", ["raw", "tables", "checksums", "other"])
def test_every_file_that_is_gone_or_emptied_is_reported(root, tmp_path, tops):
    known = {"raw", "tables", "checksums"}
    by_top = {place: place.relative_to(root).parts[0] for place in files_of(root)}
    files = [place for place, top in by_top.items() if (top if top in known else "other") == tops]
    assert files
    assert reported(root) == []
    missed = []
    for place in files:
        aside = tmp_path / "aside"
        place.rename(aside)
        found = [reported(root)]
        if aside.stat().st_size:
            place.touch()
            found.append(reported(root))
        aside.replace(place)
        if not all(found) and place.name not in MAY_VANISH:
            missed.append(place.relative_to(root).as_posix())
    assert missed == []
    assert reported(root) == []


# The newest file is opened when the rows of the others have been handed out: the query has begun, and fails later.
@pytest.mark.parametrize("which", [0, -1], ids=["oldest", "newest"])
def test_a_sweep_table_with_damaged_rows_is_an_error_that_names_the_check(root, which):
    place = sorted(root.glob("tables/sweep/*/*.parquet"))[which]
    content = bytearray(place.read_bytes())
    content[4:60] = bytes(byte ^ 0xFF for byte in content[4:60])
    place.write_bytes(content)
    with pytest.raises(CorruptObject) as refused:
        sweep_rows(Lake(str(root)))
    assert "nightaudit verify" in refused.value.hint


OF_ANOTHER_KIND = {"a folder": Path.mkdir, "a pipe": os.mkfifo}


@pytest.mark.parametrize("kind", OF_ANOTHER_KIND)
@pytest.mark.parametrize(
    "pattern",
    [
        "raw/*/*.parquet", "raw/*/sweep.json", "raw/inputs/*/*.csv", "tables/offer/_delta_log/*.json",
        "tables/offer/*/*.parquet", "published/*.duckdb", "published/ledger/*.json", "state/*/*/*.parquet",
        "reports/index.html", "lake.json", "checksums/sums*.txt", "checksums/tables/offer/_delta_log/sums*.txt",
    ],
)  # fmt: skip
def test_a_folder_or_a_pipe_in_the_place_of_a_file_is_reported_and_not_opened(
    root, nightaudit, tmp_path, pattern, kind
):
    place = sorted(root.glob(pattern))[0]
    place.unlink()
    OF_ANOTHER_KIND[kind](place)
    path = place.relative_to(root).as_posix()
    for form in ([], ["--deep"]):
        ran = nightaudit(tmp_path, "verify", *form, NIGHTAUDIT_LAKE=str(root))
        assert ran.returncode == 1
        assert f"{path}: is " in ran.stdout
        assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("folder", ["tables", "tables/offer", "raw", "published", "state", "checksums"])
def test_a_file_in_the_place_of_a_folder_is_reported(root, nightaudit, tmp_path, folder):
    shutil.rmtree(root / folder)
    (root / folder).write_text("x")
    for command in ("verify", "doctor"):
        ran = nightaudit(tmp_path, command, NIGHTAUDIT_LAKE=str(root))
        assert ran.returncode == 1
        assert f"{folder}: is " in ran.stdout or command == "doctor"
        assert "damaged, of" in ran.stdout + ran.stderr
        assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("held", ["", "{", "[]", '{"formau": 1, "checksums": true}'])
def test_a_damaged_lake_json_is_listed_and_written_again(root, nightaudit, tmp_path, held):
    (root / "lake.json").write_text(held)
    ran = nightaudit(tmp_path, "verify", NIGHTAUDIT_LAKE=str(root))
    assert ran.returncode == 1
    assert "lake.json: " in ran.stdout
    assert "affects which folder holds the tables" in ran.stdout
    assert "repair: move it away, then: nightaudit lake --apply" in ran.stdout
    ran = nightaudit(tmp_path, "doctor", NIGHTAUDIT_LAKE=str(root))
    assert f"{root / 'lake.json'} is " in ran.stdout
    assert "newer version" not in ran.stdout
    (root / "lake.json").unlink()
    assert nightaudit(tmp_path, "lake", "--apply", NIGHTAUDIT_LAKE=str(root)).returncode == 0
    assert reported(root, is_deep=True) == []


@pytest.mark.parametrize(
    "lost",
    [
        *(f"tables/{table}" for table in ("quality", "search", "cell", "offer", "penalty")),
        *(f"tables/{table}" for table in ("promotion", "offer_change")),
        *(f"tables/{table.name}" for table in CONTENT_TABLES),
        "raw/inputs",
        "nights/ledger",
        "published/ledger",
        "published",
    ],
)
def test_what_is_lost_together_with_its_checksums_is_reported(root, lost):
    assert (root / lost).is_dir()
    shutil.rmtree(root / lost)
    shutil.rmtree(root / "checksums" / lost)
    assert any(found.startswith(lost) for found in reported(root))


def test_quotes_that_are_lost_together_with_their_checksums_are_reported_tables_and_answers(root):
    for lost in ("quotes", *(f"tables/{table}" for table in sorted(QUOTE_TABLES))):
        assert (root / lost).is_dir()
        for folder in (root / lost, root / "checksums" / lost):
            folder.rename(folder.with_name("aside"))
        assert any(found.startswith(lost) for found in reported(root)), lost
        for folder in (root / lost, root / "checksums" / lost):
            folder.with_name("aside").rename(folder)
    assert reported(root) == []


def test_rejects_that_are_lost_together_with_their_checksums_are_reported(tmp_path):
    faults = {"garbage_rate": 1, "garbage_kinds": ["wrong_types"]}
    with outside_supplier(partial(settings_in, tmp_path), tmp_path, **faults) as (_, settings):
        lake = Lake(settings.lake)
        asyncio.run(night_sweep.collect(Night(settings, lake, night_sweep.start(settings, lake, datetime.now(UTC)))))
    assert reported(lake.root) == []
    shutil.rmtree(lake.root / "tables/reject")
    shutil.rmtree(lake.root / "checksums/tables/reject")
    (found,) = reported(lake.root)
    assert found.startswith("tables/reject: ")


@pytest.mark.parametrize("lost", ["reports", "durations"])
def test_what_a_night_leaves_beside_its_tables_is_missed_although_its_checksums_are_gone(root, lost):
    lake = Lake(str(root))
    sweep_id = published_sweeps(lake)[-1].sweep_id
    note_done(lake, sweep_id, "publish")
    note_done(lake, sweep_id, "report")
    assert reported(root) == []
    shutil.rmtree(root / lost)
    shutil.rmtree(root / "checksums" / lost)
    assert any(found.startswith(lost) for found in reported(root))


def test_tables_of_files_that_users_loaded_are_missed_although_their_checksums_are_gone(root):
    tables = [kind.table.name for kind in KINDS.values() if (root / "raw" / "inputs" / kind.name).is_dir()]
    assert tables
    for table in tables:
        shutil.rmtree(root / "tables" / table)
        shutil.rmtree(root / "checksums" / "tables" / table)
    found = reported(root)
    assert all(any(each.startswith(f"tables/{table}") for each in found) for table in tables)


@pytest.mark.parametrize("folder", ["published/ledger", "tables/sweep/_delta_log", "durations", "raw"])
def test_checksums_that_are_cut_at_the_end_of_a_line_are_reported_and_repaired(root, nightaudit, tmp_path, folder):
    sums = next(file for file in sorted((root / "checksums" / folder).rglob("sums*.txt")) if file.stat().st_size)
    # As an earlier version wrote it: without a first line that says how far it goes.
    lines = sums.read_bytes().splitlines(keepends=True)[1:]
    last = lines[-1].split()[-1]
    sums.write_bytes(b"".join(line for line in lines if line.split()[-1] != last))
    (damage,) = verify(Lake(str(root)), is_deep=False).damages
    assert (root / damage.path).exists()
    assert last.decode() in damage.what
    assert damage.repair == "nightaudit lake --apply"
    assert nightaudit(tmp_path, "lake", "--apply", NIGHTAUDIT_LAKE=str(root)).returncode == 0
    assert reported(root, is_deep=True) == []


@pytest.mark.parametrize("kept", [-1, 1], ids=["but the last", "but the first"])
@pytest.mark.parametrize("folder", ["published/ledger", "tables/sweep/_delta_log"])
def test_checksums_that_have_lost_their_last_lines_are_reported_and_repaired(root, nightaudit, tmp_path, folder, kept):
    sums = next(file for file in sorted((root / "checksums" / folder).rglob("sums*.txt")) if file.stat().st_size)
    sums.write_bytes(b"".join(sums.read_bytes().splitlines(keepends=True)[:kept]))
    (damage,) = verify(Lake(str(root)), is_deep=False).damages
    assert damage.what == "its last lines are gone"
    assert damage.repair == "move it away, then: nightaudit lake --apply"
    sums.rename(tmp_path / "moved-away")
    assert nightaudit(tmp_path, "lake", "--apply", NIGHTAUDIT_LAKE=str(root)).returncode == 0
    assert reported(root, is_deep=True) == []


def test_a_file_whose_checksum_another_process_was_about_to_write_is_no_damage(root, monkeypatch):
    written = root / "nights" / "20300409T020000Z-0a1b2c.json"
    written.write_bytes(b"[]")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (root / ".lock.note").write_text(f"a sweep (process {other.pid})")
        assert any(found.startswith("checksums/nights: ") for found in reported(root))
        # It continues while verify waits.
        monkeypatch.setattr(verifying.time, "sleep", lambda _: record_as_they_are(root, [written]))
        assert reported(root) == []
        other.kill()


def test_a_file_beside_the_published_one_that_duckdb_would_read_is_reported(root):
    (root / "published" / "nightaudit.duckdb.wal").write_bytes(b"junk")
    assert "published/nightaudit.duckdb.wal: remove it" in reported(root)


# What is lost, the command that repairs it, and which check must find it: one of each kind.
REPAIRED = {
    "an entry of the ledger": ("published/ledger/*.json", "publish"),
    "the whole ledger": ("published/ledger", "publish"),
    "the second copy of an entry": ("nights/ledger/*.json", "publish"),
    "the published file": ("published/nightaudit.duckdb", "publish"),
    "all that is published": ("published", "publish"),
    "a file of the state": ("state/*/*/*.parquet", "publish"),
    "a generation of the state": ("state/0001", "publish"),
    "what the lake is": ("lake.json", "lake"),
    "all checksums": ("checksums", "lake"),
    "the checksums of a folder": ("checksums/published", "lake"),
    "how long a step took": ("durations/*/*.json", "lake"),
    "a page of a past night": ("reports/*/quality.html", "lake"),
    "a page": ("reports/*/index.html", "report"),
    "the page over all nights": ("reports/index.html", "report"),
    "the dictionary": ("reports/dictionary.html", "docs"),
    **{
        f"the last commit of {name}": (f"tables/{name}/_delta_log/*.json", "rebuild")
        for name in ("offer_change", "room")
    },
    "all offers": ("tables/offer", "rebuild"),
    "the log of searches": ("tables/search/_delta_log", "rebuild"),
    "the row of a sweep": ("tables/sweep/*/sweep.parquet", "rebuild"),
    "the last commit of sweeps": ("tables/sweep/_delta_log/*.json", "rebuild"),
}


@pytest.mark.parametrize("lost", REPAIRED)
def test_the_command_that_is_named_repairs_what_is_lost(root, tmp_path, nightaudit, lost):
    pattern, command = REPAIRED[lost]
    found = sorted(root.glob(pattern))
    assert found, "there is none of this kind"
    # The last: of a log, that is its last commit.
    shutil.rmtree(found[-1]) if found[-1].is_dir() else found[-1].unlink()
    damages = verify(Lake(str(root)), is_deep=False).damages
    assert damages
    (repair,) = {damage.repair for damage in damages}
    assert repair.startswith(f"nightaudit {command}")
    when = "2030-04-03T12:00:00Z"
    ran = nightaudit(tmp_path, *repair.split()[1:], NIGHTAUDIT_LAKE=str(root), NIGHTAUDIT_SANDBOX_CLOCK=when)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert reported(root, is_deep=True) == []


def test_a_night_whose_entry_is_gone_with_its_copy_is_neither_dropped_nor_called_finished(root, tmp_path, nightaudit):
    first, second = Lake(str(root)).sweep_ids()
    for entry in root.glob(f"*/ledger/{second}.json"):
        entry.unlink()
    for command in (("publish", second), ("publish", first), ("nightly",)):
        ran = nightaudit(tmp_path, *command, NIGHTAUDIT_LAKE=str(root), NIGHTAUDIT_SANDBOX_CLOCK="2030-04-03T12:00:00Z")
        assert ran.returncode == 1
        assert f"published/ledger/{second}.json from a backup" in " ".join(ran.stderr.split())
        assert "Finished the sweep" not in ran.stderr
    assert Lake(str(root)).sweep_ids() == [first, second]
    assert any(f"published/ledger/{second}.json: restore" in each for each in reported(root))


def test_nothing_is_committed_where_a_log_has_lost_its_end(root):
    lake = Lake(str(root))
    last = sorted((lake.table_root(QUALITY.name) / "_delta_log").glob("*.json"))[-1]
    before = last.read_bytes()
    last.unlink()
    rows = pa.Table.from_pylist([], schema=QUALITY.schema)
    with pytest.raises(LakeError, match=rf"version {int(last.stem)} was committed"):
        commit_rows(lake, QUALITY, rows, "another", "rows", "another")
    with pytest.raises(LakeError, match=rf"version {int(last.stem)} was committed"):
        refuse_broken_logs(lake, [QUALITY])
    assert not last.exists()
    last.write_bytes(before)
    refuse_broken_logs(lake, [QUALITY])


def test_a_lake_of_an_earlier_version_has_no_damage_although_nothing_is_recorded_of_it(root):
    shutil.rmtree(root / "checksums")
    (root / "lake.json").write_text('{"format": 1}')
    found = verify(Lake(str(root)), is_deep=True)
    assert found.damages == ()
    assert found.unrecorded == found.files


def test_what_is_restored_has_no_damage(root, tmp_path):
    shutil.copytree(root, tmp_path / "backup")
    shutil.rmtree(root)
    shutil.copytree(tmp_path / "backup", root)
    assert reported(root, is_deep=True) == []
    pull(LakeFolder(Lake(str(root))), tmp_path / "laptop")
    copy = tmp_path / "laptop"
    assert reported(copy, is_deep=True) == []
    for place in (copy / "published" / "nightaudit.duckdb", next(copy.glob("state/*/*/*.parquet"))):
        aside = place.rename(tmp_path / "aside")
        (found,) = reported(copy)
        assert found.endswith(f"nightaudit pull {root} {copy}")
        aside.rename(place)
