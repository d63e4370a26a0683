"""What is open about a price stays as it is while fewer markets can show it: a manager calls about the right market.

Two properties are dearer in one market throughout. One of the markets that show it sells nothing there for two nights,
or the reference market does for one; then a whole market is silent.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from confounders import NO_OFFER, dearer
from nights_read import load_course, read_nights, supplied
from planted_world import rows

pytestmark = pytest.mark.slow

OF_REFERENCE, OF_ANOTHER = 5, 8
NIGHTS, DEAR_FROM, SILENT = range(7), 1, 5
SOLD_OUT = {("FR", OF_REFERENCE): {2, 3}, ("DE", OF_ANOTHER): {3}}
SPEC = """
[properties]
ids = {ids}
[stays]
nights = [2]
check_in = ["2030-05-20", "2030-06-10"]
[ask]
markets = {markets}
parties = ["2"]
currencies = ["EUR"]
currency_by_market = {{ {currencies} }}
operations = ["multi"]
"""
CASES = """
    SELECT case_id, market, property_id, status FROM report.finding_case
    WHERE rule = 'market_disparity' AND status <> 'part_of' ORDER BY ALL
"""


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """The cases and what the digest says, night by night, and the two properties."""
    home, now = tmp_path_factory.mktemp("fewer"), {"night": 0}
    with supplied(home, seed=7) as made:
        ids = made.sandbox.control("properties")["property_ids"][:14]

        def spoil(market, _request, answer):
            if market == "FR" and now["night"] == SILENT:
                return NO_OFFER
            said = json.loads(answer)
            listed = []
            for each in said.get("properties") or []:
                number = ids.index(each["propertyId"])
                if now["night"] in SOLD_OUT.get((market, number), ()):
                    continue
                if now["night"] >= DEAR_FROM and (market, number) in {("DE", OF_REFERENCE), ("GB", OF_ANOTHER)}:
                    dearer({"property": each}, 1.07)
                listed.append(each)
            return json.dumps(said | ({"properties": listed} if "properties" in said else {})).encode()

        made.between.spoil = spoil

        def spec_of(number):
            now["night"] = number
            return SPEC.format(ids=ids, markets='["DE", "FR", "GB"]', currencies="")

        found = [(rows(made.lake, CASES), night.digest) for night in read_nights(made, NIGHTS, spec_of)]
    return found, ids[OF_REFERENCE], ids[OF_ANOTHER]


def test_the_cases_are_the_same_every_night(nights):
    found, of_reference, of_another = nights
    assert not found[0][0]
    first = {(case_id, market, property_id) for case_id, market, property_id, _ in found[DEAR_FROM][0]}
    assert {each[1:] for each in first} == {("DE", of_reference), ("GB", of_another)}
    for number in NIGHTS[DEAR_FROM + 1 :]:
        cases = found[number][0]
        assert {(case_id, market, property_id) for case_id, market, property_id, _ in cases} == first, number
        assert {status for *_, status in cases} == {"open"}, number


def test_the_digest_says_of_none_that_it_has_ended_or_is_another_markets(nights):
    found, *_ = nights
    for number in NIGHTS[DEAR_FROM:]:
        points = found[number][1]["points"]
        assert not [point for point in points if " ended: " in point], number
        called = [point for point in points if point.startswith("Call property")]
        assert len(called) == 2, points
        assert all("DE pays" in point or "GB pays" in point for point in called)


def test_converted_prices_show_that_the_reference_market_deviates(tmp_path):
    """One market shares its currency. Those of two others deviate as much as it, though only rates' width apart."""
    dear = {0, 1, 4}
    with supplied(tmp_path, seed=7) as made:
        ids = made.sandbox.control("properties")["property_ids"][:14]

        def spoil(market, _request, answer):
            said = json.loads(answer)
            for each in said.get("properties") or []:
                if market == "DE" and ids.index(each["propertyId"]) in dear:
                    dearer({"property": each}, 1.07)
            return json.dumps(said).encode()

        made.between.spoil = spoil
        as_it_is = {name: dict.fromkeys(range(-40, 2), 1.0) for name in ("GBP", "USD", "SEK")}
        load_course(made, tmp_path, as_it_is, range(-29, 2))
        asked = SPEC.format(
            ids=ids,
            markets='["DE", "GB", "SE", "US"]',
            currencies='GB = ["GBP", "EUR"], SE = ["SEK"], US = ["USD"]',
        )
        (night,) = read_nights(made, [1], lambda _: asked)
        said = rows(made.lake, "SELECT DISTINCT finding FROM report.flag WHERE rule = 'market_disparity'")
    waiting = {(market, number) for rule, _, market, number in night.waiting if rule == "market_disparity"}
    assert waiting == {("DE", ids[number]) for number in dear}
    assert not [finding for (finding,) in said if "unknown" in finding]
