"""Two of the same at once: one of them, or both, do the step, and it is done once."""

from __future__ import annotations

import random
from collections.abc import Iterator

from faults.lab import STEPS, Lab
from faults.parts import Counted, Try
from faults.tally import Tally, disturb

_OFTEN = 3


def tries(_: int, __: random.Random, ___: Counted) -> Iterator[Try]:
    """Yield each step, a few times."""
    for step in STEPS:
        for _again in range(_OFTEN):
            yield _two(step)


def _two(step: str) -> Try:
    def run(lab: Lab) -> Tally:
        tally = Tally(f"two at once, {step}")
        disturb(tally, lab, step, "at once", times=2)
        return tally

    return run
