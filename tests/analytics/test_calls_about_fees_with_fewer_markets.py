"""What is open about fees stays as it is while fewer markets can show it: a manager calls about the right market.

DE is the reference market. From the second night on it adds a city tax. On the fourth, FR stops selling three of the
four properties: at one of them, DE leaves the tax out again while FR is sold out; at another, FR is back later. The
fourth property is never sold in a third market, so no price shows whether DE or GB deviates.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from nights_read import read_nights, supplied
from planted_world import rows
from test_calls_about_fees import ENDED, SPEC, add_a_tax

pytestmark = pytest.mark.slow

LEFT, PUT_RIGHT, COMES_BACK, OF_TWO = range(4)
# Those of the sandbox that DE, FR and GB sell at the same price, and that state all their fees.
PLACES = (52, 35, 42, 27)
NIGHTS, ADDED, SOLD_OUT, RIGHT_AGAIN, BACK = range(7), 1, 3, 4, 5
ADDED_ON = {LEFT: set(NIGHTS[1:]), PUT_RIGHT: {1, 2, 3}, COMES_BACK: set(NIGHTS[1:]), OF_TWO: set(NIGHTS[1:])}
# NL sells none of them: FR is the third market.
NOT_SOLD = {
    ("FR", LEFT): set(NIGHTS[SOLD_OUT:]),
    ("FR", PUT_RIGHT): set(NIGHTS[SOLD_OUT:]),
    ("FR", COMES_BACK): set(NIGHTS[SOLD_OUT:BACK]),
    ("FR", OF_TWO): set(NIGHTS),
}
CASES = """
    SELECT property_id, market, case_id, contains(finding, 'Last found on 2030-'),
        contains(finding, 'No third price with fees shows which')
    FROM report.finding_case WHERE rule = 'all_in_gap' AND scope = 'property' AND status IN ('new', 'open')
"""
NO_OFFER = json.dumps({"errors": [{"code": 1023, "message": "No offers available"}]}).encode()


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """Cases about fees, and what of them ended, night by night, by number of the property."""
    home, now = tmp_path_factory.mktemp("fewer_fees"), {"night": 0}
    with supplied(home, seed=33, reference_market="DE") as made:
        ids = made.sandbox.control("properties")["property_ids"]
        ids = [ids[place] for place in PLACES]

        def spoil(market, _, answer):
            said = json.loads(answer)
            hotel = said.get("property")
            if not hotel:
                return answer
            number = ids.index(hotel["propertyId"])
            if market == "NL" or now["night"] in NOT_SOLD.get((market, number), ()):
                return NO_OFFER
            if market == "DE" and now["night"] in ADDED_ON[number]:
                add_a_tax(hotel)
            return json.dumps(said).encode()

        made.between.spoil = spoil

        def spec_of(number):
            now["night"] = number
            return SPEC.format(ids=ids)

        found = []
        for _ in read_nights(made, NIGHTS, spec_of):
            cases = {(ids.index(its), market): rest for its, market, *rest in rows(made.lake, CASES)}
            found.append((cases, {(ids.index(its), *rest) for its, *rest in rows(made.lake, ENDED)}))
        yield found


def test_only_the_market_that_added_a_tax_is_accused_every_night(nights):
    for number in NIGHTS[ADDED:]:
        expected = {(LEFT, "DE"), (COMES_BACK, "DE"), (OF_TWO, "GB")}
        expected |= {(PUT_RIGHT, "DE")} if number < RIGHT_AGAIN else set()
        assert set(nights[number][0]) == expected, number


def test_a_case_that_fewer_markets_show_is_the_same_and_says_when_it_was_last_found(nights):
    first = {place: case_id for place, (case_id, *_) in nights[ADDED][0].items()}
    for number in NIGHTS[ADDED:]:
        for place, (case_id, is_dated, _) in nights[number][0].items():
            assert case_id == first[place]
            is_held = place[1] == "DE" and number >= SOLD_OUT
            assert is_dated == (is_held and not (place[0] == COMES_BACK and number >= BACK)), (number, place)


def test_a_tax_that_is_left_out_again_while_a_market_is_sold_out_ends_its_case_that_night(nights):
    ended = {number: nights[number][1] for number in NIGHTS if nights[number][1]}
    assert ended == {RIGHT_AGAIN: {(PUT_RIGHT, "DE", "value")}}


def test_where_two_prices_do_not_show_which_deviates_the_case_says_so(nights):
    for number in NIGHTS[ADDED:]:
        assert {place for place, (*_, is_said) in nights[number][0].items() if is_said} == {(OF_TWO, "GB")}
