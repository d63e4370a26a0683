"""Stable hashes of policies and promotions. They are stored, so their definition never changes."""

from collections.abc import Iterable

import xxhash

NO_KEY = 0

PenaltyTerms = tuple[int | None, float | None, float | None, bool | None]


def policy_key(penalties: Iterable[PenaltyTerms]) -> int:
    """Return the hash of a set of penalties (window hours, percentage, nights, refundable); 0 for none.

    Order and repetition are ignored, and so are the exact dates and amounts of a detail answer: a policy has the same
    key in a list answer and in a detail answer.
    """
    return _key(sorted({"|".join(map(_text, terms)) for terms in penalties}))


def promotion_key(promotions: Iterable[tuple[str | None, str | None]]) -> int:
    """Return the hash of promotions (type, description) in their order; 0 for none."""
    return _key("|".join(map(_text, promotion)) for promotion in promotions)


def _key(parts: Iterable[str]) -> int:
    text = "\n".join(parts)
    if not text:
        return NO_KEY
    unsigned = xxhash.xxh3_64_intdigest(text.encode())
    return unsigned - (1 << 64) if unsigned >= 1 << 63 else unsigned


def _text(value: float | str | bool | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if value == "":
        # Differs from None, and from every other text.
        return "\\e"
    if isinstance(value, str):
        return value.replace("\\", "\\\\").replace("|", "\\p").replace("\n", "\\n")
    return str(value)
