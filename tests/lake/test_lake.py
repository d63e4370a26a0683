"""Access to the lake: objects appear complete, one writer at a time, and every error says what to do."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.domain.errors import CorruptObject, LakeBusy, LakeError, LakeFull, LakeTooNew, SettingsError
from pipeline.lake import Lake, objects, write_in_place
from pipeline.lake.mark import Mark
from pipeline.lake.records import read_record


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_object_is_created_once(lake):
    assert lake.put_new("raw/s/x.parquet", b"first")
    assert not lake.put_new("raw/s/x.parquet", b"second")
    assert lake.get("raw/s/x.parquet") == b"first"
    assert lake.names("raw/s", ".parquet") == {"x"}


def test_an_object_can_be_put_in_place_of_another(lake):
    lake.put("tables/offer/s/x.parquet", b"first")
    lake.put("tables/offer/s/x.parquet", b"second")
    assert lake.get("tables/offer/s/x.parquet") == b"second"
    assert [path.name for path in lake.root.rglob("x*")] == ["x.parquet"]


def test_a_missing_object_is_file_not_found(lake):
    with pytest.raises(FileNotFoundError):
        lake.get("raw/none")
    assert lake.names("raw/none") == set()


@pytest.mark.parametrize("name", ["plain", "with blank", "ümläut", "per%20cent", "hash#1", "quo'te", "plus+"])
def test_a_folder_of_any_name_can_hold_a_lake(tmp_path, name):
    lake = Lake(str(tmp_path / name))
    lake.put_new("raw/s/x.parquet", b"x")
    assert (tmp_path / name / "raw/s/x.parquet").read_bytes() == b"x"
    assert Lake(f"file://{tmp_path / name}").get("raw/s/x.parquet") == b"x"


@pytest.mark.parametrize("name", ["st*r", "wh?t", "br[a]cket"])
def test_a_folder_whose_name_is_a_pattern_is_refused(tmp_path, name):
    with pytest.raises(SettingsError, match="cannot be used"):
        Lake(str(tmp_path / name))


@pytest.mark.parametrize("address", ["gs://bucket/lake", "s3:/bucket/lake", "S3:/bucket", "https://bucket/lake"])
def test_another_kind_of_address_and_a_misspelt_one_are_refused(address):
    with pytest.raises(SettingsError, match="on S3"):
        Lake(address)


def test_a_file_in_place_of_the_folder_is_reported(tmp_path):
    (tmp_path / "lake").write_text("x")
    with pytest.raises(LakeError, match="cannot be used"):
        Lake(str(tmp_path / "lake"))


@pytest.mark.parametrize(
    ("name", "why"), [("x" * 5000, "too long"), (os.fsdecode(b"\xff"), "not UTF-8"), ("a\0b", "a NUL character")]
)
def test_a_name_that_no_folder_can_have_is_refused(tmp_path, name, why):
    with pytest.raises(LakeError, match=f"cannot be used: its name .*{why}"):
        Lake(str(tmp_path / name))


def test_looking_at_a_lake_that_is_not_there_makes_none(tmp_path):
    lake = Lake(str(tmp_path / "typo" / "lake"))
    with pytest.raises(FileNotFoundError):
        lake.get("lake.json")
    assert lake.sweep_ids() == []
    assert lake.free_bytes() > 0
    assert list(tmp_path.iterdir()) == []
    with lake.writing("a test"):
        assert lake.get_json("lake.json") == {"format": 1, "checksums": True}


def test_sweeps_of_one_second_are_in_their_order(lake):
    for name, started_at in {"20300101T020000Z-bb": "02:00:00.1", "20300101T020000Z-aa": "02:00:00.2"}.items():
        lake.put_new(lake.manifest_path(name), json.dumps({"started_at": started_at}).encode())
    lake.put_new(lake.manifest_path("20291231T020000Z-zz"), b"{}")
    assert lake.sweep_ids() == ["20291231T020000Z-zz", "20300101T020000Z-bb", "20300101T020000Z-aa"]


@pytest.mark.parametrize("text", ['{"format": 99}', '{"format": "new"}', "{}"])
def test_a_lake_of_a_newer_version_is_left_alone(lake, text):
    lake.root.mkdir()
    (lake.root / "lake.json").write_text(text)
    with pytest.raises(LakeTooNew, match="reads up to"):
        Lake(str(lake.root))


def test_a_lake_of_a_newer_version_is_known_by_its_checksum(lake):
    lake.put("lake.json", b'{"format": 99}')
    with pytest.raises(LakeTooNew, match="reads up to"):
        Lake(str(lake.root))


def flipped(place: Path) -> Iterator[Path]:
    """Flip each bit of a file in turn."""
    written = place.read_bytes()
    for bit in range(8 * len(written)):
        data = bytearray(written)
        data[bit // 8] ^= 1 << bit % 8
        place.write_bytes(data)
        yield place
    place.write_bytes(written)


def test_no_changed_bit_of_lake_json_passes_for_a_newer_version_or_another_folder_of_tables(lake):
    lake.put_new("raw/s/x.parquet", b"x")
    refused = []
    for _ in flipped(lake.root / "lake.json"):
        try:
            assert Lake(str(lake.root)).tables_folder == "tables"
        except CorruptObject as error:
            refused.append(error)
    assert refused
    assert {error.hint for error in refused} == {"List the damage and its repairs: nightaudit verify --deep"}
    (lake.root / "lake.json").write_text('{"format":1,\n"checksums":true}\n')
    assert Lake(str(lake.root)).records_all


def test_a_changed_bit_of_lake_json_in_a_rebuilt_lake_is_refused_with_what_was_written(lake):
    lake.put_new("raw/s/x.parquet", b"x")
    (lake.root / "tables-2").mkdir()
    # Of a rebuild that was killed: no lake.json ever named it.
    (lake.root / "tables-3").mkdir()
    Lake(str(lake.root), "tables-2").adopt_tables()
    place = lake.root / "lake.json"
    written = place.read_text()
    assert Lake(str(lake.root)).tables_folder == "tables-2"
    for _ in flipped(place):
        with pytest.raises(CorruptObject, match=r"lake\.json is damaged; it names .* tables-2 or tables-3") as refused:
            Lake(str(lake.root), may_be_damaged=True)
        assert refused.value.hint.endswith(f"Without one, write: {written}")


def test_a_lake_json_with_other_blanks_and_order_is_the_same(lake):
    lake.put_new("raw/s/x.parquet", b"x")
    for folder in ("tables", "tables-2"):
        (lake.root / folder).mkdir()
    Lake(str(lake.root), "tables-2").adopt_tables()
    place = lake.root / "lake.json"
    place.write_text(json.dumps(dict(reversed(json.loads(place.read_text()).items())), indent=2))
    assert Lake(str(lake.root)).tables_folder == "tables-2"


def test_a_lake_whose_rebuild_was_stopped_as_it_named_its_new_tables_is_still_the_former_one(lake, monkeypatch):
    lake.put_new("raw/s/x.parquet", b"x")
    (lake.root / "tables-2").mkdir()
    rebuilt = Lake(str(lake.root), "tables-2")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(objects.obstore, "put", full)
        with pytest.raises(LakeFull):
            rebuilt.adopt_tables()
    assert Lake(str(lake.root)).tables_folder == "tables"


@pytest.mark.parametrize("text", ["{", "[1]", "", "[" * 200_000])
def test_a_damaged_note_of_the_format_is_reported(lake, text):
    lake.root.mkdir()
    (lake.root / "lake.json").write_text(text)
    # Its repair depends on what else is there.
    with pytest.raises(CorruptObject) as caught:
        Lake(str(lake.root))
    assert caught.value.hint == "List the damage and its repairs: nightaudit verify --deep"


def test_a_record_of_brackets_is_reported(lake):
    lake.put("nights/x.json", b'{"x":' + b"[" * 200_000)
    with pytest.raises(CorruptObject, match="restore it"):
        read_record(lake, "nights/x.json", Mark, hint="restore it")


HOLD = """
import sys, time
from pipeline.lake import Lake
with Lake(sys.argv[1]).writing("a sweep"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_writer_is_refused_at_once_and_reported_who_writes(lake):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, lake.root], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LakeBusy, match=rf"a sweep \(process {holder.pid}\)"), lake.writing("another"):
            pass
        assert Lake(str(lake.root)).sweep_ids() == []
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    # Its note is still there; its lock has gone with it.
    assert (lake.root / ".lock.note").exists()
    with lake.writing("another"):
        assert f"another (process {os.getpid()})" in (lake.root / ".lock.note").read_text()


def test_a_second_writer_of_the_same_process_is_refused_too(lake):
    with lake.writing("one"), pytest.raises(LakeBusy), Lake(str(lake.root)).writing("two"):
        pass


@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_the_note_is_not_waited_for(lake):
    note = lake.root / ".lock.note"
    lake.root.mkdir(exist_ok=True)
    os.mkfifo(note)
    with lake.writing("a test"):
        assert note.read_text().startswith("a test")


def test_it_is_refused_in_the_same_way_if_the_note_of_the_writer_is_damaged(lake):
    with lake.writing("one"):
        (lake.root / ".lock.note").write_bytes(b"a s\xf7eep \x1b[2J")
        with pytest.raises(LakeBusy, match=r"a s.eep \\x1b\[2J"):
            Lake(str(lake.root)).writing("two").__enter__()


FULL = """
import resource, signal, sys
from pipeline.domain.errors import LakeFull
from pipeline.lake import Lake
lake = Lake(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), -1))
try:
    if sys.argv[2] == "writing":
        with lake.writing("x"):
            sys.exit(1)
    getattr(lake, sys.argv[2])("raw/s/x.parquet", b"x" * 100_000)
except LakeFull as error:
    print(error)
    sys.exit(7)
"""


@pytest.mark.parametrize(("how", "limit"), [("put_new", 50_000), ("put", 50_000), ("put_new", 0), ("writing", 0)])
def test_a_full_disk_is_reported_and_leaves_nothing_half(lake, how, limit):
    done = run(FULL, lake.root, how, limit)
    assert done.returncode == 7, done.stderr
    assert "could not be written" in done.stdout
    assert "Free some space" in done.stdout
    assert not lake.exists("raw/s/x.parquet")
    assert lake.names("raw/s", ".parquet") == set()
    assert lake.put_new("raw/s/x.parquet", b"later")


def test_a_full_disk_does_not_cost_the_object_that_was_there(lake):
    lake.put("raw/s/x.parquet", b"before")
    assert run(FULL, lake.root, "put", 50_000).returncode == 7
    assert lake.get("raw/s/x.parquet") == b"before"


def test_a_real_full_disk_is_reported_like_any_refused_write(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        lake = Lake(str(disk / "lake"))
        with pytest.raises(LakeFull, match="could not be written"):  # noqa: PT012 - one of many is the last to fit
            for number in range(100):
                lake.put_new(f"raw/s/{number}.parquet", b"x" * 20_000)
        for name in lake.names("raw/s", ".parquet"):
            assert len(lake.get(f"raw/s/{name}.parquet")) == 20_000
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_a_folder_that_may_not_be_written_is_reported(lake):
    (lake.root / "raw").mkdir()
    (lake.root / "raw").chmod(0o500)
    with pytest.raises(LakeFull, match="permissions"):
        lake.put_new("raw/s/x.parquet", b"x")


def test_a_folder_in_the_place_of_an_object_is_reported(lake):
    Path(lake.root / "raw/s/x.parquet/y").mkdir(parents=True)
    with pytest.raises(LakeError):
        lake.put("raw/s/x.parquet", b"x")


def test_no_other_module_knows_where_the_tables_lie():
    # A rebuild gives them another folder; who writes its name down would look into the old one.
    modules = [file for folder in ("pipeline", "flows") for file in (Path(__file__).parents[2] / folder).rglob("*.py")]
    knowing = {file.name for file in modules if re.search(r"""["']tables/""", file.read_text())}
    assert knowing <= {"lake.py"}


def test_writers_of_one_file_at_once_do_not_take_each_others_file_away(lake):
    lake.put("reports/night/page.html", b"")
    place, texts = lake.local("reports/night/page.html"), [bytes([65 + number]) * 100_000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: write_in_place(place, text), texts * 5)) == [place] * 40
    assert place.read_bytes() in texts
    assert [file.name for file in place.parent.iterdir()] == ["page.html"]
    lake.get("reports/night/page.html")
