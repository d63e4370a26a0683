"""A supplier with all of its faults, for minutes: memory, descriptors and threads of the process stay flat."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from faults.lab import Lab, environment
from faults.parts import Counted, Try
from faults.tally import Tally

# Memory may waver: caches fill, arenas are given back late. A leak of one answer a sweep would be more than this.
_WAVERS_MB, _WAVERS_COUNT = 40, 8


def tries(count: int, _: random.Random, __: Counted) -> Iterator[Try]:
    """Yield the one try; with few kills asked for it is a short one."""
    seconds = 30 * 60 if os.environ.get("SOAK") == "1" else min(120, 2 * count)
    yield lambda lab: _soak(lab, seconds)


def _soak(lab: Lab, seconds: int) -> Tally:
    tally = Tally("all bad modes of a supplier", tries=1)
    ran = subprocess.run(
        [sys.executable, "-m", "faults.soak", str(lab.folder / "soak"), str(seconds)],
        env=environment(),
        capture_output=True,
        text=True,
    )
    if ran.returncode:
        tally.broken.append(f"{tally.fault}: {ran.stderr[-3000:]}")
        return tally
    rounds = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    tally.tries = len(rounds)
    tally.happened = Counter({"sweeps that added up": len(rounds)})
    tally.peak_mb = max(each["memory_mb"] for each in rounds)
    for name, wavers in (("memory_mb", _WAVERS_MB), ("descriptors", _WAVERS_COUNT), ("threads", _WAVERS_COUNT)):
        grown = _growth([each[name] for each in rounds])
        if grown > wavers:
            tally.broken.append(f"{tally.fault}: {name} grew by {grown:.0f} over {len(rounds)} sweeps")
    return tally


def _growth(values: Sequence[float]) -> float:
    """Return how much more the last third uses than the second; the first is warm-up."""
    third = len(values) // 3
    return median(values[2 * third :]) - median(values[third : 2 * third]) if third else 0
