"""The line to a Dask cluster.

Its library waits forever for a scheduler or worker that takes connections and is silent. Here, every wait has a bound.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from pipeline.domain.errors import ClusterAway, SettingsError
from pipeline.domain.servers import Cluster

if TYPE_CHECKING:
    from distributed import Client

_CONNECT_SECONDS = 10.0
# Three steps of connecting, and the first answer of the scheduler, which nothing else bounds.
_STEPS = 4
# A command that only mentions the cluster does not wait for it.
_LOOK_SECONDS = 2.0
# A worker that is well looks in less than a second, even if it first reads our code.
_ANSWER_SECONDS = 30.0
MOST_NAMED = 5
# While tasks run, the scheduler is asked for a sign of life this often, and given up after so long without one.
_ASKED_EVERY_SECONDS = 15.0
_SILENT_SECONDS = 180.0

# What a call of a client raises that is being closed, or is closed; its library forgets to return a result then.
_ENDS = (OSError, RuntimeError, UnboundLocalError, AttributeError)

T = TypeVar("T")


def connected(cluster: Cluster, seconds: float = _CONNECT_SECONDS) -> Client:
    """Return a client of a cluster. Raises ClusterAway if it cannot be reached or does not answer.

    Each step of connecting may last that long.
    """
    try:
        from distributed import Client
        from distributed.security import Security
    except ImportError:
        raise SettingsError(
            "NIGHTAUDIT_CLUSTER needs the package distributed, which is not installed.",
            hint='In the folder of nightaudit: pip install ".[cluster]"',
        ) from None
    security = None
    if cluster.is_encrypted:
        named = {"ca_file": cluster.ca_file, "client_cert": cluster.cert_file, "client_key": cluster.key_file}
        security = Security(
            require_encryption=True, **{f"tls_{name}": str(file) for name, file in named.items() if file}
        )

    class Bounded(Client):
        """Its `timeout` bounds the parts of connecting, but not the first answer of the scheduler."""

        def start(self, **options: object) -> None:
            start: Callable[..., None] = super().start
            try:
                start(callback_timeout=_STEPS * seconds, **options)
            except TimeoutError:
                leave(self)
                msg = "something there takes connections, but does not answer"
                raise TimeoutError(msg) from None

    make: Callable[..., Client] = Bounded
    try:
        return make(cluster.address, security=security, timeout=seconds, set_as_default=False, name="nightaudit")
    except (OSError, ValueError) as error:
        raise ClusterAway(
            f"The cluster {cluster.address} cannot be reached: {error or type(error).__name__}",
            kept="Nothing was started.",
            hint="Check NIGHTAUDIT_CLUSTER, its certificates, and whether the scheduler is running: dask scheduler",
        ) from None


def leave(client: Client) -> None:
    """Close a client, without waiting for a scheduler that is silent."""
    with suppress(TimeoutError, UnboundLocalError):
        client.close(timeout=_CONNECT_SECONDS)


@contextmanager
def given_up_if_silent(client: Client) -> Iterator[None]:
    """Leave a cluster whose scheduler falls silent, within; its tasks then count as lost.

    A frozen scheduler keeps its connections, so nothing else would notice.
    """
    ended = threading.Event()

    async def sign() -> None:
        await asyncio.wait_for(client.nthreads(), _ASKED_EVERY_SECONDS)

    def keep_asking() -> None:
        heard = time.monotonic()
        while not ended.wait(_ASKED_EVERY_SECONDS):
            try:
                client.sync(sign)
            except TimeoutError:
                if time.monotonic() - heard >= _SILENT_SECONDS:
                    leave(client)
                    return
            except _ENDS:
                # It is closed, or reconnects.
                continue
            else:
                heard = time.monotonic()

    asking = threading.Thread(target=keep_asking, name="signs of life of the scheduler", daemon=True)
    asking.start()
    try:
        yield
    finally:
        ended.set()


def workers_of(cluster: Cluster) -> dict[str, int]:
    """Return the threads of each worker of a cluster. Raises ClusterAway if it does not answer within seconds."""
    client = connected(cluster, _LOOK_SECONDS)
    try:
        return threads_of(client, cluster.address)
    finally:
        leave(client)


def threads_of(client: Client, address: str) -> dict[str, int]:
    """Return the threads of each worker. Raises ClusterAway if the scheduler does not answer."""

    async def ask() -> dict[str, int]:
        return dict(await asyncio.wait_for(client.nthreads(), _ANSWER_SECONDS))

    return _asked(client, address, ask)


def ask_each(
    client: Client, address: str, workers: list[str], question: Callable[[], object], seconds: float | None = None
) -> list[tuple[str, Any]]:
    """Return what each worker answers, or the error that it raised. Raises ClusterAway, which names the silent ones."""
    bound = seconds or _ANSWER_SECONDS
    silent = []

    async def ask(worker: str) -> dict[str, object]:
        answer = client.run(question, workers=[worker], on_error="return")
        try:
            return dict(await asyncio.wait_for(answer, bound))
        except TimeoutError:
            silent.append(worker)
            return {}

    async def ask_all() -> list[dict[str, object]]:
        return await asyncio.gather(*map(ask, workers))

    answers = _asked(client, address, ask_all)
    if silent:
        named = ", ".join(sorted(silent)[:MOST_NAMED])
        more = f" and {len(silent) - MOST_NAMED} more" if len(silent) > MOST_NAMED else ""
        raise ClusterAway(
            f"{len(silent)} of {len(workers)} workers of NIGHTAUDIT_CLUSTER did not answer within {bound:.0f} seconds: "
            f"{named}{more}.",
            kept="Nothing was started.",
            hint="Restart them, or end them: the others do the work alone. If all are silent, the scheduler may be.",
        )
    return sorted(((worker, seen) for answer in answers for worker, seen in answer.items()), key=itemgetter(0))


def _asked(client: Client, address: str, ask: Callable[[], Awaitable[T]]) -> T:
    try:
        answer: T = client.sync(ask)
    except OSError as error:
        why = f"within {_ANSWER_SECONDS:.0f} seconds" if isinstance(error, TimeoutError) else f"any longer: {error}"
        raise ClusterAway(
            f"The cluster {address} does not answer {why}.",
            kept="Nothing was started.",
            hint="Restart its scheduler: dask scheduler",
        ) from None
    return answer
