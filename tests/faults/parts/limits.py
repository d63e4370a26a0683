"""Too little memory, and too few descriptors."""

from __future__ import annotations

import random
from collections.abc import Iterator

from faults.lab import STEPS, Lab
from faults.parts import Try
from faults.tally import Tally, disturb

# Beyond what the process has when the command begins.
_MEMORY_MB = (20, 100, 400)
_DESCRIPTORS = (12, 24, 48)


def tries(_: int, __: random.Random) -> Iterator[Try]:
    """Yield each limit of each step."""
    for step in STEPS:
        for memory in _MEMORY_MB:
            yield _memory(step, memory)
        for descriptors in _DESCRIPTORS:
            yield _descriptors(step, descriptors)


def _memory(step: str, memory: int) -> Try:
    def run(lab: Lab) -> Tally:
        tally = Tally(f"short of memory, {step}")
        limit = lab.address_space_mb() + memory
        disturb(tally, lab, step, f"{memory} MB", address_space_mb=limit)
        return tally

    return run


def _descriptors(step: str, descriptors: int) -> Try:
    def run(lab: Lab) -> Tally:
        tally = Tally(f"short of descriptors, {step}")
        disturb(tally, lab, step, f"{descriptors} descriptors", descriptors=descriptors)
        return tally

    return run
