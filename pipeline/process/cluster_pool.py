"""Where parallel work runs: in processes of this machine, or on the workers of a Dask cluster.

A task is one of our functions, called with addresses in the lake. If a worker is lost, its tasks run again on another
one and write the same files. So every worker must run the same code and libraries, and see the same lake under the
same path unless a carrier brings it the files. Workers are checked before they get work, and by each task, as some
join late.
"""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from pipeline.domain.errors import ClusterAway, NightauditError
from pipeline.domain.servers import Cluster, Workforce
from pipeline.process.carrier import Brought, Carrier, Parcel, Probe
from pipeline.process.cluster_client import connected, given_up_if_silent, leave, threads_of
from pipeline.process.cluster_workers import KEPT, Wanted, differs, refuse_unfit, refused, this_worker
from pipeline.process.made_of import made_of

P = ParamSpec("P")
T = TypeVar("T")


def open_pool(
    cluster: Cluster | None,
    lake_root: Path,
    processes: Callable[[], Executor],
    carrier: Carrier | None = None,
    probe: Probe | None = None,
) -> Executor:
    """Return the executor of tasks over the lake at `lake_root`: the cluster, or `processes` without one.

    With a carrier, workers need not see that folder. Raises ClusterAway if the cluster cannot be reached, has no
    worker or has a silent one, and SettingsError if a worker sees another lake, runs other code than this process or
    fails the `probe`.
    """
    return processes() if cluster is None else ClusterPool(cluster, lake_root, carrier, probe)


def size_of(pool: Executor, workforce: Workforce) -> int:
    """Return how many tasks a workforce's pool runs at once."""
    return pool.size if isinstance(pool, ClusterPool) else processes_of(workforce)


def processes_of(workforce: Workforce) -> int:
    """Return how many processes a workforce without a cluster has."""
    return workforce.processes or os.cpu_count() or 1


class ClusterPool(Executor):
    """The workers of a Dask cluster as an executor."""

    def __init__(
        self, cluster: Cluster, lake_root: Path, carrier: Carrier | None = None, probe: Probe | None = None
    ) -> None:
        self._address = cluster.address
        self._carrier = carrier
        probes = (carrier.probe() if carrier is not None else None, probe)
        self._probes = [each for each in probes if each is not None]
        # Puts files in place: the client's own thread must stay free for the scheduler.
        self._landing = ThreadPoolExecutor(4)
        self._watch = ExitStack()
        self._client = connected(cluster)
        self._folder = lake_root / ".spill" / f"cluster-{secrets.token_hex(8)}"
        self._wanted = Wanted(str(self._folder), made_of(), is_to_be_seen=carrier is None)
        try:
            self._folder.mkdir(parents=True)
            self.size = self._look_at_workers()
        except BaseException:
            self.shutdown()
            raise
        thread: Any = self._client.loop
        self._loop: asyncio.AbstractEventLoop = thread.asyncio_loop
        self._watch.enter_context(given_up_if_silent(self._client))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Give a task to a worker. Its future raises ClusterAway if the cluster or all of its workers are lost."""
        parcel = self._carrier.parcel(args) if self._carrier is not None else None
        here: Future[T] = Future()
        here.set_running_or_notify_cancel()
        task = self._done(parcel, fn, args, kwargs)
        try:
            # In the client's own thread, as a task that is submitted while a connection is being lost may be forgotten.
            there = asyncio.run_coroutine_threadsafe(task, self._loop)
        except RuntimeError:
            # That thread has ended.
            task.close()
            here.set_exception(self._lost())
        else:
            there.add_done_callback(lambda done: self._when_done(done, here))
        return here

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 - as Executor declares it
        """Leave the cluster, without waiting for unfinished tasks."""
        self._watch.close()
        leave(self._client)
        self._landing.shutdown(wait=wait)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _done(self, *task: object) -> object:
        """Return the result of a task. Raises what the task raises, and ClusterAway if the cluster is lost."""
        from distributed.client import ClosedClientError

        try:
            there = self._client.submit(_task, self._wanted, *task, pure=False)
        except ClosedClientError:
            raise self._lost() from None
        try:
            # A result that is lost with its worker is computed again.
            return await self._client.gather(there, asynchronous=True)
        except Exception as error:
            # Without its own error, it is not the task that failed, but its result that could not be fetched.
            raise error if there.status == "error" else self._lost() from error

    def _when_done(self, done: Future[Any], here: Future[T]) -> None:
        if self._carrier is None:
            self._hand_on(done, here)
            return
        # Once the pool is closed, no one waits for it.
        with suppress(RuntimeError):
            self._landing.submit(self._hand_on, done, here)

    def _hand_on(self, done: Future[Any], here: Future[T]) -> None:
        try:
            result = done.result()
            if isinstance(result, Brought) and self._carrier is not None:
                self._carrier.land(result)
                result = result.result
            here.set_result(result)
        except CancelledError:
            here.set_exception(self._lost())
        except BaseException as error:
            here.set_exception(self._as_ours(error))

    def _lost(self) -> ClusterAway:
        return ClusterAway(
            f"The cluster {self._address} was lost while it was working.",
            kept=KEPT,
            hint="Run the same command again once the scheduler is back, or without NIGHTAUDIT_CLUSTER on this "
            "machine alone.",
        )

    def _as_ours(self, error: BaseException) -> BaseException:
        from distributed import KilledWorker

        if not isinstance(error, KilledWorker):
            return error
        return ClusterAway(
            f"A task killed one worker after another of {self._address}, perhaps because memory ran out.",
            kept=KEPT,
            hint="Give each worker at least 2 GB and one thread: dask worker --nthreads 1 --memory-limit 2GB",
        )

    def _look_at_workers(self) -> int:
        """Return how many tasks the workers run at once. Raises if one of them cannot do our work."""
        threads = threads_of(self._client, self._address)
        if not threads:
            raise ClusterAway(
                f"The cluster {self._address} has no worker.",
                kept="Nothing was started.",
                hint=f"Start one where the lake is mounted: dask worker {self._address} --nthreads 1",
            )
        refuse_unfit(self._client, self._address, sorted(threads), self._wanted, self._probes)
        return sum(threads.values())


def _task(
    wanted: Wanted, parcel: Parcel | None, work: Callable[..., T], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> T | Brought:
    """Do some work on a worker. A worker that joined late with other code, or lost sight of the lake, refuses."""
    folder = wanted.folder if Path(wanted.folder).is_dir() else ""
    if refusal := differs({**made_of(), "folder": folder}, wanted):
        raise refused([(this_worker(), refusal)], 1)
    do = partial(_spilling_apart, wanted.folder, partial(work, *args, **kwargs))
    try:
        return do() if folder or parcel is None else parcel.do(do)
    except NightauditError as error:
        # An error of a task group is in a circle with the group: it could not be pickled, and arrive as an Exception.
        error.__cause__ = error.__context__ = None
        raise


def _spilling_apart(folder: str, work: Callable[[], T]) -> T:
    # This machine spills to a folder of its own: see `lake.database`.
    Path(folder).with_name(platform.node()).mkdir(parents=True, exist_ok=True)
    return work()
