"""Limits of the system (`ulimit`) that are too tight to start with.

Libraries that we use have threads of their own, in C++ and Rust. One that gets no memory ends the process, or keeps it
waiting for ever, and no code of ours hears of it. So limits are compared with the known needs before anything
is begun.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

from pipeline.domain.errors import OutOfResources

# Address space that libraries reserve on their own and for each processor (stacks and arenas of threads), and what a
# session of DuckDB may take. With two processors a small night reserves 2,800 to 3,150 MB and uses 400.
_RESERVED_MB, _PER_PROCESSOR_MB, _SESSION_MB = 2_300, 450, 1_500
# Commands that read settings alone; that read the lake or its published file; that normalise a few answers again; and
# what looking at the files of a lake takes more.
_SETTINGS_MB, _READING_MB, _READING_PER_PROCESSOR_MB, _REPLAY_MB, _CHECK_MB = 400, 700, 150, 1_500, 300
_OF_SETTINGS = frozenset({"settings", "spec"})
_READING = frozenset({"query", "status", "plan", "cases", "case", "metrics", "health"})
_REPLAYING = frozenset({"explain"})
# Commands that read the lake file by file.
_CHECKING = frozenset({"drift", "doctor", "verify"})
# M_ARENA_MAX of glibc, and the variable by which a process of its own begins with it.
_ARENA_MAX, _ARENAS = -8, 2
FEW_ARENAS = {"MALLOC_ARENA_MAX": str(_ARENAS)}
# The engine that draws charts reserves 64 GiB at once, and uses next to nothing of it.
CHARTS_MB = 69_000
# A query over many nights has many files open at once.
_DESCRIPTORS, _DESCRIPTORS_WANTED = 256, 4_096


def needed_mb(more_mb: int = 0) -> int:
    """Return the address space that a command needs, and `more_mb`."""
    return _RESERVED_MB + _PER_PROCESSOR_MB * (os.cpu_count() or 1) + _SESSION_MB + more_mb


def needed_by_mb(command: str | None) -> int:
    """Return the address space that a command of the command line needs."""
    if command in _OF_SETTINGS:
        return _SETTINGS_MB
    if command in _READING | _REPLAYING | _CHECKING:
        more = _REPLAY_MB if command in _REPLAYING else _CHECK_MB if command in _CHECKING else 0
        return _READING_MB + _READING_PER_PROCESSOR_MB * (os.cpu_count() or 1) + more
    return needed_mb()


def begin(command: str | None) -> None:
    """Raise OutOfResources where the system's limits leave less than a command of the command line needs.

    A light one takes no more from here on: glibc reserves 64 MB for each thread that asks it for memory, 1 GB for those
    of our libraries, which have allocators of their own for all that is large.
    """
    refuse_tight_limits(least_mb=needed_by_mb(command))
    if command in _READING | _REPLAYING | _CHECKING and sys.platform == "linux":
        with suppress(AttributeError):
            ctypes.CDLL(None).mallopt(_ARENA_MAX, _ARENAS)


def refuse_tight_limits(*, least_mb: int | None = None, more_mb: int = 0, more_descriptors: int = 0) -> None:
    """Raise OutOfResources where the system's limits leave less than the work needs.

    `least_mb` of address space is what the work needs, if it is less than most do; `more_mb` and `more_descriptors` are
    what it needs beyond that. As many files as the system allows may be open from here on, where fewer were at first.
    """
    if sys.platform == "win32":
        return
    import resource

    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    needed_space = needed_mb(more_mb) if least_mb is None else least_mb + more_mb
    if space != resource.RLIM_INFINITY and space < needed_space * 1_000_000:
        raise OutOfResources(
            f"This process may reserve {space // 1_000_000:,} MB of address space (ulimit -v); "
            f"it needs {needed_space:,} MB.",
            hint="Lift the limit: ulimit -v unlimited. Libraries reserve far more than they use; to limit the memory "
            "that is really used, run it in a container or a systemd unit (MemoryMax=).",
        )
    needed = _DESCRIPTORS + more_descriptors
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    if most < needed:
        raise OutOfResources(
            f"This process may have {most:,} files and connections open at once (ulimit -n); it needs {needed:,}.",
            hint=f"Lift the limit: ulimit -n {max(needed, _DESCRIPTORS_WANTED)}.",
        )
    wanted = min(most, max(needed, _DESCRIPTORS_WANTED))
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
