"""A night may be computed in one range of properties or in many, with the same result."""

from __future__ import annotations

import shutil
from datetime import timedelta

import duckdb
import pytest
from all_relations import contents
from another_machine import AnotherMachine
from nights import FIRST_DAY, load_night, started_at
from two_markets import NOW, publish_night, settings_of_two_markets

from pipeline.domain.analysis import Analysis
from pipeline.domain.property_range import PropertyRange, cut
from pipeline.domain.tables import OFFER
from pipeline.lake import Lake, column_sql
from pipeline.lake.database import open_published
from pipeline.process import cluster_pool, range_pool
from pipeline.publish import night_build, publish, republish_all
from pipeline.publish.range_files import files_read
from pipeline.publish.range_work import find_in_range
from pipeline.publish.state import FILED_UPDATES

pytestmark = pytest.mark.slow

GB_IS_REFERENCE = Analysis(reference_market="GB")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Three nights of the sandbox, each computed in one range."""
    home = tmp_path_factory.mktemp("ranges")
    settings = settings_of_two_markets(home)
    for number in range(3):
        publish_night(settings, number)
    return home


@pytest.fixture
def copied(home, tmp_path):
    """A copy of that lake, to be published again."""
    shutil.copytree(home / "lake", tmp_path / "lake")
    return Lake(str(tmp_path / "lake"))


def ranges_of(lake):
    with open_published(lake.published_file) as session:
        return session.execute(
            "SELECT count(DISTINCT first_property_id) FROM state.file WHERE table_name = 'cell'"
        ).fetchall()[0][0]


def test_many_ranges_give_what_one_range_gives(home, monkeypatch):
    lake = Lake(str(home / "lake"))
    # A single process, so that it is given several ranges at once and joins them for the rules.
    monkeypatch.setattr(cluster_pool.os, "cpu_count", lambda: 1)
    expected = contents(lake)
    assert ranges_of(lake) == 1
    assert republish_all(lake, lambda: None, most_offers=2500)
    assert ranges_of(lake) > 1
    found = contents(lake)
    assert found.keys() == expected.keys()
    for name, rows in expected.items():
        assert found[name] == rows, name


def test_a_night_read_as_texts_gives_what_it_gives_as_enumerations(copied, monkeypatch):
    expected = contents(copied)
    monkeypatch.setattr(column_sql, "enumeration_of", lambda _: None)
    republish_all(copied, lambda: None)
    found = contents(copied)
    for name, rows in expected.items():
        assert found[name] == rows, name


def test_a_night_that_is_published_again_gives_the_same_bytes(home, tmp_path):
    made = []
    for number in range(4):
        shutil.copytree(home / "lake", tmp_path / str(number))
        lake = Lake(str(tmp_path / str(number)))
        republish_all(lake, lambda: None)
        state = max(lake.local("state").iterdir(), key=lambda folder: int(folder.name))
        made.append({path.relative_to(state): path.read_bytes() for path in state.rglob("*.parquet")})
    assert any(path.name.startswith("market_parity") for path in made[0])
    assert all(files == made[0] for files in made[1:])


def test_a_range_needs_no_other_property_s_state_and_no_offers_of_earlier_nights(copied, monkeypatch):
    expected = contents(copied)
    machine = AnotherMachine(copied, files_read)
    monkeypatch.setattr(range_pool, "open_pool", lambda *_: machine)
    republish_all(copied, lambda: None, most_offers=2500)
    assert contents(copied) == expected
    assert len(machine.tasks) > 9
    for (jobs, *_), given in machine.tasks:
        elsewhere = {
            file.path
            for file in jobs[0].state
            if not any(job.within.meets(file.first_property_id, file.last_property_id) for job in jobs)
        }
        assert not given & elsewhere
        of_offers = {path.split("/")[2] for path in given if path.startswith(f"{copied.tables_folder}/{OFFER.name}/2")}
        assert of_offers == {jobs[0].sweep_id}


def test_ranges_that_do_not_fit_into_memory_together_are_computed_one_by_one(copied, monkeypatch):
    expected = contents(copied)
    joined = []

    def find(session, job):
        if job.parts:
            joined.append(job.parts)
            raise duckdb.OutOfMemoryException
        return find_in_range(session, job)

    monkeypatch.setattr(night_build, "find_in_range", find)
    monkeypatch.setattr(cluster_pool.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(range_pool, "open_pool", lambda *_: AnotherMachine(copied, files_read))
    republish_all(copied, lambda: None, most_offers=2500)
    assert any(len(parts) > 1 for parts in joined)
    assert contents(copied) == expected


@pytest.fixture
def just_one_range(copied):
    """How many offers a range may have, so that the second and third nights are one range each, and are not small."""
    with open_published(copied.published_file) as session:
        offers = session.execute("SELECT avg(offers) FROM mart.sweep").fetchall()[0][0]
    return round(2 * offers / 1.1)


def test_one_range_that_is_not_small_gives_what_a_small_night_gives(copied, just_one_range, monkeypatch):
    expected = contents(copied)
    asked = []

    def find(session, job):
        asked.append(job.is_small)
        return find_in_range(session, job)

    def no_pool(*_):
        pytest.fail("a single range needs no process")

    monkeypatch.setattr(night_build, "find_in_range", find)
    monkeypatch.setattr(range_pool, "open_pool", no_pool)
    republish_all(copied, lambda: None, most_offers=just_one_range)
    assert asked == [True, False, False]
    assert ranges_of(copied) == 1
    found = contents(copied)
    for name, rows in expected.items():
        assert found[name] == rows, name


def test_one_range_that_does_not_fit_beside_the_file_that_is_built_gets_a_process(copied, just_one_range, monkeypatch):
    expected = contents(copied)
    machine = AnotherMachine(copied, files_read)

    def find(session, job):
        if not job.is_small and not machine.tasks:
            raise duckdb.OutOfMemoryException
        return find_in_range(session, job)

    monkeypatch.setattr(night_build, "find_in_range", find)
    monkeypatch.setattr(range_pool, "open_pool", lambda *_: machine)
    republish_all(copied, lambda: None, most_offers=just_one_range)
    assert len(machine.tasks) == 1
    assert contents(copied) == expected


def test_a_small_night_gets_more_memory_only_if_it_needs_it(copied, monkeypatch):
    expected = contents(copied)
    limits = []

    def find(session, job):
        limits.append(session.execute("SELECT current_setting('memory_limit')").fetchone()[0])
        if len(limits) == 1:
            raise duckdb.OutOfMemoryException
        return find_in_range(session, job)

    monkeypatch.setattr(night_build, "find_in_range", find)
    republish_all(copied, lambda: None)
    assert limits == ["381.4 MiB", "1.3 GiB", "381.4 MiB", "381.4 MiB"]
    assert contents(copied) == expected


def test_no_two_rows_of_a_state_file_tie(home):
    """Rows that tie come in any order, and the same night would give other bytes."""
    files = sorted((home / "lake" / "state").glob("*/*/*.parquet"))
    written = set()
    for update in FILED_UPDATES:
        for file in files:
            if file.name.startswith(f"{update.name}-"):
                written.add(update.name)
                rows, distinct_rows = duckdb.execute(
                    f"SELECT count(*), count(DISTINCT row({update.order})) FROM read_parquet('{file}')"  # noqa: S608 - our own names
                ).fetchone()
                assert rows == distinct_rows, file
    assert {"offer_open", "offer_closed", "cell", "parity_open", "parity_group_open"} <= written


def test_a_part_without_a_property_leaves_the_same_cells_in_doubt_whatever_the_ranges(lake):
    day = FIRST_DAY + timedelta(days=60)
    asked = [{"property_id": n, "check_in": day} for n in range(1, 7)]
    offers = [stay | {"offer_no": n, "room_id": 7, "total": 100} for n, stay in enumerate(asked)]
    publish(
        lake, load_night(lake, 0, cell=[stay | {"offers": 1} for stay in asked[:2]], offer=offers[:2]), started_at(0)
    )
    # Of properties 2 to 6 the second answer names none, and one part of it names no property: 2 was on sale before.
    missing = [stay | {"status": "absent", "offers": 0} for stay in asked[1:]]
    rejects = [{"reject_no": 0, "property_id": None, "part": "property"}]
    night = load_night(lake, 1, cell=[asked[0] | {"offers": 1}, *missing], offer=offers[:1], reject=rejects)
    publish(lake, night, started_at(1))
    expected = contents(lake)
    with open_published(lake.published_file) as session:
        assert session.execute("SELECT property_id FROM state.cell WHERE NOT is_whole").fetchall() == [(2,)]
    assert republish_all(lake, lambda: None, most_offers=1)
    assert ranges_of(lake) > 2
    assert contents(lake) == expected


def test_a_market_that_sells_nothing_is_silent_for_each_range_alike(lake):
    day = FIRST_DAY + timedelta(days=60)
    for night in range(3):
        cells, offers = [], []
        for number in range(1, 5):
            for market, total in {"GB": 100, "DE": 110}.items():
                # DE sells nothing in night 1, and at property 4 alone in night 2.
                is_sold = market == "GB" or night == 0 or (night == 2 and number == 4)
                stay = {"property_id": number, "market": market, "check_in": day, "search_id": len(cells)}
                cells.append(stay | {"status": "offered" if is_sold else "no_offer"})
                if is_sold:
                    offers.append(stay | {"room_id": 7, "board_id": 14, "currency": "EUR", "total": total})
        publish(lake, load_night(lake, night, cell=cells, offer=offers), started_at(night), analysis=GB_IS_REFERENCE)
    expected = contents(lake)
    with open_published(lake.published_file) as session:
        ended = session.execute(
            "SELECT property_id, ended_by, snapshots FROM mart.parity_episode ORDER BY 1"
        ).fetchall()
    assert ended == [(1, "gone", 1), (2, "gone", 1), (3, "gone", 1), (4, None, 2)]
    assert republish_all(lake, lambda: None, most_offers=1)
    assert ranges_of(lake) > 2
    assert contents(lake) == expected


def test_a_state_file_that_is_missing_is_noticed_and_the_file_is_built_from_the_tables(copied, caplog):
    republish_all(copied, lambda: None)
    expected = contents(copied)
    next((copied.root / "state").glob("*/*/offer_closed-*.parquet")).write_bytes(b"PAR1")
    for folder in sorted((copied.root / "state").iterdir()):
        for file in folder.rglob("offer_open-*.parquet"):
            file.unlink()
    publish(copied, copied.sweep_ids()[-1], NOW + timedelta(days=9))
    assert "missing or damaged" in caplog.text
    assert contents(copied) == expected


def test_a_property_is_never_cut_and_every_id_lies_in_one_range():
    ranges = cut([(5, 10), (6, 500), (7, 10), (9, 10), (2**60, 85)], 100)
    assert [(part.first, part.last) for part in ranges] == [
        (-(2**63), 5),
        (6, 6),
        (7, 2**60 - 1),
        (2**60, 2**63 - 1),
    ]
    assert cut([], 100) == [PropertyRange()]
