"""A quoted product as rows of the tables, with the same columns as a stored offer, its penalties and promotions."""

from dataclasses import asdict
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from pipeline.domain import keys
from pipeline.domain.penalties import Penalty, free_cancel_hours, free_cancel_until, refundability
from pipeline.domain.tables import MONEY_SCALE
from pipeline.supplier import wire
from pipeline.supplier.date_times import instant_of

_UNIT = Decimal(1).scaleb(-MONEY_SCALE)
_LARGEST = Decimal(10) ** (18 - MONEY_SCALE)
_NO_BOARD, _NO_CHARGE, _NO_FEES = wire.Board(), wire.Charge[Decimal](), wire.ExcludedCharges[Decimal]()

_decode_penalties = msgspec.json.Decoder(list[wire.Penalty[Decimal]] | None).decode


def money(value: Decimal | None) -> Decimal | None:
    """Return an amount that fits the tables exactly, or None."""
    if value is None or not value.is_finite() or abs(value) >= _LARGEST:
        return None
    try:
        fitted = value.quantize(_UNIT)
    except InvalidOperation:
        return None
    return fitted if fitted == value else None


def total_of(product: wire.DetailProduct[Decimal]) -> Decimal | None:
    """Return the total of a product; None: not stated, or it does not fit the tables."""
    return money(product.charges.total if product.charges else None)


def offer_row(room: wire.QuotedRoomStay, product: wire.DetailProduct[Decimal], currency: str | None) -> dict[str, Any]:
    """Return a room's product as columns of `quote_offer`."""
    board, charge = wire.decode_board(product.board) or _NO_BOARD, product.charges or _NO_CHARGE
    fees = charge.excluded or _NO_FEES
    stated = [_stated(penalty) for penalty in _decode_penalties(product.penalties) or ()]
    promotions = wire.decode_promotions(product.promotions) or ()
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
        "promotion_key": keys.promotion_key((each.promo_type, each.description) for each in promotions),
        "currency": currency,
        "total": money(charge.total),
        "pre_promo_total": money(charge.pre_promo_total),
        "discount_pct": charge.discount_pct,
        "floor": money(charge.floor),
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


def penalty_rows(product: wire.DetailProduct[Decimal]) -> list[dict[str, Any]]:
    """Return the penalties of a product as columns of `quote_penalty`."""
    return [
        {"penalty_no": number}
        | asdict(_stated(penalty))
        | {"start_offset": _moment(penalty.starts)[1], "end_offset": _moment(penalty.ends)[1]}
        for number, penalty in enumerate(_decode_penalties(product.penalties) or ())
    ]


def promotion_rows(product: wire.DetailProduct[Decimal]) -> list[dict[str, Any]]:
    """Return the promotions of a product as columns of `quote_promotion`."""
    return [
        {"promotion_no": number, "promo_type": each.promo_type, "description": each.description}
        for number, each in enumerate(wire.decode_promotions(product.promotions) or ())
    ]


def _stated(penalty: wire.Penalty[Decimal]) -> Penalty:
    terms = (penalty.window_hours, penalty.penalty_pct, penalty.penalty_nights, penalty.is_refundable)
    return Penalty(*terms, _moment(penalty.starts)[0], _moment(penalty.ends)[0], money(penalty.amount))


def _moment(text: str | None) -> tuple[datetime | None, str | None]:
    return (None if text is None else instant_of(text)) or (None, None)
