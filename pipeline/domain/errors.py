"""Every error that a user can meet, as one tree.

    NightauditError                 exit code 1: a failure of ours or of the environment
    ├── InputError                  exit code 2: wrong usage or input
    │   ├── SettingsError           a setting is missing or cannot be used
    │   ├── SpecError               a sweep spec cannot be used; names the line
    │   ├── RequestRefused          a request breaks a documented rule; names its error code
    │   ├── QueryStopped            a user's query exceeded its limit of time or memory
    │   └── NothingSent             what was to be sent cannot or may not be
    ├── SupplierError
    │   ├── SupplierUnreachable     no connection could be made at all
    │   ├── SupplierDown            it can be reached, but all searches fail
    │   └── TokenRefused            the credentials or scopes were not accepted
    ├── LakeError
    │   ├── StoreAway               the store of a lake on S3 did not answer for minutes
    │   ├── LakeBusy                exit code 5: another process is writing to this lake
    │   ├── LakeFull                exit code 6: no space left, or a write was refused
    │   ├── LakeTooNew              written by a newer version of nightaudit
    │   ├── CorruptObject           an object of the lake cannot be read back
    │   ├── UnknownLake             exit code 2: there is no lake at the path of the settings
    │   └── UnknownSweep            exit code 2: no such sweep in this lake
    ├── ClusterAway                 the cluster of the settings cannot be reached, or was lost
    ├── OutOfResources              no memory, address space, files or processes left
    ├── SweepStopped                a sweep ended early and can be resumed; 130 by SIGINT, 143 by SIGTERM
    │   └── CallsUsedUp             the daily cap on calls is reached
    ├── GateBlocked                 exit code 3: the quality gate refused to publish
    └── TooManyFailures             exit code 4: finished, but too many cells failed
        └── NothingUsable           no answer of the sweep can be used

`message` says what happened, `kept` what was kept, and `hint` what to do next.
"""

from pathlib import Path
from typing import Self


class NightauditError(Exception):
    """Base of all errors that are shown to a user without a traceback."""

    exit_code = 1
    usually_kept = ""

    def __init__(self, message: str, *, kept: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.kept = kept or self.usually_kept
        self.hint = hint
        self._advice: str | None = None

    def at_step(self, kept: str, next_step: str) -> None:
        """Add what the failed step has kept and how to continue, unless an inner step has added it already."""
        if not self.has_step:
            self.at_outer_step(kept, next_step)

    @property
    def has_step(self) -> bool:
        """Whether a step has added what it kept and how to continue."""
        return self._advice is not None

    def at_outer_step(self, kept: str, next_step: str) -> None:
        """Add what is kept and how to continue, in place of what an inner step has added."""
        self._advice = self.hint if self._advice is None else self._advice
        self.kept, self.hint = kept, self._advice
        if next_step not in self.hint:
            self.hint = f"{self.hint}\nThen: {next_step}" if self.hint else f"Continue with: {next_step}"

    def __str__(self) -> str:
        return "\n".join(part for part in (self.message, self.kept, self.hint) if part)


class InputError(NightauditError):
    """Wrong usage or input."""

    exit_code = 2
    usually_kept = "Nothing was changed."


class SettingsError(InputError):
    """A setting is missing, malformed or contradicts another."""

    usually_kept = "Nothing was started."


class SpecError(InputError):
    """A sweep spec cannot be used; the message names file and line."""

    usually_kept = "Nothing was started."


class RequestRefused(InputError):
    """A request breaks a rule of the supplier's document and was not sent.

    `codes` are the documented error codes that the supplier would have answered with.
    """

    usually_kept = "Nothing was sent."

    def __init__(self, message: str, *, codes: tuple[int, ...] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.codes = codes


class QueryStopped(InputError):
    """A user's query exceeded its limit of time or memory and was ended."""


class NothingSent(InputError):
    """What was to be sent to the supplier, or as an alert, cannot or may not be sent."""

    usually_kept = "Nothing was sent."


class SupplierError(NightauditError):
    """The supplier could not be used."""

    usually_kept = "Answers that have landed are kept."


class SupplierUnreachable(SupplierError):
    """No connection to the supplier, or to its token endpoint, could be made."""


class SupplierDown(SupplierError):
    """The supplier can be reached, but all searches fail."""


class TokenRefused(SupplierError):
    """The token endpoint did not accept the credentials or scopes, or the supplier forbids quotes to the token."""


class LakeError(NightauditError):
    """The lake could not be read or written."""


class StoreAway(LakeError):
    """The store of a lake on S3 did not answer for minutes."""


class LakeBusy(LakeError):
    """Another process holds the lake's writer lock."""

    exit_code = 5


class LakeFull(LakeError):
    """A write to the lake failed: no space, or no permission."""

    exit_code = 6


class LakeTooNew(LakeError):
    """The lake was written by a newer version."""


class CorruptObject(LakeError):
    """An object of the lake exists but cannot be read back; `place` is its file, if it has one."""

    usually_kept = "Nothing was changed."

    def __init__(self, message: str, *, kept: str = "", hint: str = "", place: Path | None = None) -> None:
        super().__init__(message, kept=kept, hint=hint)
        self.place = place


class UnknownLake(LakeError):
    """There is no lake."""

    exit_code = 2
    usually_kept = "Nothing was changed."


class UnknownSweep(LakeError):
    """The lake holds no sweep of that id."""

    exit_code = 2
    usually_kept = "Nothing was changed."


class ClusterAway(NightauditError):
    """The cluster that NIGHTAUDIT_CLUSTER names could not be used, or was lost while working."""


class OutOfResources(NightauditError):
    """The system is out of memory, address space, file descriptors or processes."""


class SweepStopped(NightauditError):
    """A sweep ended before its last search. Landed answers are kept, and the rest can be resumed.

    `signal_number` is the signal that stopped it; the exit code is 128 plus that number, as in shells.
    """

    def __init__(self, message: str, *, hint: str = "", signal_number: int | None = None) -> None:
        super().__init__(message, hint=hint)
        if signal_number is not None:
            self.exit_code = 128 + signal_number


class CallsUsedUp(SweepStopped):
    """The daily cap on calls is reached; a nightly run publishes the answers so far."""

    usually_kept = "Answers that have landed are kept."

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="Wait until tomorrow (UTC), or raise NIGHTAUDIT_DAILY_CALLS.")

    @classmethod
    def of_day(cls, cap: int, day: str) -> Self:
        """Return the error for a cap and a UTC day."""
        return cls(f"The daily cap of {cap} calls (NIGHTAUDIT_DAILY_CALLS) is used up for {day} UTC.")

    @classmethod
    def before(cls, searches: int) -> Self:
        """Return the error for searches that land together."""
        return cls(
            "The remaining calls of today (NIGHTAUDIT_DAILY_CALLS) are not enough for the next "
            f"{searches} searches, which land together."
        )


class GateBlocked(NightauditError):
    """A critical check failed: the last good night stays published."""

    exit_code = 3


class TooManyFailures(NightauditError):
    """A sweep finished, but the share of failed cells, or of failed rules, is above the tolerance."""

    exit_code = 4


class NothingUsable(TooManyFailures):
    """Every search of a sweep was refused for the same reason: the request is wrong, or the token does not allow it."""


CHECK_SCOPES = (
    "Ask the supplier which scopes these credentials have, set NIGHTAUDIT_SCOPES, and check that NIGHTAUDIT_BASE_URL "
    "and NIGHTAUDIT_AUTH_URL belong together."
)


def first_line(error: BaseException) -> str:
    """Return the first line of a library's error message, or its type if it has no message."""
    return next((line for line in str(error).strip().splitlines()), type(error).__name__)
