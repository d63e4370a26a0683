"""The three operations speak of the same products at the same prices; quotes drift at a known rate."""

import re
from datetime import date, datetime

import pytest
from sandbox_searches import TWO, ask, multi, products, world

from pipeline.domain.search import Operation
from pipeline.sandbox.world import offers
from pipeline.sandbox.world.documented import Guests
from pipeline.sandbox.world.omissions import PATHS
from pipeline.supplier.fields import response_fields


def detail(a_world, identifier, **changes):
    form = ask(a_world, "single", [identifier], **changes)
    return form.get("property")


def test_a_multi_answer_holds_the_cheapest_products_of_the_detail_answer():
    a_world = world(properties=100)
    compared = 0
    for identifier, hotel in multi(a_world).items():
        if not hotel["roomStays"]:
            continue
        rooms = {room["roomId"]: room for room in detail(a_world, identifier)["roomStays"]}
        assert rooms.keys() == {room["roomId"] for room in hotel["roomStays"]}
        for room in hotel["roomStays"]:
            other = rooms[room["roomId"]]
            assert other["availableRooms"] == room["availableRooms"]
            cheapest = {}
            for product in other["products"]:
                policy = [
                    {name: item[name] for name in ("penaltyWindow", "penaltyPercentage", "penaltyNights", "refundable")}
                    for item in product["cancelPenalties"]
                ]
                key = (product["boardBasis"]["id"], str(policy))
                if key not in cheapest or product["charges"]["total"] < cheapest[key]["charges"]["total"]:
                    cheapest[key] = product
            listed = {
                (product["boardBasis"]["id"], str(product["cancelPenalties"])): product for product in room["products"]
            }
            assert listed.keys() == cheapest.keys()
            for key, product in listed.items():
                found = cheapest[key]
                assert found["productId"] == product["productId"]
                assert found.get("promotions") == product.get("promotions")
                assert product["charges"].items() <= found["charges"].items()
                compared += 1
    assert compared > 500


def test_a_quote_keeps_the_price_of_the_search_but_for_the_known_drift():
    a_world = world(properties=600)
    outcomes = {"matched": 0, "raised": 0, "lowered": 0, "gone": 0}
    for (identifier, room_id, _, _), product in products(multi(a_world)):
        form = ask(a_world, "quote", [identifier], product_ids=(product["productId"],))
        if "errors" in form:
            assert form["errors"][0]["code"] == 1023
            outcomes["gone"] += 1
            continue
        (room,) = form["property"]["roomStays"]
        assert room["roomId"] == room_id
        before, now = product["charges"]["total"], room["product"]["charges"]["total"]
        outcomes["matched" if now == before else "raised" if now > before else "lowered"] += 1
    total = sum(outcomes.values())
    assert total > 4000
    for name, per_mille in (("raised", offers.RAISED), ("lowered", offers.LOWERED), ("gone", offers.GONE)):
        assert 0.6 * per_mille < 1000 * outcomes[name] / total < 1.5 * per_mille, outcomes


def test_unstable_product_ids_change_with_the_search_and_are_quoted_on_their_night_only():
    tonight, tomorrow = world(0, properties=150), world(1, properties=150)
    swedish = {key: product["productId"] for key, product in products(multi(tonight, market="SE"))}
    german = {key: product["productId"] for key, product in products(multi(tonight, market="DE"))}
    both = swedish.keys() & german.keys()
    changed = [key for key in both if swedish[key] != german[key]]
    assert 0.15 < len(changed) / len(both) < 0.35
    quoted = [
        "property" in ask(a_world, "quote", [key[0]], product_ids=(swedish[key],))
        for key in changed
        for a_world in (tonight, tomorrow)
    ]
    assert sum(quoted[0::2]) > 0.97 * len(changed)
    assert not any(quoted[1::2])


def test_a_product_of_another_property_is_answered_like_one_that_is_gone():
    a_world = world()
    hotels = multi(a_world)
    (first, *_), product = next(products(hotels))
    other = next(identifier for identifier, hotel in hotels.items() if identifier != first and hotel["roomStays"])
    assert ask(a_world, "quote", [other], product_ids=(product["productId"],))["errors"][0]["code"] == 1023


def test_a_quote_of_rooms_of_different_types_is_refused_with_1026():
    a_world = world()
    hotel = next(
        (identifier, hotel)
        for identifier, hotel in multi(a_world, parties=(TWO, TWO)).items()
        if len({room["roomId"] for room in hotel["roomStays"] or ()}) > 1
    )
    identifier, rooms = hotel[0], hotel[1]["roomStays"]
    ids = {room["roomId"]: room["products"][0]["productId"] for room in rooms}
    first, second = list(ids.values())[:2]
    form = ask(a_world, "quote", [identifier], product_ids=(first, second), parties=(TWO, TWO))
    assert form["errors"][0]["code"] in {1023, 1026}
    form = ask(a_world, "quote", [identifier], product_ids=(first, first), parties=(TWO, TWO))
    assert "errors" in form or [room["id"] for room in form["property"]["roomStays"]] == [0, 1]


def test_detail_penalties_have_dates_with_offset_and_amounts_that_follow_the_rule():
    forms = set()
    checked = 0
    for identifier in (a_world := world()).property_ids()[:150]:
        hotel = detail(a_world, identifier, check_in=date(2030, 6, 10), nights=4)
        for room in (hotel or {}).get("roomStays", ()):
            for product in room["products"]:
                for penalty in product["cancelPenalties"]:
                    end = penalty["penaltyEndDate"]
                    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)", end)
                    assert datetime.fromisoformat(end).date() <= date(2030, 6, 10)
                    forms.add(end[19:])
                    if penalty["penaltyPercentage"] is None:
                        assert penalty["penaltyInAmount"] is None
                        continue
                    share = min(penalty["penaltyNights"] or 4, 4) / 4
                    expected = product["charges"]["total"] * penalty["penaltyPercentage"] / 100 * share
                    assert abs(penalty["penaltyInAmount"] - expected) < 0.006
                    checked += 1
    assert {"Z", "+02:00"} < forms
    assert checked > 1000


def test_fees_are_broken_down_and_included_charges_are_a_part_of_the_total():
    names = set()
    with_extras = checked = 0
    for identifier in (a_world := world()).property_ids()[:150]:
        hotel = detail(a_world, identifier, parties=(Guests(2, (4,)),))
        for room in (hotel or {}).get("roomStays", ()):
            for product in room["products"]:
                charges = product["charges"]
                details = charges["excludedChargeDetails"]
                names |= {name for name, amount in details.items() if amount}
                extra = charges["excludedCharges"] - sum(details.values())
                assert extra > -0.011
                with_extras += extra > 0.011
                assert 0 < charges["includedCharges"] < charges["total"]
                checked += 1
    assert names == {"resortFee", "childResortFee", "cityTaxes", "hotelServiceFee"}
    assert 0 < with_extras < checked


def fields(form, path=""):
    """Yield every field of a form with whether it is null, the path without list positions."""
    if isinstance(form, list):
        for item in form:
            yield from fields(item, path)
    elif isinstance(form, dict):
        for name, value in form.items():
            yield f"{path}.{name}".lstrip("."), value is None
            yield from fields(value, f"{path}.{name}".lstrip("."))


@pytest.mark.slow
def test_every_documented_field_occurs_and_every_one_is_null_somewhere():
    a_world = world(properties=3000, missing_share=0.05)
    seen = {"multi": set(), "single": set()}
    for hotel in multi(a_world, parties=(Guests(2, (4,)),)).values():
        seen["multi"] |= set(fields(hotel))
    chosen = a_world.property_ids()[:3000]
    for identifier in chosen:
        if (hotel := detail(a_world, identifier, parties=(Guests(2, (4,)),))) is not None:
            seen["single"] |= set(fields(hotel))
    for operation, found in seen.items():
        assert {path for path, _ in found} == set(PATHS[operation])
        lacking = set(PATHS[operation]) - {path for path, is_null in found if is_null}
        assert not lacking


@pytest.mark.slow
def test_every_documented_field_of_a_quote_occurs_and_every_one_is_null_somewhere():
    a_world = world(properties=3000, missing_share=0.05)
    party = (Guests(2, (4,)),)
    seen = set()
    for (identifier, *_), product in products(multi(world(properties=3000, missing_share=0), parties=party)):
        form = ask(a_world, "quote", [identifier], product_ids=(product["productId"],), parties=party)
        if "errors" not in form:
            seen |= set(fields(form))
    documented = {path.replace("[]", "") for path in response_fields(Operation.QUOTE) if not path.startswith("errors")}
    assert documented <= {path for path, _ in seen}
    assert documented <= {path for path, is_null in seen if is_null}


def test_nothing_is_null_where_nulls_are_switched_off():
    a_world = world(missing_share=0.3, nulls=False)
    party = (Guests(2, (4,)),)
    assert not [path for hotel in multi(a_world, parties=party).values() for path, is_null in fields(hotel) if is_null]
    for identifier in a_world.property_ids()[:100]:
        form = ask(a_world, "single", [identifier], parties=party)
        assert not [path for path, is_null in fields(form) if is_null]
