"""A manager calls about the market whose fees deviate, also if it is the one that all others are compared with.

DE is the reference market. From the second night on, a city tax is added: by DE alone, by two of the four markets, or
by one of the others. On the last night, DE leaves it out again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from nights_read import read_nights, supplied
from planted_world import rows

from pipeline.replay.explain import explain

pytestmark = pytest.mark.slow

OF_THE_REFERENCE, BY_HALVES, OF_ANOTHER, OF_NONE = range(4)
# Those of the sandbox that state all their fees.
PLACES = (15, 32, 18, 25)
NIGHTS, PUT_RIGHT = range(3), 2
TAX = 40
ADDED_BY = {
    (OF_THE_REFERENCE, "DE"): {1},
    (BY_HALVES, "DE"): {1, 2},
    (BY_HALVES, "FR"): {1, 2},
    (OF_ANOTHER, "GB"): {1, 2},
}
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
operations = ["single"]
"""
ENDED = """
    SELECT DISTINCT property_id, market, ended_by FROM report.flag_history
    WHERE rule = 'all_in_gap' AND resolved_sweep_id = (SELECT max(sweep_id) FROM mart.sweep)
"""


def add_a_tax(hotel):
    """Add a city tax to all products of a property."""
    for product in (product for stay in hotel["roomStays"] for product in stay["products"]):
        charges = product["charges"]
        fees = charges.setdefault("excludedChargeDetails", {})
        fees["cityTaxes"] = round((fees.get("cityTaxes") or 0) + TAX, 2)
        charges["excludedCharges"] = round((charges.get("excludedCharges") or 0) + TAX, 2)


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """The cases about fees that wait, those that ended, and whether findings are found again, night by night."""
    home, now = tmp_path_factory.mktemp("fees"), {"night": 0}
    with supplied(home, seed=33, reference_market="DE") as made:
        ids = made.sandbox.control("properties")["property_ids"]
        ids = [ids[place] for place in PLACES]

        def spoil(market, _, answer):
            said = json.loads(answer)
            hotel = said.get("property")
            if hotel and now["night"] in ADDED_BY.get((ids.index(hotel["propertyId"]), market), ()):
                add_a_tax(hotel)
            return json.dumps(said).encode()

        made.between.spoil = spoil

        def spec_of(number):
            now["night"] = number
            return SPEC.format(ids=ids)

        found = []
        for night in read_nights(made, NIGHTS, spec_of):
            flags = rows(
                made.lake, "SELECT min(flag_id) FROM report.flag WHERE rule = 'all_in_gap' GROUP BY property_id, market"
            )
            again = [explain(made.lake, flag_id, made.settings.max_body_bytes).is_reproduced for (flag_id,) in flags]
            waiting = {(ids.index(its), market) for rule, _, market, its in night.waiting if rule == "all_in_gap"}
            ended = {(ids.index(its), *rest) for its, *rest in rows(made.lake, ENDED)}
            found.append((waiting, ended, again))
        yield found


def test_fees_that_only_the_reference_market_adds_accuse_no_other(nights):
    waiting, _, again = nights[1]
    assert {market for number, market in waiting if number == OF_THE_REFERENCE} == {"DE"}
    assert {market for number, market in waiting if number == OF_ANOTHER} == {"GB"}
    assert again
    assert all(again)


def test_two_markets_against_two_keep_the_findings_about_those_that_differ_from_the_reference_market(nights):
    assert {market for number, market in nights[1][0] if number == BY_HALVES} == {"GB", "NL"}


def test_a_finding_about_the_reference_market_ends_when_its_fees_are_put_right(nights):
    waiting, ended, _ = nights[PUT_RIGHT]
    assert {number for number, _ in waiting} == {BY_HALVES, OF_ANOTHER}
    assert ended == {(OF_THE_REFERENCE, "DE", "value")}
