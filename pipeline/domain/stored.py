"""Where each response field of the supplier's document is kept: its path in an answer, and the column that holds it."""

from collections.abc import Mapping

from pipeline.domain.search import Operation

# Both spellings of an error are stored in one column.
_ERRORS = {"code": "codes", "errorCode": "codes", "message": "messages", "errorDescription": "messages"}
_LIST_PRODUCT = {
    "productId": "offer.product_id",
    "boardBasis.id": "offer.board_id",
    "boardBasis.name": "offer.board_name",
    "boardBasis.detail": "offer.board_detail",
    "charges.total": "offer.total",
    "charges.minSellablePrice": "offer.floor",
    "charges.prePromoTotal": "offer.pre_promo_total",
    "charges.discountPercentage": "offer.discount_pct",
    "promotions[].promoType": "promotion.promo_type",
    "promotions[].description": "promotion.description",
    "cancelPenalties[].penaltyWindow": "penalty.window_hours",
    "cancelPenalties[].penaltyPercentage": "penalty.penalty_pct",
    "cancelPenalties[].penaltyNights": "penalty.penalty_nights",
    "cancelPenalties[].refundable": "penalty.is_refundable",
}
_DETAIL_PRODUCT = _LIST_PRODUCT | {
    "charges.includedCharges": "offer.included_charges",
    "charges.excludedCharges": "offer.excluded_charges",
    "charges.excludedChargeDetails.resortFee": "offer.resort_fee",
    "charges.excludedChargeDetails.childResortFee": "offer.child_resort_fee",
    "charges.excludedChargeDetails.cityTaxes": "offer.city_taxes",
    "charges.excludedChargeDetails.hotelServiceFee": "offer.hotel_service_fee",
    "cancelPenalties[].penaltyStartDate": "penalty.start_at penalty.start_offset",
    "cancelPenalties[].penaltyEndDate": "penalty.end_at penalty.end_offset",
    "cancelPenalties[].penaltyInAmount": "penalty.amount",
}
_ROOM_STAY = {"id": "offer.room_stay_id", "roomId": "offer.room_id", "rateType": "offer.rate_type"}
_LIST_ROOM_STAY = _ROOM_STAY | {"roomName": "offer.room_name", "availableRooms": "offer.available_rooms"}
_DETAIL_ROOM_STAY = _ROOM_STAY | {
    "roomName": "room.room_name",
    "roomDescription": "room.room_description",
    "bedTypeInfo": "room.bed_type",
    "availableRooms": "offer.available_rooms",
    "images[]": "room_image.image_url",
    "roomAmenities[].id": "room_amenity.amenity_id",
    "roomAmenities[].name": "room_amenity.amenity_name",
}


def _under(prefix: str, columns: Mapping[str, str], table_prefix: str = "") -> dict[str, tuple[str, ...]]:
    return {
        f"{prefix}{path}": tuple(f"{table_prefix}{column}" for column in places.split())
        for path, places in columns.items()
    }


# Path of each field, arrays as []: the columns that it is stored in, as table.column.
STORED: Mapping[Operation, Mapping[str, tuple[str, ...]]] = {
    Operation.MULTI: {
        **_under("errors[].", _ERRORS, "search."),
        **_under("properties[].", {"propertyId": "offer.property_id", "currencyCode": "offer.currency"}),
        **_under("properties[].roomStays[].", _LIST_ROOM_STAY),
        **_under("properties[].roomStays[].products[].", _LIST_PRODUCT),
    },
    Operation.SINGLE: {
        **_under("errors[].", _ERRORS, "search."),
        **_under("property.", {"propertyId": "offer.property_id", "currencyCode": "offer.currency"}),
        **_under("property.", {"propertyName": "property.property_name"}),
        **_under("property.roomStays[].", _DETAIL_ROOM_STAY),
        **_under("property.roomStays[].products[].", _DETAIL_PRODUCT),
    },
    Operation.QUOTE: {
        "reservationId": ("quote.reservation_id",),
        **_under("errors[].", _ERRORS, "quote."),
        **_under("property.", {"propertyId": "quote.quote_property_id", "currencyCode": "quote.quote_currency"}),
        **_under("property.", {"propertyRemarks": "quote.property_remarks"}),
        **_under("property.roomStays[].", _ROOM_STAY, "quote_"),
        **_under("property.roomStays[].product.", _DETAIL_PRODUCT, "quote_"),
    },
}
