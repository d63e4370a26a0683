"""A stay that left the spec while its property is still requested: its findings end, and its offers are dropped."""

from __future__ import annotations

from datetime import date

import pytest
from nights import load_night, started_at, sweep_id

from pipeline.domain.analysis import Analysis
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.publish import publish

pytestmark = pytest.mark.slow

KEPT, DROPPED = date(2030, 3, 1), date(2030, 4, 1)
# 14 days without a request are no sign yet, as some stays are requested every second week; two nights later, it is off.
IS_ON_SALE = {0: True, 14: True, 15: True, 16: True, 17: False}


def test_a_stay_that_is_no_longer_requested_is_off_sale_and_its_finding_ends_with_that_word(tmp_path):
    lake = Lake(str(tmp_path / "lake"))
    for night, is_on_sale in IS_ON_SALE.items():
        check_ins = [KEPT, DROPPED] if night == 0 else [KEPT]
        asked = [
            {"search_id": number, "market": market, "check_in": check_in}
            for number, (market, check_in) in enumerate((m, c) for m in ("GB", "DE", "FR") for c in check_ins)
        ]
        load_night(
            lake,
            night,
            cell=asked,
            offer=[
                cell
                | {"total": 108 if cell["market"] == "DE" else 100, "currency": "EUR", "room_id": 7, "board_id": 14}
                for cell in asked
            ],
        )
        publish(lake, sweep_id(night), started_at(night), analysis=Analysis(reference_market="GB"))
        assert found(lake, "SELECT DISTINCT check_in FROM mart.offer_latest") == (
            {(KEPT,), (DROPPED,)} if is_on_sale else {(KEPT,)}
        ), night
    assert found(lake, "SELECT check_in, ended_by FROM report.flag_history") == {(KEPT, None), (DROPPED, "not_asked")}


def found(lake: Lake, query: str) -> set[tuple]:
    with query_published(lake.published_file, query) as rows:
        return set(rows.fetchall())
