"""Which failures are retried, and after how long.

A plain loop in the client does the trying. stamina retries on exceptions, with a clock and a random source of its
own and one wait for one caller; here a failure is a value, Retry-After holds up the whole sweep and not only the
search that met it, and a test passes its own time and chance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random

from pipeline.supplier.answer import Failure

# Not among them: what would only come back the same (too large, an unknown status).
RETRIED = frozenset(
    {
        Failure.UNREACHABLE,
        Failure.CONNECTION,
        Failure.TIMEOUT,
        Failure.TRUNCATED,
        Failure.NOT_JSON,
        Failure.SERVER_ERROR,
        Failure.THROTTLED,
        Failure.NO_TOKEN,
        Failure.REDIRECT,
    }
)

# Every search would meet these, so all of them wait and not only the one that did.
CONCERNS_THE_SWEEP = frozenset({Failure.THROTTLED, Failure.NO_TOKEN})

# A night is short: a longer Retry-After is cut to this, and the attempts run out instead.
RETRY_AFTER_CAP_SECONDS = 300.0


@dataclass(frozen=True)
class Backoff:
    """Waits that double from attempt to attempt; half of each is chance, so that searches part company."""

    first_seconds: float = 0.5
    cap_seconds: float = 30.0
    chance: Random = field(default_factory=Random)

    def seconds(self, attempts: int) -> float:
        """Return the wait after `attempts` attempts, the first being 1."""
        # The exponent is bounded because 2.0 ** 1024 is an error, not infinity.
        longest = min(self.first_seconds * 2.0 ** min(attempts - 1, 64), self.cap_seconds)
        return longest * (0.5 + self.chance.random() / 2)


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """Return the wait that a Retry-After header asks for: 0 to the cap, or None where there is none to be read.

    `value` is a number of seconds or an HTTP date; a date in the past means 0.
    """
    text = (value or "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        # Nine digits are thirty years; more would only make a larger number of the same meaning.
        return min(float(text[:9]), RETRY_AFTER_CAP_SECONDS)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    # A date with the zone -0000 comes without one; HTTP dates are always UTC.
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max((until - now).total_seconds(), 0.0), RETRY_AFTER_CAP_SECONDS)
