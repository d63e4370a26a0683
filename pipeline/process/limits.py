"""Limits of the system (`ulimit`) that are too tight to start with.

Our libraries run threads in C++ and Rust. A thread that gets no memory ends the process or makes it hang, without any
of our code noticing. So limits are compared with known needs before anything starts.
"""

import ctypes
import os
import sys
from contextlib import suppress

from pipeline.domain.errors import OutOfResources

# Address space that libraries reserve, in all and per processor (stacks and arenas of threads), and that a session of
# DuckDB may take. With two processors, a small night reserves 2,800 to 3,150 MB and uses 400.
_RESERVED_MB, _PER_PROCESSOR_MB, _SESSION_MB = 2_300, 450, 1_500
# For commands that read only settings; that read the lake or its published file, with each processor; and what
# normalising a few answers again, or looking at every file of a lake, takes in addition.
_SETTINGS_MB, _READING_MB, _READING_PER_PROCESSOR_MB, _REPLAY_MB, _CHECK_MB = 400, 700, 150, 1_800, 300
_OF_SETTINGS = frozenset({"settings", "spec"})
_READING = frozenset({"query", "status", "plan", "cases", "case", "metrics", "health"})
_REPLAYING = frozenset({"explain"})
_CHECKING = frozenset({"drift", "doctor", "verify"})
# M_ARENA_MAX of glibc, and the variable that sets it for a new process.
_ARENA_MAX, _ARENAS = -8, 2
FEW_ARENAS = {"MALLOC_ARENA_MAX": str(_ARENAS)}
# The chart engine reserves 64 GiB at once and hardly uses it.
CHARTS_MB = 69_000
# A query over many nights keeps many files open.
_DESCRIPTORS, _DESCRIPTORS_WANTED = 256, 4_096


def needed_mb(more_mb: int = 0) -> int:
    """Return the address space that most commands need, plus `more_mb`."""
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
    """Raise OutOfResources if the system's limits leave less than a command of the command line needs.

    For a command that only reads, glibc's arenas are limited: they would take 64 MB per thread, 1 GB in all, though our
    libraries have their own allocators for large blocks.
    """
    refuse_tight_limits(least_mb=needed_by_mb(command))
    if command in _READING | _REPLAYING | _CHECKING and sys.platform == "linux":
        with suppress(AttributeError):
            ctypes.CDLL(None).mallopt(_ARENA_MAX, _ARENAS)


def refuse_tight_limits(*, least_mb: int | None = None, more_mb: int = 0, more_descriptors: int = 0) -> None:
    """Raise OutOfResources if the system's limits leave less than the work needs.

    `least_mb` is the address space that the work needs, if not the usual one; `more_mb` and `more_descriptors` come on
    top. The limit of open files is raised as far as the system allows.
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
            hint="Raise the limit: ulimit -v unlimited. Libraries reserve far more than they use; to limit the memory "
            "that is actually used, run it in a container or a systemd unit (MemoryMax=).",
        )
    needed = _DESCRIPTORS + more_descriptors
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    if most < needed:
        raise OutOfResources(
            f"This process may have {most:,} files and connections open at once (ulimit -n); it needs {needed:,}.",
            hint=f"Raise the limit: ulimit -n {max(needed, _DESCRIPTORS_WANTED)}.",
        )
    wanted = min(most, max(needed, _DESCRIPTORS_WANTED))
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
