"""What every part of the benchmark shares: a cost, contenders in processes of their own, and rows of the result.

A part has contenders. Each runs in a fresh process and says what its work cost; rounds interleave them, so that what
else the machine does meets all alike. Ratios are made within a round.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

_TESTS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Size:
    """How much to measure. `tiny` is for a test that all parts still run, `full` for results."""

    is_tiny: bool

    def of(self, full: int, tiny: int) -> int:
        """Return the one of two numbers that is meant."""
        return tiny if self.is_tiny else full

    @property
    def rounds(self) -> int:
        """How often each contender runs."""
        return self.of(3, 1)


@dataclass(frozen=True, slots=True)
class Cost:
    """What some work cost: CPU of the process and its children, wall time, and the peak of memory above its base."""

    units: float
    cpu_s: float
    wall_s: float
    peak_mb: float

    @property
    def cpu_us(self) -> float:
        """CPU microseconds a unit."""
        return 1e6 * self.cpu_s / self.units


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the result. `reached` None: there is nothing to reach."""

    part: str
    what: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    reach: str = ""
    reached: bool | None = None
    note: str = ""


@dataclass
class Result:
    """What a part found: rows, and points of curves (`curve`, `contender`, `x`, `y`) for the picture."""

    rows: list[Row] = field(default_factory=list)
    points: list[dict[str, object]] = field(default_factory=list)


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its ended children."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def cost_of(work: Callable[[], float]) -> Cost:
    """Run work, which returns how many units it did."""
    with Path("/proc/self/statm").open() as status:
        base_mb = int(status.read().split()[1]) * resource.getpagesize() / 1e6
    cpu, wall = cpu_seconds(), time.perf_counter()
    units = work()
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return Cost(units, cpu, wall, max(own - base_mb, 0.0))


def in_own_process(module: str, contender: str, arguments: Mapping[str, object]) -> Cost:
    """Run one contender of a part in a fresh process. Raises RuntimeError with what it wrote."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.parts.{module}", contender, json.dumps(arguments)],
        cwd=_TESTS,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{module}: {contender} failed:\n{done.stderr[-2000:]}")
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def contend(
    module: str, contenders: Sequence[str], arguments: Mapping[str, Mapping[str, object]], rounds: int
) -> dict[str, list[Cost]]:
    """Run all contenders, one after the other, so many rounds; `arguments` are those of each contender."""
    found: dict[str, list[Cost]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name in contenders:
            found[name].append(in_own_process(module, name, arguments[name]))
    return found


def answer_contender(contenders: Mapping[str, Callable[..., Callable[[], float]]]) -> None:
    """Be the process of one contender: prepare it, run it, and print its cost."""
    name, arguments = sys.argv[1], json.loads(sys.argv[2])
    print(json.dumps(asdict(cost_of(contenders[name](**arguments)))))  # noqa: T201 - what it is for


def ratio_row(
    part: str,
    what: str,
    ratios: Sequence[float],
    reach: float | None,
    *,
    is_least: bool = True,
    unit: str = "x",
    note: str = "",
) -> Row:
    """Return the row of a ratio's median, with its spread; `reach` is the least, or the most, that is aimed for."""
    value = statistics.median(ratios)
    sign = ">=" if is_least else "<="
    reached = None if reach is None else (value >= reach if is_least else value <= reach)
    text = "" if reach is None else f"{sign} {reach:g}"
    return Row(part, what, value, unit, min(ratios), max(ratios), text, reached, note)
