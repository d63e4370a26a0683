"""The order of a lake's nights: no clock goes back behind the latest of them."""

from __future__ import annotations

from datetime import datetime

from pipeline.domain.errors import InputError
from pipeline.lake import Lake
from pipeline.lake.raw import read_manifest


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
