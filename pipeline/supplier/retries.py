"""Which failures are retried, and after how long.

The client retries in a plain loop. stamina retries on exceptions, with its own clock and random source, and one wait
per caller; here a failure is a value, Retry-After holds up the complete sweep, and tests pass in time and chance.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random

from pipeline.supplier.answer import Failure

# All but those that would only fail the same way again.
RETRIED = frozenset(Failure) - {Failure.BODY_TOO_LARGE, Failure.UNEXPECTED_STATUS}

# Every search would fail like this, so all of them wait.
CONCERNS_THE_SWEEP = frozenset({Failure.THROTTLED, Failure.NO_TOKEN})

# A night is short: a longer Retry-After is cut to this, and the attempts run out instead.
RETRY_AFTER_CAP_SECONDS = 300.0


@dataclass(frozen=True)
class Backoff:
    """Waits that double from attempt to attempt; half of each is random, so that searches spread out."""

    first_seconds: float = 0.5
    cap_seconds: float = 30.0
    chance: Random = field(default_factory=Random)

    def seconds(self, attempts: int) -> float:
        """Return the wait after `attempts` attempts, the first being 1."""
        # The exponent is limited, as 2.0 ** 1024 is an error, not infinity.
        longest = min(self.first_seconds * 2.0 ** min(attempts - 1, 64), self.cap_seconds)
        return longest * (0.5 + self.chance.random() / 2)


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """Return the wait that a Retry-After header asks for, from 0 to the cap; None: it cannot be read.

    `value` is a number of seconds or an HTTP date; a date in the past means 0.
    """
    text = (value or "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        # Nine digits are thirty years, far beyond the cap.
        return min(float(text[:9]), RETRY_AFTER_CAP_SECONDS)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    # A date with the zone -0000 is parsed without one; HTTP dates are always UTC.
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max((until - now).total_seconds(), 0.0), RETRY_AFTER_CAP_SECONDS)
