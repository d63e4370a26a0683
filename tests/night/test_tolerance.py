"""The tolerated share of failed cells: one denominator for the night, the sweep and the status."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from nights import load_night
from rich.console import Console

from pipeline.cli.views import status_view
from pipeline.domain.errors import NothingUsable, TooManyFailures
from pipeline.lake import Lake
from pipeline.night.overview import Overview, SweepOverview
from pipeline.night.tolerance import failed_share, refuse_too_many_failures, refuse_useless
from pipeline.settings import Settings

# 50 of 1,200 planned cells failed: 4.17%. Of the 1,100 that were requested it would be 4.55%.
COUNTS = {
    "planned": 1200, "offered": 900, "no_offer": 100, "absent": 50, "rejected": 0, "failed": 50, "not_swept": 100,
}  # fmt: skip


NONE = dict.fromkeys(("offered", "no_offer", "absent", "rejected", "failed", "not_swept"), 0)


def is_refused(tolerated: float) -> bool:
    try:
        refuse_too_many_failures(COUNTS, tolerated, "", "")
    except TooManyFailures:
        return True
    return False


def is_warned_of(tolerated: float) -> bool:
    sweep = SweepOverview("s", datetime(2030, 1, 1, tzinfo=UTC), True, "sandbox", 1200, 345, 345, "loaded", COUNTS)
    held = Overview(Path("lake"), Path("lake/file"), (sweep,), 10**12)
    settings = Settings(_env_file=None, tolerated_failed_share=tolerated)
    console = Console(file=StringIO(), width=200)
    console.print(status_view(held, settings, sweep.started_at))
    return "4.2% of the planned cells" in console.file.getvalue()


@pytest.mark.parametrize(("tolerated", "is_above"), [(0.0, True), (0.0416, True), (0.0417, False), (0.0454, False)])
def test_failed_cells_count_against_those_planned_wherever_it_is_asked(tolerated, is_above):
    assert failed_share(COUNTS) == pytest.approx(50 / 1200)
    assert is_refused(tolerated) == is_warned_of(tolerated) == is_above


def test_a_sweep_that_planned_nothing_has_no_failures():
    refuse_too_many_failures(dict.fromkeys(COUNTS, 0), 0.0, "", "")


def test_a_clock_that_was_set_back_is_named_and_no_age_is_negative():
    began = datetime(2030, 1, 2, tzinfo=UTC)
    sweep = SweepOverview("s", began, True, "sandbox", 1200, 345, 345, "published", COUNTS, is_published=True)
    held = Overview(Path("lake"), Path("lake/file"), (sweep,), 10**12)
    earlier = datetime(2030, 1, 1, tzinfo=UTC)
    for now, said in ((earlier, "began at 2030-01-02 00:00 UTC, which"), (sweep.started_at, ", 0 s old")):
        console = Console(file=StringIO(), width=200)
        console.print(status_view(held, Settings(_env_file=None), now))
        assert said in console.file.getvalue()


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ((1027,), "with code 1027: "),
        ((1014, 1027), "with codes 1014, 1027: "),
        # A 400 whose body says nothing is no answer either.
        ((None,), "without a code: "),
    ],
)
def test_a_sweep_of_which_everything_was_refused_has_no_answer_whatever_the_codes(tmp_path, codes, said):
    lake = Lake(str(tmp_path / "lake"))
    cells = [
        {"search_id": 1, "property_id": number, "status": "rejected", "code": code, "offers": 0}
        for number, code in enumerate(codes, 1)
    ]
    sweep_id = load_night(lake, 0, cell=cells)
    counts = NONE | {"sweep_id": sweep_id, "planned": len(codes) + 1, "rejected": len(codes), "not_swept": 1}
    with pytest.raises(NothingUsable, match=f"refused every search, {said}the sweep has no usable answer"):
        refuse_useless(lake, counts, "")
    refuse_useless(lake, counts | {"not_swept": 0, "no_offer": 1}, "")


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ({"failed": 3}, "No search got a usable answer (3 cells failed)."),
        ({"failed": 1, "not_swept": 2}, "No search got a usable answer (1 cell failed, 2 cells not swept)."),
        ({"rejected": 2, "failed": 1}, "No search got a usable answer (2 cells rejected, 1 cell failed)."),
    ],
)
def test_a_sweep_without_an_answer_is_useless_however_its_cells_ended(tmp_path, ended, said):
    with pytest.raises(NothingUsable) as refused:
        refuse_useless(Lake(str(tmp_path / "lake")), {"sweep_id": "s", "planned": 3} | NONE | ended, "")
    assert refused.value.message == said


def test_a_sweep_that_asked_nothing_or_was_stopped_before_it_is_no_failure_of_the_supplier(tmp_path):
    lake = Lake(str(tmp_path / "lake"))
    refuse_useless(lake, {"sweep_id": "s", "planned": 0} | NONE, "")
    refuse_useless(lake, {"sweep_id": "s", "planned": 3} | NONE | {"not_swept": 3}, "")
