"""The market that others are compared with, where the settings name none: chosen once for a lake, also by a rebuild."""

from __future__ import annotations

from datetime import date

import msgspec
import pytest
from nights import load_night, started_at, sweep_id

from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.lake.ledger import LedgerEntry, copies_of_entry
from pipeline.publish.publish import publish, republish_all

# GB has the most offers, and is the only market in pounds.
OFFERS = {"GB": (4, "GBP"), "DE": (3, "EUR"), "US": (2, "EUR")}


@pytest.fixture
def lake(tmp_path):
    return Lake(str(tmp_path / "lake"))


def load(lake, night):
    cells, offers = [], []
    for number, (market, (many, currency)) in enumerate(OFFERS.items()):
        for property_id in range(1, many + 1):
            at = {"market": market, "property_id": property_id, "search_id": number, "check_in": date(2030, 3, 1)}
            cells.append(at | {"currency_asked": currency, "offers": 1})
            offers.append(at | {"currency_asked": currency, "currency": currency, "total": 100, "room_id": 7})
    load_night(lake, night, cell=cells, offer=offers)


def chosen(lake):
    return query_published(lake.published_file, "SELECT reference_market FROM mart.reference_market").fetchall()


def test_a_new_lake_chooses_a_market_that_others_share_a_currency_with(lake):
    load(lake, 0)
    publish(lake, sweep_id(0), started_at(0))
    assert chosen(lake) == [("DE",)]
    republish_all(lake, lambda: None)
    assert chosen(lake) == [("DE",)]


@pytest.mark.slow
def test_a_lake_that_chose_by_the_number_of_offers_keeps_its_market(lake):
    load(lake, 0)
    # As entries were written before they stated the rule.
    entry = msgspec.to_builtins(LedgerEntry(sweep_id(0), started_at(0), started_at(0), "passed"))
    del entry["reference_rule"]
    for place in copies_of_entry(sweep_id(0)):
        lake.put_new(place, msgspec.json.encode(entry))
    publish(lake, sweep_id(0), started_at(0))
    assert chosen(lake) == [("GB",)]
    load(lake, 1)
    publish(lake, sweep_id(1), started_at(1))
    assert chosen(lake) == [("GB",)]
    republish_all(lake, lambda: None)
    assert chosen(lake) == [("GB",)]


def test_each_new_entry_states_the_rule(lake):
    load(lake, 0)
    publish(lake, sweep_id(0), started_at(0))
    for place in copies_of_entry(sweep_id(0)):
        assert msgspec.json.decode(lake.get(place))["reference_rule"] == 2
