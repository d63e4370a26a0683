"""A lake that was moved says so, and publishing again makes its file read the lake's new place."""

from __future__ import annotations

import pytest
from nights import load_night, started_at, sweep_id

from pipeline.domain.errors import CorruptObject
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.publish.publish import publish

pytestmark = pytest.mark.slow

OFFERS = "SELECT count(*) FROM mart.offer_latest"


def test_a_moved_lake_can_be_read_once_it_is_published_again(lake):
    load_night(lake, 0, cell=[{"search_id": 1}], offer=[{"search_id": 1, "room_id": 7, "board_id": 14, "total": 100}])
    publish(lake, sweep_id(0), started_at(0))
    assert query_published(lake.published_file, OFFERS).fetchall() == [(1,)]
    wanted = {query: query_published(lake.published_file, query).fetchall() for query in (OFFERS, "FROM lake.cell")}
    moved = Lake(str(lake.root.rename(lake.root.with_name("elsewhere"))))
    with pytest.raises(CorruptObject, match="was moved") as refused:
        query_published(moved.published_file, OFFERS)
    assert refused.value.hint == "Point it to this folder: nightaudit publish"
    assert not publish(moved, sweep_id(0), started_at(0)).is_new
    assert {query: query_published(moved.published_file, query).fetchall() for query in wanted} == wanted
