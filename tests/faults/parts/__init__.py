"""The parts of the suite. Each yields tries: functions of a lab, which may run in any order, side by side."""

from __future__ import annotations

from collections.abc import Callable

from faults.lab import Lab
from faults.tally import Tally

Try = Callable[[Lab], Tally]
