"""Parts of a night, computed in parallel by processes of this machine or workers of a cluster.

A part holds only addresses, so any process can compute it, and computing it again gives the same files.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self, TypeVar

import duckdb

from pipeline.domain.errors import LakeError
from pipeline.domain.property_range import PropertyRange
from pipeline.domain.servers import Workforce
from pipeline.process.carrier import Carrier
from pipeline.process.child import begun, run_tracker
from pipeline.process.cluster_pool import open_pool, processes_of, size_of
from pipeline.process.own_process import spawned

logger = logging.getLogger(__name__)

_TRIES = 3
# Several, so that a process that finishes early takes over work; few, as a session is slow to set up.
_TURNS_A_WORKER = 2


class Part(Protocol):
    """A range of properties of one night, as addresses."""

    @property
    def within(self) -> PropertyRange:
        """Return the range."""

    @property
    def sweep_id(self) -> str:
        """Return the sweep of the night."""

    def halves(self) -> Sequence[Self]:
        """Return two parts that make up this one; none if it cannot be cut."""


J = TypeVar("J", bound=Part)
T = TypeVar("T")


@dataclass(slots=True)
class RangePool:
    """Does the same work on many ranges, in several processes at once.

    `step` is the step of a night that it belongs to, and `again` the command that repeats it. A carrier takes parts to
    machines that cannot see the lake's folder.
    """

    step: str
    again: str
    root: Path
    carrier: Carrier | None
    workforce: Workforce = Workforce()
    _pool: Executor | None = field(default=None, init=False)

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            run_tracker()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def across(
        self,
        do: Callable[..., Sequence[T | duckdb.OutOfMemoryException]],
        jobs: Sequence[J],
        *args: object,
        together: int = 1,
    ) -> list[T]:
        """Do the work on each part and return the results in the order of the ranges.

        `do` is given some parts and `args`, and returns a result for each; one that needs too much memory is split. It
        computes up to `together` parts at once, which costs hardly more than one: a turn has as many where it can.
        Raises LakeError if processes keep being killed; DuckDB's errors pass unchanged.
        """
        todo: list[tuple[J, int]] = [(job, _TRIES) for job in jobs]
        done: dict[int, T] = {}
        while todo:
            pool = self._pool = self._pool or self._opened()
            workers = size_of(pool, self.workforce)
            turns = _turns(todo, min(_TURNS_A_WORKER * workers, max(workers, -(-len(todo) // together))))
            running = [(turn, _submitted(pool, do, [job for job, _ in turn], *args)) for turn in turns]
            # Even after a failure, as the others may still have files open.
            wait([future for _, future in running])
            todo = []
            for turn, future in running:
                try:
                    outcomes = future.result()
                except BrokenProcessPool:
                    todo += [self._tried(job, tries) for job, tries in turn]
                    self._pool = None
                    continue
                for (job, tries), outcome in zip(turn, outcomes, strict=True):
                    if isinstance(outcome, duckdb.OutOfMemoryException):
                        todo += [(half, tries) for half in _halves(job, outcome)]
                    else:
                        done[job.within.first] = outcome
        return [done[first] for first in sorted(done)]

    def _opened(self) -> Executor:
        def processes() -> Executor:
            run_tracker()
            return spawned(processes_of(self.workforce))

        return open_pool(self.workforce.cluster, self.root, processes, self.carrier)

    def _tried(self, job: J, tries: int) -> tuple[J, int]:
        if tries == 1:
            raise LakeError(
                f"A worker process of {self.step} was killed from outside, perhaps because memory ran out.",
                kept="The published file is unchanged, and the sweep stays loaded.",
                hint=f"Repeat it when more memory is free: {self.again} {job.sweep_id}",
            )
        logger.warning("A worker process of %s was killed; its part of the night is computed again.", self.step)
        return job, tries - 1


def _submitted(pool: Executor, do: Callable[..., T], *args: object) -> Future[T]:
    """Give a pool a task; a pool that has lost a process refuses it, and the future raises that error."""
    try:
        return begun(pool, do, *args)
    except BrokenProcessPool as error:
        refused: Future[T] = Future()
        refused.set_exception(error)
        return refused


def _turns(todo: Sequence[tuple[J, int]], most: int) -> list[list[tuple[J, int]]]:
    """Divide jobs into at most this many turns; a process takes one turn at a time."""
    most = min(most, len(todo))
    return [list(todo[len(todo) * turn // most : len(todo) * (turn + 1) // most]) for turn in range(most)]


def _halves(job: J, error: duckdb.Error) -> Sequence[J]:
    halves = job.halves()
    if not halves:
        raise error
    logger.warning("A part of the night needs more memory than it may use; it is split in two.")
    return halves
