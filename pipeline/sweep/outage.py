"""When failures in a row mean an outage, and the probes that show what is down: a batch, a market or the supplier.

A probe searches one property, and its answer is not landed. A market that is out (all its searches fail while others
are answered) is still swept: each search is sent once, and its halves only if one of its properties is answered.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Set
from dataclasses import replace

from pipeline.domain.errors import CHECK_SCOPES, NightauditError, NothingUsable, SupplierDown
from pipeline.domain.search import Operation, Search
from pipeline.plan import SweepPlan
from pipeline.process.failures import one_failure
from pipeline.supplier.answer import Answer
from pipeline.supplier.outcomes import Verdict, may_be_poisoned, outcome_of

# After this many failed searches in a row, each with its retries, over this many sets of properties with none in
# common, the supplier is down, or a market is, or every property of a batch is poisoned. `Probes` finds out which. One
# poisoned property can fail any number of searches, but they all have it in common.
GIVE_UP_AFTER = 20
GIVE_UP_AFTER_UNRELATED = 3

# The statuses of a request whose token is not accepted, or does not allow it.
_REFUSALS = frozenset({401, 403})


class Failures:
    """Searches that failed one after the other, with no success in between."""

    def __init__(self) -> None:
        self.count = 0
        # Sets of properties that failed and have none in common; a smaller one replaces a larger one.
        self._apart: list[frozenset[int]] = []
        # Failures that no property can have caused, such as a refused connection.
        self._unblamed = 0
        # Numbers of the first few planned searches that failed, completely or in part.
        self._numbers: set[int] = set()
        self._last: Answer | None = None
        # Where they failed, and with which statuses.
        self.places: set[Place] = set()
        self._statuses: set[int | None] = set()

    @property
    def are_outage(self) -> bool:
        """Whether they mean that the supplier is down."""
        return self.count >= GIVE_UP_AFTER and self._are_apart

    @property
    def are_outage_at_the_end(self) -> bool:
        """Whether they mean it once nothing is left to request: fewer are then enough."""
        return len(self._numbers) >= GIVE_UP_AFTER_UNRELATED and self._are_apart

    @property
    def may_be_outage(self) -> bool:
        """Whether there are any, and a few more could mean it. One poisoned property alone can fail forever."""
        return 0 < self.count < GIVE_UP_AFTER or self.are_outage

    @property
    def _are_apart(self) -> bool:
        return max(len(self._apart), self._unblamed) >= GIVE_UP_AFTER_UNRELATED

    def add(self, search: Search, answer: Answer) -> None:
        """Add a failed search."""
        self.count += 1
        self._last = answer
        self.places.add(place_of(search))
        self._statuses.add(answer.http_status)
        if len(self._numbers) < GIVE_UP_AFTER_UNRELATED:
            self._numbers.add(search.number)
        if not may_be_poisoned(answer):
            self._unblamed += 1
            return
        failed = frozenset(search.property_ids)
        touched = [known for known in self._apart if known & failed]
        if not touched:
            self._apart.append(failed)
        elif len(touched) == 1 and failed < touched[0]:
            self._apart[self._apart.index(touched[0])] = failed

    def error(self) -> NightauditError:
        """Return the error of an outage."""
        assert self._last is not None  # noqa: S101 - there are some
        if self._statuses <= _REFUSALS:
            statuses = " or ".join(sorted(str(status) for status in self._statuses))
            return NothingUsable(
                f"The supplier refused {self.count} searches in a row with HTTP {statuses}, and none was answered in "
                "any market: the token does not allow them.",
                kept="Answers that have landed are kept.",
                hint=CHECK_SCOPES,
            )
        detail = f" ({self._last.failure_detail})" if self._last.failure_detail else ""
        return SupplierDown(
            f"{self.count} searches in a row failed, and none was answered; the last failure: "
            f"{self._last.failure}{detail}.",
            hint="Check the supplier: nightaudit doctor.",
        )


logger = logging.getLogger(__name__)

# Probes of one market, each for a different property: if the supplier refuses half of them, one in sixteen markets
# seems out.
_SAMPLES = 4

# What fails as one: an operation in a market, as the plan's partitions are.
Place = tuple[Operation, str]


def place_of(search: Search) -> Place:
    """Return what fails together with a search if not only its properties do."""
    return search.operation, search.market


def samples_of(plan: SweepPlan) -> list[Search]:
    """Return probes of each operation and market, spread over its searches and their properties."""
    return [sample for partition in plan.partitions for sample in _spread(plan, partition.start, partition.stop)]


def _spread(plan: SweepPlan, start: int, stop: int) -> Iterator[Search]:
    if start == stop:
        return
    last = _SAMPLES - 1
    for number in range(_SAMPLES):
        search = plan.search_at(start + number * (stop - 1 - start) // last)
        ids = search.property_ids
        yield replace(search, property_ids=(ids[number * (len(ids) - 1) // last],))


class Probes:
    """Sends probes and remembers which markets are out. `ask` sends a search of one property."""

    def __init__(self, ask: Callable[[Search], Awaitable[Answer]], samples: Iterable[Search], at_once: int) -> None:
        self._ask = ask
        self._at_once = at_once
        self._samples: defaultdict[Place, list[Search]] = defaultdict(list)
        for sample in samples:
            self._samples[place_of(sample)].append(sample)
        # The last search of each place that was answered; the latest at the end.
        self._answered: dict[Place, Search] = {}
        self._out: set[Place] = set()

    def note(self, search: Search, verdict: Verdict) -> None:
        """Record a search that has not failed."""
        place = place_of(search)
        self._out.discard(place)
        if verdict is Verdict.ANSWERED:
            self._answered.pop(place, None)
            self._answered[place] = search

    async def is_out(self, search: Search) -> bool:
        """Whether a search failed because its market is out: one of its properties, searched alone, fails as well."""
        if place_of(search) not in self._out:
            return False
        answer = await self._answer_to(search, search.number)
        return outcome_of(answer).verdict is Verdict.FAILED

    async def is_anything_answered(self, failing: Set[Place]) -> bool:
        """Find out which of the `failing` markets are out; False if nothing is answered in the others either."""
        alive = {place for place in failing - self._out if await self._is_place_answered(place)}
        if not alive and not await self._is_another_answered(failing):
            return False
        for operation, market in failing - alive - self._out:
            logger.warning(
                "Every search of %s-%s fails while others are answered. The remaining ones are sent once each, without "
                "splitting, until one is answered; their failed cells are marked.",
                operation,
                market,
            )
            self._out.add((operation, market))
        return True

    async def _is_place_answered(self, place: Place) -> bool:
        for search in self._questions(place):
            answer = await self._answer_to(search)
            if outcome_of(answer).verdict is not Verdict.FAILED:
                return True
            if not may_be_poisoned(answer):
                return False
        return False

    async def _is_another_answered(self, failing: Set[Place]) -> bool:
        """Send one probe to each other market, the latest answered first, until one is answered."""
        places = dict.fromkeys([*reversed(self._answered), *self._samples])
        # A market that failed may have been answered before; one more probe shows as much as another market's.
        others = [self._questions(place)[0] for place in places if place not in failing]
        for first in range(0, len(others), self._at_once):
            async with one_failure(), asyncio.TaskGroup() as group:
                asked = others[first : first + self._at_once]
                tasks = [group.create_task(self._answer_to(search)) for search in asked]
            answers = [task.result() for task in tasks]
            if any(outcome_of(answer).verdict is not Verdict.FAILED for answer in answers):
                return True
            if not all(may_be_poisoned(answer) for answer in answers):
                # Unreachable, or limiting the rate: every market would meet that.
                return False
        return False

    def _questions(self, place: Place) -> list[Search]:
        before = self._answered.get(place)
        return [*([before] if before else []), *self._samples[place]]

    async def _answer_to(self, search: Search, number: int = 0) -> Answer:
        one = replace(search, property_ids=(search.property_ids[number % len(search.property_ids)],))
        answer = await self._ask(one)
        verdict = outcome_of(answer).verdict
        if verdict is not Verdict.FAILED:
            self.note(one, verdict)
        return answer
