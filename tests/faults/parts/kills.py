"""SIGKILL at renames and links, at writes, syncs and removals evenly between them, and at random instants."""

from __future__ import annotations

import random
from collections.abc import Iterator

from faults.lab import STEPS, Lab
from faults.parts import Try
from faults.tally import Tally, disturb

# Of how many tries each step has how many; what commits more has more.
_SHARES = {"sweep": 0.3, "audit": 0.15, "publish": 0.2, "report": 0.1, "lake": 0.25}
_AT_RANDOM = 0.25


def tries(count: int, chance: random.Random) -> Iterator[Try]:
    """Yield the kills, `count` in all; where each falls is chosen in the lab, which knows how many events there are."""
    for step in STEPS:
        of_step = round(count * _SHARES[step])
        at_random = round(of_step * _AT_RANDOM)
        for number in range(of_step - at_random):
            yield _at_event(step, number, of_step - at_random)
        for _ in range(at_random):
            yield _at_instant(step, chance.random())


def _at_event(step: str, number: int, of: int) -> Try:
    def run(lab: Lab) -> Tally:
        tally = Tally(f"kill at a write, {step}")
        kinds = lab.counted[step].kinds
        if not kinds:
            return _at_instant(step, (number + 0.5) / of)(lab)
        chosen = points(kinds, of)
        at = chosen[number % len(chosen)]
        mode = "kill before" if number % 2 else "kill after"
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


def points(kinds: str, count: int) -> list[int]:
    """Choose events, counted from 1: renames and links first, as far as they are half of all; others evenly."""
    commits = [number for number, kind in enumerate(kinds, 1) if kind in "rl"]
    chosen = _evenly(commits, count // 2)
    rest = [number for number in range(1, len(kinds) + 1) if number not in set(chosen)]
    return sorted([*chosen, *_evenly(rest, count - len(chosen))])


def _evenly(of: list[int], count: int) -> list[int]:
    if count >= len(of):
        return list(of)
    return [of[(2 * number + 1) * len(of) // (2 * count)] for number in range(count)]
