"""What is open about a price stays as it is while fewer markets can show it: a manager calls about the right market.

Two properties are dearer in one market throughout. One of the markets that show it sells nothing there for two nights,
or the reference market does for one; then a whole market is silent. A third property becomes dearer in the reference
market on a night on which only one other market sells it: two prices do not show which of them deviates. Of a fourth,
which no third market ever sells, and a fifth, which one has stopped selling, the finding says so.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from confounders import NO_OFFER, dearer
from nights_read import load_course, read_nights, supplied
from planted_world import OPENED, rows

from pipeline.night.confirm import confirm
from pipeline.night.confirm_plan import choose_flags
from pipeline.replay.explain import explain

pytestmark = pytest.mark.slow

OF_REFERENCE, OF_ANOTHER, UNSEEN, OF_TWO, LEFT_TO_TWO = 5, 8, 10, 11, 13
NIGHTS, DEAR_FROM, UNSEEN_ON, CONFIRMED_ON, SILENT = range(7), 1, 2, 3, 5
SOLD_OUT = {
    ("FR", OF_REFERENCE): {2, 3},
    ("DE", OF_ANOTHER): {3},
    ("FR", UNSEEN): {UNSEEN_ON},
    ("FR", OF_TWO): set(NIGHTS),
    ("FR", LEFT_TO_TWO): set(NIGHTS[1:]),
}
DEAR = {
    ("DE", OF_REFERENCE): DEAR_FROM,
    ("GB", OF_ANOTHER): DEAR_FROM,
    ("DE", UNSEEN): UNSEEN_ON,
    ("DE", OF_TWO): DEAR_FROM,
    ("DE", LEFT_TO_TWO): DEAR_FROM,
}
# Of two prices, the one that is not the reference market's is named; after silent_nights, no third one is waited for.
CASES_SINCE = {
    ("DE", OF_REFERENCE): DEAR_FROM,
    ("GB", OF_ANOTHER): DEAR_FROM,
    ("DE", UNSEEN): UNSEEN_ON + 1,
    ("GB", OF_TWO): DEAR_FROM,
    ("GB", LEFT_TO_TWO): DEAR_FROM + 3,
}
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
operations = {operations}
"""
CASES = """
    SELECT case_id, market, property_id, status, contains(finding, 'No third price in EUR shows')
    FROM report.finding_case
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
                if now["night"] >= DEAR.get((market, number), len(NIGHTS)):
                    dearer({"property": each}, 1.07)
                listed.append(each)
            return json.dumps(said | ({"properties": listed} if "properties" in said else {})).encode()

        made.between.spoil = spoil

        def spec_of(number):
            now["night"] = number
            return SPEC.format(ids=ids, markets='["DE", "FR", "GB"]', currencies="", operations='["multi"]')

        found, outcomes = [], {}
        at = datetime.combine(OPENED, datetime.min.time(), UTC) + timedelta(days=CONFIRMED_ON, hours=5)
        for night in read_nights(made, NIGHTS, spec_of):
            found.append((rows(made.lake, CASES), night.digest))
            if night.number == CONFIRMED_ON:
                held = [flag_id for (flag_id,) in rows(made.lake, "SELECT flag_id FROM report.flag")]
                with made.lake.writing("a confirmation"):
                    flags = choose_flags(made.lake, held, [], len(held))
                    outcomes = asyncio.run(confirm(made.settings, made.lake, flags, now=lambda: at)).outcomes
    return found, ids, outcomes


def test_the_cases_are_the_same_every_night(nights):
    found, ids, _ = nights
    known: dict[tuple[str, int], str] = {}
    for number in NIGHTS:
        cases = {(market, its): (case_id, status) for case_id, market, its, status, _ in found[number][0]}
        expected = {(market, ids[place]) for (market, place), since in CASES_SINCE.items() if number >= since}
        assert cases.keys() == expected, number
        for place, (case_id, status) in cases.items():
            assert status == ("open" if place in known else "new"), (number, place)
            assert known.setdefault(place, case_id) == case_id


def test_where_two_prices_do_not_show_which_deviates_the_finding_says_so(nights):
    found, ids, _ = nights
    said = {(market, its): is_said for *_, market, its, _, is_said in found[-1][0]}
    assert {place for place, is_said in said.items() if is_said} == {("GB", ids[OF_TWO]), ("GB", ids[LEFT_TO_TWO])}


def test_the_digest_says_of_none_that_it_has_ended_or_is_another_markets(nights):
    found, *_ = nights
    for number in NIGHTS[DEAR_FROM:]:
        points = found[number][1]["points"]
        assert not [point for point in points if " ended: " in point], number
        called = [point for point in points if point.startswith("Call property")]
        assert len(called) == 3, points
        assert all("DE pays" in point or "GB pays" in point for point in called)


def test_a_flag_that_is_held_open_is_not_confirmed_to_be_gone(nights):
    _, _, outcomes = nights
    assert outcomes["gone"] == 0
    assert outcomes["confirmed"] > 0
    assert outcomes["not_confirmable"] > 0


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
            operations='["multi"]',
        )
        (night,) = read_nights(made, [1], lambda _: asked)
        said = rows(made.lake, "SELECT flag_id, finding FROM report.flag WHERE rule = 'market_disparity'")
        explained = [explain(made.lake, flag_id, made.settings.max_body_bytes) for flag_id, _ in said[:8]]
    waiting = {(market, number) for rule, _, market, number in night.waiting if rule == "market_disparity"}
    assert waiting == {("DE", ids[number]) for number in dear}
    assert not [finding for _, finding in said if "unknown" in finding]
    assert explained
    assert all(explanation.is_reproduced for explanation in explained)


def test_lists_show_what_details_of_two_markets_do_not(tmp_path):
    """Details of FR have no offer for one property: the lists of the night show which of the other two deviates."""
    with supplied(tmp_path, seed=7) as made:
        ids = made.sandbox.control("properties")["property_ids"][:14]

        def spoil(market, _request, answer):
            said = json.loads(answer)
            listed = said.get("properties") or [said.get("property") or {}]
            for each in listed:
                number = ids.index(each["propertyId"]) if each else None
                if "property" in said and (market, number) == ("FR", OF_REFERENCE):
                    return NO_OFFER
                if (market, number) in {("DE", OF_REFERENCE), ("GB", OF_ANOTHER)}:
                    dearer({"property": each}, 1.07)
            return json.dumps(said).encode()

        made.between.spoil = spoil
        asked = SPEC.format(ids=ids, markets='["DE", "FR", "GB"]', currencies="", operations='["multi", "single"]')
        (night,) = read_nights(made, [1], lambda _: asked)
        said = rows(made.lake, "SELECT flag_id, source, market, property_id, finding FROM report.flag ORDER BY ALL")
        explained = [
            explain(made.lake, flag_id, made.settings.max_body_bytes)
            for flag_id, source, _, its, _ in said
            if (source, its) == ("detail", ids[OF_REFERENCE])
        ][:6]
    expected = {("DE", ids[OF_REFERENCE]), ("GB", ids[OF_ANOTHER])}
    assert {(source, market, its) for _, source, market, its, _ in said} == {
        (source, *place) for source in ("multi", "detail") for place in expected
    }
    assert {(market, number) for rule, _, market, number in night.waiting if rule == "market_disparity"} == expected
    assert not [finding for *_, finding in said if "No third price" in finding]
    assert len(explained) == 6
    assert all(explanation.is_reproduced for explanation in explained)
