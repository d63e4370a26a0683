"""Python's own tracker of shared resources, which prints tracebacks if it is killed from outside."""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

logger = logging.getLogger(__name__)

_ERRORS = 2


def run_tracker() -> None:
    """Start the tracker, silenced; if it was killed from outside, start another one and log a warning.

    A new tracker does not know what was shared before, and would complain about each part that is released.
    """
    with warnings.catch_warnings(record=True) as caught, _nothing_printed():
        warnings.simplefilter("always")
        resource_tracker.ensure_running()
    if caught:
        logger.warning("Python's resource tracker was killed from outside; a new one is running, and nothing is lost.")


@contextmanager
def _nothing_printed() -> Iterator[None]:
    """Silence the standard error of processes that are started within."""
    printed, nowhere = os.dup(_ERRORS), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _ERRORS)
    try:
        yield
    finally:
        os.dup2(printed, _ERRORS)
        os.close(printed)
        os.close(nowhere)
