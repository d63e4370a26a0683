"""Every response field of the document, and the column that it is stored in: none is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.domain.tables import SIDE_TABLES, TABLES

FACTS = json.loads((Path(__file__).parent / "facts.json").read_text())

# Where a field of a schema is kept. Of errors both spellings are read into one column.
STORED = {
    "Error.code": "search.codes",
    "Error.errorCode": "search.codes",
    "Error.message": "search.messages",
    "Error.errorDescription": "search.messages",
    "Property.propertyId": "offer.property_id",
    "Property.currencyCode": "offer.currency",
    "PropertyDetail.propertyId": "offer.property_id",
    "PropertyDetail.propertyName": "property.property_name",
    "PropertyDetail.currencyCode": "offer.currency",
    "RoomStayList.id": "offer.room_stay_id",
    "RoomStayList.roomId": "offer.room_id",
    "RoomStayList.roomName": "offer.room_name",
    "RoomStayList.rateType": "offer.rate_type",
    "RoomStayList.availableRooms": "offer.available_rooms",
    "RoomStayDetail.id": "offer.room_stay_id",
    "RoomStayDetail.roomId": "offer.room_id",
    "RoomStayDetail.roomName": "room.room_name",
    "RoomStayDetail.roomDescription": "room.room_description",
    "RoomStayDetail.bedTypeInfo": "room.bed_type",
    "RoomStayDetail.rateType": "offer.rate_type",
    "RoomStayDetail.availableRooms": "offer.available_rooms",
    "RoomStayDetail.images": "room_image.image_url",
    "RoomAmenityDetails.id": "room_amenity.amenity_id",
    "RoomAmenityDetails.name": "room_amenity.amenity_name",
    "ListProduct.productId": "offer.product_id",
    "DetailProduct.productId": "offer.product_id",
    "BoardBasis.id": "offer.board_id",
    "BoardBasis.name": "offer.board_name",
    "BoardBasis.detail": "offer.board_detail",
    "Promotion.promoType": "promotion.promo_type",
    "Promotion.description": "promotion.description",
    **{
        f"{penalty}.{field}": f"penalty.{column}"
        for penalty in ("CancelPenalty", "DetailCancelPenalty")
        for field, column in {
            "penaltyWindow": "window_hours",
            "penaltyPercentage": "penalty_pct",
            "penaltyNights": "penalty_nights",
            "refundable": "is_refundable",
        }.items()
    },
    "DetailCancelPenalty.penaltyStartDate": "penalty.start_at penalty.start_offset",
    "DetailCancelPenalty.penaltyEndDate": "penalty.end_at penalty.end_offset",
    "DetailCancelPenalty.penaltyInAmount": "penalty.amount",
    **{
        f"{charge}.{field}": f"offer.{column}"
        for charge in ("ChargeTotal", "Charge")
        for field, column in {
            "total": "total",
            "minSellablePrice": "floor",
            "prePromoTotal": "pre_promo_total",
            "discountPercentage": "discount_pct",
        }.items()
    },
    "quote.reservationId": "quote.reservation_id",
    "PropertyQuote.propertyId": "quote.sent_property_id",
    "PropertyQuote.currencyCode": "quote.quote_currency",
    "PropertyQuote.propertyRemarks": "quote.property_remarks",
    "RoomStayQuote.id": "quote.room_stay_id",
    "RoomStayQuote.roomId": "quote.quote_room_id",
    "RoomStayQuote.rateType": "quote.quote_rate_type",
    "Charge.includedCharges": "offer.included_charges",
    "Charge.excludedCharges": "offer.excluded_charges",
    "ExcludedChargeDetails.resortFee": "offer.resort_fee",
    "ExcludedChargeDetails.childResortFee": "offer.child_resort_fee",
    "ExcludedChargeDetails.cityTaxes": "offer.city_taxes",
    "ExcludedChargeDetails.hotelServiceFee": "offer.hotel_service_fee",
}

OPERATIONS = ("multi", "single", "quote")


def fields_of(operation: str) -> set[str]:
    """Every field that an answer of an operation may have, apart from those that only hold others."""
    found, open_, seen = set(), [operation], set()
    while open_:
        schema = open_.pop()
        if schema in seen:
            continue
        seen.add(schema)
        for field, kind in FACTS["responses"][schema].items():
            bare = kind.strip("[]")
            if bare in FACTS["responses"]:
                open_.append(bare)
            else:
                found.add(f"{schema}.{field}")
    return found


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_field_of_the_document_is_stored_in_a_column(operation):
    fields = fields_of(operation)
    columns = {f"{table.name}.{column.name}" for table in (TABLES | SIDE_TABLES).values() for column in table.columns}
    stored = {field for field in fields if all(place in columns for place in STORED.get(field, "?").split())}
    assert fields - stored == set(), f"{len(stored)} of {len(fields)} fields are stored"


def test_nothing_is_listed_that_the_document_does_not_have():
    assert set(STORED) == set().union(*map(fields_of, OPERATIONS))
