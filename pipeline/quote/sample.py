"""Which stored offers are quoted: a sample that follows from a seed, of what is on sale in the published file."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

from pipeline.domain.codes import MARKETS
from pipeline.domain.errors import InputError
from pipeline.domain.search import Operation, ProductType, Search
from pipeline.domain.stay import Party, Stay
from pipeline.relations import relation
from pipeline.warehouse import query_published

Identity = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """How many offers are quoted, and of which markets and properties; empty: of all. Equal seeds choose alike."""

    size: int
    markets: tuple[str, ...] = ()
    property_ids: tuple[int, ...] = ()
    seed: int = 1

    def __post_init__(self) -> None:
        unknown = [market for market in self.markets if market not in MARKETS]
        if unknown:
            raise InputError(f"{unknown[0]!r} is not one of the 36 market codes.", kept="Nothing was asked.")
        if self.size < 1:
            raise InputError(f"A sample has at least one offer, not {self.size}.", kept="Nothing was asked.")


@dataclass(frozen=True, slots=True)
class ChosenRoom:
    """The product of one room of the party."""

    offer_key: int
    offer_no: int
    room_stay_id: int | None
    product_id: int
    total: Decimal


@dataclass(frozen=True, slots=True)
class ChosenOffer:
    """A stored offer that is to be quoted, as the search told of it: one product for each room of the party."""

    source: str
    property_id: int
    market: str
    product_type: str
    check_in: date
    nights: int
    party: str
    currency_asked: str | None
    room_id: int | None
    board_id: int | None
    policy_key: int
    currency: str
    sweep_id: str
    search_id: int
    searched_at: datetime
    rooms: tuple[ChosenRoom, ...]
    sent_property_id: int

    @property
    def total(self) -> Decimal:
        """What all rooms cost together."""
        return sum((room.total for room in self.rooms), Decimal(0))

    @property
    def identity(self) -> Identity:
        """What makes two stored offers the same one, whichever answer told of them."""
        stay = (self.property_id, self.market, self.product_type, self.check_in, self.nights, self.party)
        room_stays = tuple(room.room_stay_id for room in self.rooms)
        return (*stay, self.currency_asked, self.currency, room_stays, self.room_id, self.board_id, self.policy_key)

    def search(self) -> Search:
        """Return the search that a quote of this offer repeats."""
        return Search(
            number=0,
            operation=Operation.QUOTE,
            market=self.market,
            product_type=ProductType(self.product_type),
            stay=Stay.of(self.check_in, self.nights),
            party=Party.parse(self.party),
            currency=self.currency_asked,
            property_ids=(self.sent_property_id,),
        )


_FIELDS = ", ".join(f"sample.{field.name}" for field in fields(ChosenOffer))
_WANTED = (
    "SELECT $today::DATE AS today, $seed::BIGINT AS seed, $size::BIGINT AS size, "
    "$markets::VARCHAR[] AS markets, $property_ids::BIGINT[] AS property_ids"
)


def choose(
    published_file: Path,
    sample: Sample,
    today: date,
    *,
    never: Collection[Identity] = (),
    asked_before: Collection[tuple[str, Identity]] = (),
) -> list[ChosenOffer]:
    """Return the offers of a sample in the order of its seed.

    Offers in `never` are left out, and so are those of the same sweep in `asked_before`. Raises InputError where
    nothing is published.
    """
    chosen = relation("staging", "quote_sample").sql
    query = f"WITH wanted AS ({_WANTED}) SELECT {_FIELDS} FROM ({chosen}) AS sample"  # noqa: S608 - our own names
    result = query_published(
        published_file,
        query,
        {
            "today": today,
            "seed": sample.seed,
            "size": sample.size + len(never) + len(asked_before),
            "markets": list(sample.markets),
            "property_ids": list(sample.property_ids),
        },
    )
    names = [column[0] for column in result.description]
    told = (dict(zip(names, row, strict=True)) for row in result.fetchall())
    offers = (ChosenOffer(**row | {"rooms": tuple(ChosenRoom(**room) for room in row["rooms"])}) for row in told)
    fresh = [
        offer
        for offer in offers
        if offer.identity not in never and (offer.sweep_id, offer.identity) not in asked_before
    ]
    return fresh[: sample.size]
