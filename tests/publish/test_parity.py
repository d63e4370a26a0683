"""Parity as it moves on from night to night, and questions about it, as an analyst asks them of the published file."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import duckdb
from nights import load_night, started_at, sweep_id

from pipeline.domain.analysis import Analysis
from pipeline.domain.tables import STATE_TABLES
from pipeline.lake.database import query_published
from pipeline.publish.publish import publish, publish_anew

DAY = {"check_in": date(2030, 3, 1)}
OFFER = DAY | {"room_id": 7, "board_id": 14, "currency": "EUR", "floor": 90}
GB_AND_DE = Analysis(reference_market="GB")


def publish_night(lake, night, there, *, floor=90, status="offered"):
    """Publish a night in which GB pays 100 and DE pays `there`; None: DE is not offered it."""
    cells = [DAY | {"market": "GB", "search_id": 1}, DAY | {"market": "DE", "search_id": 2, "status": status}]
    offers = [OFFER | {"market": "GB", "search_id": 1, "total": 100, "floor": floor}]
    if there is not None:
        offers.append(OFFER | {"market": "DE", "search_id": 2, "total": there})
    load_night(lake, night, cell=cells, offer=offers)
    return publish(lake, sweep_id(night), started_at(night), analysis=GB_AND_DE).file


def test_an_episode_grows_by_compared_nights_alone_and_ends_when_the_prices_meet(lake):
    for night, there, status in ((0, 106, "offered"), (1, None, "failed"), (2, 108, "offered")):
        file = publish_night(lake, night, there, status=status)
    running = "SELECT market, snapshots, largest_gap_pct, is_running, began_at FROM mart.parity_episode"
    assert query_published(file, running).fetchall() == [("DE", 2, 8.0, True, started_at(0))]
    persistence = "SELECT losing_snapshots, verdict FROM mart.market_parity WHERE match_grade = 'exact'"
    assert query_published(file, persistence).fetchall() == [(2, "lose")]
    file = publish_night(lake, 3, 100)
    ended = "SELECT snapshots, ended_by, days, is_running FROM mart.parity_episode"
    assert query_published(file, ended).fetchall() == [(2, "resolved", 3.0, False)]


def test_an_offer_that_is_gone_ends_its_episode_and_a_later_one_is_another(lake):
    for night, there in enumerate((106, None, 106)):
        file = publish_night(lake, night, there, status="no_offer" if there is None else "offered")
    episodes = "SELECT began_at, snapshots, ended_by FROM mart.parity_episode ORDER BY began_at"
    assert query_published(file, episodes).fetchall() == [(started_at(0), 1, "gone"), (started_at(2), 1, None)]


def test_parity_built_anew_is_what_the_nights_left(lake):
    names = [f"state.{table.name}" for table in STATE_TABLES]
    for night, there in enumerate((106, 100, 104)):
        file = publish_night(lake, night, there, floor=90 + night)
    before = {name: query_published(file, f"FROM {name} ORDER BY ALL").fetchall() for name in names}
    assert before["state.parity_open"]
    assert before["state.parity_closed"]
    assert before["state.floor_move"]
    file = publish_anew(lake, lambda: None)
    assert {name: query_published(file, f"FROM {name} ORDER BY ALL").fetchall() for name in names} == before


def test_any_mark_up_can_be_held_against_the_floors(lake):
    load_night(lake, 0, cell=[DAY], offer=[OFFER | {"total": 100, "floor": 125}])
    file = publish(lake, sweep_id(0), started_at(0)).file
    asked = "SELECT total, price, below_floor, below_floor_pct FROM mart.floor_what_if(?)"
    with duckdb.connect(str(file), read_only=True) as session:
        found = {markup: session.execute(asked, [markup]).fetchall() for markup in (20, 30)}
    assert found == {20: [(Decimal(100), Decimal(120), Decimal(5), 4.0)], 30: []}


def test_relations_can_be_read_of_a_file_that_is_attached_beside_others(lake):
    file = publish_night(lake, 0, 106)
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH '{file}' AS other (READ_ONLY)")
        found = session.execute("SELECT market, severity, amount FROM other.report.market_disparity").fetchall()
    assert found == [("DE", "high", Decimal(6))]
