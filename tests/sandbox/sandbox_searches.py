"""Searches for the tests of the pure parts."""

import json
from datetime import date, timedelta

from pipeline.sandbox.server.answers import answer
from pipeline.sandbox.world.documented import Guests, Search
from pipeline.sandbox.world.world import World

TODAY = date(2030, 1, 1)
TWO = Guests(2, ())


def world(night=0, properties=300, seed=3, **options):
    """Return a world whose date moves with its night, without plants and omissions unless requested."""
    options = {"plant_share": 0.0, "missing_share": 0.0} | options
    return World(seed, night, TODAY + timedelta(days=night), properties, **options)


def search(operation, property_ids, **changes):
    check_in = changes.pop("check_in", date(2030, 6, 10))
    nights = changes.pop("nights", 3)
    fields = {
        "check_out": check_in + timedelta(days=nights),
        "market": "SE",
        "currency": "EUR",
        "rate_type": "BAR",
        "product_type": "Hotel",
        "parties": (TWO,),
    }
    return Search(operation, tuple(property_ids), check_in, **(fields | changes))


def ask(a_world, operation, property_ids, **changes):
    return json.loads(answer(a_world, search(operation, property_ids, **changes)).body)


def multi(a_world, **changes):
    """Return the properties of as many multi answers as it takes to ask for the whole world, by id."""
    ids = a_world.property_ids()
    found = {}
    for start in range(0, len(ids), 100):
        for hotel in ask(a_world, "multi", ids[start : start + 100], **changes).get("properties", ()):
            found[hotel.get("propertyId")] = hotel
    return found


def products(hotels):
    """Yield (property id, room id, board id, place in the room) and the product."""
    for identifier, hotel in hotels.items():
        for room in hotel["roomStays"] or ():
            for place, product in enumerate(room["products"]):
                yield (identifier, room["roomId"], product["boardBasis"]["id"], place), product


def totals(hotels):
    return {key: product["charges"]["total"] for key, product in products(hotels)}


def all_products(form):
    """Return every product of a multi answer, whatever fields its properties and rooms lack."""
    return [
        product
        for hotel in form["properties"]
        for room in hotel.get("roomStays") or ()
        for product in room.get("products") or ()
    ]
