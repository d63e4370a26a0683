"""Rates that the supplier follows days late are not prices, nor the fault of the markets that are compared with it.

In the first lake, all markets are compared with CH, and the supplier's franc is seventeen days old. In the second one,
a property is a tenth dearer in NO while the krone falls so far that a rate of the month explains it. In the third one,
it is the user who is late: the rates of two nights are loaded after them.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from confounders import dearer
from nights_read import load_course, read_nights, supplied
from planted_world import OPENED, rows

from pipeline.night.confirm import confirm
from pipeline.night.confirm_plan import choose_flags
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


@contextmanager
def lake_at(home, course, late, reference_market, change=lambda *_: 1.0):
    """A supplier that is a day late with each rate, or more, and what reads its nights; `change` is a factor."""
    with supplied(home, seed=16, reference_market=reference_market) as made:
        ids = made.sandbox.control("properties")["property_ids"][40:60]
        tonight = 0

        def spoil(market, request, answer):
            said, currency = json.loads(answer), json.loads(request).get("currencyCode")
            if currency in course:
                dearer(said, course[currency][tonight - late.get(currency, 1)])
            for each in said.get("properties") or ():
                dearer({"property": each}, change(tonight, market, ids.index(each["propertyId"])))
            return json.dumps(said).encode()

        def read(nights):
            def spec_of(number):
                nonlocal tonight
                tonight = number
                load_course(made, home, course, range(-50, 1) if number == nights[0] else [number])
                return SPEC.format(ids=ids)

            return read_nights(made, nights, spec_of)

        made.between.spoil = spoil
        yield made, ids, read


def about_prices(night):
    # Properties of the sandbox close by themselves, too.
    return {case for case in night.waiting if case[0] != "property_gone_quiet"}


def test_a_late_franc_of_the_reference_market_is_one_call_about_it_and_none_about_the_others(tmp_path):
    drifts = {"USD": (0, 0.003), "SEK": (0, 0.003), "CHF": (0.006, 0.002), "NOK": (0, 0.004)}
    with lake_at(tmp_path, course_of(drifts, until=3, seed=61), {"CHF": 17}, "CH") as (made, _, read):
        for night in read(range(3)):
            assert about_prices(night) == {("fx_markup", "market", "CH", None)}, night.number
            called = [point for point in night.digest["points"] if point.startswith("Call ")]
            assert len(called) == 1
            assert called[0].startswith("Call the supplier about market CH: Converted at a rate other than the ")
        flags = "SELECT flag_id FROM report.flag WHERE rule = 'fx_markup' ORDER BY flag_id LIMIT 3"
        for (flag_id,) in rows(made.lake, flags):
            assert explain(made.lake, flag_id, made.settings.max_body_bytes).is_reproduced


def confirmed(made):
    """What re-querying answers about the differences that only moved rates hide; None: there are none."""
    held = "SELECT flag_id FROM report.flag WHERE last_flagged_at < (SELECT max(started_at) FROM mart.sweep)"
    flag_ids = [flag_id for (flag_id,) in rows(made.lake, held)]
    if not flag_ids:
        return None
    at = rows(made.lake, "SELECT max(started_at) FROM mart.sweep")[0][0] + timedelta(hours=1)
    flags = choose_flags(made.lake, flag_ids, [], len(flag_ids))
    summary = asyncio.run(confirm(made.settings, made.lake, flags, now=lambda: at))
    return {(row["outcome"], row.get("reason")) for row in summary.rows}


def test_a_difference_ends_when_its_price_moves_and_not_when_a_rate_does(tmp_path):
    first, followed, corrected = 0, 6, 7
    drifts = {"USD": (0, 0.001), "SEK": (0, 0.001), "CHF": (0, 0.001), "NOK": (0, 0.001)}
    course = course_of(drifts, until=9, seed=5)
    for number, share in course["NOK"].items():
        # It falls twice, and the supplier follows each time three days late.
        course["NOK"][number] = share * (0.95 if number >= 3 else 1) * (0.98 if number >= 4 else 1)

    def change(tonight, market, place):
        return 1.1 if (market, place) == ("NO", 4) and tonight < corrected else 1.0

    with lake_at(tmp_path, course, {"NOK": 3}, "GB", change) as (made, ids, read):
        asked_again = []
        for night in read(range(first, corrected + 1)):
            expected = {("market_disparity", "property", "NO", ids[4])} if night.number < corrected else set()
            assert about_prices(night) == expected, night.number
            points = night.digest["points"]
            ended = [point for point in points if " ended: " in point]
            assert any("Price differs from other markets (property " in point for point in ended) is (
                night.number == corrected
            )
            moved = [point for point in points if "moved in the same direction" in point]
            assert not any("ask the supplier" in point for point in moved)
            if night.number == followed:
                assert moved[0].endswith("as the reference rate of NOK did: no call is needed.")
            if night.number < corrected:
                asked_again.append(confirmed(made))
        only_rates = "only exchange rates have moved since, or none is known: nothing shows that its prices meet"
        assert [each for each in asked_again if each] == [{("not_confirmable", only_rates)}]


def test_what_only_missing_rates_showed_ends_once_they_are_loaded(tmp_path):
    """The krona falls, and the supplier follows at once; a property is a tenth dearer in SE throughout."""
    falls, loaded = 2, 4
    course = course_of({"USD": (0, 0.001), "SEK": (0, 0.001), "CHF": (0, 0.001), "NOK": (0, 0.001)}, 6, seed=5)
    for number, share in course["SEK"].items():
        course["SEK"][number] = share * (1.05 if number >= falls else 1)

    with supplied(tmp_path, seed=16, reference_market="DE") as made:
        ids = made.sandbox.control("properties")["property_ids"][40:60]
        tonight = 0

        def spoil(market, request, answer):
            said, currency = json.loads(answer), json.loads(request).get("currencyCode")
            if currency in course:
                dearer(said, course[currency][tonight])
            for each in said.get("properties") or ():
                if (market, each["propertyId"]) == ("SE", ids[4]):
                    dearer({"property": each}, 1.1)
            return json.dumps(said).encode()

        def spec_of(number):
            nonlocal tonight
            tonight = number
            if not falls <= number < loaded:
                load_course(made, tmp_path, course, range(falls if number else -50, number + 1))
            return SPEC.format(ids=ids)

        made.between.spoil = spoil
        dear, market = ("market_disparity", "property", "SE", ids[4]), ("market_disparity", "market", "SE", None)
        for night in read_nights(made, range(loaded + 2), spec_of):
            expected = {dear, market} if falls <= night.number < loaded else {dear}
            assert about_prices(night) == expected, night.number
