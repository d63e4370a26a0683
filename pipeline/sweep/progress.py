"""The progress of a sweep, and who is shown it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields

from pipeline.lake import Lake
from pipeline.lake.raw import Manifest, landed

_WATCH_SECONDS = 0.25


@dataclass(slots=True)
class Tally:
    """What a collection has sent so far, for displays."""

    searches: int = 0
    requests: int = 0
    cells: int = 0
    wire_bytes: int = 0
    paced_seconds: float = 0.0
    """Total seconds that workers of a cluster have waited for the rate limit; this machine's client knows its own."""

    def add(self, other: Tally) -> None:
        """Add what another collection has sent."""
        for counted in fields(self):
            setattr(self, counted.name, getattr(self, counted.name) + getattr(other, counted.name))


@dataclass(slots=True)
class SweepProgress:
    """Progress of a sweep. `tally` counts this run alone; cells and shards include what earlier runs landed.

    `landed_before` are the searches that earlier runs landed.
    """

    sweep_id: str
    planned_cells: int
    planned_searches: int
    landed_searches: int = 0
    landed_before: int = 0
    tally: Tally = field(default_factory=Tally)
    normalised: Counter[str] = field(default_factory=Counter)
    offers: int = 0
    rejects: int = 0
    step: str = "collecting"
    is_counted_in_blocks: bool = False
    """Whether requests are counted a block at a time, when it lands, because workers of a cluster send them."""

    @property
    def answered_searches(self) -> int:
        """Searches that were answered, landed or not: counted one by one, whereas shards land in dozens."""
        return min(self.landed_before + self.tally.searches, self.planned_searches)


Watch = Callable[[SweepProgress], None]


def progress_of(lake: Lake, manifest: Manifest) -> SweepProgress:
    """Return the progress of a sweep by its landed shards."""
    searches = manifest.searches_in(landed(lake, manifest.sweep_id))
    return SweepProgress(manifest.sweep_id, manifest.cells, manifest.searches, searches, landed_before=searches)


@asynccontextmanager
async def watched(progress: SweepProgress, watch: Watch) -> AsyncIterator[None]:
    """Call `watch` a few times a second, and once at the end."""

    async def repeat() -> None:
        while True:
            watch(progress)
            await asyncio.sleep(_WATCH_SECONDS)

    task = asyncio.create_task(repeat())
    try:
        yield
    finally:
        task.cancel()
        watch(progress)
