"""Damage in a lake is found, named with what it affects and what repairs it, and never used."""

from __future__ import annotations

import random
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "notebooks"))

from sandbox_nights import swept

from pipeline.cli.commands import app
from pipeline.domain.errors import CorruptObject, LakeError, NightauditError
from pipeline.domain.servers import Workforce
from pipeline.domain.tables import CASE_NOTE, OFFER, PENALTY, QUALITY
from pipeline.inputs.load import load
from pipeline.lake import Lake, write_in_place
from pipeline.lake.allowance import DailyCalls
from pipeline.lake.checksums import Recorded
from pipeline.lake.database import query_published
from pipeline.lake.delta import commit_rows, refuse_broken_logs
from pipeline.lake.raw import landed, read_manifest, read_shard
from pipeline.lake.sweep_files import files_of_sweep
from pipeline.lake.table_log import CHECKPOINT_EVERY
from pipeline.night.gate import audit_at, audit_sweep
from pipeline.night.overview import overview
from pipeline.night.rebuild import rebuild
from pipeline.night.verify import verify
from pipeline.notify.outbox import Outbox
from pipeline.publish import publish
from pipeline.publish.refresh import refresh
from pipeline.report.write import write_reports
from pipeline.sample.generate import FOLDER

pytestmark = pytest.mark.slow

FLIPS = 200
TAKEN_AT = datetime(2030, 4, 3, tzinfo=UTC)
KINDS = {
    "raw answers": "raw/*/*.parquet",
    "manifests": "raw/*/sweep.json",
    "endings": "raw/*/end.json",
    "inputs": "raw/inputs/*/*",
    "quotes": "quotes/*/*",
    "ledger": "published/ledger/*.json",
    "published file": "published/*.duckdb",
    "logs": "tables/*/_delta_log/*.json",
    "pages": "reports/**/*.html",
    "figures": "reports/**/*.parquet",
    "sheets": "reports/**/*.csv",
    "data of pages": "reports/**/*.json",
    "states": "state/**/*.parquet",
    "nights": "nights/**/*.json",
    "durations": "durations/**/*.json",
    "last checkpoints": "tables/*/_delta_log/_last_checkpoint",
    "what the lake is": "lake.json",
    "checksums": "checksums/**/sums*.txt",
    "checkpoints of logs": "tables/*/_delta_log/*.checkpoint.parquet",
    "outboxes of alerts": "a*/told.json",
    "outbox of nights": "notify/*.json",
    "leases of calls": "calls/*/*.json",
    **{name: f"tables/{name}/*/*.parquet" for name in ("sweep", "search", "cell", "offer", "penalty", "promotion")},
    **{name: f"tables/{name}/*/*.parquet" for name in ("offer_change", "property", "room", "quality", "quote")},
    **{name: f"tables/{name}/*/*.parquet" for name in ("room_amenity", "room_image", "selling_price", "case_note")},
    **{name: f"tables/{name}/*/*.parquet" for name in ("quote_offer", "quote_penalty", "quote_promotion")},
}


@pytest.fixture(scope="module")
def made(once_a_run) -> Path:
    def make(folder: Path) -> Path:
        both = swept(folder).both
        write_reports(both)
        # As many notes as the log of their table needs for a checkpoint.
        for number in range(CHECKPOINT_EVERY):
            rows = [{"case_id": "case-1", "noted_at": TAKEN_AT, "action": "note", "value": str(number)}]
            commit_rows(both, CASE_NOTE, pa.Table.from_pylist(rows, CASE_NOTE.schema), "run", f"{number}", f"{number}")
        for place in ("alerts/told.json", "audit/told.json", "notify/published.json"):
            Outbox(both, place, dict[str, bool], {"night": True}).save()
        DailyCalls(both, 100, lambda: TAKEN_AT).take()
        return both.root

    return once_a_run("verified-nights", make)


@pytest.fixture
def lake(made, tmp_path) -> Lake:
    """A copy of two nights, for a test to damage."""
    shutil.copytree(made, tmp_path / "lake")
    return Lake(str(tmp_path / "lake"))


def flip(place: Path, bit: int) -> None:
    data = bytearray(place.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    place.write_bytes(data)


def damaged(root: Path, *, is_deep: bool = True) -> set[str]:
    return {damage.path for damage in verify(Lake(str(root)), is_deep=is_deep).damages}


def test_a_lake_that_is_as_it_was_written_has_no_damage_and_a_checksum_of_each_file(made):
    for is_deep in (False, True):
        found = verify(Lake(str(made)), is_deep=is_deep)
        assert found.damages == ()
        assert found.unrecorded == 0
    assert found.files > 100


@pytest.mark.parametrize("kind", KINDS)
def test_every_flipped_bit_is_found(made, tmp_path, kind):
    files = sorted(file for file in made.glob(KINDS[kind]) if file.is_file() and file.stat().st_size)
    assert files, "there is none of this kind"
    dice = random.Random(kind)  # noqa: S311 - not a secret
    root = tmp_path / "lake"
    shutil.copytree(made / "checksums", root / "checksums")
    missed = []
    for _ in range(FLIPS):
        file = dice.choice(files)
        bit = dice.randrange(8 * file.stat().st_size)
        place = root / file.relative_to(made)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
        flip(place, bit)
        try:
            is_found = place.relative_to(root).as_posix() in damaged(root)
        except NightauditError:
            # The lake cannot be opened at all, and says why.
            is_found = True
        if not is_found:
            missed.append((file, bit))
        shutil.copyfile(file, place) if kind == "checksums" else place.unlink()
    assert missed == []


def test_every_file_of_a_lake_is_of_a_kind_whose_bits_are_flipped(made):
    of_a_kind = {file for pattern in KINDS.values() for file in made.glob(pattern)}
    others = [file for file in made.rglob("*") if file.is_file() and file not in of_a_kind]
    # A lock holds nothing that is read.
    assert [file.relative_to(made).as_posix() for file in others if not file.name.startswith(".lock")] == []


@pytest.mark.parametrize(
    ("pattern", "path", "repair"),
    [
        ("raw/*/multi-*.parquet", "raw/", "restore"),
        ("raw/*/sweep.json", "raw/", "restore"),
        ("tables/offer/*/*.parquet", "tables/offer/", "nightaudit rebuild"),
        ("tables/penalty/_delta_log", "tables/penalty/_delta_log", "nightaudit rebuild"),
        ("published/nightaudit.duckdb", "published/nightaudit.duckdb", "nightaudit publish"),
        ("published/ledger/*.json", "published/", ""),
    ],
)
def test_what_is_missing_is_found_quickly_with_its_repair(lake, pattern, path, repair):
    gone = sorted(lake.root.glob(pattern))[0]
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    found = verify(lake, is_deep=False).damages
    if "ledger" in pattern:
        # The published file holds a night that no ledger names: what is published is not lost.
        return
    assert any(damage.path.startswith(path) and repair in damage.repair and damage.affects for damage in found)


@pytest.mark.parametrize(
    "pattern",
    [
        "raw/*/sweep.json", "raw/*/end.json", "tables/offer/_delta_log", "tables/offer/_delta_log/*0.json",
        "checksums/tables/offer/_delta_log/*.txt", "published/nightaudit.duckdb", "state", "raw",
    ],
)  # fmt: skip
def test_a_link_in_a_circle_is_damage_and_no_traceback(lake, pattern):
    gone = sorted(lake.root.glob(pattern))[0]
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    gone.symlink_to(gone.name)
    for is_deep in (False, True):
        found = {damage.path: damage.what for damage in verify(lake, is_deep=is_deep).damages}
        assert "neither a file nor a folder" in found[gone.relative_to(lake.root).as_posix()]


@pytest.mark.parametrize(
    ("table", "column"), [("offer", "total"), ("penalty", "window_hours"), ("cell", "property_id")]
)
def test_a_value_that_no_raw_answer_gives_is_found_although_it_is_what_was_written(lake, table, column):
    sweep_id = lake.sweep_ids()[0]
    for file in (lake.table_root(table) / sweep_id).glob("*.parquet"):
        rows = pq.read_table(file)
        values = rows[column].to_pylist()
        values[-1] = 7 if values[-1] is None else values[-1] + 1
        at = rows.column_names.index(column)
        sink = pa.BufferOutputStream()
        pq.write_table(rows.set_column(at, rows.schema.field(at), pa.array(values, rows.schema.field(at).type)), sink)
        lake.put(file.relative_to(lake.root).as_posix(), bytes(sink.getvalue()))
    assert f"tables/{table}/{sweep_id}" not in damaged(lake.root, is_deep=False)
    (damage,) = [each for each in verify(lake, is_deep=True).damages if each.path == f"tables/{table}/{sweep_id}"]
    assert "raw answers" in damage.what
    assert f"lake.{table}" in damage.affects
    assert damage.repair == "nightaudit rebuild"


def test_the_command_names_each_damage_and_exits_with_an_error(lake, monkeypatch):
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    whole = CliRunner().invoke(app, ["verify", "--deep"])
    assert whole.exit_code == 0
    file = sorted(lake.root.glob("tables/offer/*/*.parquet"))[0]
    flip(file, 1000)
    reported = CliRunner().invoke(app, ["verify", "--deep"])
    assert isinstance(reported.exception, CorruptObject)
    assert file.relative_to(lake.root).as_posix() in reported.output
    assert "nightaudit rebuild" in reported.output


def test_the_doctor_says_so_and_fails(lake, monkeypatch):
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    file = sorted(lake.root.glob("tables/offer/*/*.parquet"))[0]
    file.write_bytes(file.read_bytes()[:-10])
    reported = CliRunner().invoke(app, ["doctor"])
    assert reported.exit_code != 0
    assert "files: 1 file is damaged" in reported.output.replace("\n", " ")


def test_the_doctor_says_what_a_stopped_command_has_not_shown(lake, monkeypatch):
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    refresh(lake)
    assert "does not show" not in CliRunner().invoke(app, ["doctor"]).output
    with lake.writing("a test"):
        load(lake, "weights", FOLDER / "weights.csv", datetime.now(UTC))
    reported = CliRunner().invoke(app, ["doctor"])
    assert reported.exit_code != 0
    assert "The published file does not show all that was loaded" in reported.output.replace("\n", " ")


def test_a_damaged_table_file_is_not_audited_or_published(lake):
    sweep_id = lake.sweep_ids()[-1]
    flip(sorted(lake.root.glob(f"tables/{PENALTY.name}/{sweep_id}/*.parquet"))[0], 800)
    settings = _settings(lake)
    with pytest.raises(CorruptObject, match="is damaged"):
        audit_sweep(settings, lake, sweep_id, read_manifest(lake, sweep_id).started_at)


def test_a_damaged_published_file_is_built_again_and_not_resumed(lake, caplog):
    whole = query_published(lake.published_file, "SELECT count(*), sum(total) FROM mart.offer_latest").fetchall()
    flip(lake.published_file, 8 * (lake.published_file.stat().st_size // 2))
    sweep_id = lake.sweep_ids()[-1]
    with lake.writing("a test"):
        publish(lake, sweep_id, read_manifest(lake, sweep_id).started_at)
    assert "is damaged" in caplog.text
    again = query_published(lake.published_file, "SELECT count(*), sum(total) FROM mart.offer_latest").fetchall()
    assert (again, damaged(lake.root)) == (whole, set())


def test_damage_that_the_published_night_no_longer_reads_affects_no_query(lake):
    place = next(lake.local("state").rglob("*.parquet"))
    place.write_bytes(place.read_bytes()[:-1])
    assert {damage.affects for damage in verify(lake, is_deep=False).damages} == {
        "queries, reports, alerts and later nights"
    }
    sweep_id = lake.sweep_ids()[-1]
    with lake.writing("a test"):
        publish(lake, sweep_id, read_manifest(lake, sweep_id).started_at)
    (damage,) = verify(lake, is_deep=False).damages
    assert lake.local(damage.path) == place
    assert damage.affects == "only readers who opened the file that was published before"


def test_a_damaged_raw_answer_is_not_read(lake):
    sweep_id = lake.sweep_ids()[0]
    name = sorted(landed(lake, sweep_id))[0]
    # Not in a page: no checksum of Parquet's own covers a footer.
    place = lake.local(lake.shard_path(sweep_id, name))
    flip(place, 8 * (place.stat().st_size - 60))
    with pytest.raises(CorruptObject, match="is damaged"):
        read_shard(lake, sweep_id, name)


def test_a_broken_log_is_noticed_before_a_night_is_asked(lake):
    log = sorted((lake.table_root(OFFER.name) / "_delta_log").glob("*.json"))[-1]
    flip(log, 400)
    with pytest.raises(LakeError, match=r"cannot be read|damaged"):
        refuse_broken_logs(lake, [OFFER])


def test_a_truncated_manifest_costs_its_sweep_and_not_the_whole_status(lake):
    first, second = lake.sweep_ids()
    manifest = lake.local(lake.manifest_path(first))
    manifest.write_bytes(manifest.read_bytes()[:100])
    shown = {sweep.sweep_id: sweep.state for sweep in overview(lake).sweeps}
    assert shown == {first: "damaged", second: "published"}


@pytest.mark.parametrize("where", ["raw/{}/sweep.json", "raw/{}"])
@pytest.mark.parametrize("aim", ["itself", "nothing"])
def test_a_manifest_behind_a_link_that_leads_nowhere_is_listed_as_damaged(lake, where, aim):
    first, second = lake.sweep_ids()
    gone = lake.local(where.format(first))
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    gone.symlink_to(gone.name if aim == "itself" else "no-such-disk")
    shown = {sweep.sweep_id: sweep.state for sweep in overview(Lake(str(lake.root))).sweeps}
    assert shown == {first: "damaged", second: "published"}


def test_a_sweep_whose_folder_may_not_be_read_is_not_taken_for_none(lake, monkeypatch):
    def refused(place: Path) -> bool:
        raise PermissionError(place)

    monkeypatch.setattr(Path, "exists", refused)
    with pytest.raises(PermissionError):
        lake.sweep_ids()


@pytest.mark.parametrize("aim", ["raw", "no-such-disk"])
def test_raw_answers_on_a_disk_that_is_away_are_not_taken_for_none(lake, aim):
    shutil.rmtree(lake.local("raw"))
    lake.local("raw").symlink_to(aim)
    with pytest.raises(CorruptObject, match="raw is a broken link"):
        overview(Lake(str(lake.root)))
    assert "raw" in damaged(lake.root)


@pytest.mark.parametrize(
    ("how", "repair"),
    {
        "truncated": "restore it from a backup",
        "gone": "restore it from a backup",
        "gone with its answers": "restore it from a backup",
        "its audit cut": "nightaudit audit {}",
        "its audit flipped": "nightaudit audit {}",
        "its offers cut": "nightaudit rebuild",
        "its offers flipped": "nightaudit rebuild",
    }.items(),
)
def test_nor_does_it_cost_the_nights_after_it(lake, caplog, how, repair):
    first, second = lake.sweep_ids()
    audit_at(_settings(lake), lake, first, read_manifest(lake, first).started_at)
    (of_audit,) = lake.table_root(QUALITY.name).glob(f"{first}/*.parquet")
    manifest = lake.local(lake.manifest_path(first))
    if how == "truncated":
        manifest.write_bytes(manifest.read_bytes()[:100])
    elif how == "gone":
        manifest.unlink()
    elif how.startswith("its"):
        damaged = of_audit if "audit" in how else files_of_sweep(lake, OFFER, first)[0]
        if "cut" in how:
            damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
        else:
            flip(damaged, damaged.stat().st_size // 3)
    else:
        shutil.rmtree(manifest.parent)
    audited = audit_sweep(_settings(lake), lake, second, read_manifest(lake, second).started_at)
    assert audited.sweep_id == second
    assert f"Not compared with the night {first}: " in caplog.text
    assert f"To repair it: {repair.format(first)}." in caplog.text


def test_what_is_written_to_a_lake_that_has_lost_its_lake_json_is_recorded_too(lake):
    (lake.root / "lake.json").unlink()
    for page in ("index.html", "new.html"):
        write_in_place(lake.root / "reports" / page, b"Another text, of another length.")
    assert damaged(lake.root) == {"lake.json"}
    assert Recorded(lake.root).of(lake.root / "reports" / "new.html")


def test_a_lake_that_was_rebuilt_and_has_lost_its_lake_json_is_refused(lake):
    import asyncio

    from pipeline.sweep import SweepOptions

    options = SweepOptions(4, 10**8, Workforce(1))
    with lake.writing("a rebuild"):
        asyncio.run(rebuild(lake, options, now=lambda: read_manifest(lake, lake.sweep_ids()[-1]).started_at))
    assert damaged(lake.root) == set()
    (lake.root / "lake.json").unlink()
    with pytest.raises(CorruptObject, match=r"lake\.json is missing.*tables-2"):
        Lake(str(lake.root))


def _settings(lake: Lake):
    from pipeline.settings import Settings

    return Settings(_env_file=None, lake=str(lake.root))
