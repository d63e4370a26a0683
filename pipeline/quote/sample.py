"""Which stored offers are quoted: a sample of what is on sale, determined by a seed."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

from pipeline.domain.codes import A_MARKET, MARKETS
from pipeline.domain.errors import NothingSent
from pipeline.domain.search import Operation, ProductType, Search
from pipeline.domain.stay import Party, Stay
from pipeline.lake.database import query_published, rows_of
from pipeline.lake.relations import relation

Identity = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """How many offers are quoted, and in which markets and properties (empty: all). Equal seeds choose equally."""

    size: int
    markets: tuple[str, ...] = ()
    property_ids: tuple[int, ...] = ()
    seed: int = 1

    def __post_init__(self) -> None:
        unknown = [market for market in self.markets if market not in MARKETS]
        if unknown:
            raise NothingSent(
                f"{unknown[0]!r} is not {A_MARKET}.", hint='List them: nightaudit query "FROM ref.market"'
            )
        if self.size < 1:
            raise NothingSent(f"A sample needs at least one offer, not {self.size}.", hint="Raise its size.")


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
    """A stored offer to be quoted, with one product for each room of the party."""

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
        """Cost of all rooms."""
        return sum((room.total for room in self.rooms), Decimal(0))

    @property
    def identity(self) -> Identity:
        """Equal for stored offers that are the same one, from whichever answer.

        A branded property is quoted under its unbranded id, so the id that is sent counts.
        """
        room_stays = tuple(room.room_stay_id for room in self.rooms)
        return (*self._stay, self.currency, room_stays, self.room_id, self.board_id, self.policy_key)

    @property
    def identities(self) -> tuple[Identity, Identity]:
        """The identity, and the content of the quote: of offers that share one of the two, only one is quoted.

        The first stays the same if a product id changes, the second if a room or a policy is stated in two ways.
        """
        return self.identity, (*self._stay, tuple(room.product_id for room in self.rooms))

    @property
    def _stay(self) -> Identity:
        asked = (self.market, self.product_type, self.check_in, self.nights, self.party, self.currency_asked)
        return (self.sent_property_id, *asked)

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
    """Return the offers of a sample in the order of its seed, each quote once.

    Offers with an identity in `never` are left out, and those in `asked_before` of the same sweep. Raises InputError if
    nothing is published.
    """
    # Most offers share an identity with none, or with the other property of an opaque pair.
    most = 2 * (sample.size + len(never) + len(asked_before))
    while True:
        sampled = _sampled(published_file, sample, today, most)
        fresh = _fresh(sampled, never, asked_before)
        if len(fresh) >= sample.size or len(sampled) < most:
            return fresh[: sample.size]
        most *= 4


def _fresh(
    sampled: Iterable[ChosenOffer], never: Collection[Identity], asked_before: Collection[tuple[str, Identity]]
) -> list[ChosenOffer]:
    fresh, chosen = [], set[Identity]()
    for offer in sampled:
        if any(each in never or each in chosen or (offer.sweep_id, each) in asked_before for each in offer.identities):
            continue
        chosen.update(offer.identities)
        fresh.append(offer)
    return fresh


def _sampled(published_file: Path, sample: Sample, today: date, most: int) -> list[ChosenOffer]:
    """Return up to `most` offers in the order of the seed."""
    chosen = relation("staging", "quote_sample").sql
    query = f"WITH wanted AS ({_WANTED}) SELECT {_FIELDS} FROM ({chosen}) AS sample"  # noqa: S608 - our own names
    wanted = {"markets": list(sample.markets), "property_ids": list(sample.property_ids)}
    result = query_published(published_file, query, {"today": today, "seed": sample.seed, "size": most, **wanted})
    return [
        ChosenOffer(**row | {"rooms": tuple(ChosenRoom(**room) for room in row["rooms"])}) for row in rows_of(result)
    ]
