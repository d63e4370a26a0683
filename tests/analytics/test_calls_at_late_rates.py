"""Rates that the supplier follows days late are not prices, nor the fault of the markets that are compared with it.

In the first lake, all markets are compared with CH, and the supplier's franc is twelve days old.
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
from planted_world import OPENED, rows

from pipeline.replay.explain import explain

pytestmark = pytest.mark.slow

SPEC = """
[properties]
ids = {ids}
[stays]
nights = [2]
check_in = ["2030-05-10", "2030-06-14"]
[ask]
markets = ["CH", "DE", "GB", "US", "SE", "NO"]
parties = ["2"]
currencies = ["EUR"]
currency_by_market = {{ US = ["USD"], SE = ["SEK"], CH = ["CHF"], NO = ["NOK"] }}
operations = ["multi"]
"""


def course_of(drifts, until, seed):
    """Each rate's share of the sandbox's own, by day, given its drift and scatter; it stands still at weekends."""
    chance, found = random.Random(seed), {}  # noqa: S311 - rates, not secrets
    for currency, (drift, scatter) in drifts.items():
        share, found[currency] = 1.0, {}
        for number in range(-60, until):
            if (OPENED + timedelta(days=number)).weekday() < 5:
                share *= 1 + chance.gauss(drift if number >= -20 else 0, scatter)
            found[currency][number] = share
    return found


def test_a_late_franc_of_the_reference_market_is_one_call_about_it_and_none_about_the_others(tmp_path):
    nights = range(3)
    drifts = {"USD": (0, 0.003), "SEK": (0, 0.003), "CHF": (0.006, 0.002), "NOK": (0, 0.004)}
    course, late = course_of(drifts, len(nights), seed=61), {"CHF": 17}
    with supplied(tmp_path, seed=16, reference_market="CH") as made:
        ids = made.sandbox.control("properties")["property_ids"][40:60]
        tonight = 0

        def spoil(_market, request, answer):
            said, currency = json.loads(answer), json.loads(request).get("currencyCode")
            if currency in course:
                dearer(said, course[currency][tonight - late.get(currency, 1)])
            return json.dumps(said).encode()

        made.between.spoil = spoil
        load_course(made, tmp_path, course, range(-50, 1))

        def spec_of(number):
            nonlocal tonight
            tonight = number
            if number:
                load_course(made, tmp_path, course, [number])
            return SPEC.format(ids=ids)

        for night in read_nights(made, nights, spec_of):
            about_prices = {case for case in night.waiting if case[0] != "property_gone_quiet"}
            assert about_prices == {("fx_markup", "market", "CH", None)}, night.number
            called = [point for point in night.digest["points"] if point.startswith("Call ")]
            assert len(called) == 1
            assert called[0].startswith(
                "Call the supplier about market CH: Converted at a rate other than the reference"
            )
        flags = "SELECT flag_id FROM report.flag WHERE rule = 'fx_markup' ORDER BY flag_id LIMIT 3"
        for (flag_id,) in rows(made.lake, flags):
            assert explain(made.lake, flag_id, made.settings.max_body_bytes).is_reproduced
