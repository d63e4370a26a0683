"""A quoted product in the words of the tables: the same columns as a stored offer, its penalties and its promotions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from pipeline.domain import keys
from pipeline.domain.penalties import Penalty, free_cancel_hours, free_cancel_until, refundability
from pipeline.domain.tables import MONEY_SCALE
from pipeline.supplier.answers import (
    BoardBasis,
    Charge,
    DetailCancelPenalty,
    DetailProduct,
    ExcludedChargeDetails,
    Promotion,
    RoomStayQuoted,
)

_UNIT = Decimal(1).scaleb(-MONEY_SCALE)
_LARGEST = Decimal(10) ** (18 - MONEY_SCALE)
_NO_BOARD, _NO_CHARGE, _NO_FEES = BoardBasis(), Charge(), ExcludedChargeDetails()


def money(value: Decimal | None) -> Decimal | None:
    """Return an amount that fits the tables exactly, or None."""
    if value is None or not value.is_finite() or abs(value) >= _LARGEST:
        return None
    try:
        fitted = value.quantize(_UNIT)
    except InvalidOperation:
        return None
    return fitted if fitted == value else None


def total_of(product: DetailProduct) -> Decimal | None:
    """Return what a product costs; None where it does not say, or where that does not fit the tables."""
    return money(product.charges.total if product.charges else None)


def offer_row(room: RoomStayQuoted, product: DetailProduct, currency: str | None) -> dict[str, Any]:
    """Return what a room's product is: columns of `quote_offer`."""
    board, charge = product.board_basis or _NO_BOARD, product.charges or _NO_CHARGE
    fees = charge.excluded_charge_details or _NO_FEES
    stated = [_stated(penalty) for penalty in product.cancel_penalties or ()]
    return {
        "room_stay_id": room.id,
        "room_id": room.room_id,
        "rate_type": room.rate_type,
        "product_id": product.product_id,
        "board_id": board.id,
        "board_name": board.name,
        "board_detail": board.detail,
        "policy_key": keys.policy_key(
            (p.window_hours, p.penalty_pct, p.penalty_nights, p.is_refundable) for p in stated
        ),
        "promotion_key": keys.promotion_key((each.promo_type, each.description) for each in product.promotions or ()),
        "currency": currency,
        "total": money(charge.total),
        "pre_promo_total": money(charge.pre_promo_total),
        "discount_pct": _number(charge.discount_percentage),
        "floor": money(charge.min_sellable_price),
        "included_charges": money(charge.included_charges),
        "excluded_charges": money(charge.excluded_charges),
        "resort_fee": money(fees.resort_fee),
        "child_resort_fee": money(fees.child_resort_fee),
        "city_taxes": money(fees.city_taxes),
        "hotel_service_fee": money(fees.hotel_service_fee),
        "refundability": refundability(penalty.is_refundable for penalty in stated),
        "free_cancel_hours": free_cancel_hours(stated),
        "free_cancel_until": free_cancel_until(stated),
    }


def penalty_rows(penalties: Sequence[DetailCancelPenalty]) -> list[dict[str, Any]]:
    """Return the penalties of a product: columns of `quote_penalty`."""
    rows = []
    for number, penalty in enumerate(penalties):
        stated = _stated(penalty)
        rows.append(
            {
                "penalty_no": number,
                "window_hours": stated.window_hours,
                "penalty_pct": stated.penalty_pct,
                "penalty_nights": stated.penalty_nights,
                "is_refundable": stated.is_refundable,
                "start_at": stated.start_at,
                "start_offset": _offset(penalty.penalty_start_date),
                "end_at": stated.end_at,
                "end_offset": _offset(penalty.penalty_end_date),
                "amount": stated.amount,
            }
        )
    return rows


def promotion_rows(promotions: Sequence[Promotion]) -> list[dict[str, Any]]:
    """Return the promotions of a product: columns of `quote_promotion`."""
    return [
        {"promotion_no": number, "promo_type": each.promo_type, "description": each.description}
        for number, each in enumerate(promotions)
    ]


def _stated(penalty: DetailCancelPenalty) -> Penalty:
    return Penalty(
        penalty.penalty_window,
        _number(penalty.penalty_percentage),
        _number(penalty.penalty_nights),
        penalty.refundable,
        _instant(penalty.penalty_start_date),
        _instant(penalty.penalty_end_date),
        money(penalty.penalty_in_amount),
    )


def _number(value: Decimal | None) -> float | None:
    number = None if value is None else float(value)
    return number if number is not None and math.isfinite(number) else None


def _instant(moment: datetime | None) -> datetime | None:
    try:
        return None if moment is None else moment.astimezone(UTC)
    except OverflowError:
        return None


def _offset(moment: datetime | None) -> str | None:
    """Return the offset as the document's format writes it: zero is Z."""
    if moment is None:
        return None
    return "Z" if not moment.utcoffset() else moment.isoformat()[-6:]
