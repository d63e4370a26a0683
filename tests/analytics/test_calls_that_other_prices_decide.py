"""A manager calls about the market that other prices show to deviate: those of details, of other stays, of tonight.

DE is the reference market. Nights 0 and 1 have lists only, later ones details as well. FR sells some properties in
details only: what they show decides about lists, unless DE's price is another one there. A price that is right again
ends its finding, though DE is sold out; on the same night, it no longer speaks about others. On the last night, FR is
the reference market.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from confounders import NO_OFFER, dearer
from nights_read import read_nights, supplied
from planted_world import rows

from pipeline.replay.explain import explain

pytestmark = pytest.mark.slow

DEAR, IN_LISTS_OR_DETAILS, IN_LISTS, SOLD_OUT, OF_BOTH, PUT_RIGHT, _, NOT_IN_FR, _ = range(9)
PROPERTIES = 9
NIGHTS, WITH_DETAILS, OTHER_REFERENCE = range(4), 2, 4
STAYS = FIRST, SECOND, THIRD = "2030-05-20", "2030-05-27", "2030-06-03"
SPEC = """
[properties]
ids = {ids}
[stays]
nights = [2]
check_in = {stays}
[ask]
markets = ["DE", "FR", "GB"]
parties = ["2"]
currencies = ["EUR"]
operations = {operations}
"""
FLAGS = """
    SELECT property_id, source, market, check_in::VARCHAR, contains(finding, 'No third price'), any_value(flag_id)
    FROM report.flag WHERE rule = 'market_disparity' GROUP BY ALL
"""
ENDED = """
    SELECT DISTINCT property_id, market, ended_by FROM report.flag_history
    WHERE rule = 'market_disparity' AND resolved_sweep_id = (SELECT max(sweep_id) FROM mart.sweep)
"""


def factor(night, market, number, stay, source):
    """By how much a price is off."""
    after = {
        (DEAR, "DE"): 1.07 if night >= 1 else 1,
        (IN_LISTS_OR_DETAILS, "GB"): 1.07 if night >= WITH_DETAILS and source == "multi" else 1,
        (IN_LISTS_OR_DETAILS, "DE"): 1.07 if night >= WITH_DETAILS and source == "detail" else 1,
        (IN_LISTS, "DE"): 1.07 if night >= WITH_DETAILS and source == "multi" else 1,
        (SOLD_OUT, "GB"): 1.07 if night in {1, 2} else 1,
        (OF_BOTH, "DE"): 1.1 if night >= 1 and stay == FIRST else 1,
        (OF_BOTH, "GB"): 0.9 if night >= 1 and stay != FIRST else 1,
        (PUT_RIGHT, "DE"): 1.1 if night == 1 and stay != THIRD else 1,
        (PUT_RIGHT, "GB"): 0.9 if night >= 2 and stay == THIRD else 1,
        (NOT_IN_FR, "GB"): 1.07 if night >= 1 else 1,
    }
    return after.get((number, market), 1)


def is_gone(night, market, number, stay, source):
    """Whether a property is not on sale."""
    if market == "DE":
        return number == SOLD_OUT and night >= 2
    if market == "FR":
        of_stay = number in {OF_BOTH, PUT_RIGHT} and stay == THIRD
        of_lists = number in {DEAR, IN_LISTS_OR_DETAILS, IN_LISTS} and source == "multi"
        return of_stay or of_lists or number == NOT_IN_FR
    return False


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """The cases that wait, the flags, those that ended and whether they are found again, night by night."""
    home, now = tmp_path_factory.mktemp("decide"), {"night": 0}
    with supplied(home, seed=7, reference_market="DE") as made:
        ids = made.sandbox.control("properties")["property_ids"][:PROPERTIES]

        def spoil(market, request, answer):
            said, asked = json.loads(answer), request if isinstance(request, str) else request.decode()
            stay = next(stay for stay in STAYS if stay in asked)
            if "properties" in said:
                listed = []
                for each in said["properties"] or []:
                    where = (now["night"], market, ids.index(each["propertyId"]), stay, "multi")
                    if not is_gone(*where):
                        dearer({"property": each}, factor(*where))
                        listed.append(each)
                said["properties"] = listed
            elif said.get("property"):
                where = (now["night"], market, ids.index(said["property"]["propertyId"]), stay, "detail")
                if is_gone(*where):
                    return NO_OFFER
                dearer(said, factor(*where))
            return json.dumps(said).encode()

        made.between.spoil = spoil

        def spec_of(number):
            now["night"] = number
            operations = ["multi", "single"] if number >= WITH_DETAILS else ["multi"]
            return SPEC.format(ids=ids, stays=json.dumps(STAYS), operations=json.dumps(operations))

        found = []

        def read(made, numbers):
            for night in read_nights(made, numbers, spec_of):
                flags = {(ids.index(its), *rest): flag_id for its, *rest, flag_id in rows(made.lake, FLAGS)}
                # All flags of one property, market and source are alike.
                some = {key[:3]: flag_id for key, flag_id in flags.items()}.values()
                again = [explain(made.lake, flag_id, made.settings.max_body_bytes).is_reproduced for flag_id in some]
                waiting = {
                    (ids.index(its), market) for rule, _, market, its in night.waiting if rule == "market_disparity"
                }
                ended = {(ids.index(its), *rest) for its, *rest in rows(made.lake, ENDED)}
                found.append((waiting, set(flags), ended, again))

        read(made, NIGHTS)
        read(made._replace(settings=made.settings.model_copy(update={"reference_market": "FR"})), [OTHER_REFERENCE])
        yield found


def of(number, flags):
    return {flag[1:] for flag in flags if flag[0] == number}


def test_details_of_three_markets_end_what_lists_of_two_said(nights):
    assert of(DEAR, nights[1][0]) == {("GB",)}
    waiting, flags, ended, _ = nights[WITH_DETAILS]
    assert of(DEAR, waiting) == {("DE",)}
    assert {flag[:2] for flag in of(DEAR, flags)} == {("multi", "DE"), ("detail", "DE")}
    assert (DEAR, "GB", "value") in ended


def test_details_do_not_decide_about_a_price_that_only_lists_have(nights):
    _, flags, _, _ = nights[WITH_DETAILS]
    assert {flag[:2] for flag in of(IN_LISTS_OR_DETAILS, flags)} == {("multi", "GB"), ("detail", "DE")}
    assert {flag[:2] for flag in of(IN_LISTS, flags)} == {("multi", "DE")}
    assert not any(is_of_two for number in (IN_LISTS_OR_DETAILS, IN_LISTS) for *_, is_of_two in of(number, flags))


def test_a_price_is_right_again_while_the_reference_market_is_sold_out(nights):
    assert of(SOLD_OUT, nights[2][0]) == {("GB",)}
    waiting, _, ended, _ = nights[3]
    assert not of(SOLD_OUT, waiting)
    assert of(SOLD_OUT, ended) == {("GB", "value")}


def test_a_market_that_is_shown_to_deviate_does_so_at_other_stays_too(nights):
    _, flags, _, _ = nights[1]
    assert {flag[1:3] for flag in of(OF_BOTH, flags)} == {("DE", FIRST), ("GB", SECOND), ("GB", THIRD)}


def test_what_was_put_right_says_nothing_about_others(nights):
    assert of(PUT_RIGHT, nights[1][0]) == {("DE",)}
    waiting, _, ended, _ = nights[2]
    assert of(PUT_RIGHT, waiting) == {("GB",)}
    assert of(PUT_RIGHT, ended) == {("DE", "value")}


def test_with_another_reference_market_nothing_was_put_right(nights):
    waiting, _, ended, _ = nights[OTHER_REFERENCE]
    assert of(NOT_IN_FR, nights[1][0]) == {("GB",)}
    assert not of(NOT_IN_FR, waiting)
    assert of(NOT_IN_FR, ended) == {("GB", "reference_changed")}


def test_what_is_found_is_found_again_in_its_raw_answers(nights):
    assert all(is_found for *_, again in nights for is_found in again)
