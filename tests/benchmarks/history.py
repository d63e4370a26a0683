"""A published history of many observations: `python -m benchmarks.history FOLDER [OBSERVATIONS]`.

Nights of a simulated world are written to the lake as loaded sweeps, a hundred properties at a time, and published by
the project's own code in one go. So the file is what publication leaves, whatever that comes to be.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.simulated import World, enter_batch
from benchmarks.simulated_lake import load_inputs, load_quotes, simulating, tell_batch, write_night

from pipeline.lake import Lake
from pipeline.lake.ledger import enter
from pipeline.publish import LedgerEntry, publish

OBSERVATIONS = 50_000_000
NIGHTS = 30


def load_nights(lake: Lake, world: World) -> Sequence[int]:
    """Fill an empty lake with all nights of a world, loaded and not published; return the offers of each."""
    with simulating(lake, world) as session:
        for batch in world.batches:
            enter_batch(session, batch)
            tell_batch(session, lake, world, batch, range(world.nights))
        for night in range(world.nights):
            write_night(session, lake, world, night)
        load_inputs(session, lake, world)
        load_quotes(session, lake)
        return [row[0] for row in session.execute("SELECT offers FROM kept.sweep_told ORDER BY sweep_id").fetchall()]


def make_history(lake: Lake, world: World) -> Path:
    """Fill an empty lake with all nights of a world and publish them; return the published file."""
    load_nights(lake, world)
    *before, last = range(world.nights)
    for night in before:
        enter(lake, LedgerEntry(world.sweep_id(night), world.started_at(night), _after(world, night), "passed"))
    # What the ledger names and the file lacks is published along with it.
    return publish(lake, world.sweep_id(last), _after(world, last), audit="passed").file


def _after(world: World, night: int) -> datetime:
    return world.started_at(night) + timedelta(hours=2)


if __name__ == "__main__":
    folder, *rest = sys.argv[1:]
    began, cpu = time.perf_counter(), time.process_time()
    wanted = World.holding(int(rest[0].replace("_", "")) if rest else OBSERVATIONS, NIGHTS)
    made = make_history(Lake(folder), wanted)
    sys.stdout.write(
        f"{made}: {wanted.properties:,} properties, {wanted.nights} nights, {made.stat().st_size / 1e6:,.0f} MB, "
        f"in {time.perf_counter() - began:.0f} s ({time.process_time() - cpu:.0f} CPU s)\n"
    )
