"""Property, room and product ids: computed, never stored, and read back in constant time.

A share of the property ids is above 2**53, where a reader that converts them to a double loses the last digit.
"""

from typing import Final, NamedTuple

from pipeline.sandbox.world.hashes import mix

MAX_PROPERTIES: Final = 1 << 20

_ID_BITS: Final = 27
_ID_MASK: Final = (1 << _ID_BITS) - 1
_ID_STEP: Final = 0x5A3C1F5 | 1
_ID_STEP_BACK: Final = pow(_ID_STEP, -1, 1 << _ID_BITS)
_FIRST_ID: Final = 100_001
_BIG: Final = (1 << 53) + 1
_BIG_EVERY, _BIG_AT = 97, 41

# Opaque offers: of every 25 properties the eighth is branded and the ninth is the same property without its name.
_PAIR_EVERY, _BRANDED_AT = 25, 7


def property_id(seed: int, index: int) -> int:
    """Return the id of the property with this index (0 .. MAX_PROPERTIES - 1)."""
    scattered = (index * _ID_STEP + mix(seed, 11)) & _ID_MASK
    return _BIG + 2 * scattered if index % _BIG_EVERY == _BIG_AT else _FIRST_ID + scattered


def property_index(seed: int, identifier: int, count: int) -> int | None:
    """Return the index behind an id, or None if a world of `count` properties has no such id."""
    scattered = (identifier - _BIG) >> 1 if identifier >= _BIG else identifier - _FIRST_ID
    if not 0 <= scattered <= _ID_MASK:
        return None
    index = (scattered - mix(seed, 11)) * _ID_STEP_BACK & _ID_MASK
    return index if index < count and property_id(seed, index) == identifier else None


def property_ids(seed: int, count: int) -> list[int]:
    """Return the ids of a world; those of a smaller world are a prefix of those of a larger one."""
    if not 0 <= count <= MAX_PROPERTIES:
        raise ValueError(f"a world has 0 to {MAX_PROPERTIES} properties, not {count}")
    return [property_id(seed, index) for index in range(count)]


def branded_index(index: int) -> int | None:
    """Return the index of the branded twin of an unbranded property, None for any other."""
    return index - 1 if index % _PAIR_EVERY == _BRANDED_AT + 1 else None


def opaque_pairs(seed: int, count: int) -> list[tuple[int, int]]:
    """Return (branded id, unbranded id) of every opaque pair of a world."""
    return [
        (property_id(seed, index), property_id(seed, index + 1)) for index in range(_BRANDED_AT, count - 1, _PAIR_EVERY)
    ]


_LOW_BITS: Final = 36
_LOW_MASK: Final = (1 << _LOW_BITS) - 1
_HALF: Final = _LOW_BITS // 2
_HALF_MASK: Final = (1 << _HALF) - 1
_LOW_STEP: Final = 0x9E3779B97 | 1
_LOW_STEP_BACK: Final = pow(_LOW_STEP, -1, 1 << _LOW_BITS)
_SLOT_BITS, _CHECK_BITS = 11, 5
# Flipped in every packed product: no room has the last slot, so that no product ends up with the id 0.
_LAST_SLOT: Final = (1 << _SLOT_BITS) - 1
_CONTEXT_BITS: Final = 14
_NIGHT_MASK: Final = (1 << 11) - 1
# Set in every temporary id, so that none of them can be taken for a permanent one.
_PASSING: Final = 1 << 25


class ProductAddress(NamedTuple):
    """The content of a product id: the property, the product's position in it, and the night it is bound to."""

    property_index: int
    slot: int
    night_tag: int | None


def _check(seed: int, packed: int) -> int:
    return mix(seed, packed, 13) & ((1 << _CHECK_BITS) - 1)


def lasting_product_id(seed: int, index: int, slot: int) -> int:
    """Return the id of a product that always keeps it (below 2**36)."""
    packed = (index << _SLOT_BITS | slot) ^ _LAST_SLOT
    word = (packed << _CHECK_BITS | _check(seed, packed)) * _LOW_STEP & _LOW_MASK
    word = (word & _HALF_MASK) << _HALF | word >> _HALF
    return word * _LOW_STEP & _LOW_MASK


def night_tag(night: int) -> int:
    """Return the part of a night that fits into a temporary product id."""
    return night & _NIGHT_MASK


def passing_prefix(night: int, context: int) -> int:
    """Return what is added to a permanent id to make it valid for this night and this search only (above 2**53)."""
    upper = _PASSING | night_tag(night) << _CONTEXT_BITS | context & ((1 << _CONTEXT_BITS) - 1)
    return upper << _LOW_BITS


def read_product_id(seed: int, identifier: int) -> ProductAddress | None:
    """Return what a product id addresses, None if this sandbox cannot have issued it."""
    upper = identifier >> _LOW_BITS
    if identifier <= 0 or (upper and upper & ~(_PASSING - 1) != _PASSING):
        return None
    word = (identifier & _LOW_MASK) * _LOW_STEP_BACK & _LOW_MASK
    word = (word & _HALF_MASK) << _HALF | word >> _HALF
    word = word * _LOW_STEP_BACK & _LOW_MASK
    packed = word >> _CHECK_BITS
    if word & ((1 << _CHECK_BITS) - 1) != _check(seed, packed):
        return None
    packed ^= _LAST_SLOT
    tag = upper >> _CONTEXT_BITS & _NIGHT_MASK if upper else None
    return ProductAddress(packed >> _SLOT_BITS, packed & ((1 << _SLOT_BITS) - 1), tag)
