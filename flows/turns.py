"""Whose turn it is: one sweep of a spec and one run at a supplier at a time.

No night is made long after its time, and no run is begun again that has killed each machine.
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
from prefect.exceptions import ObjectAlreadyExists
from prefect.states import Cancelled, Failed

from pipeline.domain.errors import ClusterAway, LakeBusy, NightauditError, SupplierDown, SupplierUnreachable
from pipeline.night.supplier import supplier_name
from pipeline.settings import Settings

logger = logging.getLogger(__name__)

# A run that was ended with its machine is begun again; one that has ended so many may be the reason.
MOST_RUNS = 3
_TAKEN_SECONDS = 5.0
# A process that dies holds its place for so long at most (Prefect's least): it is free before the run is begun again.
_LEASE_SECONDS = 60.0
# What the supplier counts requests in, and a little, for some arrive later than others.
_SECOND = 1.05


class SpecBusy(NightauditError):
    """Another run sweeps the same spec."""

    exit_code = 5


def refused(scheduled_at: datetime | None, run_count: int, catch_up_hours: float) -> State[Any] | None:
    """Return the state in which a run ends at once: too late for its night, or ended too often; else None.

    A night is made on its day or not at all, so that of the runs that an outage has left behind the latest is made up
    for, if it is not too late, and no other.
    """
    late = datetime.now(UTC) - scheduled_at if scheduled_at else timedelta()
    if late > timedelta(hours=catch_up_hours):
        hours = late.total_seconds() / 3600
        return Cancelled(
            name="Skipped",
            message=f"Its time was {hours:.1f} hours ago, and {catch_up_hours:g} are made up for (catch_up_hours). "
            "Prices are those of the day: make today's night with a run of its own.",
        )
    if run_count > MOST_RUNS:
        return Failed(
            message=f"Its process was ended {run_count - 1} times without a message, perhaps because memory ran out. "
            "Answers that have landed are kept; the next run continues with them."
        )
    return None


def waiting_helps(_: object, __: object, state: State[Any]) -> bool:
    """Whether a night that has ended so may well go on in a while: the lake is busy, the supplier away."""
    error = state.result(raise_on_failure=False) if state.is_failed() else None
    return isinstance(error, (ClusterAway, LakeBusy, SpecBusy, SupplierDown, SupplierUnreachable))


@contextmanager
def one_sweep_of(spec: str) -> Iterator[None]:
    """Hold the one place that a spec has on this Prefect server, whichever deployment, worker or lake it is.

    A process that is killed gives it back when its lease ends, a minute later. Raises SpecBusy.
    """
    name = _limit("sweep", spec)
    with ExitStack() as held:
        try:
            held.enter_context(_place(name, _TAKEN_SECONDS))
        except TimeoutError:
            raise SpecBusy(
                f"Another run sweeps the spec {spec} (limit {name}).",
                kept="Nothing was started.",
                hint="Wait for it to end.",
            ) from None
        yield


@contextmanager
def turn_at_supplier(settings: Settings) -> Iterator[None]:
    """Wait until no other run of this Prefect server sends requests to the supplier, and keep others waiting within.

    So the rate of the settings is that of all of them. With a rate store they share it side by side instead.
    """
    if settings.rate_store is not None or settings.is_simulated:
        yield
        return
    name = _limit("supplier", supplier_name(settings))
    with ExitStack() as held:
        try:
            held.enter_context(_place(name, _TAKEN_SECONDS))
        except TimeoutError:
            logger.info("Waiting for another run that sends requests to the supplier (limit %s).", name)
            held.enter_context(_place(name, None))
        try:
            yield
        finally:
            # The supplier counts requests in any second, those of all runs together.
            time.sleep(_SECOND)


def _limit(of: str, name: str) -> str:
    """Return the name of a limit of one place, which the server has then."""
    limit = f"nightaudit-{of}-{re.sub(r'[^A-Za-z0-9_-]', '-', name)}"
    with suppress(ObjectAlreadyExists), get_client(sync_client=True) as client:
        client.create_global_concurrency_limit(GlobalConcurrencyLimitCreate(name=limit, limit=1))
    return limit


def _place(limit: str, seconds: float | None) -> AbstractContextManager[None]:
    # A server that is away for a while when the lease is to be renewed is no reason to end a night.
    return concurrency(
        limit,
        timeout_seconds=seconds,
        lease_duration=_LEASE_SECONDS,
        strict=True,
        raise_on_lease_renewal_failure=False,
    )
