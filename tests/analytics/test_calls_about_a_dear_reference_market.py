"""A dear reference market is one call about it: no property of another market is called about for being its mirror.

From the second night on, the reference market is 6% dearer at six properties of ten, in a currency of its own. At some
of them, a single other market sells; at others, the prices of some markets are near enough for a rate to explain.
One property is 12% cheaper in another market throughout: this stays a call about that property.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from confounders import dearer
from nights_read import load_course, read_nights, supplied
from planted_world import load_rates, rows
from test_calls_at_late_rates import about_prices, course_of

from pipeline.replay.explain import explain

pytestmark = pytest.mark.slow

NIGHTS, DEAR_FROM, CHEAP = range(4), 1, 5
OWN = {"GB": "GBP", "CH": "CHF", "SE": "SEK", "NO": "NOK"}
SPEC = """
[properties]
ids = {ids}
[stays]
nights = [2]
check_in = ["2030-05-10"]
[ask]
markets = {markets}
parties = ["2"]
currencies = ["EUR"]
currency_by_market = {{ {own} }}
operations = ["multi"]
"""


def spec_asking(ids, currencies, euro_markets):
    """A spec for `euro_markets` and for the markets of `currencies`, a dict of each one's own currency."""
    own = ", ".join(f'{market} = ["{code}"]' for market, code in currencies.items())
    return SPEC.format(ids=ids, markets=json.dumps([*euro_markets, *currencies]), own=own)


def test_one_call_about_the_market_and_none_about_its_mirror(tmp_path):
    chance = random.Random(16)  # noqa: S311 - properties, not secrets
    dear = {number for number in range(40) if chance.random() < 0.6} - {CHEAP}
    sold_out = {(market, number) for market in ("AT", "CH", "NO", "SE") for number in sorted(dear)[:6]}
    course = course_of(dict.fromkeys(OWN.values(), (0, 0.002)), until=len(NIGHTS), seed=101)
    with supplied(tmp_path, seed=17, reference_market="GB") as made:
        ids = made.sandbox.control("properties")["property_ids"][40:80]
        tonight = 0

        def spoil(market, request, answer):
            said, currency = json.loads(answer), json.loads(request).get("currencyCode")
            if currency in course:
                dearer(said, course[currency][tonight - 1])
            listed = []
            for each in said.get("properties") or ():
                number = ids.index(each["propertyId"])
                if market == "GB" and number in dear and tonight >= DEAR_FROM:
                    dearer({"property": each}, 1.06)
                if (market, number) == ("AT", CHEAP):
                    dearer({"property": each}, 0.88)
                if (market, number) not in sold_out:
                    listed.append(each)
            return json.dumps(said | ({"properties": listed} if "properties" in said else {})).encode()

        made.between.spoil = spoil

        def spec_of(number):
            nonlocal tonight
            tonight = number
            load_course(made, tmp_path, course, [number] if number else range(-50, 1))
            return spec_asking(ids, OWN, ["AT", "DE"])

        cheap = ("market_disparity", "property", "AT", ids[CHEAP])
        for night in read_nights(made, NIGHTS, spec_of):
            expected = {cheap}
            if night.number >= DEAR_FROM:
                expected.add(("market_disparity", "market", "GB", None))
            assert about_prices(night) == expected, night.number
        flags = "SELECT flag_id FROM report.flag WHERE rule = 'market_disparity' AND market = 'GB' ORDER BY ALL LIMIT 6"
        for (flag_id,) in rows(made.lake, flags):
            assert explain(made.lake, flag_id, made.settings.max_body_bytes).is_reproduced


def test_what_another_market_was_called_about_does_not_end_when_the_reference_market_deviates_too(tmp_path):
    """On nights 1 and 2, the reference market is as cheap as GB and US are throughout, and cheap where IT is dear."""
    with supplied(tmp_path, seed=17, reference_market="DE") as made:
        ids = made.sandbox.control("properties")["property_ids"][40:47]
        off = {("GB", ids[1]): 0.9, ("US", ids[2]): 0.9, ("IT", ids[3]): 1.1}
        load_rates(made.lake, tmp_path / "rates.csv", made.sandbox.control("rates")["rates"], range(4))
        tonight = 0

        def spoil(market, _request, answer):
            said = json.loads(answer)
            for each in said.get("properties") or ():
                dearer({"property": each}, off.get((market, each["propertyId"]), 1))
                if market == "DE" and tonight in (1, 2) and each["propertyId"] in ids[1:4]:
                    dearer({"property": each}, 0.9)
            return json.dumps(said).encode()

        made.between.spoil = spoil

        def spec_of(number):
            nonlocal tonight
            tonight = number
            return spec_asking(ids, {"US": "USD"}, ["DE", "ES", "FR", "GB", "IT"])

        always = {("market_disparity", "property", market, property_id) for market, property_id in off}
        too = {("market_disparity", "property", "DE", property_id) for property_id in ids[1:4]}
        for night in read_nights(made, range(4), spec_of):
            expected = always | (too if night.number in (1, 2) else set())
            assert about_prices(night) == expected, night.number
        ended = (
            "SELECT DISTINCT market FROM report.flag_history WHERE ended_by IS NOT NULL AND rule = 'market_disparity'"
        )
        assert rows(made.lake, ended) == [("DE",)]
