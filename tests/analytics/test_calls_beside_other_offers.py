"""A manager calls about the market that deviates, also where only two markets sell an offer and others show which one.

FR sells some of the rooms of one property, at which DE, the reference market, is dearer: what all three sell shows it,
so nothing is said about GB. Later DE is dearer at most properties: then nothing is said about GB or FR where the other
one sells nothing either. Two prices of which no other offer tells anything are a finding.
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

from pipeline.replay.explain import explain

pytestmark = pytest.mark.slow

IN_PART, OF_TWO, OF_TWO_LATER, PROPERTIES = 10, 8, 11, 18
QUIET, OF_PROPERTIES, OF_MARKET = NIGHTS = range(3)
SPEC = """
[properties]
ids = {ids}
[stays]
nights = [2]
check_in = ["2030-05-20"]
[ask]
markets = ["DE", "FR", "GB"]
parties = ["2"]
currencies = ["EUR"]
operations = ["multi"]
"""
FLAGS = """
    SELECT flag_id, market, property_id, contains(finding, 'No third price in EUR shows')
    FROM report.flag WHERE rule = 'market_disparity' ORDER BY ALL
"""


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """The cases that wait, the flags and whether they are found again, night by night, and the properties."""
    home, now = tmp_path_factory.mktemp("beside"), {"night": 0}
    with supplied(home, seed=7, reference_market="DE") as made:
        ids = made.sandbox.control("properties")["property_ids"][:PROPERTIES]

        def is_dear(market, number):
            if number == OF_TWO:
                return market == "FR" and now["night"] >= OF_PROPERTIES
            since = OF_PROPERTIES if number == IN_PART else OF_MARKET
            return market == "DE" and now["night"] >= since

        def spoil(market, _request, answer):
            said = json.loads(answer)
            listed = []
            for each in said.get("properties") or []:
                number = ids.index(each["propertyId"])
                if market == "GB" and number in {OF_TWO, OF_TWO_LATER}:
                    continue
                if market == "FR" and number == IN_PART:
                    for room in each["roomStays"]:
                        room["products"] = room["products"][: max(1, len(room["products"]) // 2)]
                if is_dear(market, number):
                    dearer({"property": each}, 1.07)
                listed.append(each)
            return json.dumps(said | ({"properties": listed} if "properties" in said else {})).encode()

        made.between.spoil = spoil

        def spec_of(number):
            now["night"] = number
            return SPEC.format(ids=ids)

        found = []
        for night in read_nights(made, NIGHTS, spec_of):
            flags = rows(made.lake, FLAGS)
            # The first of each property: most have many.
            firsts = {its: flag_id for flag_id, _, its, _ in reversed(flags)}
            explained = [explain(made.lake, flag_id, made.settings.max_body_bytes) for flag_id in firsts.values()]
            waiting = {case[1:] for case in night.waiting if case[0] == "market_disparity"}
            found.append((waiting, {flag[1:] for flag in flags}, [each.is_reproduced for each in explained]))
    return found, ids


def test_what_three_markets_sell_decides_about_what_two_sell(nights):
    found, ids = nights
    waiting, flags, _ = found[OF_PROPERTIES]
    assert waiting == {("property", "DE", ids[IN_PART]), ("property", "FR", ids[OF_TWO])}
    assert flags == {("DE", ids[IN_PART], False), ("FR", ids[OF_TWO], True)}


def test_where_most_properties_show_it_two_prices_say_nothing_new(nights):
    found, ids = nights
    waiting, flags, _ = found[OF_MARKET]
    assert waiting == {("market", "DE", None), ("property", "FR", ids[OF_TWO])}
    assert {market for market, *_ in flags} == {"DE", "FR"}
    assert {its for market, its, _ in flags if market == "FR"} == {ids[OF_TWO]}
    assert ids[OF_TWO_LATER] not in {its for _, its, _ in flags}


def test_what_is_found_is_found_again_in_its_raw_answers(nights):
    found, _ = nights
    assert not found[QUIET][2]
    assert all(is_found for *_, again in found for is_found in again)
