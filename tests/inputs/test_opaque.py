"""A branded property of the map is searched singly under its unbranded id, and stays its own cell."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

import pytest

from pipeline.domain.search import Operation, ProductType, Search
from pipeline.domain.stay import Party, Stay
from pipeline.inputs import load
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.lake.raw import read_shard
from pipeline.night import night_sweep
from pipeline.night.night import Night
from pipeline.night.search_body import as_sent
from pipeline.normalise.read_answer import Reading
from pipeline.normalise.refusals import Refusal
from pipeline.normalise.request import Asked, asked_for, sent_ids, under_own_id
from pipeline.publish import publish
from pipeline.sandbox.world.identifiers import opaque_pairs
from pipeline.settings import Settings

SPEC = """
[properties]
ids = [{ids}]
[stays]
nights = [1]
[[stays.horizon]]
to_days = 2
[ask]
markets = ["GB"]
parties = ["2"]
currencies = ["EUR"]
operations = ["multi", "single"]
"""
PAIRS = opaque_pairs(1, 100)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("opaque")
    lake = Lake(str(folder / "lake"))
    (folder / "map.csv").write_text("branded_id,unbranded_id\n" + "".join(f"{a},{b}\n" for a, b in PAIRS))
    # The first unbranded property is swept as itself too.
    ids = [branded for branded, _ in PAIRS] + [PAIRS[0][1]]
    (folder / "spec.toml").write_text(SPEC.format(ids=", ".join(map(str, ids))))
    now = datetime.now(UTC)
    load.load(lake, "property-map", folder / "map.csv", now)
    settings = Settings(
        _env_file=None, lake=str(lake.root), spec=folder / "spec.toml", workers=1, sandbox_properties=100
    )
    manifest = night_sweep.start(settings, lake, now)
    asyncio.run(night_sweep.collect(Night(settings, lake, manifest)))
    publish(lake, manifest.sweep_id, now)
    return lake, manifest


def found(lake, query):
    return query_published(lake.published_file, query).fetchall()


def test_the_unbranded_id_is_sent_in_single_searches_and_never_in_lists(swept):
    lake, manifest = swept
    unbranded = dict(PAIRS)
    for record in read_shard(lake, manifest.sweep_id, "single-GB-000000"):
        sent = json.loads(record.request)["propertyId"]
        assert sent == unbranded.get(record.own_property_id, record.own_property_id)
    (record,) = read_shard(lake, manifest.sweep_id, "multi-GB-000000")[:1]
    assert set(unbranded) <= set(json.loads(record.request)["propertyIds"])
    assert record.own_property_id is None


def test_the_cell_and_its_offers_keep_the_branded_id_and_the_search_the_one_that_was_sent(swept):
    lake, _ = swept
    query = (
        "SELECT DISTINCT cell.property_id, coalesce(search.sent_property_id, cell.property_id) FROM lake.cell AS cell "
        "JOIN lake.search AS search USING (sweep_id, search_id) WHERE cell.operation = 'single'"
    )
    assert set(found(lake, query)) == {*PAIRS, (PAIRS[0][1], PAIRS[0][1])}
    offered = "SELECT DISTINCT property_id FROM lake.{} WHERE {}"
    cells = set(found(lake, offered.format("cell", "operation = 'single' AND status = 'offered'")))
    assert cells
    assert set(found(lake, offered.format("offer", "source = 'detail'"))) == cells
    assert found(lake, "SELECT count(*) FROM lake.drift WHERE kind = 'not_asked'") == [(0,)]


def test_planned_is_still_the_sum_of_the_statuses(swept):
    lake, manifest = swept
    query = "SELECT planned, offered + no_offer + absent + rejected + failed + not_swept FROM lake.sweep"
    assert found(lake, query) == [(manifest.cells, manifest.cells)]


def test_a_list_search_is_sent_as_it_is():
    stay = Stay.of(datetime(2030, 1, 1, tzinfo=UTC).date(), 1)
    search = Search(0, Operation.MULTI, "GB", ProductType.HOTEL, stay, Party.parse("2"), None, (1, 2))
    assert as_sent(search, {1: 9}) is search


def test_what_could_not_be_read_is_reported_of_the_cells_own_property():
    asked = asked_for(Asked("GB", "Hotel", datetime(2030, 1, 1, tzinfo=UTC).date(), 1, "2", None, (9,)), 1)
    assert (asked.property_ids, asked.sent_property_id, sent_ids(asked)) == ((1,), 9, {9})
    refusals = [Refusal("offer", 9, "$", "odd", ""), Refusal("answer", None, "$", "odd", "")]
    reported = under_own_id(Reading(returned={9: 2}, unreadable=frozenset({9}), refusals=refusals), asked)
    assert (reported.returned, reported.unreadable) == ({1: 2}, {1})
    assert [refusal.property_id for refusal in reported.refusals] == [1, None]
