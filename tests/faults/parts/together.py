"""Two commands at once: each succeeds, or is refused because the other holds the lake and then succeeds.

Then the lake is as if one had followed the other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta

from faults.lab import STEPS, Lab
from faults.parts import TRIES, Counted, Try
from faults.rows import Held
from faults.tally import Tally, disturb, ending
from faults.warm import Ended

_OFTEN = 3
_CARE = ("lake", "--apply")
# A night that follows needs an hour of its own, and a rebuild every raw answer.
_LATER, _ALL_RAW = timedelta(hours=1), {"NIGHTAUDIT_RAW_NIGHTS": "0"}
# Two commands that begin at the same time, and the step after which they do.
_PAIRS = (
    ("before", ("sweep",), ("verify",)),
    ("before", ("sweep",), ("rebuild",)),
    ("sweep", ("audit",), _CARE),
    ("audit", ("nightly",), ("publish",)),
    ("audit", ("publish",), ("report",)),
    ("audit", ("publish",), ("verify", "--deep")),
    ("publish", ("report",), ("rebuild",)),
    ("report", _CARE, ("rebuild",)),
    ("report", _CARE, ("verify", "--deep")),
)


def tries(count: int, _: random.Random, counted: Counted) -> Iterator[Try]:
    """Yield two of each step, then the pairs, each a few times; fewer unless everything is wanted."""
    often = _OFTEN if count >= TRIES else 1
    for step in counted:
        for _again in range(often):
            yield _two(step)
    pairs = [(after, one, other) for after, one, other in _PAIRS if one[0] in counted or one[0] not in STEPS]
    for after, one, other in pairs if count >= TRIES else pairs[::3]:
        yield _pair(after, one, other, often)


def _two(step: str) -> Try:
    def run(lab: Lab) -> Tally:
        tally = Tally(f"two at once, {step}")
        disturb(tally, lab, step, "at once", beside=(lab.argv(step),))
        return tally

    return run


def _pair(after: str, one: tuple[str, ...], other: tuple[str, ...], often: int) -> Try:
    fault = f"at once, {' '.join(one)} and {' '.join(other)}"

    def run(lab: Lab) -> Tally:
        tally = Tally(fault)
        in_turn = [_one_by_one(lab, after, first, second) for first, second in ((one, other), (other, one))]
        for _ in range(often):
            tally.tries += 1
            lab.back_to(after)
            refused = []
            for argv, ended in zip((one, other), _run(lab, one, other), strict=True):
                tally.note(ended, " ".join(argv))
                if ending(ended) == "busy":
                    refused.append(argv)
                elif ended.code:
                    tally.broken.append(f"{fault}: {argv} ended with {ended.code}: {ended.said[-1500:]}")
            for argv in refused:
                _must(lab, argv)
            _compare(tally, lab.held(after), in_turn)
        return tally

    return run


def _one_by_one(lab: Lab, after: str, *commands: tuple[str, ...]) -> Held:
    lab.back_to(after)
    for argv in commands:
        _must(lab, argv)
    return lab.held(after)


def _must(lab: Lab, argv: tuple[str, ...]) -> None:
    (ended,) = _run(lab, argv)
    assert ended.code == 0, f"{argv} ended with {ended.code}:\n{ended.said[-3000:]}"


def _run(lab: Lab, argv: tuple[str, ...], *beside: tuple[str, ...]) -> list[Ended]:
    return lab.run(*argv, beside=beside, clock=lab.clock + _LATER, env=_ALL_RAW)


def _compare(tally: Tally, found: Held, in_turn: list[Held]) -> None:
    """Compare the result with running one after the other, in the order that comes closer."""
    differences = [(wanted.lost(found), wanted.doubled(found)) for wanted in in_turn]
    lost, doubled = min(differences, key=lambda both: sum(both[0].values()) + sum(both[1].values()))
    tally.lost += sum(lost.values())
    tally.doubled += sum(doubled.values())
    if lost or doubled:
        tally.broken.append(f"{tally.fault}: lost {lost}, doubled {doubled}")
