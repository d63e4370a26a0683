"""Parity as it moves on from night to night, and questions about it, as an analyst asks them of the published file."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import duckdb
import pytest
from nights import load_night, started_at, sweep_id

from pipeline.domain.analysis import Analysis
from pipeline.domain.tables import STATE_TABLES
from pipeline.lake import Lake
from pipeline.lake.checksums import record_as_they_are
from pipeline.lake.database import query_published
from pipeline.publish.publish import publish, republish_all

pytestmark = pytest.mark.slow

DAY = {"check_in": date(2030, 3, 1)}
OFFER = DAY | {"room_id": 7, "board_id": 14, "currency": "EUR", "floor": 90}
GB_AND_DE = Analysis(reference_market="GB")


# What DE pays of each property, night by night, where GB pays 100. None: it has no offer. Nights that are not
# named did not ask.
GROWING, ENDED, GONE, FLOORED = 1, 2, 3, 4
THERE = {
    GROWING: {1: 106, 2: "failed", 3: 108},
    ENDED: {0: 106, 1: "failed", 2: 108, 3: 100},
    GONE: {1: 106, 2: None, 3: 106},
}


def publish_night(lake, night, there, floors=None):
    """Publish a night in which GB pays 100 for each property, and DE what `there` says; `floors` of GB, 90 else."""
    cells, offers = [], []
    for number, total in there.items():
        stay = DAY | {"property_id": number}
        status = {None: "no_offer", "failed": "failed"}.get(total, "offered")
        cells += [stay | {"market": "GB", "search_id": 2 * number}]
        cells += [stay | {"market": "DE", "search_id": 2 * number + 1, "status": status}]
        floor = (floors or {}).get(number, 90)
        offers += [OFFER | stay | {"market": "GB", "search_id": 2 * number, "total": 100, "floor": floor}]
        if status == "offered":
            offers += [OFFER | stay | {"market": "DE", "search_id": 2 * number + 1, "total": total}]
    load_night(lake, night, cell=cells, offer=offers)
    return publish(lake, sweep_id(night), started_at(night), analysis=GB_AND_DE).file


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The file of four such nights; it is not written to."""
    lake = Lake(str(tmp_path_factory.mktemp("parity") / "lake"))
    for night in range(4):
        there = {number: by_night[night] for number, by_night in THERE.items() if night in by_night}
        if night == 3:
            there[FLOORED] = None
        file = publish_night(lake, night, there, {FLOORED: 125})
    return file


def episodes(published, of):
    query = (
        "SELECT market, began_at, snapshots, largest_gap_pct, ended_by, days, is_running FROM mart.parity_episode "
        "WHERE property_id = $of ORDER BY began_at"
    )
    return query_published(published, query, {"of": of}).fetchall()


def test_an_episode_grows_by_compared_nights_alone_and_ends_when_the_prices_meet(published):
    ((*running, _, is_running),) = episodes(published, GROWING)
    assert (running, is_running) == (["DE", started_at(1), 2, 8.0, None], True)
    persistence = (
        "SELECT match_grade, losing_snapshots, verdict FROM mart.market_parity WHERE property_id = $of ORDER BY 1"
    )
    assert query_published(published, persistence, {"of": GROWING}).fetchall() == [
        ("board_family", 2, "lose"),
        ("cheapest", 2, "lose"),
        ("exact", 2, "lose"),
    ]
    assert episodes(published, ENDED) == [("DE", started_at(0), 2, 8.0, "resolved", 3.0, False)]


def test_an_offer_that_is_gone_ends_its_episode_and_a_later_one_is_another(published):
    found = [(began_at, snapshots, ended) for _, began_at, snapshots, _, ended, *_ in episodes(published, GONE)]
    assert found == [(started_at(1), 1, "gone"), (started_at(3), 1, None)]


def publish_rooms(lake, night, rooms, silent=None, *, elsewhere=False):
    """Publish a night in which GB sells room 7 for 100, and DE what `rooms` says, by room; the silent market nothing.

    Or it sells something `elsewhere` alone: at another property.
    """
    stays = [DAY | {"market": market, "search_id": number} for number, market in enumerate(("GB", "DE"))]
    there = [OFFER | stays[1] | {"offer_no": n, "room_id": n, "total": total} for n, total in rooms.items()]
    offers = [each for each in [OFFER | stays[0] | {"total": 100}, *there] if each["market"] != silent]
    cells = [stay | {"status": "no_offer" if stay["market"] == silent else "offered"} for stay in stays]
    if elsewhere:
        other = DAY | {"market": silent, "property_id": 2, "search_id": 2}
        cells, offers = [*cells, other], [*offers, OFFER | other | {"total": 100}]
    load_night(lake, night, cell=cells, offer=offers)
    return publish(lake, sweep_id(night), started_at(night), analysis=GB_AND_DE).file


def losing(file):
    rows = query_published(
        file, "SELECT match_grade, losing_snapshots, losing_since FROM mart.market_parity"
    ).fetchall()
    return {grade: (snapshots, since) for grade, snapshots, since in rows}


def test_the_cheapest_of_a_market_stays_dearer_whichever_room_it_is(lake):
    publish_rooms(lake, 0, {7: 106, 8: 107})
    file = publish_rooms(lake, 1, {7: 109, 8: 108})
    assert losing(file) == dict.fromkeys(("exact", "board_family", "cheapest"), (2, started_at(0)))
    file = publish_rooms(lake, 2, {9: 103})
    assert losing(file) == dict.fromkeys(("board_family", "cheapest"), (3, started_at(0)))


def ends(file):
    """How each episode has ended, if it has, by grade."""
    grades = "SELECT 'exact' AS match_grade, ended_by, ended_at FROM mart.parity_episode UNION ALL BY NAME "
    ended = "SELECT match_grade, ended_by, ended_at FROM mart.parity_group_episode"
    return {grade: (by, at) for grade, by, at in query_published(file, f"{grades} {ended}").fetchall()}


GRADES = ("exact", "board_family", "cheapest")


@pytest.mark.parametrize("silent", ["DE", "GB"])
def test_an_episode_does_not_end_while_a_market_sells_nothing_at_all(lake, silent):
    publish_rooms(lake, 0, {7: 106})
    file = publish_rooms(lake, 1, {7: 106}, silent)
    assert ends(file) == dict.fromkeys(GRADES, (None, None))
    file = publish_rooms(lake, 2, {7: 108})
    assert losing(file) == dict.fromkeys(GRADES, (2, started_at(0)))
    file = publish_rooms(lake, 3, {7: 100})
    assert ends(file) == dict.fromkeys(GRADES, ("resolved", started_at(3)))


@pytest.mark.parametrize("silent", ["DE", "GB"])
def test_what_is_still_missing_when_its_market_sells_again_is_gone(lake, silent):
    publish_rooms(lake, 0, {7: 106})
    publish_rooms(lake, 1, {7: 106}, silent)
    file = publish_rooms(lake, 2, {7: 106}, silent, elsewhere=True)
    assert ends(file) == dict.fromkeys(GRADES, ("gone", started_at(2)))


def test_a_market_that_stays_silent_for_longer_ends_its_episodes(lake):
    publish_rooms(lake, 0, {7: 106})
    for night in range(1, 3):
        file = publish_rooms(lake, night, {7: 106}, "DE")
        assert ends(file) == dict.fromkeys(GRADES, (None, None))
    file = publish_rooms(lake, 3, {7: 106}, "DE")
    assert ends(file) == dict.fromkeys(GRADES, ("gone", started_at(3)))


def test_a_file_of_the_version_before_is_given_what_it_lacks_from_the_tables(lake):
    publish_rooms(lake, 0, {7: 106})
    file = publish_rooms(lake, 1, {7: 106})
    with duckdb.connect(str(file)) as older:
        older.execute("DROP VIEW state.parity_group_open")
        older.execute("DELETE FROM state.file WHERE table_name = 'parity_group_open'")
    record_as_they_are(lake.root, [file])
    file = publish_rooms(lake, 2, {7: 106})
    assert losing(file) == dict.fromkeys(("exact", "board_family", "cheapest"), (3, started_at(0)))


def test_parity_rebuilt_is_what_the_nights_left(lake):
    names = [f"state.{table.name}" for table in STATE_TABLES]
    for night, there in enumerate((106, 100, 104)):
        file = publish_night(lake, night, {1: there}, {1: 90 + night})
    before = {name: query_published(file, f"FROM {name} ORDER BY ALL").fetchall() for name in names}
    assert before["state.parity_open"]
    assert before["state.parity_closed"]
    assert before["state.parity_group_open"]
    assert before["state.floor_move"]
    file = republish_all(lake, lambda: None)
    assert {name: query_published(file, f"FROM {name} ORDER BY ALL").fetchall() for name in names} == before


def test_any_mark_up_can_be_compared_with_the_floors(published):
    asked = "SELECT property_id, total, price, below_floor, below_floor_pct FROM mart.floor_what_if(?)"
    with duckdb.connect(str(published), read_only=True) as session:
        found = {markup: session.execute(asked, [markup]).fetchall() for markup in (20, 30)}
    assert found == {20: [(FLOORED, Decimal(100), Decimal(120), Decimal(5), 4.0)], 30: []}


def test_relations_can_be_read_of_a_file_that_is_attached_beside_others(published):
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH '{published}' AS other (READ_ONLY)")
        found = session.execute(
            "SELECT property_id, market, amount FROM other.report.market_disparity ORDER BY property_id"
        ).fetchall()
    assert found == [(GROWING, "DE", Decimal(8)), (GONE, "DE", Decimal(6))]
