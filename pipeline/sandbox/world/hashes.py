"""Deterministic numbers: every choice of the sandbox depends on these functions alone, on every platform."""

from typing import Final, TypeVar

T = TypeVar("T")

_MASK: Final = (1 << 64) - 1


def mix(a: int, b: int = 0, c: int = 0, d: int = 0) -> int:
    """Return 64 well-mixed bits of up to four integers.

    Python's own `hash` is not promised to stay the same between versions, and `random.Random` is too slow to
    start for every room of every answer.
    """
    x = (
        a * 0x9E3779B97F4A7C15 + b * 0xC2B2AE3D27D4EB4F + c * 0x165667B19E3779F9 + d * 0xD6E8FEB86659FD93
    ) + 0x27D4EB2F165667C5 & _MASK
    x ^= x >> 32
    x = x * 0xFF51AFD7ED558CCD & _MASK
    x ^= x >> 29
    x = x * 0xC4CEB9FE1A85EC53 & _MASK
    return x ^ (x >> 32)


def mix_text(text: str) -> int:
    """Return 64 well-mixed bits of a text."""
    content = text.encode()
    mixed = mix(len(content))
    for start in range(0, len(content), 8):
        mixed = mix(mixed, int.from_bytes(content[start : start + 8], "big"))
    return mixed


class Dice:
    """A short stream of deterministic choices, for building one property."""

    def __init__(self, *parts: int) -> None:
        self._state = mix(*parts)
        self._drawn = 0

    def below(self, limit: int) -> int:
        """Return an integer from 0 to limit - 1."""
        self._drawn += 1
        return mix(self._state, self._drawn) % limit

    def between(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        return low + self.below(high - low + 1)

    def chance(self, per_mille: int) -> bool:
        """Return True in `per_mille` of 1000 cases."""
        return self.below(1000) < per_mille

    def pick(self, items: tuple[T, ...]) -> T:
        """Return one of the items."""
        return items[self.below(len(items))]

    def weighted(self, weights: tuple[int, ...]) -> int:
        """Return an index, each as likely as its weight."""
        drawn = self.below(sum(weights))
        for index, weight in enumerate(weights):
            drawn -= weight
            if drawn < 0:
                return index
        return len(weights) - 1
