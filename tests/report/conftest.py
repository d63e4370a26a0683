"""Lakes with a few published nights, small and by hand: the first night is made once, for it takes longest."""

from __future__ import annotations

import shutil
from datetime import date
from decimal import Decimal

import pytest
from altair.utils.schemapi import enable_debug_mode
from nights import load_night, started_at

from pipeline.lake import Lake
from pipeline.publish import publish
from pipeline.report import charts  # noqa: F401 - turns Altair's checks off

# Charts with parts that Vega-Lite does not know fail here.
enable_debug_mode()

SCRIPT = "<script>alert(1)</script>"
FORMULA = "=HYPERLINK(0)"
CHECK_IN = date(2030, 3, 1)


def night(
    lake, number: int, totals: dict[int, int], before: dict[int, int] | None = None, market: str = "GB", gone: int = 0
) -> None:
    """Load and publish a night: a total for each property, `before` promotions; names that must not be trusted.

    `gone` is the property that is answered without an offer.
    """
    cells = [
        {"property_id": key, "search_id": key * 256 + 1, "market": market, "check_in": CHECK_IN, "offers": 1}
        for key in totals
    ]
    if gone:
        nothing = {"search_id": gone * 256 + 1, "market": market, "check_in": CHECK_IN, "status": "no_offer"}
        cells.append({"property_id": gone} | nothing)
    offers = [
        {
            "property_id": key,
            "market": market,
            "search_id": key * 256 + 1,
            "check_in": CHECK_IN,
            "room_id": 7,
            "room_name": SCRIPT if key == 1 else FORMULA,
            "board_id": 14,
            "board_name": "Room Only",
            "currency": "EUR",
            "total": Decimal(total),
            "pre_promo_total": Decimal(before[key]) if before and key in before else None,
        }
        for key, total in totals.items()
    ]
    publish(lake, load_night(lake, number, cell=cells, offer=offers), started_at(number))


@pytest.fixture(scope="session")
def one_night(once_a_run):
    """One night, to copy."""

    def make(folder):
        made = Lake(str(folder / "lake"))
        night(made, 0, {1: 100, 2: 100, 3: 100})
        return made

    return once_a_run("one-night-to-report", make)


@pytest.fixture
def lake(one_night, tmp_path):
    """A copy of the night. Its views read the files of the night that it is a copy of."""
    shutil.copytree(one_night.root, tmp_path / "lake")
    return Lake(str(tmp_path / "lake"))


@pytest.fixture(scope="session")
def two_nights(one_night, tmp_path_factory):
    """A second night on which the first price rose by a fifth and the second fell by a twentieth."""
    root = tmp_path_factory.mktemp("nights") / "lake"
    shutil.copytree(one_night.root, root)
    made = Lake(str(root))
    night(made, 1, {1: 120, 2: 95, 3: 100})
    return made


@pytest.fixture
def nights_of_two_markets(lake):
    """GB is on sale first, and has been without an offer for twenty days when DE is."""
    night(lake, 20, {1: 100, 2: 100}, market="DE")
    return lake


@pytest.fixture
def nights_with_findings(lake):
    """The second night has a promotion without a name in one property, the third has it in another."""
    night(lake, 1, {1: 100, 2: 100, 3: 100}, before={1: 150})
    night(lake, 2, {1: 100, 2: 100, 3: 100}, before={2: 150})
    return lake
