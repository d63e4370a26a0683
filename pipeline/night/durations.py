"""How long the steps of nights took, as the lake records it: for plans of later nights, and for metrics."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from pipeline.domain.errors import LakeError
from pipeline.lake import Lake
from pipeline.lake.raw import Manifest
from pipeline.plan.estimate import Duration, TimedStep

logger = logging.getLogger(__name__)

_FOLDER = "durations"
# Nights that a plan looks back at.
_NIGHTS = 5


@contextmanager
def timed(lake: Lake, manifest: Manifest, step: TimedStep, *, is_spread: bool = False) -> Iterator[None]:
    """Record how long a step took, if it ends without an error; `is_spread`: with the workers of a cluster."""
    began = time.perf_counter()
    yield
    took = Duration(time.perf_counter() - began, manifest.cells, manifest.searches, is_spread=is_spread)
    note_duration(lake, manifest.sweep_id, step, took)


def note_duration(lake: Lake, sweep_id: str, step: TimedStep, took: Duration) -> None:
    """Record how long a step of a night took."""
    try:
        lake.put(_path(sweep_id, step), msgspec.json.encode(took))
    except LakeError as error:
        # The step itself is done; a missing estimate is not a failure.
        logger.warning("The duration of %s was not recorded: %s", step, error.message)


def durations_of(lake: Lake, step: TimedStep) -> Iterator[Duration]:
    """Yield the durations of a step in the last nights, the latest first."""
    kept = 0
    for sweep_id in sorted(lake.names(_FOLDER), reverse=True):
        if kept < _NIGHTS and lake.exists(_path(sweep_id, step)):
            kept += 1
            if (found := duration_of(lake, sweep_id, step)) is not None:
                yield found


def duration_of(lake: Lake, sweep_id: str, step: TimedStep) -> Duration | None:
    """Return the duration of a step of a night; None: it is not recorded, or cannot be read."""
    path = _path(sweep_id, step)
    if not lake.exists(path):
        return None
    try:
        return msgspec.json.decode(lake.get(path), type=Duration)
    except (msgspec.MsgspecError, RecursionError):
        logger.warning("%s is unreadable, so it is left out of the estimate and the metrics.", lake.local(path))
        return None


def _path(sweep_id: str, step: TimedStep) -> str:
    return f"{_FOLDER}/{sweep_id}/{step}.json"
