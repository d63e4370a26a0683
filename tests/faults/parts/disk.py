"""A disk that is full after a tenth, two tenths … of what a step writes, and one that cannot be written at all."""

from __future__ import annotations

import random
from collections.abc import Iterator

from faults.lab import Lab
from faults.parts import Counted, Try
from faults.tally import Tally, disturb

_LEVELS = 10


def tries(count: int, _: random.Random, counted: Counted) -> Iterator[Try]:
    """Yield the levels of each step, then the steps on a read-only lake; fewer levels if there are fewer tries."""
    levels = min(_LEVELS, max(1, count // len(counted)))
    for step in counted:
        for level in range(levels):
            yield _full(step, level / levels)
        yield _read_only(step)


def _full(step: str, share: float) -> Try:
    def run(lab: Lab) -> Tally:
        tally = Tally(f"disk full, {step}")
        if not lab.counted[step].bytes:
            return Tally("disk full, read-only lake: left out, there is no C compiler")
        disturb(tally, lab, step, f"at {share:.0%}", mode="full", at=int(share * lab.counted[step].bytes))
        return _must_say_so(tally)

    return run


def _read_only(step: str) -> Try:
    def run(lab: Lab) -> Tally:
        tally = Tally("read-only lake")
        if not lab.counted[step].bytes:
            return Tally("disk full, read-only lake: left out, there is no C compiler")
        disturb(tally, lab, step, step, mode="read-only")
        return _must_say_so(tally)

    return run


def _must_say_so(tally: Tally) -> Tally:
    """Check that a step ends with the exit code of a refused write, or needs no such write."""
    if not tally.happened.keys() <= {"done", "no space"}:
        tally.broken.append(f"{tally.fault}: {'; '.join(tally.said)}")
    return tally
