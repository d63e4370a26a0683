"""The supplier's answers as msgspec types: the one place where its words become ours.

Every field is optional and may be null, as the document says. Unknown fields are refused on purpose: a body that has
one is read again part by part, which keeps the offers and records the deviation. `fields` gives this declaration as
data, for reading part by part and for comparing answers with the document.

Boards, promotions and penalties stay undecoded (`msgspec.Raw`): the same few texts occur a hundred thousand times a
night, and each is decoded once. Amounts are doubles in searches, which have many, and Decimals in quotes.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta, Raw, field

from pipeline.domain.search import Operation

# As the document says; a larger number is refused, with the part that it is in.
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
# Also of the document; msgspec itself has no bounds for it.
INT64 = range(-(2**63), 2**63)
# Penalties and promotions of an offer: the tables number them in 16 bits.
MOST_CHILDREN = 2**15
# `yyyy-MM-dd'T'HH:mm:ssXXX`
DateTime = Annotated[str, Meta(extra={"is_date_time": True})]
N = TypeVar("N", float, Decimal)

NOTHING = Raw(b"null")


class _Wire(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    pass


class Board(_Wire):
    """Wire type BoardBasis."""

    id: Int32 | None = None
    name: str | None = None
    detail: str | None = None


class Promotion(_Wire):
    """Wire type Promotion."""

    promo_type: str | None = field(default=None, name="promoType")
    description: str | None = None


class ListPenalty(_Wire):
    """Wire type CancelPenalty, of multi answers."""

    window_hours: Int32 | None = field(default=None, name="penaltyWindow")
    penalty_pct: float | None = field(default=None, name="penaltyPercentage")
    penalty_nights: float | None = field(default=None, name="penaltyNights")
    is_refundable: bool | None = field(default=None, name="refundable")


class Penalty(ListPenalty, Generic[N]):
    """Wire type DetailCancelPenalty, of detail and quote answers. Its fields are kept in multi answers too."""

    starts: DateTime | None = field(default=None, name="penaltyStartDate")
    ends: DateTime | None = field(default=None, name="penaltyEndDate")
    amount: N | None = field(default=None, name="penaltyInAmount")


class ChargeTotal(_Wire):
    """Wire type ChargeTotal, of multi answers."""

    total: float | None = None
    floor: float | None = field(default=None, name="minSellablePrice")
    pre_promo_total: float | None = field(default=None, name="prePromoTotal")
    discount_pct: float | None = field(default=None, name="discountPercentage")


class ExcludedCharges(_Wire, Generic[N]):
    """Wire type ExcludedChargeDetails: all paid at the property."""

    resort_fee: N | None = field(default=None, name="resortFee")
    child_resort_fee: N | None = field(default=None, name="childResortFee")
    city_taxes: N | None = field(default=None, name="cityTaxes")
    hotel_service_fee: N | None = field(default=None, name="hotelServiceFee")


class Charge(_Wire, Generic[N]):
    """Wire type Charge, of detail and quote answers."""

    total: N | None = None
    floor: N | None = field(default=None, name="minSellablePrice")
    pre_promo_total: N | None = field(default=None, name="prePromoTotal")
    discount_pct: float | None = field(default=None, name="discountPercentage")
    included_charges: N | None = field(default=None, name="includedCharges")
    excluded_charges: N | None = field(default=None, name="excludedCharges")
    excluded: ExcludedCharges[N] | None = field(default=None, name="excludedChargeDetails")


BoardText = Annotated[Raw, Meta(extra={"struct": Board})]
PromotionsText = Annotated[Raw, Meta(extra={"struct": Promotion, "is_list": True})]
ListPenaltiesText = Annotated[Raw, Meta(extra={"struct": ListPenalty, "is_list": True})]
PenaltiesText = Annotated[Raw, Meta(extra={"struct": Penalty, "is_list": True})]

decode_board = msgspec.json.Decoder(Board | None).decode
decode_promotions = msgspec.json.Decoder(list[Promotion] | None).decode


class ListProduct(_Wire):
    """Wire type ListProduct."""

    product_id: int | None = field(default=None, name="productId")
    board: BoardText = field(default=NOTHING, name="boardBasis")
    charges: ChargeTotal | None = None
    promotions: PromotionsText = NOTHING
    penalties: ListPenaltiesText = field(default=NOTHING, name="cancelPenalties")


class DetailProduct(_Wire, Generic[N]):
    """Wire type DetailProduct."""

    product_id: int | None = field(default=None, name="productId")
    board: BoardText = field(default=NOTHING, name="boardBasis")
    charges: Charge[N] | None = None
    promotions: PromotionsText = NOTHING
    penalties: PenaltiesText = field(default=NOTHING, name="cancelPenalties")


class ListRoomStay(_Wire):
    """Wire type RoomStayList."""

    id: Int32 | None = None
    room_id: int | None = field(default=None, name="roomId")
    room_name: str | None = field(default=None, name="roomName")
    rate_type: str | None = field(default=None, name="rateType")
    products: list[ListProduct] | None = None
    available_rooms: Int32 | None = field(default=None, name="availableRooms")


class Amenity(_Wire):
    """Wire type RoomAmenityDetails."""

    id: int | None = None
    name: str | None = None


class DetailRoomStay(_Wire):
    """Wire type RoomStayDetail."""

    id: Int32 | None = None
    room_id: int | None = field(default=None, name="roomId")
    room_name: str | None = field(default=None, name="roomName")
    room_description: str | None = field(default=None, name="roomDescription")
    bed_type: str | None = field(default=None, name="bedTypeInfo")
    rate_type: str | None = field(default=None, name="rateType")
    products: list[DetailProduct[float]] | None = None
    available_rooms: Int32 | None = field(default=None, name="availableRooms")
    images: list[str] | None = None
    amenities: list[Amenity] | None = field(default=None, name="roomAmenities")


class ListProperty(_Wire):
    """Wire type Property."""

    property_id: int | None = field(default=None, name="propertyId")
    currency: str | None = field(default=None, name="currencyCode")
    room_stays: list[ListRoomStay] | None = field(default=None, name="roomStays")


class DetailProperty(_Wire):
    """Wire type PropertyDetail."""

    property_id: int | None = field(default=None, name="propertyId")
    property_name: str | None = field(default=None, name="propertyName")
    currency: str | None = field(default=None, name="currencyCode")
    room_stays: list[DetailRoomStay] | None = field(default=None, name="roomStays")


class QuotedRoomStay(_Wire):
    """Wire type RoomStayQuote."""

    id: Int32 | None = None
    room_id: int | None = field(default=None, name="roomId")
    rate_type: str | None = field(default=None, name="rateType")
    product: DetailProduct[Decimal] | None = None


class QuotedProperty(_Wire):
    """Wire type PropertyQuote."""

    property_id: int | None = field(default=None, name="propertyId")
    currency: str | None = field(default=None, name="currencyCode")
    room_stays: list[QuotedRoomStay] | None = field(default=None, name="roomStays")
    remarks: str | None = field(default=None, name="propertyRemarks")


class ErrorItem(_Wire):
    """Both shapes of an error item, as either may occur in either place."""

    code: Int32 | None = None
    message: str | None = None
    error_code: Int32 | None = field(default=None, name="errorCode")
    error_description: str | None = field(default=None, name="errorDescription")

    @property
    def number(self) -> int | None:
        """The code, under either name."""
        return self.code if self.code is not None else self.error_code

    @property
    def text(self) -> str | None:
        """The text, under either name."""
        return self.message if self.message is not None else self.error_description


class MultiAnswer(_Wire):
    """Either 200 shape of a multi search, or both at once, or the body of a 400 or 500."""

    properties: list[ListProperty] | None = None
    errors: list[ErrorItem] | None = None


class SingleAnswer(_Wire):
    """Either 200 shape of a single search, or both at once, or the body of a 400 or 500."""

    property: DetailProperty | None = None
    errors: list[ErrorItem] | None = None


class QuoteAnswer(_Wire):
    """Either 200 shape of a quote, or both at once, or the body of a 400 or 500."""

    reservation_id: int | None = field(default=None, name="reservationId")
    property: QuotedProperty | None = None
    errors: list[ErrorItem] | None = None


ANSWERS: Mapping[Operation, type[MultiAnswer | SingleAnswer | QuoteAnswer]] = {
    Operation.MULTI: MultiAnswer,
    Operation.SINGLE: SingleAnswer,
    Operation.QUOTE: QuoteAnswer,
}
Product = ListProduct | DetailProduct[float]
Property = ListProperty | DetailProperty
