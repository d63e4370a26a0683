"""The parts of the suite. Each yields tries: functions of a lab, which may run in any order, side by side.

`tries(count, chance, counted)` of a part gets how much is wanted (`TRIES` is everything), and how each step ended
that nothing befell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from faults.lab import Lab
from faults.tally import Tally
from faults.warm import Ended

Try = Callable[[Lab], Tally]
Counted = Mapping[str, Ended]
TRIES = 100
