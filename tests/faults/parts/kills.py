"""SIGKILL at writes, syncs and removals, evenly chosen between those of a step, and at random instants."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

from faults.lab import Lab
from faults.parts import Counted, Try
from faults.tally import Tally, disturb

# Of how many tries each step has how many; what writes more has more.
_SHARES = {"sweep": 0.25, "audit": 0.1, "publish": 0.2, "report": 0.1, "lake": 0.2, "rebuild": 0.1, "load": 0.05}
_AT_RANDOM = 0.4
Item = TypeVar("Item")


def tries(count: int, chance: random.Random, counted: Counted) -> Iterator[Try]:
    """Yield the kills, `count` in all; without a C compiler there are no events, and all are at random instants."""
    for step in counted:
        kinds, of_step = counted[step].kinds, round(count * _SHARES[step])
        writes = [number for number, kind in enumerate(kinds, 1) if kind not in "rl"]
        chosen = evenly(writes, of_step - round(of_step * _AT_RANDOM))
        for number, at in enumerate(chosen):
            yield _at_event(step, at, "kill before" if number % 2 else "kill after")
        for _ in range(of_step - len(chosen)):
            yield _at_instant(step, chance.random())


def _at_event(step: str, at: int, mode: str) -> Try:
    def run(lab: Lab) -> Tally:
        tally = Tally(f"kill at a write, {step}")
        disturb(tally, lab, step, f"{mode} event {at}", mode=mode, at=at)
        return tally

    return run


def _at_instant(step: str, share: float) -> Try:
    def run(lab: Lab) -> Tally:
        tally = Tally(f"kill at random, {step}")
        seconds = share * lab.counted[step].seconds
        disturb(tally, lab, step, f"after {seconds:.3f} s", kill_at_s=seconds)
        return tally

    return run


def evenly(of: Sequence[Item], count: int) -> list[Item]:
    """Choose `count` of them, evenly; all, if there are no more."""
    if count >= len(of):
        return list(of)
    return [of[(2 * number + 1) * len(of) // (2 * count)] for number in range(count)]
