"""Answers in the shape of the document, encoded. Pure: a world and a search in, bytes and counts out."""

from typing import Any, Final, NamedTuple

import msgspec

from pipeline.sandbox.world import documented, planted
from pipeline.sandbox.world.documented import Guests, Search
from pipeline.sandbox.world.fx import as_number, minor_per_euro_cent, minor_units
from pipeline.sandbox.world.hashes import mix
from pipeline.sandbox.world.offers import Offering, PropertyOffers, RoomOffers
from pipeline.sandbox.world.omissions import chosen_paths, omit, without_nulls
from pipeline.sandbox.world.policies import detail_form, drifted
from pipeline.sandbox.world.prices import Price
from pipeline.sandbox.world.profiles import Profile
from pipeline.sandbox.world.world import World

_ENCODER: Final = msgspec.json.Encoder()
_INT64: Final = (1 << 63) - 1


class Answer(NamedTuple):
    """One answer: the body, and what it serves (nothing, for a refusal)."""

    status: int
    body: bytes
    properties: int = 0
    products: int = 0
    unattributed: int = 0
    """Products among them without a property id."""


def answer(world: World, search: Search, reservation: int = 0) -> Answer:
    """Return the answer to a valid search; `reservation` is the running number of a quote."""
    offering = Offering(world, search)
    if search.operation == "multi":
        return _multi(offering)
    profile = world.find(search.property_ids[0])
    if profile is None:
        return unavailable(documented.NO_OFFER)
    offers = offering.offers(profile) if search.operation == "single" else offering.quote(profile)
    if isinstance(offers, int):
        return unavailable(offers)
    written = _property(offering, offers)
    form: dict[str, Any] = {"property": written}
    if search.operation == "quote":
        form = {"reservationId": mix(world.seed, world.night, reservation, 71) & _INT64 | 1} | form
        for path, as_null in chosen_paths(world.seed, profile.index, world.missing_share, "quote"):
            omit(form, path, as_null)
    return _served(form if world.nulls else without_nulls(form), [written])


def unavailable(code: int) -> Answer:
    """Return the 200 with the reason why nothing is offered."""
    return Answer(200, _ENCODER.encode({"errors": [{"code": code, "message": documented.UNAVAILABLE[code]}]}))


def refused(codes: list[int]) -> Answer:
    """Return the 400 with one item per code."""
    items = [{"errorCode": code, "errorDescription": documented.REFUSALS[code]} for code in codes]
    return Answer(400, _ENCODER.encode({"errors": items}))


def server_error() -> Answer:
    """Return the documented 500."""
    item = {"errorCode": documented.SERVER_ERROR, "errorDescription": documented.SERVER_ERROR_TEXT}
    return Answer(500, _ENCODER.encode({"errors": [item]}))


def _served(form: dict[str, Any], properties: list[dict[str, Any]]) -> Answer:
    counts = [(_count(written), written.get("propertyId") is None) for written in properties]
    return Answer(
        status=200,
        body=_ENCODER.encode(form),
        properties=sum(1 for count, _ in counts if count),
        products=sum(count for count, _ in counts),
        unattributed=sum(count for count, is_nameless in counts if is_nameless),
    )


def _count(written: dict[str, Any]) -> int:
    """Return the number of products in a property as written, after omissions."""
    rooms = written.get("roomStays") or ()
    return sum(len(room.get("products") or ()) + (room.get("product") is not None) for room in rooms)


def _multi(offering: Offering) -> Answer:
    """Answer for up to 100 properties, in the world's order, a repeated id once.

    A property without offers is left out; a small share of them is listed with no room stays instead. With no
    offers at all the answer is 1025, or the one reason that all the properties share (1024, 1026).
    """
    world, search = offering.world, offering.search
    profiles = {profile.index: profile for profile in map(world.find, search.property_ids) if profile is not None}
    unknown = len(profiles) < len(set(search.property_ids))
    forms: list[dict[str, Any]] = []
    has_offers = False
    reasons = {documented.NO_OFFER} if unknown else set()
    for _, profile in sorted(profiles.items()):
        offers = offering.offers(profile)
        if isinstance(offers, int):
            reasons.add(offers)
            if profile.listed_empty:
                forms.append(_empty(profile, search, world.nulls))
            continue
        forms.append(_property(offering, offers))
        has_offers = True
    if not has_offers:
        reason = reasons.pop() if len(reasons) == 1 else documented.NO_PROPERTY
        return unavailable(documented.NO_PROPERTY if reason == documented.NO_OFFER else reason)
    return _served({"properties": forms}, forms)


def _empty(profile: Profile, search: Search, nulls: bool) -> dict[str, Any]:
    return {
        "propertyId": profile.property_id,
        "currencyCode": search.currency or profile.home_currency,
        "roomStays": None if nulls and profile.index % 4 == 0 else [],
    }


def _property(offering: Offering, offers: PropertyOffers) -> dict[str, Any]:
    world, search, profile = offering.world, offering.search, offers.profile
    form: dict[str, Any] = {"propertyId": profile.property_id}
    if search.operation == "single":
        form["propertyName"] = profile.name
    form["currencyCode"] = offers.currency
    form["roomStays"] = [_room(offering, offers, room) for room in offers.rooms]
    if search.operation == "quote":
        form["propertyRemarks"] = profile.remarks
    lacking = chosen_paths(world.seed, profile.index, world.missing_share, search.operation)
    if lacking or not world.nulls:
        # Through JSON and back, as boards, promotions and penalties are kept encoded.
        form = msgspec.json.decode(_ENCODER.encode(form))
        for path, as_null in lacking:
            omit(form, path, as_null)
    return form if world.nulls else without_nulls(form)


def _room(offering: Offering, offers: PropertyOffers, room: RoomOffers) -> dict[str, Any]:
    search, profile, units = offering.search, offers.profile, minor_units(offers.currency)
    is_hotel, is_detail = search.product_type == "Hotel", search.operation != "multi"
    products = []
    for price in room.prices:
        slot = price.slot
        policy = slot.policy
        is_drifted = policy.drifts and drifted(offering.world.night, profile.salt)
        charges = _charges(profile, price, units, is_hotel)
        product: dict[str, Any] = {
            "productId": offering.product_id(slot),
            "boardBasis": slot.board_written,
            "charges": charges,
        }
        if price.promotions is not None:
            product["promotions"] = price.promotions
        elif profile.reference_style:
            product["promotions"] = ()
        product["cancelPenalties"] = policy.written[is_drifted]
        if is_detail:
            guests = search.parties[room.stay_id]
            charges |= _detail_charges(profile, price, offers.currency, guests, search)
            product["cancelPenalties"] = _detail_penalties(
                profile, price, search, 24 * is_drifted, as_number(price.total, units), units
            )
        products.append(product)
    form: dict[str, Any] = {"id": room.stay_id, "roomId": room.room.room_id}
    if search.operation == "quote":
        form |= {"rateType": search.rate_type, "product": products[0]}
        return form
    form |= room.room.words if is_detail else {"roomName": room.room.words["roomName"]}
    form |= {"rateType": search.rate_type, "products": products, "availableRooms": room.left}
    return form


def _charges(profile: Profile, price: Price, units: int, is_hotel: bool) -> dict[str, Any]:
    point_zero = profile.point_zero
    total = as_number(price.total, units, point_zero)
    charges: dict[str, Any] = {"total": total}
    if price.floor is not None:
        charges["minSellablePrice"] = as_number(price.floor, units, point_zero)
    elif is_hotel and profile.states_floor > 1:
        charges["minSellablePrice"] = None if profile.states_floor == 2 else 0
    if price.reference is not None:
        charges["prePromoTotal"] = as_number(price.reference, units, point_zero)
        charges["discountPercentage"] = price.stated_percent
    elif profile.reference_style == 1:
        charges["prePromoTotal"] = total
        charges["discountPercentage"] = 0
    elif profile.reference_style == 2:
        charges["prePromoTotal"] = charges["discountPercentage"] = None
    return charges


def _detail_charges(profile: Profile, price: Price, currency: str, guests: Guests, search: Search) -> dict[str, Any]:
    """Return included and excluded charges; the excluded ones include the four named fees."""
    factor, units = minor_per_euro_cent(currency, profile.home_currency), minor_units(currency)
    fees, nights = profile.fees, search.nights
    details = {
        "resortFee": round(fees.resort_night * nights * factor),
        "childResortFee": round(fees.child_resort_night * nights * len(guests.ages) * factor),
        "cityTaxes": round(fees.city_adult_night * nights * guests.adults * factor),
        "hotelServiceFee": round(fees.service_stay * factor),
    }
    dearer = _planted_in(profile, search, planted.MARKET_FEES)
    if dearer is not None:
        details["resortFee"] += round(price.total * dearer.size)
    excluded = sum(details.values()) + round(fees.optional_stay * factor)
    missing = _planted_in(profile, search, planted.EXCLUDED_CHARGES)
    if missing is not None:
        excluded = sum(details.values())
        details["resortFee"] += round(price.total * missing.size)
    # A difference in fees between markets only shows if both state them.
    states_all = profile.reference_style or (
        profile.anomaly is not None and profile.anomaly.kind == planted.MARKET_FEES
    )
    included = round(price.total * profile.tax_percent / (100 + profile.tax_percent))
    return {
        "includedCharges": as_number(included, units),
        "excludedCharges": as_number(excluded, units),
        "excludedChargeDetails": {
            name: as_number(minor, units) for name, minor in details.items() if minor or states_all
        },
    }


def _planted_in(profile: Profile, search: Search, kind: str) -> planted.Anomaly | None:
    """Return the planted anomaly of a kind, if this search meets one."""
    anomaly = profile.anomaly
    if anomaly is None or anomaly.kind != kind:
        return None
    return anomaly if anomaly.covers(search.market, search.product_type, search.check_in.month) else None


def _detail_penalties(
    profile: Profile, price: Price, search: Search, earlier_hours: int, total: float, units: int
) -> list[dict[str, Any]]:
    form = detail_form(
        price.slot.policy.steps, earlier_hours, search.check_in, search.nights, profile.offset_minutes, total, units
    )
    anomaly = _planted_in(profile, search, planted.PENALTY_AMOUNT)
    if anomaly is not None:
        for item in form:
            if item["penaltyInAmount"] is not None:
                item["penaltyInAmount"] = round(item["penaltyInAmount"] * (1 + anomaly.size) * units) / units
    return form
