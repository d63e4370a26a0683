"""A request as the sandbox understood it, after validation."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from pipeline.sandbox.world.documented import Operation
from pipeline.sandbox.world.hashes import mix, mix_text


class Guests(NamedTuple):
    """The guests of one room; ages in years."""

    adults: int
    ages: tuple[int, ...]

    @property
    def people(self) -> int:
        """Return how many people sleep in the room."""
        return self.adults + len(self.ages)


class Search(NamedTuple):
    """One valid request. `currency` None = the property's own; `product_ids` are given in quotes only."""

    operation: Operation
    property_ids: tuple[int, ...]
    check_in: date
    check_out: date
    market: str
    currency: str | None
    rate_type: str | None
    product_type: str
    parties: tuple[Guests, ...]
    product_ids: tuple[int, ...] = ()

    @property
    def nights(self) -> int:
        """Return the length of the stay."""
        return (self.check_out - self.check_in).days

    def fingerprint(self) -> int:
        """Return 64 bits of everything asked but the operation, the properties and the products."""
        text = "|".join(
            (
                self.market,
                self.product_type,
                self.currency or "",
                ";".join(f"{guests.adults}:{','.join(map(str, guests.ages))}" for guests in self.parties),
            )
        )
        return mix(mix_text(text), self.check_in.toordinal(), self.check_out.toordinal())
