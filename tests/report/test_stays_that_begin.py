"""A problem that ends because its stays begin is reported once, with that reason: no price was put right."""

from __future__ import annotations

import json
from datetime import date

import pytest
from nights import load_night, started_at, sweep_id

from pipeline.domain.analysis import Analysis
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.publish import publish
from pipeline.report.case_problems import problems_of
from pipeline.report.write import write_reports

pytestmark = pytest.mark.slow

SOON, LATER = date(2030, 1, 3), date(2030, 3, 1)
# The stay begins between two nights that are four days apart.
NIGHTS = (0, 4, 5)


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """The lake, and the digest of each night: of property 1, the stay that begins soon is dearer in DE."""
    lake = Lake(str(tmp_path_factory.mktemp("stays") / "lake"))
    digests = []
    for number in NIGHTS:
        asked = [
            {"search_id": place, "property_id": property_id, "market": market, "check_in": check_in}
            for place, (property_id, market, check_in) in enumerate(
                (property_id, market, check_in)
                for property_id in (1, 2)
                for market in ("GB", "DE", "FR")
                for check_in in (SOON, LATER)
                if check_in > started_at(number).date()
            )
        ]
        offers = [
            cell
            | {"room_id": 7, "board_id": 14, "currency": "EUR"}
            | {"total": 108 if (cell["property_id"], cell["market"], cell["check_in"]) == (1, "DE", SOON) else 100}
            for cell in asked
        ]
        load_night(lake, number, cell=asked, offer=offers)
        publish(lake, sweep_id(number), started_at(number), analysis=Analysis(reference_market="GB"))
        (page,) = write_reports(lake, ["digest"])
        digests.append(json.loads(page.file.with_name("digest.json").read_text()))
    return lake, digests


def test_it_is_counted_as_ended_on_the_night_after_the_stay_began_and_on_no_other(read):
    _, (first, ended, after) = read
    assert first["title"].endswith("1 problem")
    assert ended["title"].startswith("0 new problems, 0 older, 1 ended; ")
    assert "1 problem ended: Price differs from other markets (property 1, DE; the stay began)." in ended["points"]
    assert after["title"].startswith("0 new problems, 0 older, 0 ended; ")


def test_a_message_about_it_gives_that_reason_on_every_later_night(read):
    lake, _ = read
    ((case_id,),) = query_published(lake.published_file, "SELECT case_id FROM report.finding_case").fetchall()
    (problem,) = problems_of(lake, [case_id])
    assert problem.why_it_ended == "the stay began"
