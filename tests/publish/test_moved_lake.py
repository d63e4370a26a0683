"""A lake that was moved says so, and publishing again makes its file read the lake's new place."""

from __future__ import annotations

import errno
import shutil

import pytest
from nights import load_night, started_at, sweep_id

from pipeline.cli import publish as command
from pipeline.domain.errors import CorruptObject, GateBlocked, LakeFull
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
    assert refused.value.hint.startswith("Point it to this folder: nightaudit publish\n")
    assert not publish(moved, sweep_id(0), started_at(0)).is_new
    assert {query: query_published(moved.published_file, query).fetchall() for query in wanted} == wanted


def test_a_copied_lake_whose_file_cannot_be_written_again_is_an_error(lake, monkeypatch):
    load_night(lake, 0, cell=[{"search_id": 1}], offer=[{"search_id": 1, "room_id": 7, "board_id": 14, "total": 100}])
    publish(lake, sweep_id(0), started_at(0))
    moved = Lake(str(shutil.copytree(lake.root, lake.root.with_name("elsewhere"))))
    before = moved.published_file.read_bytes()

    def no_space(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pipeline.publish.refresh.shutil.copyfile", no_space)
    with pytest.raises(LakeFull, match="No space left on device"):
        publish(moved, sweep_id(0), started_at(0))
    assert moved.published_file.read_bytes() == before


def test_a_moved_lake_can_be_read_although_its_latest_sweep_is_blocked(lake, monkeypatch):
    def blocked(*_):
        raise GateBlocked("The sweep is not published.")

    load_night(lake, 0, cell=[{"search_id": 1}], offer=[{"search_id": 1, "room_id": 7, "board_id": 14, "total": 100}])
    publish(lake, sweep_id(0), started_at(0))
    moved = Lake(str(lake.root.rename(lake.root.with_name("elsewhere"))))
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(moved.root))
    monkeypatch.setattr(command, "is_unaudited", lambda *_: False)
    monkeypatch.setattr(command, "publish_checked", blocked)
    with pytest.raises(GateBlocked):
        command.publish(sweep_id(0), None)
    with pytest.raises(CorruptObject, match="was moved"):
        query_published(moved.published_file, OFFERS)
    with pytest.raises(GateBlocked):
        command.publish(None, None)
    assert query_published(moved.published_file, OFFERS).fetchall() == [(1,)]
