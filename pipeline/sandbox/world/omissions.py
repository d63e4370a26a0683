"""Missing and null: every response field is optional, so each one is actually absent for some properties.

A property chosen for it lacks two fields, each either left out or null. The chosen ones go through all
fields in turn, so that a world of some thousand properties shows every field of every answer in both ways.
"""

from typing import Any, Final

from pipeline.sandbox.world.documented import Operation
from pipeline.sandbox.world.hashes import mix

_PENALTY: Final = ("penaltyWindow", "penaltyPercentage", "penaltyNights", "refundable")
_DETAIL_PENALTY: Final = (*_PENALTY, "penaltyStartDate", "penaltyEndDate", "penaltyInAmount")
_TOTALS: Final = ("total", "minSellablePrice", "prePromoTotal", "discountPercentage")
_FEES: Final = ("resortFee", "childResortFee", "cityTaxes", "hotelServiceFee")


def _product_paths(product: str, penalties: tuple[str, ...], detail: bool) -> list[str]:
    charges = [*_TOTALS, *(("includedCharges", "excludedCharges", "excludedChargeDetails") if detail else ())]
    return [
        *(f"{product}.{name}" for name in ("productId", "boardBasis", "charges", "promotions", "cancelPenalties")),
        *(f"{product}.boardBasis.{name}" for name in ("id", "name", "detail")),
        *(f"{product}.charges.{name}" for name in charges),
        *(f"{product}.charges.excludedChargeDetails.{name}" for name in _FEES if detail),
        *(f"{product}.promotions.{name}" for name in ("promoType", "description")),
        *(f"{product}.cancelPenalties.{name}" for name in penalties),
    ]


_ROOM: Final = ("id", "roomId", "roomName", "rateType", "products", "availableRooms")
PATHS: Final[dict[Operation, tuple[str, ...]]] = {
    "multi": (
        "propertyId", "currencyCode", "roomStays",
        *(f"roomStays.{name}" for name in _ROOM),
        *_product_paths("roomStays.products", _PENALTY, detail=False),
    ),
    "single": (
        "propertyId", "propertyName", "currencyCode", "roomStays",
        *(f"roomStays.{name}" for name in (*_ROOM, "roomDescription", "bedTypeInfo", "images", "roomAmenities")),
        *(f"roomStays.roomAmenities.{name}" for name in ("id", "name")),
        *_product_paths("roomStays.products", _DETAIL_PENALTY, detail=True),
    ),
    "quote": (
        "reservationId", "propertyId", "currencyCode", "roomStays", "propertyRemarks",
        *(f"roomStays.{name}" for name in ("id", "roomId", "rateType", "product")),
        *_product_paths("roomStays.product", _DETAIL_PENALTY, detail=True),
    ),
}  # fmt: skip
"""Every field under a property, by operation; and the reservation id, which is next to the property."""


def chosen_paths(seed: int, index: int, share: float, operation: Operation) -> list[tuple[str, bool]]:
    """Return the fields that this property lacks, as (path, whether it is null rather than omitted); mostly none."""
    if share <= 0:
        return []
    every = max(1, round(1 / share))
    turn, position = divmod(index, every)
    if position != mix(seed, 61) % every:
        return []
    paths = PATHS[operation]
    ways = 2 * len(paths)
    # Each turn takes the next of all (field, way) pairs, and one far from it.
    places = (turn % ways, (turn + len(paths) + 7) % ways)
    return [(paths[place % len(paths)], place >= len(paths)) for place in places]


def omit(form: dict[str, Any], path: str, as_null: bool) -> None:
    """Remove the field at the first place of the form that has it, searching lists in order."""
    head, _, rest = path.partition(".")
    if not rest:
        if head in form:
            form[head] = None
            if not as_null:
                del form[head]
        return
    below = form.get(head)
    children = below if isinstance(below, list) else [below]
    found = next((child for child in children if isinstance(child, dict) and _has(child, rest)), None)
    if found is not None:
        omit(found, rest, as_null)


def without_nulls(form: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value without its null fields, for readers that follow the schema literally."""
    if isinstance(form, dict):
        return {name: without_nulls(value) for name, value in form.items() if value is not None}
    return [without_nulls(item) for item in form] if isinstance(form, list) else form


def _has(form: dict[str, Any], path: str) -> bool:
    head, _, rest = path.partition(".")
    if not rest:
        return head in form
    below = form.get(head)
    children = below if isinstance(below, list) else [below]
    return any(isinstance(child, dict) and _has(child, rest) for child in children)
