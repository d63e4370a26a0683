"""A clock set back by an hour and by a day, and nights around the two days on which clocks change."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta

from faults.lab import STEPS, Lab
from faults.parts import Counted, Try
from faults.rows import Held, held
from faults.tally import Tally, disturb

_BACK = {"an hour": timedelta(hours=1), "two days": timedelta(days=2)}
# In Stockholm, 02:30 is left out on 31 March, and comes twice on 27 October.
_CHANGES = {
    "spring": ("2030-03-30T01:30:00+00:00", "2030-03-31T00:59:00+00:00", "2030-03-31T01:30:00+00:00"),
    "autumn": ("2030-10-26T00:30:00+00:00", "2030-10-27T00:30:00+00:00", "2030-10-27T01:30:00+00:00"),
}


def tries(_: int, __: random.Random, ___: Counted) -> Iterator[Try]:
    """Yield each step with each clock, then the nights of spring and autumn."""
    # A file that is loaded is recorded with the clock's time, so with another clock the lake differs rightly.
    for step in (each for each in STEPS if each != "load"):
        for name, back in _BACK.items():
            yield _set_back(step, name, back)
    for season in _CHANGES:
        yield _zone(season)


def _set_back(step: str, name: str, back: timedelta) -> Try:
    def run(lab: Lab) -> Tally:
        tally = Tally("clock set back")
        # A sweep that is to follow is compared with the night before, the others with the night itself.
        earlier = (lab.clock if step != "sweep" else lab.clock - timedelta(days=1)) - back
        disturb(tally, lab, step, f"{step}, {name}", clock=earlier)
        return tally

    return run


def _zone(season: str) -> Try:
    def run(lab: Lab) -> Tally:
        tally = Tally(f"clocks change in {season}", tries=1)
        wanted, found = _nights(tally, lab, season, "UTC"), _nights(tally, lab, season, "Europe/Stockholm")
        tally.lost, tally.doubled = sum(wanted.lost(found).values()), sum(wanted.doubled(found).values())
        if tally.lost or tally.doubled:
            tally.broken.append(f"{tally.fault}: {wanted.lost(found)}, {wanted.doubled(found)}")
        lab.turn_to(1)
        return tally

    return run


def _nights(tally: Tally, lab: Lab, season: str, zone: str) -> Held:
    shutil.rmtree(lab.lake)
    for number, instant in enumerate(_CHANGES[season]):
        clock = datetime.fromisoformat(instant)
        lab.turn_to(number, clock)
        for step in STEPS[:3]:
            (ended,) = lab.run(step, clock=clock, env={"TZ": zone})
            tally.note(ended, f"{zone}, night {number + 1}, {step}")
            if ended.code:
                tally.broken.append(f"{tally.fault}, {zone}, {step}: {ended.said[-1500:]}")
    return held(lab.lake)
