"""A sweep's progress as a Prefect artifact, updated by a thread so that it never delays the sweep."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact

from pipeline.sweep import SweepProgress

logger = logging.getLogger(__name__)

PROGRESS_KEY = "nightly-progress"
_SECONDS_BETWEEN_UPDATES = 5.0


@contextmanager
def progress_artifact() -> Iterator[Callable[[SweepProgress], None]]:
    """Give a function that records progress; a thread sends it to Prefect every few seconds."""
    latest: list[SweepProgress] = []
    has_ended = threading.Event()
    artifact = _created()
    sent = [0.0]

    def send() -> None:
        if artifact and latest and (percent := _percent(latest[-1])) != sent[0]:
            _update(artifact, percent)
            sent[0] = percent

    def repeat() -> None:
        while not has_ended.wait(_SECONDS_BETWEEN_UPDATES):
            send()
        send()

    # The context tells the thread which server the run uses.
    thread = threading.Thread(target=copy_context().run, args=(repeat,), name="progress", daemon=True)
    thread.start()

    def watch(progress: SweepProgress) -> None:
        latest[:] = [progress]

    try:
        yield watch
    finally:
        has_ended.set()
        thread.join(_SECONDS_BETWEEN_UPDATES)


def _percent(progress: SweepProgress) -> float:
    # The sweep is complete when its last search has landed; the rest is quick.
    return round(100 * progress.landed_searches / max(progress.planned_searches, 1), 1)


def _created() -> UUID | None:
    try:
        made = create_progress_artifact(0.0, key=PROGRESS_KEY, description="Searches of the sweep that have landed.")
    except Exception as error:
        logger.debug("there is no progress artifact: %r", error)
        return None
    return made if isinstance(made, UUID) else None


def _update(artifact: UUID, percent: float) -> None:
    try:
        update_progress_artifact(artifact, percent)
    except Exception as error:
        logger.debug("the progress artifact could not be updated: %r", error)
