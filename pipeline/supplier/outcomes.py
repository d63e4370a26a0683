"""What an `Answer` means for its cells, and whether a smaller batch may help."""

from dataclasses import dataclass
from enum import StrEnum

from pipeline.domain.codes import ERROR_CODES
from pipeline.supplier.answer import Answer, Failure
from pipeline.supplier.error_bodies import error_codes

# A batch that fails like this may hold one property that the supplier cannot answer for. Without a connection or a
# token, or if the supplier asked to slow down, fewer properties change nothing.
_POISONED = frozenset(
    {
        Failure.CONNECTION,
        Failure.TIMEOUT,
        Failure.TRUNCATED,
        Failure.BODY_TOO_LARGE,
        Failure.NOT_JSON,
        Failure.SERVER_ERROR,
        Failure.REDIRECT,
        # 401, 403: the token may not cover one property. 404, 204: one property may be gone.
        Failure.UNEXPECTED_STATUS,
    }
)


class Verdict(StrEnum):
    """What the collector does with an answer."""

    ANSWERED = "answered"  # 200: land it; its content decides about each cell
    REJECTED = "rejected"  # 400: land it; every cell is rejected with the codes
    FAILED = "failed"  # land it; every cell has failed


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on an answer. `codes` are those of a 400, in the order of the answer, each once."""

    verdict: Verdict
    codes: tuple[int, ...] = ()


def outcome_of(answer: Answer) -> Outcome:
    """Return what `answer` means for its cells."""
    if answer.failure is not None:
        return Outcome(Verdict.FAILED)
    if answer.http_status == 400:
        return Outcome(Verdict.REJECTED, error_codes(answer.body, answer.content_encoding))
    return Outcome(Verdict.ANSWERED)


def may_be_poisoned(answer: Answer) -> bool:
    """Whether one property may have spoilt the answer of its batch, so that its halves may do better.

    The document has no code for an unknown property, so a 400 without a documented code counts too.
    """
    if answer.failure is not None:
        return answer.failure in _POISONED
    return answer.http_status == 400 and ERROR_CODES.keys().isdisjoint(
        error_codes(answer.body, answer.content_encoding)
    )
