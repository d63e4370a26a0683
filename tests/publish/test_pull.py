"""What is pulled can be read without the lake, costs what changed, and never leaves half a night behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest
from nights import FIRST_DAY, load_night, started_at
from typer.testing import CliRunner

import pipeline
from pipeline.cli.commands import app
from pipeline.domain.errors import CorruptObject, InputError, LakeError
from pipeline.lake import Lake
from pipeline.lake.database import has_moved
from pipeline.publish import publish
from pipeline.publish.pull import LakeFolder, pull

pytestmark = pytest.mark.slow

STAYS = [{"property_id": number, "check_in": FIRST_DAY + timedelta(days=60)} for number in (1, 2)]


def add_night(lake, night):
    offers = [stay | {"offer_no": n, "room_id": 7, "total": 100 + night} for n, stay in enumerate(STAYS)]
    cells = [stay | {"offers": 1} for stay in STAYS]
    publish(lake, load_night(lake, night, cell=cells, offer=offers), started_at(night))


@pytest.fixture(scope="module")
def home(once_a_run):
    """Two published nights in a folder whose name has a quote in it."""

    def make(home):
        lake = Lake(str(home / "the team's lake"))
        for night in range(2):
            add_night(lake, night)
        return home

    return once_a_run("two-nights-to-pull", make)


@pytest.fixture
def lake(home, tmp_path):
    """A copy of that lake: its views name the place that it was copied from, as those of a mounted share do."""
    shutil.copytree(home / "the team's lake", tmp_path / "share")
    return Lake(str(tmp_path / "share"))


def contents(file):
    """Every row of every relation and every comment, as plain DuckDB reads them."""
    with duckdb.connect(str(file), read_only=True) as session:
        session.execute("SET TimeZone = 'UTC'")
        names = session.execute(
            "SELECT table_schema || '.' || table_name FROM information_schema.tables ORDER BY ALL"
        ).fetchall()
        held = {name: session.execute(f"FROM {name} ORDER BY ALL").fetchall() for (name,) in names}
        said = "SELECT schema_name, table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal"
        views = "SELECT schema_name, view_name, comment FROM duckdb_views() WHERE NOT internal"
        return held | {text: session.execute(f"{text} ORDER BY ALL").fetchall() for text in (said, views)}


def files_in(folder):
    return {place.relative_to(folder).as_posix() for place in folder.rglob("*") if place.is_file()}


def test_what_was_pulled_is_all_that_is_published_and_needs_no_lake(home, lake, tmp_path):
    expected = contents(home / "the team's lake" / "published" / "nightaudit.duckdb")
    laptop = tmp_path / "o'laptop"
    made = pull(LakeFolder(lake), laptop)
    assert made.copied > 10
    assert (made.kept, made.removed) == (0, 0)
    shutil.rmtree(lake.root)
    (home / "the team's lake").rename(home / "away")
    try:
        found = contents(made.file)
    finally:
        (home / "away").rename(home / "the team's lake")
    assert found == expected
    assert not has_moved(made.file)


def test_pulling_again_copies_only_new_files_and_keeps_those_of_current_readers(home, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(home / "the team's lake", source)
    lake, laptop = Lake(str(source)), tmp_path / "laptop"
    first = pull(LakeFolder(lake), laptop)
    again = pull(LakeFolder(lake), laptop)
    assert (again.copied, again.kept, again.removed) == (0, first.copied, 0)
    before = files_in(laptop)
    with duckdb.connect(str(first.file), read_only=True) as reader:
        add_night(lake, 2)
        third = pull(LakeFolder(lake), laptop)
        assert 0 < third.copied < first.copied
        assert third.removed == 0
        assert reader.execute("SELECT max(total) FROM lake.offer").fetchall() == [(101,)]
        assert reader.execute("SELECT count(*) FROM mart.offer_latest").fetchall() == [(2,)]
    assert before <= files_in(laptop)
    # What only the file before the last one read is no longer needed.
    assert pull(LakeFolder(lake), laptop).removed > 0
    assert contents(third.file) == contents(lake.published_file)


def test_an_interrupted_pull_keeps_earlier_files_and_can_be_continued(home, tmp_path, monkeypatch):
    source = tmp_path / "source"
    shutil.copytree(home / "the team's lake", source)
    lake, laptop = Lake(str(source)), tmp_path / "laptop"
    before = contents(pull(LakeFolder(lake), laptop).file)
    add_night(lake, 2)
    cut_off = LakeFolder(lake)
    fetched = []

    def fetch(path, place):
        if len(fetched) == 4:
            raise FileNotFoundError(path)
        fetched.append(path)
        LakeFolder(lake).fetch(path, place)

    monkeypatch.setattr(cut_off, "fetch", fetch)
    with pytest.raises(LakeError, match="was removed from the lake while"):
        pull(cut_off, laptop)
    assert contents(laptop / "published" / "nightaudit.duckdb") == before
    # The published file, the two notes, and one of those that are copied.
    made = pull(LakeFolder(lake), laptop)
    assert made.kept > 0
    assert contents(made.file) == contents(lake.published_file)


@pytest.mark.parametrize("kills_at", range(3))
def test_a_first_pull_that_was_killed_can_be_repeated_and_leaves_nothing_under_construction(lake, tmp_path, kills_at):
    """Killed as its note, the mark of the lake with the published file fetched, and the first of the others is put."""
    laptop = tmp_path / "laptop"
    program = f"""
import os, pipeline.lake.files as files, pipeline.publish.pull as pull
from pathlib import Path
from pipeline.lake import Lake
put, names = files.put_in_place, []
def killed(built, place, root=None):
    names.append(place.name)
    if len(names) > {kills_at}:
        os.kill(os.getpid(), 9)
    put(built, place, root)
files.put_in_place = pull.put_in_place = killed
pull.pull(pull.LakeFolder(Lake({str(lake.root)!r})), Path({str(laptop)!r}))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    left = [place for place in laptop.rglob(".*") if place.is_file()]
    assert left
    for place in left:
        os.utime(place, (0, 0))
    made = pull(LakeFolder(lake), laptop)
    assert contents(made.file) == contents(lake.published_file)
    assert [place for place in laptop.rglob(".*") if place.is_file()] == []


def test_a_file_that_is_damaged_on_its_way_is_refused(lake, tmp_path):
    laptop = tmp_path / "laptop"
    place = next((lake.root / "state").glob("*/*/offer_open-*.parquet"))
    held = bytearray(place.read_bytes())
    held[len(held) // 2] ^= 1
    place.write_bytes(held)
    with pytest.raises(CorruptObject, match="damaged"):
        pull(LakeFolder(lake), laptop)
    assert not (laptop / "published" / "nightaudit.duckdb").exists()


def test_a_damaged_published_file_is_refused_and_the_one_pulled_before_is_kept(lake, tmp_path):
    laptop = tmp_path / "laptop"
    before = pull(LakeFolder(lake), laptop).file.read_bytes()
    held = bytearray(lake.published_file.read_bytes())
    held[len(held) // 2] ^= 1
    lake.published_file.write_bytes(held)
    with pytest.raises(CorruptObject, match="damaged"):
        pull(LakeFolder(lake), laptop)
    assert (laptop / "published" / "nightaudit.duckdb").read_bytes() == before


def test_a_folder_with_something_else_in_it_is_not_written_to(lake, tmp_path):
    other = Lake(str(tmp_path / "other"))
    other.put_new("raw/x.json", b"{}")
    before = files_in(other.root)
    with pytest.raises(InputError, match="is not empty, and it was not filled by"):
        pull(LakeFolder(lake), other.root)
    assert files_in(other.root) == before
    with pytest.raises(InputError, match="Nothing is published"):
        pull(LakeFolder(other), tmp_path / "laptop")
    laptop = tmp_path / "second"
    pull(LakeFolder(lake), laptop)
    shutil.copytree(lake.root, tmp_path / "third")
    with pytest.raises(InputError, match="was pulled from"):
        pull(LakeFolder(Lake(str(tmp_path / "third"))), laptop)


def test_the_command_says_what_it_copied_and_queries_read_the_folder(lake, tmp_path, monkeypatch):
    laptop = tmp_path / "my laptop"
    monkeypatch.chdir(tmp_path)
    reported = CliRunner().invoke(app, ["pull", str(lake.root), str(laptop)])
    assert reported.exit_code == 0, reported.output
    assert f"duckdb -readonly '{laptop}/published/nightaudit.duckdb'" in reported.output, "a shell takes it as it is"
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(laptop))
    asked = CliRunner().invoke(app, ["query", "SELECT count(*) AS offers FROM lake.offer", "--format", "csv"])
    assert asked.output == "offers\n4\n", asked.output


_NOT_IN_A_COPY = (
    "case case-1 --note checked",
    "load properties properties.csv",
    "nightly",
    "sweep",
    "alerts",
    "rebuild",
    "lake --apply",
    "explain floor_breach-1",
    "show raw/20300401T023000Z-000000/0.parquet#0",
    "drift",
    "quote",
)


def test_a_copy_is_not_written_to_and_says_where_raw_answers_are(lake, tmp_path, monkeypatch):
    laptop = tmp_path / "laptop"
    pull(LakeFolder(lake), laptop)
    before = files_in(laptop)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "properties.csv").write_text("property_id,property_name\n1,Ours\n")
    (tmp_path / "alerts.toml").write_bytes((Path(pipeline.__file__).parent / "sample" / "alerts.toml").read_bytes())
    monkeypatch.setenv("NIGHTAUDIT_ALERTS", "alerts.toml")
    monkeypatch.setenv("NIGHTAUDIT_NOTIFY_WEBHOOK", "http://127.0.0.1:9/")
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(laptop))
    for command in _NOT_IN_A_COPY:
        done = CliRunner().invoke(app, command.split())
        said = " ".join(str(done.exception).split())
        assert said.startswith(f"{laptop} is a copy of what {lake.root} has published"), f"{command}: {said}"
        assert f"nightaudit pull {lake.root} {laptop}" in said
    assert files_in(laptop) == before


@pytest.mark.parametrize(("command", "ends_with"), [("status", 0), ("health", 1), ("metrics", 1), ("doctor", 0)])
def test_a_copy_says_what_it_is_a_copy_of_and_does_not_ask_for_a_first_night(
    lake, tmp_path, monkeypatch, command, ends_with
):
    laptop = tmp_path / "laptop"
    pull(LakeFolder(lake), laptop)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(laptop))
    done = CliRunner().invoke(app, [command])
    said = " ".join(f"{done.output} {done.exception or ''}".split())
    assert done.exit_code == ends_with
    assert "a copy of" in said
    assert str(lake.root) in said
    assert "nightaudit nightly" not in said
    assert "nightaudit publish" not in said
