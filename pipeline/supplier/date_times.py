"""Date-times as the supplier's document writes them: `yyyy-MM-dd'T'HH:mm:ssXXX`."""

import re
from datetime import UTC, datetime

# The offset at the end.
_OFFSET = re.compile(r".*?(Z|z|[+-][0-9:]+)$")


def instant_of(text: str) -> tuple[datetime, str] | None:
    """Return the instant in UTC and the offset as sent; None: it is not a date-time with an offset."""
    try:
        moment = datetime.fromisoformat(text)
        instant = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return None if moment.tzinfo is None else (instant, _OFFSET.sub(r"\1", text))
