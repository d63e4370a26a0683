"""Too little memory and too few descriptors, which is reported; and the reported minimum, which must be enough."""

from __future__ import annotations

import random
from collections.abc import Iterator

from faults.lab import Lab
from faults.parts import Counted, Try
from faults.tally import Tally, disturb

from pipeline.process.limits import CHARTS_MB, needed_mb

# Beyond what the process has when the command begins.
_MEMORY_MB = (20, 400)
_DESCRIPTORS = (12, 48)
# What a command asks for; a sweep asks for as many more as it may have requests in flight.
_ENOUGH_DESCRIPTORS = 256 + 32


def tries(_: int, __: random.Random, counted: Counted) -> Iterator[Try]:
    """Yield each limit of each step."""
    for step in counted:
        for memory in _MEMORY_MB:
            yield _memory(step, memory)
        for descriptors in _DESCRIPTORS:
            yield _descriptors(step, descriptors)
        yield _enough(step)


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


def _enough(step: str) -> Try:
    def run(lab: Lab) -> Tally:
        tally = Tally(f"just enough memory and descriptors, {step}")
        space = needed_mb(CHARTS_MB if step == "report" else 0)
        disturb(tally, lab, step, "enough", address_space_mb=space, descriptors=_ENOUGH_DESCRIPTORS)
        if tally.happened.keys() != {"done"}:
            tally.broken.append(f"{tally.fault}: {dict(tally.happened)}")
        return tally

    return run
