"""Promotions: three kinds, honest by construction, and how they are written."""

from typing import Final, NamedTuple

import msgspec

from pipeline.sandbox.world.hashes import mix

VALUE_ADD, DISCOUNT_OFF, FREE_NIGHT = 0, 1, 2

# The document names the kinds, not how they are spelled on the wire, so properties spell them differently.
_SPELLING: Final = (
    ("Value Add", "Discount Off", "Free Night"),
    ("VALUE_ADD", "DISCOUNT_OFF", "FREE_NIGHT"),
    ("value add", "discount off", "free night"),
)
_GIFTS: Final = ("Free airport transfer", "Late check-out until 14:00", "Welcome drink", "Free parking")
_PERCENTS: Final = (5, 10, 15, 20, 25, 30)
# Stay this many nights, pay for one fewer.
_FREE_AT: Final = (3, 4, 7)


class Offer(NamedTuple):
    """What a promotion takes off: `share` of the price before it, and the percentage stated for it."""

    kind: int
    share: float
    stated_percent: int | float
    written: msgspec.Raw


def _encode(kind: int, description: str, spelling: int) -> dict[str, str]:
    return {"promoType": _SPELLING[spelling][kind], "description": description}


def is_running(key: int, epoch: int) -> bool:
    """Tell whether a room's price is promoted in this epoch of its price path.

    At least two epochs (32 nights or more) without a promotion lie between two of them, so that the reference
    price has been charged in the 30 days before a promotion begins.
    """
    return epoch % 3 == key % 3 and mix(key, epoch, 21) % 100 < 65


def gift_of(room_salt: int, spelling: int) -> msgspec.Raw | None:
    """Return the lasting value add of a room, None for most rooms. It leaves the price alone."""
    drawn = mix(room_salt, 22) % 100
    if drawn >= 30:
        return None
    return msgspec.Raw(msgspec.json.encode([_encode(VALUE_ADD, _GIFTS[drawn % 4], spelling)]))


def price_offer(key: int, epoch: int, nights: int, spelling: int, with_gift: bool) -> Offer | None:
    """Return the discount of a promoted epoch; None if a free night does not apply to so short a stay."""
    drawn = mix(key, epoch, 23)
    if drawn % 10 < 7:
        percent = _PERCENTS[drawn // 10 % len(_PERCENTS)]
        return discount(percent, spelling, f"{percent}% off this stay", with_gift)
    stay = _FREE_AT[drawn // 10 % len(_FREE_AT)]
    if nights < stay:
        return None
    text = f"Stay {stay} nights, pay {stay - 1}"
    free = nights // stay
    written = [_encode(FREE_NIGHT, text, spelling)]
    return Offer(FREE_NIGHT, free / nights, round(100 * free / nights, 2), msgspec.Raw(msgspec.json.encode(written)))


def discount(percent: int, spelling: int, text: str, with_gift: bool = False) -> Offer:
    """Return a discount of `percent`, with a value add as well if `with_gift`."""
    written = [_encode(DISCOUNT_OFF, text, spelling)]
    if with_gift:
        written.append(_encode(VALUE_ADD, _GIFTS[percent % 4], spelling))
    return Offer(DISCOUNT_OFF, percent / 100, percent, msgspec.Raw(msgspec.json.encode(written)))
