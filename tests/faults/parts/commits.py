"""SIGKILL as a file is renamed or linked into its place, before it or after it in turn: each file of each step."""

from __future__ import annotations

import random
from collections.abc import Iterator

from faults.lab import Lab
from faults.parts import TRIES, Counted, Try
from faults.parts.kills import evenly
from faults.tally import Tally, disturb


def tries(count: int, _: random.Random, counted: Counted) -> Iterator[Try]:
    """Yield each file of each step; fewer, evenly chosen, unless everything is wanted.

    Files are known by their names, because threads finish in a different order each time.
    """
    for step in counted:
        names = sorted(set(counted[step].names))
        for number, name in enumerate(names if count >= TRIES else evenly(names, max(1, count // len(counted)))):
            yield _at(step, name, "kill before name" if number % 2 else "kill after name")


def _at(step: str, name: str, mode: str) -> Try:
    def run(lab: Lab) -> Tally:
        tally = Tally(f"kill at a rename or link, {step}")
        disturb(tally, lab, step, f"{mode} {name}", mode=mode, name=name)
        return tally

    return run
