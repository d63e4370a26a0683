"""The latest sweep at a given stage."""

import logging
from collections.abc import Iterator
from datetime import datetime

from pipeline.domain.errors import CorruptObject, InputError, UnknownSweep
from pipeline.lake import Lake
from pipeline.lake.raw import Manifest, has_answer, read_ending, read_manifest
from pipeline.night.overview import begun_at
from pipeline.publish import published_sweeps
from pipeline.sweep.load import is_sweep_loaded

logger = logging.getLogger(__name__)


def latest_first(lake: Lake, log_level: int = logging.DEBUG) -> Iterator[Manifest]:
    """Yield the sweeps, latest first. A sweep with a damaged manifest is skipped and logged at `log_level`."""
    for sweep_id in reversed(lake.sweep_ids()):
        try:
            yield read_manifest(lake, sweep_id)
        except CorruptObject as error:
            logger.log(log_level, "Skipped the sweep %s: %s %s", sweep_id, error.message, error.hint)


def latest_sweep(lake: Lake) -> Manifest | None:
    """Return the latest sweep whose manifest can be read, if there is any."""
    return next(latest_first(lake), None)


def latest_unpublished(lake: Lake) -> Manifest | None:
    """Return the latest sweep unless it is published: an interrupted run has left it."""
    latest = latest_sweep(lake)
    return None if latest is None or is_published(lake, latest.sweep_id) else latest


def latest_unfinished(lake: Lake) -> Manifest:
    """Return the latest sweep that is not completely loaded. Raises UnknownSweep if there is none."""
    for manifest in latest_first(lake, logging.WARNING):
        if not is_sweep_loaded(lake, manifest.sweep_id):
            return manifest
    raise UnknownSweep(f"The lake {lake.root} holds no unfinished sweep.", hint="List all sweeps: nightaudit status")


def latest_loaded(lake: Lake) -> str:
    """Return the id of the latest loaded sweep. Raises UnknownSweep if there is none."""
    for sweep_id in reversed(lake.sweep_ids()):
        if is_sweep_loaded(lake, sweep_id):
            return sweep_id
    raise UnknownSweep(f"The lake {lake.root} holds no loaded sweep.", hint="Run one: nightaudit sweep")


def is_published(lake: Lake, sweep_id: str) -> bool:
    """Whether a sweep is in the ledger of published sweeps."""
    return any(entry.sweep_id == sweep_id for entry in published_sweeps(lake))


def leads_nowhere(lake: Lake, manifest: Manifest, supplier: str) -> bool:
    """Whether a sweep is useless: it was never answered, and it has ended or asked another supplier."""
    is_open = manifest.supplier == supplier and read_ending(lake, manifest.sweep_id) is None
    return not is_open and not has_answer(lake, manifest.sweep_id)


def refuse_earlier(lake: Lake, now: datetime, *, is_new: bool = False) -> None:
    """Raise InputError if a sweep of this lake began after `now`, or at `now` if a new one is to begin.

    Nights are published in order, and each is compared with those before it.
    """
    for sweep_id in lake.sweep_ids()[-1:]:
        try:
            latest = read_manifest(lake, sweep_id)
            started_at, is_simulated = latest.started_at, latest.is_simulated
        except CorruptObject:
            # Its id has the second of its start.
            started_at, is_simulated = begun_at(sweep_id), False
        if now > started_at or (now == started_at and not is_new):
            return
        raise InputError(
            f"The clock shows {now:%Y-%m-%d %H:%M:%S} UTC, but this lake has a sweep of "
            f"{started_at:%Y-%m-%d %H:%M:%S} UTC. A lake records nights in order.",
            kept="The lake is unchanged.",
            hint="Set NIGHTAUDIT_SANDBOX_CLOCK to a later instant, or name another lake (NIGHTAUDIT_LAKE)."
            if is_simulated
            else "If this clock is wrong, correct it. If it is right, that sweep was made under one that was ahead: "
            "restore a back-up from before it, or use another lake (NIGHTAUDIT_LAKE) until that time.",
        )
