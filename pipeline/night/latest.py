"""The latest sweep of a lake that has come so far and no further; and sweeps that must be finished before others."""

from __future__ import annotations

from datetime import datetime

from pipeline.domain.errors import InputError, UnknownSweep
from pipeline.lake import Lake
from pipeline.lake.raw import Manifest, has_answer, read_ending, read_manifest
from pipeline.publish import published_sweeps
from pipeline.sweep.load import is_sweep_loaded


def latest_sweep(lake: Lake) -> Manifest | None:
    """Return the latest sweep, if there is any."""
    latest = lake.sweep_ids()[-1:]
    return read_manifest(lake, latest[0]) if latest else None


def latest_unpublished(lake: Lake) -> Manifest | None:
    """Return the latest sweep, unless it is published: a run that was cut short, at whatever step, has left it."""
    latest = latest_sweep(lake)
    return None if latest is None or is_published(lake, latest.sweep_id) else latest


def latest_unfinished(lake: Lake) -> Manifest:
    """Return the latest sweep that has not been loaded whole. Raises UnknownSweep where there is none."""
    for sweep_id in reversed(lake.sweep_ids()):
        if not is_sweep_loaded(lake, sweep_id):
            return read_manifest(lake, sweep_id)
    raise UnknownSweep(f"The lake {lake.root} holds no unfinished sweep.", hint="List all sweeps: nightaudit status")


def latest_loaded(lake: Lake) -> str:
    """Return the id of the latest loaded sweep. Raises UnknownSweep where there is none."""
    for sweep_id in reversed(lake.sweep_ids()):
        if is_sweep_loaded(lake, sweep_id):
            return sweep_id
    raise UnknownSweep(f"The lake {lake.root} holds no loaded sweep.", hint="Make one: nightaudit sweep")


def is_published(lake: Lake, sweep_id: str) -> bool:
    """Whether a sweep is in the ledger of what is published."""
    return any(entry.sweep_id == sweep_id for entry in published_sweeps(lake))


def leads_nowhere(lake: Lake, manifest: Manifest, supplier: str) -> bool:
    """Whether nothing can come of a sweep: it was never answered, and it has ended or asked another supplier."""
    is_open = manifest.supplier == supplier and read_ending(lake, manifest.sweep_id) is None
    return not is_open and not has_answer(lake, manifest.sweep_id)


def refuse_earlier(lake: Lake, now: datetime, *, is_new: bool = False) -> None:
    """Raise InputError where a sweep of this lake began later than `now`, or at it where another is to be made.

    Nights are published in the order in which they were made, and each is compared with those before it.
    """
    for sweep_id in lake.sweep_ids()[-1:]:
        latest = read_manifest(lake, sweep_id)
        if now > latest.started_at or (now == latest.started_at and not is_new):
            return
        raise InputError(
            f"The clock shows {now:%Y-%m-%d %H:%M:%S} UTC, but this lake has a sweep of "
            f"{latest.started_at:%Y-%m-%d %H:%M:%S} UTC. A lake records nights in order.",
            kept="The lake is unchanged.",
            hint="Set NIGHTAUDIT_SANDBOX_CLOCK to a later instant, or name another lake (NIGHTAUDIT_LAKE)."
            if latest.is_simulated
            else "Correct the clock of this machine.",
        )
