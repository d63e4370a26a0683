"""Searches for one property each, which show what is down: a batch, a market or the supplier.

Their answers are not landed. A market that is out (each of its searches fails while others are answered) keeps being
asked, each search once: its halves only where one of its properties is answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Set
from dataclasses import replace

from pipeline.domain.search import Operation, Search
from pipeline.plan import SweepPlan
from pipeline.process.tasks import one_failure
from pipeline.supplier.answer import Answer
from pipeline.supplier.outcomes import Verdict, may_be_poisoned, outcome_of

logger = logging.getLogger(__name__)

# Of one market, each for another property: where the supplier refuses half of them, one in sixteen markets seems out.
_SAMPLES = 4

# What fails as one: an operation in a market, as the plan's partitions are.
Place = tuple[Operation, str]


def place_of(search: Search) -> Place:
    """Return what fails with a search where more than its properties do."""
    return search.operation, search.market


def samples_of(plan: SweepPlan) -> list[Search]:
    """Return single questions of each operation and market, spread over its searches and their properties."""
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
    """Asks single questions and remembers which markets are out. `ask` sends a search of one property."""

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
        """Take note of a search that has not failed."""
        place = place_of(search)
        self._out.discard(place)
        if verdict is Verdict.ANSWERED:
            self._answered.pop(place, None)
            self._answered[place] = search

    async def is_out(self, search: Search) -> bool:
        """Whether a search failed because its market is out: one of its properties, asked alone, fails as well."""
        if place_of(search) not in self._out:
            return False
        answer = await self._answer_to(search, search.number)
        return outcome_of(answer).verdict is Verdict.FAILED

    async def is_anything_answered(self, failing: Set[Place]) -> bool:
        """Find out which of the `failing` markets are out; False where nothing is answered in the others either."""
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
        """Ask one question of each other market, the latest answered first, until one is answered."""
        places = dict.fromkeys([*reversed(self._answered), *self._samples])
        # A market that failed may have been answered before; one question more tells as much as another market's.
        others = [self._questions(place)[0] for place in places if place not in failing]
        for first in range(0, len(others), self._at_once):
            async with one_failure(), asyncio.TaskGroup() as group:
                asked = others[first : first + self._at_once]
                tasks = [group.create_task(self._answer_to(search)) for search in asked]
            answers = [task.result() for task in tasks]
            if any(outcome_of(answer).verdict is not Verdict.FAILED for answer in answers):
                return True
            if not all(may_be_poisoned(answer) for answer in answers):
                # Away, or asking for patience: every market would meet that.
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
