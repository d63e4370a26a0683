"""An exported file is self-contained: the rows of the published file, those selected, and nothing else."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta

import duckdb
import pytest
from nights import FIRST_DAY, load_night, started_at
from typer.testing import CliRunner

from pipeline.cli.commands import app
from pipeline.domain.errors import CorruptObject, InputError, LakeFull, NightauditError
from pipeline.lake import Lake
from pipeline.lake.checksums import record_as_they_are
from pipeline.lake.database import open_published
from pipeline.lake.published_paths import paths_read_by, read_from_here
from pipeline.publish import publish
from pipeline.publish.export import Selection, export

pytestmark = pytest.mark.slow

DAY = FIRST_DAY + timedelta(days=60)


@pytest.fixture(scope="module")
def home(once_a_run):
    """Three nights of two properties in two markets; one offer is gone in the second night, and dearer in the third."""

    def make(home):
        lake = Lake(str(home / "lake"))
        asked = [
            {"property_id": number, "market": market, "check_in": DAY} for number in (1, 2) for market in ("DE", "GB")
        ]
        for night in range(3):
            on_sale = [stay for stay in asked if night != 1 or stay != asked[0]]
            offers = [
                stay | {"offer_no": n, "room_id": 7, "total": 100 + n + 10 * night} for n, stay in enumerate(on_sale)
            ]
            cells = [stay | {"offers": 1} if stay in on_sale else stay | {"status": "absent"} for stay in asked]
            publish(lake, load_night(lake, night, cell=cells, offer=offers), started_at(night))
        return home

    return once_a_run("three-nights-to-export", make)


@pytest.fixture
def lake(home):
    return Lake(str(home / "lake"))


def test_what_a_killed_export_has_left_is_removed_once_no_process_can_be_at_work_on_it(lake, tmp_path):
    left = {tmp_path / f".a*b-0123456{n}{end}" for n in range(2) for end in (".duckdb", ".duckdb.wal", ".spill")}
    others = {tmp_path / name for name in (".a-01234567.duckdb", ".axb-01234567.duckdb", "a*b-01234567.duckdb")}
    for place in left | others:
        place.mkdir() if place.suffix == ".spill" else place.touch()
        os.utime(place, (0, 0))
    (tmp_path / ".a*b-01234561.duckdb.wal").touch()
    export(lake.published_file, tmp_path / "a*b.duckdb", Selection())
    kept = {place for place in left if "61." in place.name}
    assert set(tmp_path.iterdir()) - {tmp_path / "a*b.duckdb", lake.root} == others | kept


def relations(session):
    rows = session.execute(
        "SELECT table_schema || '.' || table_name FROM information_schema.tables "
        "WHERE table_schema IN ('mart', 'report', 'ref', 'lake') AND table_catalog = current_catalog()"
    ).fetchall()
    return {name for (name,) in rows}


def rows(session, name):
    return session.execute(f"FROM {name} ORDER BY ALL").fetchall()


READERS = [
    ["query", "SELECT 1"],
    ["cases"],
    ["metrics"],
    ["report", "digest"],
    ["docs"],
    ["export", "out.duckdb"],
    ["pull", "LAKE", "copy"],
    ["quote", "--sample", "1"],
    ["confirm"],
    ["explain", "rule-0123456789abcdef"],
    ["doctor"],
    ["verify"],
    ["status"],
    ["publish"],
    ["lake", "--apply"],
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_no_command_waits_for_what_is_no_published_file_or_ends_in_a_traceback(home, tmp_path, monkeypatch, make):
    shutil.copytree(home / "lake", tmp_path / "lake")
    published = tmp_path / "lake" / "published" / "nightaudit.duckdb"
    published.unlink()
    make(published)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("NIGHTAUDIT_QUOTE_CAP", "5")
    monkeypatch.setenv("NIGHTAUDIT_SCOPES", "read_rooms write_rooms")
    for argv in READERS:
        ended = CliRunner().invoke(app, [str(tmp_path / "lake") if word == "LAKE" else word for word in argv])
        assert isinstance(ended.exception, NightauditError | SystemExit | None), (argv, ended.exception)
        if not isinstance(ended.exception, NightauditError):
            assert argv[0] in {"status", "verify", "doctor", "metrics", "lake", "publish"}, (argv, ended.output)


@pytest.mark.parametrize(("name", "why"), [("y" * 300, "too long"), (os.fsdecode(b"\xff"), "not UTF-8")])
def test_a_name_that_no_file_can_have_is_refused(lake, tmp_path, name, why):
    with pytest.raises(InputError, match=f"cannot be written: its name is {why}"):
        export(lake.published_file, tmp_path / name, Selection())
    assert list(tmp_path.iterdir()) == []


def test_everything_that_analysts_read_is_in_the_file_and_it_needs_no_other(lake, tmp_path):
    with open_published(lake.published_file) as session:
        expected = {name: (rows(session, name), comments(session, name)) for name in relations(session)}
    made = export(lake.published_file, tmp_path / "all.duckdb", Selection())
    assert {each.relation: each.rows for each in made} == {name: len(held) for name, (held, _) in expected.items()}
    # Nothing of the lake is left.
    shutil.move(lake.root, tmp_path / "away")
    try:
        with duckdb.connect(str(tmp_path / "all.duckdb"), read_only=True, config={"threads": 1}) as session:
            session.execute("SET TimeZone = 'UTC'")
            assert relations(session) == {*expected, "ref.export"}
            for name, (held, said) in expected.items():
                assert rows(session, name) == held, name
                assert comments(session, name) == said, name
            known = session.execute("SELECT count(*) FROM mart.offer_as_of((SELECT min(sweep_id) FROM mart.sweep))")
            assert known.fetchall() == [(4,)]
    finally:
        shutil.move(tmp_path / "away", lake.root)
    assert [place.name for place in tmp_path.iterdir()] == ["all.duckdb"]


def comments(session, name):
    return session.execute(
        "SELECT column_name, data_type, comment FROM duckdb_columns() WHERE schema_name || '.' || table_name = ? "
        "AND database_name = current_catalog() ORDER BY column_index",
        [name],
    ).fetchall()


@pytest.mark.parametrize(
    ("selection", "where"),
    [
        (Selection(properties=(2,)), "property_id = 2"),
        (Selection(markets=("DE",)), "market = 'DE'"),
        (Selection((1,), ("DE", "GB")), "property_id = 1"),
        (Selection(first=FIRST_DAY + timedelta(days=1)), "night > 0"),
        (Selection(last=FIRST_DAY), "night = 0"),
        (Selection((1,), ("DE",), FIRST_DAY + timedelta(days=1), FIRST_DAY + timedelta(days=1)), "false"),
    ],
    ids=["property", "market", "both", "from", "to", "gone-that-night"],
)
def test_only_what_was_selected_is_there(lake, tmp_path, selection, where):
    select = (
        "SELECT property_id, market, total FROM (SELECT *, datediff('day', DATE '2030-01-01', searched_at::DATE) AS "
        "night FROM lake.offer)"
    )
    with open_published(lake.published_file) as session:
        expected = session.execute(f"{select} WHERE {where} ORDER BY ALL").fetchall()
        everything = session.execute(f"{select} ORDER BY ALL").fetchall()
    assert len(expected) < len(everything)
    export(lake.published_file, tmp_path / "some.duckdb", selection)
    with duckdb.connect(str(tmp_path / "some.duckdb"), read_only=True) as session:
        session.execute("SET TimeZone = 'UTC'")
        assert session.execute(f"{select} ORDER BY ALL").fetchall() == expected
        narrowed = dict(session.execute("SELECT relation, narrowed_by FROM ref.export").fetchall())
    assert narrowed["ref.error_code"] == []
    assert len(narrowed["lake.offer"]) == bool(selection.properties) + bool(selection.markets) + bool(
        selection.first or selection.last
    )


def test_history_that_reaches_into_the_period_is_kept(lake, tmp_path):
    second = FIRST_DAY + timedelta(days=1)
    export(lake.published_file, tmp_path / "second.duckdb", Selection(first=second, last=second))
    with duckdb.connect(str(tmp_path / "second.duckdb"), read_only=True) as session:
        session.execute("SET TimeZone = 'UTC'")
        kept = session.execute("SELECT first_seen_at::DATE, last_seen_at::DATE FROM mart.offer_history").fetchall()
    assert kept
    assert all(first <= second <= last for first, last in kept)


def test_what_cannot_be_exported_is_refused_and_a_file_that_is_there_stays(lake, tmp_path):
    there = tmp_path / "there.duckdb"
    there.write_text("mine")
    for selection, target, why in (
        (Selection(), there, "already exists"),
        (Selection(), tmp_path / "no" / "folder.duckdb", "no folder"),
        (Selection(properties=(99,)), tmp_path / "x.duckdb", "stay of the property 99"),
        (Selection(markets=("FR",)), tmp_path / "x.duckdb", "stay of the market FR"),
        (Selection(first=DAY), tmp_path / "x.duckdb", "No night"),
    ):
        with pytest.raises(InputError, match=why):
            export(lake.published_file, target, selection)
    with pytest.raises(InputError, match="Nothing is published"):
        export(tmp_path / "nothing.duckdb", tmp_path / "x.duckdb", Selection())
    assert there.read_text() == "mine"
    assert [place.name for place in tmp_path.iterdir()] == ["there.duckdb"]


def copied(lake, folder):
    """Return a copy of a lake whose published file reads the copy's files."""
    shutil.copytree(lake.root, folder)
    copy = Lake(str(folder))
    read_from_here(copy.published_file, copy.root)
    record_as_they_are(copy.root, [copy.published_file])
    return copy


@pytest.mark.parametrize("harm", ["cut", "gone"])
def test_a_damaged_file_of_the_lake_is_reported_as_such_and_not_as_a_full_disk(lake, tmp_path, harm):
    copy = copied(lake, tmp_path / "lake")
    read = (place for path in paths_read_by(copy.published_file) for place in copy.root.glob(path))
    place = next(place for place in read if place.name.startswith("cell-"))
    if harm == "gone":
        place.unlink()
    else:
        place.write_bytes(place.read_bytes()[:-1])
    with pytest.raises(CorruptObject, match="is damaged") as refused:
        export(copy.published_file, tmp_path / "all.duckdb", Selection())
    assert "nightaudit verify --deep" in refused.value.hint
    assert [place.name for place in tmp_path.iterdir()] == ["lake"]


# Before its first rebuild, a lake works without its lake.json.
@pytest.mark.parametrize("has_mark", [True, False], ids=["with lake.json", "without"])
@pytest.mark.parametrize("kind", ["cell-", "offer_closed-", "offer/"])
def test_one_changed_bit_in_a_file_that_it_reads_is_refused_by_export_and_by_report(
    lake, tmp_path, monkeypatch, kind, has_mark
):
    copy = copied(lake, tmp_path / "lake")
    if not has_mark:
        (copy.root / "lake.json").unlink()
    read = (place for path in sorted(paths_read_by(copy.published_file)) for place in sorted(copy.root.glob(path)))
    place = next(place for place in read if kind in place.as_posix())
    record_as_they_are(copy.root, [place])
    # Of the first page: no reader of Parquet notices.
    data = bytearray(place.read_bytes())
    data[len(data) // 4] ^= 1
    place.write_bytes(data)
    with pytest.raises(CorruptObject, match="its checksum is not the recorded one") as refused:
        export(copy.published_file, tmp_path / "all.duckdb", Selection())
    assert place.name in refused.value.message
    assert "nightaudit verify --deep" in refused.value.hint
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(copy.root))
    reported = CliRunner().invoke(app, ["report"])
    assert isinstance(reported.exception, CorruptObject)
    assert place.name in reported.exception.message
    assert [place.name for place in tmp_path.iterdir()] == ["lake"]
    assert not (copy.root / "reports").exists()


def test_a_copy_of_a_lake_is_refused_until_its_published_file_reads_the_copy(lake, tmp_path, monkeypatch):
    """The checksums of the copy say nothing about the files of the first lake, which its views still read."""
    copy = Lake(str(shutil.copytree(lake.root, tmp_path / "copy")))
    with pytest.raises(CorruptObject, match="was moved") as refused:
        export(copy.published_file, tmp_path / "all.duckdb", Selection())
    assert refused.value.hint.startswith("Point it to this folder: nightaudit publish\n")
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(copy.root))
    reported = CliRunner().invoke(app, ["report", "digest"])
    assert isinstance(reported.exception, CorruptObject)
    assert "was moved" in reported.exception.message
    assert not (copy.root / "reports").exists()
    assert [place.name for place in tmp_path.iterdir()] == ["copy"]


def test_a_copy_whose_path_is_the_end_of_the_first_lakes_is_refused_too(lake, tmp_path):
    first = copied(lake, tmp_path / "back-up" / tmp_path.relative_to("/") / "lake")
    copy = Lake(str(shutil.copytree(first.root, tmp_path / "lake")))
    with pytest.raises(CorruptObject, match="was moved"):
        export(copy.published_file, tmp_path / "all.duckdb", Selection())


def test_a_lake_that_is_named_by_a_link_is_the_lake(lake, tmp_path):
    (tmp_path / "link").symlink_to(lake.root)
    assert export(Lake(str(tmp_path / "link")).published_file, tmp_path / "all.duckdb", Selection())


@pytest.mark.parametrize("error", [duckdb.IOException, duckdb.TransactionException])
def test_a_full_disk_leaves_nothing_behind(lake, tmp_path, monkeypatch, error):
    def full(*_):
        raise error("Could not write file: No space left on device")

    monkeypatch.setattr("pipeline.publish.export.finish", full)
    (tmp_path / "exports").mkdir()
    with pytest.raises(LakeFull, match="No space left"):
        export(lake.published_file, tmp_path / "exports" / "x.duckdb", Selection())
    assert list((tmp_path / "exports").iterdir()) == []


def test_the_command_says_what_it_wrote(lake, tmp_path, monkeypatch):
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    monkeypatch.chdir(tmp_path)
    reported = CliRunner().invoke(app, ["export", "one.duckdb", "--property", "1", "--from", "2030-01-02"])
    assert reported.exit_code == 0, reported.output
    assert "to one.duckdb (" in reported.output
    refused = CliRunner().invoke(app, ["export", "two.duckdb", "--market", "XX"])
    assert isinstance(refused.exception, InputError)
    assert CliRunner().invoke(app, ["export", "two.duckdb", "--to", "tomorrow"]).exit_code == 2
