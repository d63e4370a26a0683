"""Ranges of property ids: a night is computed range by range, each within the memory of one process."""

from collections.abc import Sequence
from dataclasses import dataclass

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class PropertyRange:
    """Property ids from `first` to `last`, both included."""

    first: int = _LOWEST
    last: int = _HIGHEST

    @property
    def is_all(self) -> bool:
        """Whether no property is left out."""
        return self == ALL

    @property
    def condition(self) -> str:
        """The range as SQL over a column `property_id`."""
        return f"property_id BETWEEN {self.first} AND {self.last}"

    def meets(self, first: int, last: int) -> bool:
        """Whether it has an id in common with another range."""
        return self.first <= last and first <= self.last


ALL = PropertyRange()


def cut(offers: Sequence[tuple[int, float]], most_offers: int) -> list[PropertyRange]:
    """Cut properties, in the order of their ids and with their numbers of offers, into ranges."""
    starts, held = [_LOWEST], 0.0
    for property_id, number in offers:
        if held and held + number > most_offers:
            starts.append(property_id)
            held = 0.0
        held += number
    ends = [start - 1 for start in starts[1:]]
    return [PropertyRange(first, last) for first, last in zip(starts, [*ends, _HIGHEST], strict=True)]
