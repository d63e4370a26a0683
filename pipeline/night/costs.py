"""What earlier sweeps of a lake cost, for estimates of the next: kept while nights are run, read when one is planned.

<lake>/durations/<sweep>/<step>.json    how long a step took, the last time that it ran to its end
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from pipeline.domain.errors import LakeError, NightauditError
from pipeline.domain.search import Operation
from pipeline.domain.tables import SEARCH, SWEEP
from pipeline.lake import Lake
from pipeline.lake.database import connect, select_files
from pipeline.lake.delta import committed_files
from pipeline.lake.raw import Manifest
from pipeline.lake.relations import relation
from pipeline.lake.sweep_files import sweep_files
from pipeline.plan.estimate import CostHistory, Duration, OperationCost, Step

logger = logging.getLogger(__name__)

_FOLDER = "durations"
# How many sweeps the averages are of.
_SWEEPS = 5


@contextmanager
def timed(
    lake: Lake, manifest: Manifest, step: Step, *, rate_per_second: float = 0.0, in_flight: int = 0
) -> Iterator[None]:
    """Keep how long the step took that runs inside, once it has come to its end."""
    began = time.perf_counter()
    yield
    searches = sum(partition.searches for partition in manifest.partitions)
    took = Duration(time.perf_counter() - began, manifest.cells, searches, rate_per_second, in_flight)
    try:
        lake.put(f"{_FOLDER}/{manifest.sweep_id}/{step}.json", msgspec.json.encode(took))
    except LakeError as error:
        # The step itself is done, and an estimate is worth no failure.
        logger.warning("The duration of %s was not recorded: %s", step, error.message)


def cost_history(lake: Lake) -> CostHistory | None:
    """Return what the last loaded sweeps cost; None where none is known, or where the lake cannot be read."""
    try:
        sweeps, costs = _by_operation(lake)
        durations = {step: tuple(_durations(lake, step)) for step in Step}
    except NightauditError:
        # What is wrong with the lake is for the commands that need it, and must not stand in the way of a plan.
        return None
    return CostHistory(sweeps, costs, durations) if costs or any(durations.values()) else None


def _by_operation(lake: Lake) -> tuple[int, dict[Operation, OperationCost]]:
    # A sweep has its row once all its tables are loaded.
    latest = sorted(file.parent.name for file in committed_files(lake, SWEEP))[-_SWEEPS:]
    held = sweep_files(lake, SEARCH)
    files = [file for sweep_id in latest for file in held.get(sweep_id, [])]
    with connect(lake) as session:
        session.execute("CREATE SCHEMA lake")
        session.execute(f"CREATE VIEW lake.search AS {select_files('search', files)}")
        rows = session.execute(relation("staging", "search_cost").sql).fetchall()
    costs = {
        Operation(operation): OperationCost(wire_bytes, table_bytes, latency)
        for operation, _, wire_bytes, table_bytes, latency in rows
    }
    return max((row[1] for row in rows), default=0), costs


def _durations(lake: Lake, step: Step) -> Iterator[Duration]:
    """Yield how long a step took with the last sweeps that it was run with, the latest first."""
    kept = 0
    for sweep_id in sorted(lake.names(_FOLDER), reverse=True):
        path = f"{_FOLDER}/{sweep_id}/{step}.json"
        if kept < _SWEEPS and lake.exists(path):
            kept += 1
            try:
                yield msgspec.json.decode(lake.get(path), type=Duration)
            except msgspec.MsgspecError:
                logger.warning("%s is unreadable and left out of the estimate.", lake.local(path))
