"""What each key of the faults does, for the help of `nightaudit sandbox`."""

from collections.abc import Mapping
from typing import Final

MEANINGS: Final[Mapping[str, str]] = {
    "status_500_rate": "share of searches and quotes that get a 500",
    "status_503_rate": "share answered with 503",
    "rate_429": "share answered with 429: too many requests",
    "reset_rate": "share reset before the first byte",
    "truncate_rate": "share whose body ends half-way",
    "hang_rate": "share without an answer for hang_s seconds",
    "garbage_rate": "share that breaks a careless reader",
    "garbage_kinds": "kinds of garbage, as a list (all)",
    "retry_after_s": "Retry-After of 429 and 503, in s; null: none (1)",
    "retry_after_as_date": "write Retry-After as a date (false)",
    "latency_ms": "delay of every answer, in milliseconds (0)",
    "latency_jitter_ms": "random delay on top of it (0)",
    "hang_s": "how long a hanging request waits, in seconds (30)",
    "requests_per_second": "more than these get a 429; null: any (null)",
    "poisoned_property_ids": "a search with one of these always answers 500",
    "unreadable_property_ids": "a search with one of these never answers JSON",
    "fail_next": "how many of the next fail with fail_next_with (0)",
    "fail_next_with": "the kind of fault of these (status_500)",
    "token_fail_next": "how many of the next token requests fail (0)",
    "expire_tokens": "make all earlier tokens invalid, once (false)",
    "down": "reset every connection, for tokens too (false)",
    "schedule": 'kind of fault by number of request: {"3": "hang"}',
    "by": 'what rates depend on: "number" or "content"',
    "redirect_to": "where a redirect leads",
    "bomb_mb": "unpacked size of a compressed bomb, in MB (256)",
    "huge_mb": "size of a huge body, in MB (128)",
}


def faults_said() -> str:
    """Return the keys with what each does, a line each, as click prints text that it must not wrap."""
    width = max(map(len, MEANINGS))
    lines = [f"  {key:<{width}}  {meaning}" for key, meaning in MEANINGS.items()]
    return "\n".join(["\b", "Keys of --faults, with what each does (and its default):", *lines])
