"""Failures as our errors: of the system (no space, no memory, no more files or processes), and of tasks in a group."""

import errno
import re
from collections.abc import AsyncIterator, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager

import duckdb

from pipeline.domain.errors import LakeFull, NightauditError, OutOfResources

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EROFS, errno.EACCES, errno.EPERM}
_NO_MORE = {errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM}
# Libraries in Rust report the system's error number only in their text. On a full disk, obstore raises a GenericError,
# polars a ComputeError, deltalake a DeltaError or an OSError without a number (tried in November 2026). So their texts
# are read: here, and for a store's refusals in `lake/s3/object_store.py`. Types are compared by name, so that none of
# these libraries is imported.
_IN_TEXT_ALONE = {"obstore.exceptions": "BaseError", "polars.exceptions": "PolarsError", "_internal": "DeltaError"}
_WRITTEN = {f"(os error {number})": number for number in (*_NO_SPACE, *_REFUSED, *_NO_MORE)}
# Python's RuntimeError, without a number, when the system starts no thread.
_NO_THREAD = "can't start new thread"
# Colours and arrows.
_ORNAMENT = re.compile(r"\x1b\[[0-9;]*m|\u21b3")


def as_ours(error: BaseException) -> NightauditError | None:
    """Return an error that the system caused as one of ours; None: the cause is another."""
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


def is_full(error: BaseException) -> bool:
    """Whether a disk or a quota is full."""
    return _number_of(error) in _NO_SPACE


def what_helps(error: BaseException) -> str:
    """Return what a user can do about a write that the system refused."""
    number = _number_of(error)
    if is_full(error):
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
    is_of_rust = any(_IN_TEXT_ALONE.get(base.__module__) == base.__name__ for base in type(error).__mro__)
    if not isinstance(error, OSError) and not is_of_rust:
        return None
    return next((number for written, number in _WRITTEN.items() if written in str(error)), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, each once: libraries have raised chains that run in a circle."""
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
    """Return the line with the reason: the one with the system's number, where a library wrote several."""
    lines = [_ORNAMENT.sub("", line).strip() for line in str(error).splitlines()]
    numbered = [line for line in lines if "(os error" in line]
    return next((line for line in numbered or lines if line), type(error).__name__)


@asynccontextmanager
async def one_failure() -> AsyncIterator[None]:
    """Raise the first failure of a task group instead of a group: one cause often fails several tasks at once."""
    try:
        yield
    except BaseExceptionGroup as failures:
        own, others = failures.split(NightauditError)
        raise (own if others is None and own is not None else failures).exceptions[0] from None
