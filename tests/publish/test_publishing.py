"""The published file: complete or not at all, whatever happens at the same time."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import duckdb
import pyarrow as pa
import pytest
from nights import FIRST_DAY, digest, filled, finish, load_night, started_at, sweep_id

from pipeline.cli.views import published_view
from pipeline.domain.errors import InputError, LakeError, LakeFull
from pipeline.domain.tables import QUALITY, STATE_TABLES
from pipeline.lake import Lake
from pipeline.lake.checksums import record_as_they_are
from pipeline.lake.database import query_published
from pipeline.lake.delta import commit_rows
from pipeline.lake.ledger import published_sweeps
from pipeline.lake.relations import views
from pipeline.publish.publish import publish
from pipeline.publish.refresh import is_behind, refresh

publishing = importlib.import_module("pipeline.publish.publish")

NAMES = ("mart.sweep", "mart.offer_latest", "mart.offer_history", *(f"state.{table.name}" for table in STATE_TABLES))


def night(lake: Lake, number: int, total=100, count=3) -> str:
    day = FIRST_DAY + timedelta(days=60)
    offers = [{"property_id": n, "check_in": day, "total": total, "offer_no": n, "room_id": 7} for n in range(count)]
    cells = [{"property_id": n, "check_in": day, "offers": 1} for n in range(count)]
    return load_night(lake, number, cell=cells, offer=offers)


def contents(file):
    return {name: query_published(file, f"FROM {name} ORDER BY ALL").fetchall() for name in NAMES}


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory):
    """A lake with two published nights, to copy: it is not written to."""
    made = Lake(str(tmp_path_factory.mktemp("two-nights") / "lake"))
    for number in range(2):
        last = publish(made, night(made, number, 100 + number), started_at(number))
    return made, last


@pytest.fixture
def published(lake, two_nights):
    """Two published nights."""
    made, last = two_nights
    shutil.copytree(made.root, lake.root)
    return replace(last, file=lake.published_file)


@pytest.fixture(scope="module")
def after_three_nights(tmp_path_factory):
    """What the file holds where three nights were published one after the other, undisturbed."""
    twin = Lake(str(tmp_path_factory.mktemp("twin") / "lake"))
    for number in range(3):
        last = publish(twin, night(twin, number, 100 + number), started_at(number))
    return contents(last.file)


@pytest.mark.slow
def test_publishing_again_changes_nothing(lake, published):
    # This lake is a copy: the first time, its file is made to read what lies here.
    assert not publish(lake, sweep_id(1), started_at(5)).is_new
    before, entries = digest(published.file), published_sweeps(lake)
    again = publish(lake, sweep_id(1), started_at(5))
    assert (published.is_new, published.is_built) == (True, True)
    assert (again.is_new, again.is_built) == (False, False)
    assert again.sweep == published.sweep
    assert digest(published.file) == before
    assert published_sweeps(lake) == entries


@pytest.mark.slow
def test_a_published_file_that_is_gone_is_built_again_and_said_to_be(lake, published):
    before = contents(published.file)
    published.file.unlink()
    again = publish(lake, sweep_id(1), started_at(5))
    assert (again.is_new, again.is_built) == (False, True)
    assert "rebuilt" in "".join(map(str, published_view(again).renderables))
    assert contents(published.file) == before


def test_an_older_sweep_is_refused(lake, published):
    before = digest(published.file)
    finish(lake, -1)
    with pytest.raises(InputError, match="older"):
        publish(lake, sweep_id(-1), started_at(5))
    assert digest(published.file) == before


@pytest.mark.slow
def test_an_older_sweep_does_not_overtake_one_whose_publication_has_begun(lake, published, monkeypatch):
    before = digest(published.file)
    older, begun = night(lake, 2, 102), night(lake, 3, 103)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "enter", stop)
        with pytest.raises(KeyboardInterrupt):
            publish(lake, begun, started_at(3))
    with pytest.raises(InputError, match="publishing the later sweep") as reported:
        publish(lake, older, started_at(3))
    assert f"nightaudit publish {begun}" in reported.value.hint
    assert digest(published.file) == before
    assert publish(lake, begun, started_at(3)).is_new


def test_a_sweep_that_is_not_loaded_is_refused(lake, published):
    before = digest(published.file)
    raw = lake.manifest_path(sweep_id(1))
    lake.put_new(lake.manifest_path(sweep_id(2)), lake.get(raw).replace(sweep_id(1).encode(), sweep_id(2).encode()))
    with pytest.raises(LakeError, match="not loaded"):
        publish(lake, sweep_id(2), started_at(5))
    assert digest(published.file) == before


def in_the_middle(data: bytes) -> bytes:
    """Every block after the headers damaged in a byte, so that the file still opens or not, as it happens."""
    damaged = bytearray(data)
    for start in range(3 * 4096 + 200, len(damaged), 4096):
        damaged[start] ^= 0xFF
    return bytes(damaged)


DAMAGE = {
    "deleted": None,
    "empty": lambda _: b"",
    "cut": lambda data: data[: len(data) // 2],
    "not a database": lambda _: b"hello" * 5000,
    "damaged inside": in_the_middle,
}


# A night that is in a file that opens is not checked again, so the next one meets damage inside it.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "next_night"),
    [
        ("deleted", 1),
        ("damaged inside", 2),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (("empty", 2), ("cut", 2), ("not a database", 1))),
    ],
)
def test_a_file_that_was_damaged_is_rebuilt_from_the_ledger(lake, published, after_three_nights, how, next_night):
    expected = contents(published.file)
    if next_night == 2:
        expected = after_three_nights
        night(lake, 2, 102)
    change = DAMAGE[how]
    if change is None:
        published.file.unlink()
    else:
        published.file.write_bytes(change(published.file.read_bytes()))
    publish(lake, sweep_id(next_night), started_at(next_night))
    assert contents(published.file) == expected


@pytest.mark.slow
def test_a_file_of_another_version_is_rebuilt(lake, published):
    expected = contents(published.file)
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH '{published.file}' AS old")
        session.execute("ALTER TABLE old.state.promotion ADD COLUMN something INTEGER")
    publish(lake, sweep_id(1), started_at(3))
    assert contents(published.file) == expected


@pytest.mark.slow
def test_state_files_of_another_version_are_rebuilt(lake, published):
    with duckdb.connect(str(published.file)) as session:
        view = session.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'cell' AND schema_name = 'state'")
        session.execute(view.fetchone()[0].replace("CREATE VIEW", "CREATE OR REPLACE VIEW").replace("spells", "1 AS n"))
    before = contents_of_sweeps(published.file)
    publish(lake, night(lake, 2, 102), started_at(2))
    assert contents_of_sweeps(published.file)[:2] == before
    assert query_published(published.file, "SELECT count(*) FROM state.cell WHERE spells = 1").fetchall() == [(3,)]


@pytest.mark.slow
def test_state_files_that_lack_a_column_of_this_version_are_rebuilt_with_it(lake, published):
    publish(lake, sweep_id(1), started_at(2))
    lacking = "longest_unseen_days"
    with duckdb.connect(str(published.file)) as session:
        # As the version before wrote them.
        for (path,) in session.execute("SELECT path FROM state.file WHERE table_name LIKE 'offer_%'").fetchall():
            place, older = lake.local(path), lake.local(f"{path}.older")
            session.execute(f"COPY (SELECT * EXCLUDE ({lacking}) FROM '{place}') TO '{older}' (FORMAT parquet)")  # noqa: S608 - our own names
            older.rename(place)
            session.execute("UPDATE state.file SET bytes = ? WHERE path = ?", [place.stat().st_size, path])
            record_as_they_are(lake.root, [place])
        found = "SELECT sql FROM duckdb_views() WHERE schema_name = 'state' AND view_name LIKE 'offer_%'"
        for (view,) in session.execute(found).fetchall():
            session.execute(view.replace("CREATE VIEW", "CREATE OR REPLACE VIEW").replace(f"{lacking}, ", ""))
    record_as_they_are(lake.root, [published.file])
    # Between the update and the next night, users load files and request quotes.
    assert not refresh(lake)
    publish(lake, night(lake, 5, 101), started_at(5))
    unseen = f"SELECT valid_from, {lacking}, snapshots FROM mart.offer_history WHERE property_id = 1 ORDER BY 1"  # noqa: S608 - our own names
    assert query_published(published.file, unseen).fetchall() == [(started_at(0), 0, 1), (started_at(1), 4, 2)]


def contents_of_sweeps(file):
    return query_published(file, "SELECT sweep_id FROM mart.sweep ORDER BY 1").fetchall()


@pytest.mark.slow
def test_what_a_killed_build_left_behind_harms_nothing(lake, published, after_three_nights):
    left = published.file.with_name(f".nightaudit.{sweep_id(2)}.duckdb")
    script = (
        "import duckdb, os; s = duckdb.connect(':memory:'); "
        f"s.execute(\"ATTACH '{left}' AS a; CREATE SCHEMA a.state; CREATE TABLE a.state.cell (x INTEGER)\"); "
        "os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    assert left.with_name(left.name + ".wal").exists()
    published.file.with_name(".nightaudit.another.duckdb").write_bytes(b"half")
    publish(lake, night(lake, 2, 102), started_at(2))
    assert contents(published.file) == after_three_nights
    assert {path.name for path in published.file.parent.iterdir()} == {"nightaudit.duckdb", "ledger"}


@pytest.mark.slow
@pytest.mark.parametrize("point", ["enter", "_build", "finish"])
def test_a_stop_at_any_step_leaves_the_last_file_and_can_be_repeated(
    lake, published, after_three_nights, monkeypatch, point
):
    before = digest(published.file)
    night(lake, 2, 102)
    real = getattr(publishing, point)

    def stop(*given):
        real(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(publishing, point, stop)
        with pytest.raises(KeyboardInterrupt):
            publish(lake, sweep_id(2), started_at(2))
    assert digest(published.file) == before
    publish(lake, sweep_id(2), started_at(2))
    assert contents(published.file) == after_three_nights


@pytest.mark.slow
def test_a_reader_keeps_what_it_opened_and_new_readers_see_the_next_night(lake, published):
    with duckdb.connect(":memory:") as reader:
        reader.execute(f"ATTACH '{published.file}' AS p (READ_ONLY)")
        assert reader.execute("SELECT DISTINCT total FROM p.state.offer_open").fetchall() == [(101,)]
        publish(lake, night(lake, 2, 102), started_at(2))
        assert reader.execute("SELECT count(*), max(total) FROM p.state.offer_open").fetchall() == [(3, 101)]
    assert query_published(published.file, "SELECT max(total) FROM mart.offer_latest").fetchall() == [(102,)]


def test_another_process_opens_the_last_night_while_the_next_is_built(lake, published, monkeypatch):
    seen = []
    script = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only=True); "
        "print(c.execute('SELECT max(total) FROM mart.offer_latest').fetchone()[0])"
    )

    def describe_while_read(_session):
        done = subprocess.run(
            [sys.executable, "-c", script, published.file], capture_output=True, text=True, check=True
        )
        seen.append(done.stdout.strip())

    monkeypatch.setattr("pipeline.publish.catalogue.describe", describe_while_read)
    publish(lake, night(lake, 2, 102), started_at(2))
    assert seen == ["101.0000"]


@pytest.mark.usefixtures("published")
def test_what_audits_found_can_be_read_once_their_log_is_summed_up(lake):
    for number in range(25):
        # After a number of commits, a log is summed up in a Parquet file next to its entries.
        check = filled(QUALITY, {"sweep_id": sweep_id(0), "check_name": f"check {number}"})
        made = pa.Table.from_pylist([check], schema=QUALITY.schema)
        commit_rows(lake, QUALITY, made, sweep_id(0), f"audit-{number}", f"audit {number}")
    assert list((lake.table_root("quality") / "_delta_log").glob("*.parquet"))
    assert refresh(lake)
    assert query_published(lake.published_file, "SELECT count(*) FROM mart.quality").fetchall() == [(25,)]


def test_everything_that_analysts_see_is_commented(published):
    without = """
        SELECT schema_name, name, column_name FROM (
            SELECT schema_name, table_name AS name, column_name, comment FROM duckdb_columns() WHERE NOT internal
            UNION ALL SELECT schema_name, table_name, NULL, comment FROM duckdb_tables()
            UNION ALL SELECT schema_name, view_name, NULL, comment FROM duckdb_views() WHERE NOT internal
        ) WHERE schema_name <> 'state' AND (comment IS NULL OR trim(comment) = '')
    """
    assert query_published(published.file, without).fetchall() == []
    views = query_published(published.file, "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal")
    assert {("mart", "offer_latest"), ("mart", "offer_history"), ("mart", "cell_latest")} <= set(views.fetchall())
    assert query_published(published.file, "SELECT count(*) FROM ref.market").fetchall() == [(36,)]
    assert query_published(published.file, "SELECT count(*) FROM ref.board_basis").fetchall() == [(28,)]
    assert query_published(published.file, "SELECT count(*) FROM ref.error_code").fetchall() == [(28,)]


@pytest.mark.parametrize(
    ("column", "meaning"),
    [
        ("report.flag.amount", "Size of the finding in currency; NULL: it is not about money."),
        ("report.flag.market", "Requested market code; NULL: not about a single market."),
        ("mart.quality.outcome", "`passed`, `failed`, or `not_judged`: too few nights to compare with."),
        ("mart.cell_latest.market", "Requested market code: the point of sale."),
        ("mart.weight.market", "Market that has this weight; NULL: the weight is for a property."),
        ("report.promotion_reference.highest", "Highest total ever seen, in currency."),
        # It reads two relations with a column of that name, which mean something else.
        ("mart.market_parity.currency", "ISO 4217 code of all money of this row, as sent; NULL: not comparable."),
    ],
)
def test_a_column_means_what_it_means_where_its_view_takes_it_from(published, column, meaning):
    found = query_published(
        published.file,
        "SELECT comment FROM duckdb_columns() WHERE schema_name || '.' || table_name || '.' || column_name = $column",
        {"column": column},
    )
    assert found.fetchall() == [(meaning,)]


@pytest.mark.slow
def test_every_view_can_be_read_even_of_tables_without_a_row(published):
    names = query_published(
        published.file, "SELECT DISTINCT schema_name || '.' || table_name FROM duckdb_columns() WHERE NOT internal"
    ).fetchall()
    for (name,) in names:
        query_published(published.file, f"FROM {name}").fetchall()
    assert query_published(published.file, "SELECT count(*) FROM lake.offer").fetchall() == [(6,)]


def test_the_oldest_duckdb_that_is_supported_can_open_it(published):
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH '{published.file}' AS p (READ_ONLY)")
        ((tags,),) = session.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 'p'").fetchall()
    assert tags["storage_version"].startswith("v1.5")


def test_tables_of_a_few_rows_take_little_room_in_the_file(published):
    size = "SELECT block_size FROM pragma_database_size() WHERE database_name = 'nightaudit'"
    assert query_published(published.file, size).fetchall() == [(65_536,)]
    assert published.file.stat().st_size < 8_000_000


def test_a_damaged_file_of_the_lake_publishes_nothing(lake, published):
    before = digest(published.file)
    sweep = night(lake, 2, 102)
    lake.local(lake.table_file("offer", sweep, "multi-GB-00000")).write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(LakeError, match="could not be built"):
        publish(lake, sweep, started_at(2))
    assert digest(published.file) == before
    assert {path.name for path in published.file.parent.iterdir()} == {"nightaudit.duckdb", "ledger"}
    assert [entry.sweep_id for entry in published_sweeps(lake)] == [sweep_id(0), sweep_id(1)]


@pytest.mark.slow
def test_a_full_disk_publishes_nothing_and_says_so(lake, published):
    before = digest(published.file)
    sweep = night(lake, 2, 102, count=20_000)
    script = f"""
import resource, signal, sys
from datetime import datetime, UTC
from pipeline.domain.errors import LakeFull
from pipeline.cli.views import published_view
from pipeline.lake import Lake
from pipeline.publish.publish import publish
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
lake = Lake({str(lake.root)!r})
size = lake.published_file.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, size + 100_000))
try:
    publish(lake, {sweep!r}, datetime.now(UTC))
except LakeFull as error:
    print("full:", error.message)
    sys.exit(7)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    assert digest(published.file) == before
    assert {path.name for path in published.file.parent.iterdir()} == {"nightaudit.duckdb", "ledger"}
    assert publish(lake, sweep, started_at(2)).is_new
    assert issubclass(LakeFull, LakeError)


def test_after_an_upgrade_a_published_night_is_shown_by_the_new_relations(lake, monkeypatch):
    with monkeypatch.context() as earlier:
        earlier.setattr("pipeline.publish.catalogue.fingerprint", lambda: "of an earlier version")
        earlier.setattr(
            "pipeline.publish.catalogue.views", lambda: [each for each in views() if each.name != "freshness"]
        )
        publish(lake, night(lake, 0), started_at(0))
    assert is_behind(lake)
    assert publish(lake, sweep_id(0), started_at(0)).is_built
    assert query_published(lake.published_file, "SELECT count(*) FROM report.freshness").fetchall() == [(1,)]
    assert not is_behind(lake)
    assert not publish(lake, sweep_id(0), started_at(0)).is_built
