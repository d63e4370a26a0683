"""A night of several ranges is computed with enumerations: whatever texts it has, the result is that of texts."""

from __future__ import annotations

from datetime import date

import pytest
from all_relations import contents
from another_machine import AnotherMachine
from nights import load_night, started_at, sweep_id

from pipeline.domain.errors import CorruptObject
from pipeline.lake import Lake, column_sql
from pipeline.lake.database import query_published
from pipeline.process import range_pool
from pipeline.publish import night_build, publish
from pipeline.publish.range_files import files_read
from pipeline.publish.range_work import find_in_range
from pipeline.publish.ranges import MOST_OFFERS

pytestmark = pytest.mark.slow

STAY = {"check_in": date(2030, 3, 1), "room_id": 7, "board_id": 14, "currency": "EUR"}
OF_CELL = ("property_id", "market", "check_in")
ODD = ["GB", "DE", "", "gb", "it's", '"x"', "\u20ac", "~", "GB ", "x" * 5000, "NULL", "a|b"]


def publish_as(lake, nights, monkeypatch, most_offers=1):
    """Publish nights of a lake, by default each property in a range of its own, all in this process."""
    monkeypatch.setattr(range_pool, "open_pool", lambda *_: AnotherMachine(lake, files_read))
    for night in nights:
        publish(lake, sweep_id(night), started_at(night), most_offers=most_offers)
    return lake


def publish_as_texts(lake, nights, monkeypatch):
    with monkeypatch.context() as context:
        context.setattr(column_sql, "enumeration_of", lambda _: None)
        return publish_as(lake, nights, context, MOST_OFFERS)


def load_odd(lake, nights):
    """Each market is an odd text, with an odd party and currency; prices move from night to night.

    A party has a NUL, so parties are no enumeration.
    """
    for night in range(nights):
        cells, offers = [], []
        for number, text in enumerate(ODD):
            for property_id in (1, 2):
                asked = {"search_id": number, "property_id": property_id, "market": text, "check_in": STAY["check_in"]}
                asked |= {"party": f"2\x00{number}" if number % 2 else "2", "product_type": ODD[number % 3]}
                for operation, source in (("multi", "multi"), ("single", "detail")):
                    asked["search_id"] += 100 * (source == "detail")
                    cells.append(asked | {"operation": operation, "offers": 1})
                    total = 100 + number * (night + 1) * property_id
                    offer = STAY | asked | {"source": source, "total": total, "offer_no": 0}
                    offers.append(offer | {"currency": text if number % 3 else "EUR", "policy_key": night})
        load_night(lake, night, cell=cells, offer=offers)


def test_odd_texts_are_kept_as_they_are(tmp_path, monkeypatch):
    lakes = [Lake(str(tmp_path / name / "lake")) for name in ("texts", "values")]
    for lake in lakes:
        load_odd(lake, 2)
    expected = contents(publish_as_texts(lakes[0], range(2), monkeypatch))
    found = contents(publish_as(lakes[1], range(2), monkeypatch))
    markets = query_published(lakes[1].published_file, "SELECT DISTINCT market FROM mart.offer_latest").fetchall()
    assert {market for (market,) in markets} == set(ODD)
    for name, rows in expected.items():
        assert found[name] == rows, name


def test_nights_without_a_cell(lake, tmp_path, monkeypatch):
    nights = [{}, {"cell": [{"check_in": STAY["check_in"]}], "offer": [STAY | {"total": 100}]}, {}]
    texts = Lake(str(tmp_path / "texts" / "lake"))
    for each in (lake, texts):
        for night, rows in enumerate(nights):
            load_night(each, night, **rows)
    expected = contents(publish_as_texts(texts, range(len(nights)), monkeypatch))
    assert contents(publish_as(lake, range(len(nights)), monkeypatch)) == expected


def test_the_first_offer_that_is_back_is_known_as_such(lake, monkeypatch):
    """No earlier state has the value `back`, which tells that the policy of a room has changed."""
    for night, policies in enumerate([(1, 2), (1,), (2,)]):
        cells = [{"property_id": number, "check_in": STAY["check_in"]} for number in (1, 2)]
        offers = [
            STAY | {"property_id": number, "offer_no": policy, "policy_key": policy, "total": 100}
            for number in (1, 2)
            for policy in policies
        ]
        load_night(lake, night, cell=cells, offer=offers)
    publish_as(lake, range(3), monkeypatch)
    query = "SELECT drifted FROM report.policy_drift"
    assert query_published(lake.published_file, query).fetchall() == [(2,)]


def test_hashes_of_different_relations_are_of_one_type(lake, monkeypatch):
    """`mart.market_parity` joins episodes by the hash of their columns: those of a text and of a value never agree."""
    kinds = []

    def find(session, job):
        read = ("mart.comparable_offer", "state.parity_open", "state.parity_group_open")
        described = {name: session.execute(f"DESCRIBE {name}").fetchall() for name in read}
        kinds.append({(name, column): kind for name, rows in described.items() for column, kind, *_ in rows})
        return find_in_range(session, job)

    monkeypatch.setattr(night_build, "find_in_range", find)
    offers = [STAY | {"property_id": number, "market": "DE", "total": 100} for number in (1, 2)]
    load_night(lake, 0, cell=[{name: row[name] for name in OF_CELL} for row in offers], offer=offers)
    publish_as(lake, range(1), monkeypatch)
    assert kinds
    for kind in kinds:
        for column in ("source", "currency"):
            (of_column,) = {type_of for (_, name), type_of in kind.items() if name.removeprefix("reference_") == column}
            assert of_column.startswith("ENUM(")


def values_without(lost, value):
    find_values = night_build.find_values

    def find(session, tables):
        found = find_values(session, tables)
        return found | {lost: [each for each in found[lost] if each != value]}

    return find


@pytest.mark.parametrize(("lost", "value"), [("market", "DE"), ("party", "2")])
def test_a_text_that_is_not_among_the_values_stops_the_publication(lake, monkeypatch, lost, value):
    """Read as NULL, it would be lost without a word."""
    asked = [{"property_id": n, "market": market, "party": str(n)} for n, market in enumerate(("GB", "DE"), start=1)]
    load_night(lake, 0, cell=asked, offer=[STAY | {"total": 100} | each for each in asked])
    monkeypatch.setattr(night_build, "find_values", values_without(lost, value))
    with pytest.raises(CorruptObject, match=f"have a {lost} that it did not have") as stopped:
        publish_as(lake, range(1), monkeypatch)
    assert stopped.value.kept == "The last published file is unchanged, and the sweep stays loaded."
    assert "nightaudit verify" in stopped.value.hint
    assert not lake.published_file.exists()


def test_the_state_too_is_read_with_all_its_values(lake, monkeypatch):
    for night, market in enumerate(("GB", "DE")):
        asked = [{"property_id": n, "market": market, "check_in": STAY["check_in"]} for n in (1, 2)]
        load_night(lake, night, cell=asked, offer=[STAY | each | {"total": 100} for each in asked])
    publish(lake, sweep_id(0), started_at(0))
    monkeypatch.setattr(night_build, "find_values", values_without("market", "GB"))
    with pytest.raises(CorruptObject, match=r"1 rows of state\.offer_open have a market that"):
        publish_as(lake, [1], monkeypatch)
    assert query_published(lake.published_file, "SELECT count(*) FROM mart.sweep").fetchall() == [(1,)]
