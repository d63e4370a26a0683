"""Failures of the system as errors of ours: no space, no memory, no more files or processes."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool

import duckdb

from pipeline.domain.errors import LakeFull, NightauditError, OutOfResources

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EROFS, errno.EACCES, errno.EPERM}
_NO_MORE = {errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM}
# Libraries in Rust give the system's number in their text alone, without a cause or a type for it: of a full disk
# obstore makes a GenericError, polars a ComputeError, deltalake a DeltaError or an OSError without a number (tried in
# November 2026). So their texts are read, here and nowhere else. By name: none of these libraries is imported for it.
_IN_TEXT_ALONE = {"obstore.exceptions": "BaseError", "polars.exceptions": "PolarsError", "_internal": "DeltaError"}
_WRITTEN = {f"(os error {number})": number for number in (*_NO_SPACE, *_REFUSED, *_NO_MORE)}
# What Python says where the system starts no thread: a RuntimeError without a number.
_NO_THREAD = "can't start new thread"
# Colours and arrows.
_ORNAMENT = re.compile(r"\x1b\[[0-9;]*m|\u21b3")


def as_ours(error: BaseException) -> NightauditError | None:
    """Return an error that the system has caused as one of ours; None where it is another mistake."""
    for cause in _causes(error):
        if isinstance(cause, NightauditError):
            return cause
        if isinstance(cause, (MemoryError, duckdb.OutOfMemoryException)):
            return _no_more("memory, or address space (ulimit -v)")
        if isinstance(cause, BrokenProcessPool):
            return _no_more("processes: one was ended from outside, perhaps because memory ran out")
        number = _number_of(cause)
        if number in _NO_SPACE | _REFUSED:
            return LakeFull(f"A file could not be written: {_reason(cause)}", hint=what_helps(cause))
        if number in _NO_MORE:
            return _no_more(f"resources: {_reason(cause)}")
    return None


def what_helps(error: BaseException) -> str:
    """Say what a user can do about a write that the system refused."""
    number = _number_of(error)
    if number in _NO_SPACE:
        return "Free some space."
    if number == errno.EROFS:
        return "Make the file system writable."
    return "Correct the permissions." if number in _REFUSED else "Free some space, or correct the permissions."


def _no_more(what: str) -> OutOfResources:
    return OutOfResources(
        f"This process ran out of {what}.",
        hint="Raise the limit, or lower NIGHTAUDIT_WORKERS or NIGHTAUDIT_CONCURRENCY.",
    )


def _number_of(error: BaseException) -> int | None:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    if type(error) is RuntimeError and _NO_THREAD in str(error):
        return errno.EAGAIN
    if not isinstance(error, OSError) and not _is_in_text_alone(type(error)):
        return None
    return next((number for written, number in _WRITTEN.items() if written in str(error)), None)


def _is_in_text_alone(kind: type[BaseException]) -> bool:
    return any(_IN_TEXT_ALONE.get(base.__module__) == base.__name__ for base in kind.__mro__)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what caused it, each once: libraries have made chains that lead back to where they began."""
    waiting, seen = [error], set[int]()
    while waiting:
        error = waiting.pop()
        if id(error) in seen:
            continue
        seen.add(id(error))
        if isinstance(error, BaseExceptionGroup):
            waiting.extend(reversed(error.exceptions))
            continue
        yield error
        cause = error.__cause__ or error.__context__
        if cause is not None and not isinstance(error, NightauditError):
            waiting.append(cause)


def _reason(error: BaseException) -> str:
    """Return the line that gives the reason. Of several, as libraries in Rust write, it is the one with the number."""
    lines = [_ORNAMENT.sub("", line).strip() for line in str(error).splitlines()]
    numbered = [line for line in lines if "(os error" in line]
    return next((line for line in numbered or lines if line), type(error).__name__)
