"""Ranges of a night, worked on by processes of this machine."""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import dataclass

import pytest

from pipeline.domain.property_range import PropertyRange
from pipeline.domain.servers import Workforce
from pipeline.process.range_pool import RangePool


@dataclass(frozen=True)
class Part:
    """A range that cannot be cut."""

    within: PropertyRange
    sweep_id: str = "20300101T020000Z-000000"

    def halves(self) -> list[Part]:
        return []


def by_whom(parts: list[Part]) -> list[int]:
    """Return, for each part, the process that worked on it, which takes long enough for others to begin."""
    time.sleep(0.3)
    return [os.getpid() for _ in parts]


@pytest.mark.parametrize("workers", [1, 2])
def test_as_many_processes_work_at_once_as_the_settings_allow(tmp_path, workers):
    parts = [Part(PropertyRange(number, number)) for number in range(6)]
    with closing(RangePool("a step", "again", tmp_path, None, Workforce(workers))) as pool:
        assert len(set(pool.across(by_whom, parts))) == workers
