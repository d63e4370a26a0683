"""Search and cell: what a sweep requests, and the result of each."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from pipeline.domain.stay import Party, Stay

MAX_PROPERTIES_PER_SEARCH = 100

# A split search is numbered like a node of a binary heap: 1 is the whole batch, 2n and 2n + 1 are the halves of
# n. After seven splits, each of a hundred properties is alone, so a node stays below 256.
NODES_PER_SEARCH = 256


class Operation(StrEnum):
    """The supplier's operations; the value is the last part of the address."""

    MULTI = "multi"
    SINGLE = "single"
    QUOTE = "quote"

    @property
    def path(self) -> str:
        """Path of its address, below the supplier's base address."""
        return f"/v1/property/{self.value}"


class ProductType(StrEnum):
    """What is sold: the hotel alone, or the hotel inside a package."""

    HOTEL = "Hotel"
    PACKAGE = "Package"


class CellStatus(StrEnum):
    """How a planned cell ended. Each cell has exactly one status in a sweep."""

    OFFERED = "offered"
    NO_OFFER = "no_offer"
    ABSENT = "absent"
    REJECTED = "rejected"
    FAILED = "failed"
    NOT_SWEPT = "not_swept"


STATUSES = tuple(status.value for status in CellStatus)

# Of a cell that the supplier said something of that can be used.
ANSWERED = (CellStatus.OFFERED.value, CellStatus.NO_OFFER.value, CellStatus.ABSENT.value)


@dataclass(frozen=True, slots=True)
class Search:
    """One HTTP request: cells that differ only in the property.

    `number` counts the searches of a sweep from 0 in the order of the plan; `node` is 1 for a planned search and
    higher for the halves that it was split into.
    """

    number: int
    operation: Operation
    market: str
    product_type: ProductType
    stay: Stay
    party: Party
    currency: str | None
    property_ids: tuple[int, ...]
    node: int = 1

    @property
    def id(self) -> int:
        """The number that joins rows to their search: unique in a sweep, ascending with the plan."""
        return self.number * NODES_PER_SEARCH + self.node

    def at_node(self, node: int) -> Self:
        """Return the part of a planned search with this node."""
        part = self
        for half in f"{node:b}"[1:]:
            part = part.halves()[int(half)]
        return part

    def halves(self) -> tuple[Self, Self]:
        """Split a search of several properties into two that cover the same cells together."""
        middle = (len(self.property_ids) + 1) // 2
        first, second = self.property_ids[:middle], self.property_ids[middle:]
        return (
            replace(self, property_ids=first, node=2 * self.node),
            replace(self, property_ids=second, node=2 * self.node + 1),
        )
