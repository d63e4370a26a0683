"""Which runs may start: one sweep per spec and one run per supplier at a time.

A run that starts long after its time, or that keeps killing its process, is refused.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
from prefect.client.schemas.objects import State
from prefect.concurrency.sync import concurrency
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.states import Cancelled, Failed

from pipeline.domain.errors import (
    ClusterAway,
    LakeBusy,
    NightauditError,
    StoreAway,
    SupplierDown,
    SupplierUnreachable,
)
from pipeline.night.supplier import supplier_name
from pipeline.settings import Settings
from pipeline.supplier.store_away import RateStoreAway

logger = logging.getLogger(__name__)

# A run that died with its machine is restarted; after this many times, it may itself be the cause.
MOST_RUNS = 3
# A free place is given at once, unless the server is busy: it then answers late, but it does answer.
_TAKEN_SECONDS = 60.0
# If another run got it, Prefect may look again only after half a minute, so a run that waits for its turn looks itself.
_TURN_SECONDS = 5.0
_LOOK_SECONDS = 0.5
# A dead process holds its slot for at most this long (Prefect's minimum), so it is free when the run is restarted.
LEASE_SECONDS = 60.0
# The supplier counts requests per second; the margin is for requests that arrive late.
_SECOND = 1.05


class SpecBusy(NightauditError):
    """Another run sweeps the same spec."""

    exit_code = 5


def refused(scheduled_at: datetime | None, run_count: int, catch_up_hours: float) -> State[Any] | None:
    """Return the state in which a run ends at once, because it is too late or died too often; otherwise None.

    Prices can only be requested on their day, so after an outage at most the latest night is caught up.
    """
    late = datetime.now(UTC) - scheduled_at if scheduled_at else timedelta()
    if late > timedelta(hours=catch_up_hours):
        hours = late.total_seconds() / 3600
        return Cancelled(
            name="Skipped",
            message=f"It was due {hours:.1f} hours ago, and the limit is {catch_up_hours:g} (catch_up_hours). "
            "Prices are those of the day: start a new run instead.",
        )
    return died_too_often(run_count)


def died_too_often(run_count: int) -> State[Any] | None:
    """Return the state in which a run ends at once if its process has died again and again; otherwise None."""
    if run_count > MOST_RUNS:
        return Failed(
            message=f"Its process died {run_count - 1} times without a message, perhaps because memory ran out. "
            "Answers that have landed are kept; the next run continues with them."
        )
    return None


def waiting_helps(_: object, __: object, state: State[Any]) -> bool:
    """Whether a retry may succeed: something was busy, or the supplier, cluster, rate store or lake's store away."""
    error = state.result(raise_on_failure=False) if state.is_failed() else None
    return isinstance(
        error, (ClusterAway, LakeBusy, RateStoreAway, SpecBusy, StoreAway, SupplierDown, SupplierUnreachable)
    )


@contextmanager
def one_sweep_of(spec: str) -> Iterator[None]:
    """Hold the one slot of a spec on this Prefect server, shared by all deployments, workers and lakes.

    If the process is killed, the slot is free when its lease ends, a minute later. Raises SpecBusy.
    """
    name = _limit("sweep", spec)
    busy = SpecBusy(
        f"Another run is sweeping the spec {spec} (limit {name}).",
        kept="Nothing was started.",
        hint="Wait until it ends.",
    )
    if _is_held(name):
        raise busy
    with ExitStack() as held:
        try:
            held.enter_context(_place(name, _TAKEN_SECONDS))
        except TimeoutError:
            raise busy from None
        yield


@contextmanager
def turn_at_supplier(settings: Settings) -> Iterator[None]:
    """Wait until no other run of this Prefect server sends requests to the supplier, and make others wait meanwhile.

    All of them together then keep the rate of the settings. With a rate store, they share it at the same time instead.
    """
    if settings.rate_store is not None or settings.is_simulated:
        yield
        return
    name = _limit("supplier", supplier_name(settings))
    with ExitStack() as held:
        is_held = False
        while not is_held:
            _wait_until_free(name)
            # Of several that have waited, one gets it.
            with suppress(TimeoutError):
                held.enter_context(_place(name, _TURN_SECONDS))
                is_held = True
        try:
            yield
        finally:
            # The supplier counts the requests of all runs in any one second.
            time.sleep(_SECOND)


def _limit(of: str, name: str) -> str:
    """Create a limit of one slot on the server if it lacks it, and return its name."""
    limit = f"nightaudit-{of}-{re.sub(r'[^A-Za-z0-9_-]', '-', name)}"
    with get_client(sync_client=True) as client:
        try:
            client.read_global_concurrency_limit_by_name(limit)
        except ObjectNotFound:
            # Another run may create it meanwhile. Asked each time, the server would log its refusal as a fault.
            with suppress(ObjectAlreadyExists):
                client.create_global_concurrency_limit(GlobalConcurrencyLimitCreate(name=limit, limit=1))
    return limit


def _wait_until_free(limit: str) -> None:
    """Look at a limit until it has no holder. By itself, Prefect lets a run wait half a minute between two looks."""
    is_reported = False
    while _is_held(limit):
        if not is_reported:
            logger.info("Waiting for another run that sends requests to the supplier (limit %s).", limit)
            is_reported = True
        time.sleep(_LOOK_SECONDS)


def _is_held(limit: str) -> bool:
    with get_client(sync_client=True) as client:
        return client.read_global_concurrency_limit_by_name(limit).active_slots > 0


def _place(limit: str, seconds: float) -> AbstractContextManager[None]:
    # A night must not end because the server cannot be reached when the lease is renewed.
    return concurrency(
        limit,
        timeout_seconds=seconds,
        lease_duration=LEASE_SECONDS,
        strict=True,
        raise_on_lease_renewal_failure=False,
    )
