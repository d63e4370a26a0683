"""The planner: a sweep spec, property ids and a date become searches, in one order, by arithmetic.

A plan is never held. Its searches are numbered from 0, outermost operation, then market, batch of properties, product
type, party, currency, nights and check-in: neighbours request the same properties. Any number can be turned into
its search, and any stretch streamed, without walking through what comes before it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import islice, product
from typing import Self

from pipeline.domain.errors import SpecError
from pipeline.domain.search import Operation, ProductType, Search
from pipeline.domain.shards import Partition
from pipeline.domain.stay import Party, Stay
from pipeline.spec.model import Stays, SweepSpec
from pipeline.spec.values import Anchor, check_in_problem

# Raised whenever the same spec, ids and date would give other numbers: a sweep is resumed by the version it began with.
PLAN_VERSION = 1


@dataclass(frozen=True, slots=True)
class PlanCounts:
    """How much a plan requests."""

    cells: int
    searches: int
    cells_by_operation: dict[Operation, int]
    searches_by_operation: dict[Operation, int]


def check_ins(stays: Stays, snapshot_date: date) -> list[date]:
    """Return the check-in dates to request on `snapshot_date`, ascending; explicit ones that have passed are dropped.

    Raises SpecError that names every explicit date that is too far away, or if no date is left.
    """
    explicit = stays.check_in or ()
    if problems := [problem for day in explicit if (problem := check_in_problem(day, snapshot_date))]:
        raise SpecError(
            "These dates in stays.check_in of the sweep spec cannot be searched:\n"
            + "\n".join(f"  {each}" for each in problems),
            hint="Remove these dates, or use [[stays.horizon]], which moves with the snapshot.",
        )
    leads = (snapshot_date + timedelta(days=lead) for lead in _lead_days(stays, snapshot_date))
    days = sorted({*leads, *(day for day in explicit if day > snapshot_date)})
    if not days:
        raise SpecError(
            f"Every check-in of the sweep spec has passed: the snapshot date is {snapshot_date} (error 1014).",
            hint="Add later dates to stays.check_in, or use [[stays.horizon]], which moves with the snapshot.",
        )
    return days


def passed_check_ins(stays: Stays, snapshot_date: date) -> list[date]:
    """Return the explicit check-in dates that are no longer requested, ascending."""
    return sorted(day for day in stays.check_in or () if day <= snapshot_date)


def _lead_days(stays: Stays, snapshot_date: date) -> Iterator[int]:
    begins_after = 0
    for horizon in stays.horizon:
        every = horizon.every_days
        # The calendar's days are those whose ordinal is a multiple of `every`, whatever the snapshot.
        passed = (snapshot_date.toordinal() + begins_after) % every if stays.anchor is Anchor.CALENDAR else 0
        yield from range(begins_after + every - passed, horizon.to_days + 1, every)
        begins_after = horizon.to_days


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """A plan's axes. Holds ids, parties and stays once each, and shares them between all searches."""

    markets: tuple[str, ...]
    product_types: tuple[ProductType, ...]
    parties: tuple[Party, ...]
    stays: tuple[Stay, ...]
    currencies: dict[str, tuple[str | None, ...]]
    # Ids and how many of them a search holds.
    properties: dict[Operation, tuple[tuple[int, ...], int]]
    partitions: tuple[Partition, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", tuple(self._partitions()))

    @classmethod
    def of(
        cls, spec: SweepSpec, property_ids: Iterable[int], snapshot_date: date, detail_ids: Iterable[int] | None = None
    ) -> Self:
        """Return the plan of `spec` for these properties. Raises SpecError for a check-in that cannot be requested.

        `detail_ids` are those that rules have chosen for single searches; None: the spec has no rules.
        """
        ask = spec.ask
        ids = tuple(sorted(set(property_ids)))
        single = ids[: ask.single_properties] if detail_ids is None else tuple(sorted(set(detail_ids)))
        held = {Operation.MULTI: (ids, ask.batch), Operation.SINGLE: (single, 1)}
        days = check_ins(spec.stays, snapshot_date)
        return cls(
            markets=ask.markets,
            product_types=ask.product_types,
            parties=ask.parties,
            stays=tuple(Stay.of(day, nights) for nights in sorted(spec.stays.nights) for day in days),
            currencies={market: ask.currencies_of(market) for market in ask.markets},
            properties={operation: held[operation] for operation in ask.operations},
        )

    def searches(self, start: int = 0, stop: int | None = None) -> Iterator[Search]:
        """Stream the searches numbered `start` to `stop - 1`; numbers outside the plan are left out."""
        for partition in self.partitions:
            first = max(start, partition.start)
            last = partition.stop if stop is None else min(stop, partition.stop)
            if first < last:
                yield from self._stretch(partition, first, last)

    def search_at(self, number: int) -> Search:
        """Return the search of that number. Raises IndexError if the plan has none."""
        for search in self.searches(number, number + 1):
            return search
        raise IndexError(f"the plan has no search {number}")

    def counts(self) -> PlanCounts:
        """Return how much the plan requests."""
        searches = dict.fromkeys(self.properties, 0)
        cells = dict.fromkeys(self.properties, 0)
        for partition in self.partitions:
            searches[partition.operation] += partition.searches
            cells[partition.operation] += self.cells_of(partition)
        return PlanCounts(sum(cells.values()), sum(searches.values()), cells, searches)

    def cells_of(self, partition: Partition) -> int:
        """Return how many cells the searches of a partition cover."""
        ids, _ = self.properties[partition.operation]
        return len(ids) * self._questions_of(partition.market)

    def _questions_of(self, market: str) -> int:
        """Return how many searches one batch takes in `market`."""
        return len(self.product_types) * len(self.parties) * len(self.currencies[market]) * len(self.stays)

    def _partitions(self) -> Iterator[Partition]:
        first = 0
        for operation, (ids, batch) in self.properties.items():
            for market in self.markets:
                questions = self._questions_of(market)
                size = -(-len(ids) // batch) * questions
                yield Partition(operation, market, first, first + size)
                first += size

    def _stretch(self, partition: Partition, first: int, last: int) -> Iterator[Search]:
        operation, market = partition.operation, partition.market
        ids, size = self.properties[operation]
        currencies = self.currencies[market]
        per_batch = self._questions_of(market)
        while first < last:
            batch, skipped = divmod(first - partition.start, per_batch)
            stop = min(last, first + per_batch - skipped)
            property_ids = ids[batch * size : (batch + 1) * size]
            questions = product(self.product_types, self.parties, currencies, self.stays)
            numbered = zip(range(first, stop), islice(questions, skipped, None), strict=False)
            for number, (product_type, party, currency, stay) in numbered:
                yield Search(number, operation, market, product_type, stay, party, currency, property_ids)
            first = stop
