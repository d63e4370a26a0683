"""How far a sweep has come, and who is shown it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from pipeline.lake import Lake
from pipeline.lake.raw import Manifest, landed
from pipeline.sweep.collect import Tally

_WATCH_SECONDS = 0.25


@dataclass(slots=True)
class SweepProgress:
    """How far a sweep has come. `tally` counts this run alone; cells and shards count what earlier runs landed too.

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

    @property
    def answered_searches(self) -> int:
        """Searches that were answered, landed or not: counted one by one, where landing goes by shards of dozens."""
        return min(self.landed_before + self.tally.searches, self.planned_searches)


Watch = Callable[[SweepProgress], None]


def progress_of(lake: Lake, manifest: Manifest) -> SweepProgress:
    """Return the progress of a sweep by its landed shards."""
    there = landed(lake, manifest.sweep_id)
    searches = sum(shard.stop - shard.start for shard in manifest.shards() if shard.name in there)
    planned = sum(partition.searches for partition in manifest.partitions)
    return SweepProgress(manifest.sweep_id, manifest.cells, planned, searches, landed_before=searches)


class watched:  # noqa: N801 - used like a function
    """Call `watch` a few times a second, and once at the end."""

    def __init__(self, progress: SweepProgress, watch: Watch) -> None:
        self._progress = progress
        self._watch = watch
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._repeat())

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None  # noqa: S101 - entered before
        self._task.cancel()
        self._watch(self._progress)

    async def _repeat(self) -> None:
        while True:
            self._watch(self._progress)
            await asyncio.sleep(_WATCH_SECONDS)
