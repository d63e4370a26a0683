"""What is raised when the Redis of NIGHTAUDIT_RATE_STORE does not answer, and how long a process waits for it."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pipeline.domain.errors import SupplierError

logger = logging.getLogger(__name__)

# How long a process waits for a store that it has used before, and between two tries.
PATIENCE_SECONDS = 180.0
_TRY_SECONDS = 0.5
# The stores that have answered this process. A worker of a cluster opens a client for each block of searches.
_ANSWERED: set[str] = set()


class RateStoreAway(SupplierError):
    """The store of the shared rate could not be reached: nothing may be sent without it."""

    again_after_seconds: float | None = None
    """After how long the caller should ask again; None: not at all."""


class RateStoreRefused(SupplierError):
    """The store of the shared rate refuses what is asked of it, so waiting does not help."""


class Patience:
    """How long a process waits for the store at `address`: not at all if it has never answered this process."""

    def __init__(
        self, address: str, seconds: float = PATIENCE_SECONDS, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._address = address
        self._seconds = seconds
        self._now = now
        self._away_since: float | None = None

    def answered(self) -> bool:
        """Record that the store has answered; return whether it was away before."""
        was_away, self._away_since = self._away_since is not None, None
        _ANSWERED.add(self._address)
        return was_away

    def seconds(self, away: RateStoreAway) -> float:
        """Return how long to wait before the next try. Raises `away` if there is to be none."""
        if self._address not in _ANSWERED:
            raise away
        if self._away_since is None:
            self._away_since = self._now()
            logger.warning("%s Nothing is sent until it answers.", away.message)
        if self._now() - self._away_since >= self._seconds:
            raise away
        return _TRY_SECONDS


@contextmanager
def told_as_ours() -> Iterator[None]:
    """Raise errors of the store's client as RateStoreAway or RateStoreRefused, without their text.

    It may hold a password.
    """
    from redis import exceptions

    kept = "Answers that have landed are kept."
    try:
        yield
    except (exceptions.RedisError, OSError) as error:
        name = type(error).__name__
        # A server that fails over, or is full, answers again.
        passing = (
            OSError,
            exceptions.ConnectionError,
            exceptions.TimeoutError,
            exceptions.ReadOnlyError,
            exceptions.MasterDownError,
            exceptions.ClusterDownError,
            exceptions.OutOfMemoryError,
        )
        if isinstance(error, passing) and not isinstance(error, exceptions.AuthenticationError):
            raise RateStoreAway(
                f"The Redis server of NIGHTAUDIT_RATE_STORE could not be reached ({name}).",
                kept=kept,
                hint="Check that it runs, and the address in NIGHTAUDIT_RATE_STORE: rediss:// needs a server with TLS. "
                "Without NIGHTAUDIT_RATE_STORE, each process limits its own rate.",
            ) from None
        raise RateStoreRefused(
            f"The Redis server of NIGHTAUDIT_RATE_STORE refuses to keep the rate ({name}).",
            kept=kept,
            hint="Check user, password and number of the database in NIGHTAUDIT_RATE_STORE, and what this user may do. "
            "A Redis Cluster cannot be used.",
        ) from None
