"""Exchange rates that move every night are not prices: the digest calls about what was planted, and about nothing else.

The supplier follows each rate a day late. One property is 9% dearer in the reference market, in whose currency only one
other market is answered; another is 15% dearer in a market of its own currency, which is
more than the krone's course of 31 days.
"""

from __future__ import annotations

import json
import random
import sys
from datetime import timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from confounders import dearer
from nights_read import load_course, read_nights, supplied
from planted_world import OPENED

pytestmark = pytest.mark.slow

NIGHTS = range(5)
REFERENCE_FROM, NORWAY_FROM, RISES = 1, 2, 4
# Drift and scatter of a rate by day, in which the supplier follows the euro's reference rates.
COURSES = {
    "USD": (0.0, 0.004),
    "SEK": (0.003, 0.003),
    "CHF": (0.002, 0.002),
    "DKK": (0.0, 0.005),
    "NOK": (-0.003, 0.004),
}
SPEC = """
[properties]
ids = {ids}
[stays]
nights = [2]
check_in = ["2030-05-10", "2030-06-14"]
[ask]
markets = ["DE", "GB", "US", "SE", "CH", "DK", "NO"]
parties = ["2"]
currencies = ["EUR"]
currency_by_market = {{ US = ["USD"], SE = ["SEK"], CH = ["CHF"], DK = ["DKK"], NO = ["NOK"] }}
operations = ["multi"]
"""


def courses():
    """Each rate's share of the sandbox's own, by day; it stands still at weekends."""
    chance, found = random.Random(61), {}  # noqa: S311 - rates, not secrets
    for currency, (drift, scatter) in COURSES.items():
        share, found[currency] = 1.0, {}
        for number in range(-45, NIGHTS[-1] + 1):
            if (OPENED + timedelta(days=number)).weekday() < 5:
                share *= 1 + chance.gauss(drift if number >= -8 else 0, scatter)
            found[currency][number] = share
    return found


class Supplier:
    """What happens to the answers of a night."""

    def __init__(self, ids, course):
        self.in_reference, self.in_norway, self.course, self.night = ids[21], ids[4], course, 0

    def spoil(self, market, request, answer):
        said, currency = json.loads(answer), json.loads(request).get("currencyCode")
        if currency in self.course:
            dearer(said, self.course[currency][self.night - 1])
        if self.night >= RISES:
            dearer(said, 1.06)
        for each in said.get("properties") or ():
            if (market, each["propertyId"]) == ("GB", self.in_reference) and self.night >= REFERENCE_FROM:
                dearer({"property": each}, 1.09)
            if (market, each["propertyId"]) == ("NO", self.in_norway) and self.night >= NORWAY_FROM:
                dearer({"property": each}, 1.15)
        return json.dumps(said).encode()


def test_no_rate_is_a_call_and_a_price_in_the_reference_market_is_one(tmp_path):
    course = courses()
    with supplied(tmp_path, seed=16, reference_market="GB") as made:
        ids = made.sandbox.control("properties")["property_ids"][40:70]
        supplier = Supplier(ids, course)
        made.between.spoil = supplier.spoil
        load_course(made, tmp_path, course, range(-42, 1))

        def spec_of(number):
            supplier.night = number
            if number:
                load_course(made, tmp_path, course, [number])
            return SPEC.format(ids=ids)

        for night in read_nights(made, NIGHTS, spec_of):
            expected = set()
            if night.number >= REFERENCE_FROM:
                expected.add(("market_disparity", "property", "GB", supplier.in_reference))
            if night.number >= NORWAY_FROM:
                expected.add(("market_disparity", "property", "NO", supplier.in_norway))
            # Properties of the sandbox close by themselves, too.
            about_prices = {case for case in night.waiting if case[0] != "property_gone_quiet"}
            assert about_prices == expected, night.number
            called = [point for point in night.digest["points"] if point.startswith(("Call ", "Then call "))]
            assert len(called) == len(expected)
            assert all(point.startswith("Call property ") for point in called)
