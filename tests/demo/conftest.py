"""A demo of two nights, made once for all tests of a run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest

from pipeline.demo import make_demo
from pipeline.settings import Settings
from pipeline.sweep import normalisers

LAST = date(2026, 10, 2)


@pytest.fixture(scope="session")
def two_nights(once_a_run):
    """Its settings, what `make_demo` returned, and the progress that it reported. Nothing may be written to it."""

    def make(folder):
        settings = Settings(_env_file=None, lake=str(folder / "lake"), workers=1)
        reported = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(normalisers, "ProcessPoolExecutor", lambda workers, *_, **__: ThreadPoolExecutor(workers))
            made = make_demo(settings, 2, LAST, reported.append)
        return settings, made, reported

    return once_a_run("demo-of-two-nights", make)
