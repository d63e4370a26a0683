"""When consecutive failures mean that the supplier is down."""

from __future__ import annotations

from pipeline.domain.errors import NightauditError, NothingUsable, SupplierDown
from pipeline.domain.search import Search
from pipeline.supplier.answer import Answer
from pipeline.supplier.outcomes import may_be_poisoned
from pipeline.sweep.probes import Place, place_of

# So many failed searches in a row, each with its retries, over so many sets of properties with none in common: the
# supplier is down, or a market is, or every property of a batch is poisoned. `probes` finds out which. One poisoned
# property can fail any number of searches, but they all have it in common.
GIVE_UP_AFTER = 20
GIVE_UP_APART = 3

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
        # Of the first few searches of the plan that failed, whether whole or in part.
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
        """Whether they mean it when nothing is left to ask: fewer are then enough."""
        return len(self._numbers) >= GIVE_UP_APART and self._are_apart

    @property
    def may_be_outage(self) -> bool:
        """Whether there are any, and a few more could mean it. One poisoned property alone can fail for ever."""
        return 0 < self.count < GIVE_UP_AFTER or self.are_outage

    @property
    def _are_apart(self) -> bool:
        return max(len(self._apart), self._unblamed) >= GIVE_UP_APART

    def add(self, search: Search, answer: Answer) -> None:
        """Add a failed search."""
        self.count += 1
        self._last = answer
        self.places.add(place_of(search))
        self._statuses.add(answer.http_status)
        if len(self._numbers) < GIVE_UP_APART:
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
                f"The supplier refused {self.count} searches in a row with HTTP {statuses}, and answered none in any "
                "market: the token does not allow them.",
                kept="Answers that have landed are kept.",
                hint="Ask the supplier which scopes these credentials have, set NIGHTAUDIT_SCOPES, and check that "
                "NIGHTAUDIT_BASE_URL and NIGHTAUDIT_AUTH_URL belong together.",
            )
        detail = f" ({self._last.failure_detail})" if self._last.failure_detail else ""
        return SupplierDown(
            f"The supplier failed {self.count} searches in a row and answered none; the last failure: "
            f"{self._last.failure}{detail}."
        )
