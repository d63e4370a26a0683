"""What a spec no longer requests is neither on sale nor called about; what two markets of four show stays in doubt.

One property is dearer in a market and leaves the spec; of another, half of the markets are dearer than the other half.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from confounders import dearer
from nights_read import read_nights, supplied
from planted_world import rows

pytestmark = pytest.mark.slow

NIGHTS, REMOVED_FROM, ENDED_ON = range(6), 2, 4
REMOVED, HALVED = 4, 9
DEAR = {("GB", REMOVED), ("GB", HALVED), ("NL", HALVED)}
SPEC = """
[properties]
ids = {ids}
[stays]
nights = [2]
check_in = ["2030-06-10"]
[ask]
markets = ["DE", "FR", "GB", "NL"]
parties = ["2"]
currencies = ["EUR"]
operations = ["multi"]
"""
CASES = """
    SELECT market, property_id, status, finding FROM report.finding_case
    WHERE rule = 'market_disparity' AND status IN ('new', 'open') ORDER BY ALL
"""
OFFERS = "SELECT DISTINCT property_id FROM mart.offer_latest"
ON_SALE = "SELECT DISTINCT properties FROM mart.market_on_sale"
ENDED = """
    SELECT ended_by FROM report.flag_history
    WHERE rule = 'market_disparity' AND property_id = {} AND ended_by IS NOT NULL
"""


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """By night: the cases, the properties with offers, those on sale in a market, and the digest; and the ids."""
    with supplied(tmp_path_factory.mktemp("narrower"), seed=7, reference_market="DE") as made:
        ids = made.sandbox.control("properties")["property_ids"][:16]
        now = {"night": 0}

        def spoil(market, _request, answer):
            said = json.loads(answer)
            for each in said.get("properties") or []:
                if now["night"] and (market, ids.index(each["propertyId"])) in DEAR:
                    dearer({"property": each}, 1.07)
            return json.dumps(said).encode()

        made.between.spoil = spoil

        def spec_of(number):
            now["night"] = number
            return SPEC.format(ids=[its for its in ids if number < REMOVED_FROM or its != ids[REMOVED]])

        found = {
            night.number: (
                rows(made.lake, CASES),
                {its for (its,) in rows(made.lake, OFFERS)},
                rows(made.lake, ON_SALE),
                night.digest,
            )
            for night in read_nights(made, NIGHTS, spec_of)
        }
        yield found, ids, rows(made.lake, ENDED.format(ids[REMOVED]))


def test_a_property_that_is_no_longer_requested_is_off_sale_and_its_finding_ends_with_that_word(nights):
    found, ids, ended = nights
    of_removed = {
        number: [status for market, its, status, _ in cases if its == ids[REMOVED]]
        for number, (cases, *_) in found.items()
    }
    assert of_removed[REMOVED_FROM - 1] == ["new"]
    assert not of_removed[ENDED_ON]
    assert {ended_by for (ended_by,) in ended} == {"not_asked"}
    ((before,),) = found[REMOVED_FROM - 1][2]
    for number, (_, offered, on_sale, digest) in found.items():
        if number >= ENDED_ON:
            assert ids[REMOVED] not in offered
            assert on_sale == [(before - 1,)]
            assert not [point for point in digest["points"] if str(ids[REMOVED]) in point and point.startswith("Call")]


def test_of_two_markets_against_two_the_reference_market_is_not_accused_and_both_sides_are_named(nights):
    found, ids, _ = nights
    for number in NIGHTS[1:]:
        of_halved = {market: finding for market, its, _, finding in found[number][0] if its == ids[HALVED]}
        assert of_halved.keys() == {"GB", "NL"}, number
        for finding in of_halved.values():
            assert "(GB, NL) differ alike from those in 2 (DE, FR): which side deviates is unknown." in finding
