"""Faults on demand: which request fails, and how. Deterministic by seed and by request number or content."""

from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec

from pipeline.sandbox.world.hashes import mix, mix_text

GARBAGE_KINDS: Final = (
    "html_200", "empty_200", "bomb", "huge_body", "wrong_types", "extra_fields", "number_as_string",
    "duplicate_keys", "redirect", "invalid_utf8", "not_a_number", "deep_nesting", "both_keys",
    "other_error_shape", "bare_errors", "null_envelope", "empty_object", "cut_json", "error_200", "nested_error",
    "capital_error", "long_error", "late_error", "utf16_error", "error_beside", "error_in_property",
)  # fmt: skip
"""Answers that break a careless reader; see `garbage.spoil`."""

_BREAKDOWNS: Final = (
    "status_500", "status_503", "status_429", "reset", "reset_midway", "truncate", "truncate_chunked", "hang",
)  # fmt: skip
FAULT_KINDS: Final = (*_BREAKDOWNS, *GARBAGE_KINDS)
_SEARCHED: Final = 1 << 20


class FaultError(ValueError):
    """Impossible faults; the message says which key and why."""


class Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=False):
    """What goes wrong; by default nothing. Rates are shares of the searches and quotes, from 0 to 1."""

    status_500_rate: float = 0.0
    status_503_rate: float = 0.0
    rate_429: float = 0.0
    reset_rate: float = 0.0
    """Connection reset before the first byte."""
    truncate_rate: float = 0.0
    """Half of the announced body, then the end."""
    hang_rate: float = 0.0
    """No answer for `hang_s` seconds."""
    garbage_rate: float = 0.0
    garbage_kinds: tuple[str, ...] = GARBAGE_KINDS
    retry_after_s: int | None = 1
    """Retry-After of 429 and 503; None leaves the header out."""
    retry_after_as_date: bool = False
    latency_ms: float = 0.0
    latency_jitter_ms: float = 0.0
    hang_s: float = 30.0
    requests_per_second: float | None = None
    """Searches and quotes allowed in any one second; more are answered with 429."""
    poisoned_property_ids: tuple[int, ...] = ()
    """A search that contains one of them answers 500, every time."""
    unreadable_property_ids: tuple[int, ...] = ()
    """A search that contains one of them answers 200 with a body that is not JSON, every time."""
    fail_next: int = 0
    """The next N searches and quotes fail with `fail_next_with`."""
    fail_next_with: str = "status_500"
    token_fail_next: int = 0
    """The next N token requests answer 500."""
    expire_tokens: bool = False
    """Invalidates all tokens issued so far, once, when set."""
    down: bool = False
    """Every connection is reset, the token endpoint's too."""
    schedule: dict[str, str] = {}
    """Kind of fault by number of the search or quote, counted from "1" when the faults are set."""
    by: Literal["number", "content"] = "number"
    """What rates depend on: the request's number, or its body and how often it has been sent."""
    redirect_to: str = "http://elsewhere.supplier.example/"
    bomb_mb: int = 256
    huge_mb: int = 128


_RATES: Final[tuple[tuple[str, str], ...]] = (
    ("status_500_rate", "status_500"),
    ("status_503_rate", "status_503"),
    ("rate_429", "status_429"),
    ("reset_rate", "reset"),
    ("truncate_rate", "truncate"),
    ("hang_rate", "hang"),
    ("garbage_rate", "garbage"),
)


def read_faults(given: bytes | dict[str, object]) -> Faults:
    """Return the faults of a JSON body or a dict. Raises FaultError on an unknown key, kind or rate."""
    try:
        if isinstance(given, bytes):
            faults = msgspec.json.decode(given, type=Faults)
        else:
            faults = msgspec.convert(given, type=Faults, strict=False)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise FaultError(str(error)) from error
    kinds = {*faults.garbage_kinds, *faults.schedule.values(), faults.fail_next_with}
    unknown = sorted(kinds - set(FAULT_KINDS))
    if unknown:
        raise FaultError(f"no such kind of fault: {', '.join(unknown)}; known are {', '.join(FAULT_KINDS)}")
    rates = [getattr(faults, name) for name, _ in _RATES]
    if min(rates) < 0 or sum(rates) > 1:
        raise FaultError("rates are shares from 0 to 1, and together at most 1")
    if not all(number.isdecimal() for number in faults.schedule):
        raise FaultError('a schedule maps request numbers, written "1", "2", ..., to kinds')
    return faults


class Verdict(msgspec.Struct, frozen=True):
    """What happens to one request: a kind of fault or None, and its delay."""

    kind: str | None
    delay_s: float


@dataclass(slots=True)
class FaultDesk:
    """Decides what happens to each search and quote. `now` is in seconds of a monotonic clock."""

    seed: int
    faults: Faults = field(default_factory=Faults)
    number: int = 0
    failures_left: int = 0
    token_failures_left: int = 0
    repeats: dict[int, int] = field(default_factory=dict)
    recent: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.set(self.faults)

    def set(self, faults: Faults) -> None:
        """Replace all faults and start counting requests from 1 again."""
        self.faults = faults
        self.number = 0
        self.failures_left = faults.fail_next
        self.token_failures_left = faults.token_fail_next
        self.repeats.clear()
        self.recent.clear()

    def judge(self, body: bytes, now: float) -> Verdict:
        """Return what happens to the next search or quote, which has this body."""
        faults = self.faults
        self.number += 1
        drawn = mix(self.seed, self._coordinate(body), 81)
        delay_s = (faults.latency_ms + faults.latency_jitter_ms * ((drawn >> 40) % 1000) / 1000) / 1000
        kind = self._kind(drawn, now)
        return Verdict(kind, delay_s + (faults.hang_s if kind == "hang" else 0.0))

    def token_fails(self) -> bool:
        """Whether the next token request fails."""
        if self.token_failures_left > 0:
            self.token_failures_left -= 1
            return True
        return False

    def _coordinate(self, body: bytes) -> int:
        if self.faults.by == "number":
            return self.number
        content = mix_text(body.decode("latin-1"))
        repeat = self.repeats[content] = self.repeats.get(content, 0) + 1
        return mix(content, repeat)

    def _kind(self, drawn: int, now: float) -> str | None:
        faults = self.faults
        if self.failures_left > 0:
            self.failures_left -= 1
            return faults.fail_next_with
        scheduled = faults.schedule.get(str(self.number))
        if scheduled:
            return scheduled
        if faults.requests_per_second is not None and self._too_fast(faults.requests_per_second, now):
            return "status_429"
        share = drawn % _SEARCHED / _SEARCHED
        for name, kind in _RATES:
            share -= getattr(faults, name)
            if share < 0:
                kinds = faults.garbage_kinds
                return kinds[(drawn >> 24) % len(kinds)] if kind == "garbage" and kinds else kind
        return None

    def _too_fast(self, allowed: float, now: float) -> bool:
        self.recent = [moment for moment in self.recent if moment > now - 1]
        if len(self.recent) >= allowed:
            return True
        self.recent.append(now)
        return False
