"""A revenue manager who reads the digest, and nothing else, makes the right calls and no other, night after night.

Nothing is planted here but what befalls whole nights: markets in their own currencies, one that is dearer for three
days, one that joins, one that sells nothing for a night, a supplier that raises all prices, a property that goes quiet,
and one with a hundred times the offers.
"""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from confounders import NO_OFFER, RISE, dearer
from nights_read import read_nights, supplied
from planted_world import load_rates, rows

from pipeline.replay.explain import explain

pytestmark = pytest.mark.slow

CALLS = ("Call ", "Then call ")
NIGHTS = range(8)
DEAR, JOINS, SILENT, QUIET_FROM, RISES = range(2, 5), 2, 3, 4, 5
SPEC = """
[properties]
ids = {ids}
[stays]
nights = [2]
check_in = ["2030-06-10"]
[ask]
markets = {markets}
parties = ["2"]
currencies = ["EUR"]
currency_by_market = {{ GB = ["EUR", "GBP"], SE = ["SEK"], US = ["USD"] }}
operations = ["multi"]
"""


class Supplier:
    """What happens to the answers of a night."""

    def __init__(self, ids):
        self.quiet, self.large, self.night = ids[3], ids[7], 0
        # Markets that the quiet property was on sale in on the night before.
        self.sold: set[str] = set()

    def spoil(self, market, _request, answer):
        if market == "FR" and self.night == SILENT:
            return NO_OFFER
        said = json.loads(answer)
        if self.night >= RISES:
            dearer(said, RISE)
        if market == "SE" and self.night in DEAR:
            dearer(said, 1.07)
        listed = said.get("properties") or []
        if self.night >= QUIET_FROM:
            listed = [each for each in listed if each["propertyId"] != self.quiet]
        for each in listed:
            if each["propertyId"] == self.large:
                each["roomStays"] = [room for number in range(100) for room in numbered(each["roomStays"], number)]
                if market == "US":
                    dearer({"property": each}, 1.1)
        return json.dumps(said | ({"properties": listed} if "properties" in said else {})).encode()


def numbered(room_stays, number):
    """The same rooms under other ids."""
    made = copy.deepcopy(room_stays)
    for room in made:
        room["roomId"] = room["roomId"] * 100 + number
    return made


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """The open cases and what the digest says, night by night, and the supplier."""
    home = tmp_path_factory.mktemp("calls")
    with supplied(home, seed=7) as made:
        ids = made.sandbox.control("properties")["property_ids"][:16]
        supplier = Supplier(ids)
        made.between.spoil = supplier.spoil
        load_rates(made.lake, home / "rates.csv", made.sandbox.control("rates")["rates"], NIGHTS)

        def spec_of(number):
            supplier.night = number
            markets = ["DE", "FR", "GB", "SE", "US", *(["NO"] if number >= JOINS else [])]
            return SPEC.format(ids=ids, markets=json.dumps(markets))

        waiting, reported = [], []
        for night in read_nights(made, NIGHTS, spec_of):
            if night.number < SILENT:
                on_sale = f"SELECT DISTINCT market FROM mart.offer_latest WHERE property_id = {supplier.quiet}"  # noqa: S608 - our own id
                supplier.sold = {market for (market,) in rows(made.lake, on_sale)}
            waiting.append(night.waiting)
            reported.append(night.digest)
    return waiting, reported, supplier, made.lake


def test_each_night_the_cases_that_wait_are_those_that_there_are_and_no_other(nights):
    waiting, _, supplier, _ = nights
    always = {("fx_markup", "market", "GB", None), ("market_disparity", "property", "US", supplier.large)}
    assert len(supplier.sold) > 2
    assert "FR" in supplier.sold
    quiet = {("property_gone_quiet", "property", None, supplier.quiet)}
    for number, found in enumerate(waiting):
        expected = always | ({("market_disparity", "market", "SE", None)} if number in DEAR else set())
        assert found == expected | (quiet if number >= QUIET_FROM + 2 else set()), number


def test_the_digest_names_whom_to_call_and_what_is_over(nights):
    _, reported, supplier, _ = nights
    called = [[point for point in digest["points"] if point.startswith(CALLS)] for digest in reported]
    assert any(point.startswith(f"Call property {supplier.large} about") for point in called[1])
    # The property comes first. Of the markets, the one that costs most does.
    assert [point.partition(". ")[0] for point in called[2]] == [
        f"Call property {supplier.large} about: Price differs from other markets (US)",
        "Then call the supplier about market SE: Price differs from other markets",
        "Then call the supplier about market GB: Converted at a rate other than the reference rate",
    ]
    assert reported[2]["title"].startswith("1 new problem, 2 older, 0 ended; ")
    assert reported[5]["title"].startswith("0 new problems, 2 older, 1 ended; ")
    assert "1 problem ended: Price differs from other markets (SE)." in reported[5]["points"]
    moved = [[point for point in digest["points"] if "moved in the same direction" in point] for digest in reported]
    # What SE loses of its own and what all gain come to less than a finding.
    (risen,) = moved[5]
    assert risen.startswith(
        "Most offers moved in the same direction in 5 of 6 markets (DE, FR, GB, NO, US), by a median of +8.0%: ask"
    )
    assert moved[2][0].startswith(
        "Most offers moved in the same direction in market SE, by a median of +7.0%: ask the supplier"
    )
    assert not any("Property gone quiet" in point for points in called for point in points)
    (quiet,) = (point for point in reported[6]["points"] if "Property gone quiet. " in point)
    assert quiet.startswith("Check ")
    many = len(supplier.sold)
    assert f"gone quiet. {many} findings in {many} markets ({', '.join(sorted(supplier.sold))}). No offer" in quiet
    assert "No other market or product type has had one since" in quiet


def test_a_market_that_sells_nothing_is_called_about_and_its_properties_are_not(nights):
    _, reported, supplier, lake = nights
    silent = [[point for point in digest["points"] if "none of its" in point] for digest in reported]
    assert [number for number in NIGHTS if silent[number]] == [SILENT]
    assert silent[SILENT][0].startswith(
        "Call the supplier about market FR: none of its 16 answered cells has an offer."
    )
    query = f"SELECT flag_id, finding FROM report.flag WHERE property_id = {supplier.quiet} AND market = 'FR'"  # noqa: S608 - our own id
    ((flag_id, finding),) = rows(lake, query)
    assert "No offer for 5 days in a row" in finding
    assert explain(lake, flag_id, 64_000_000).is_reproduced
