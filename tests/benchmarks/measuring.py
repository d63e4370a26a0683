"""What all parts of the benchmark share: costs, contenders in separate processes, and rows of the result.

A part has contenders. Each runs in a fresh process, says when it is ready, and then what its work cost; rounds
interleave them, so that what else the machine does meets all alike. Ratios are made within a round. Memory is looked
at from outside, over all processes that a contender starts.
"""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO

import psutil

_TESTS = Path(__file__).parents[1]
_READY = "ready"
# Of prctl(2).
_SET_CHILD_SUBREAPER = 36
_LOOK_EVERY_S = 0.05
_ORPHANS_END_S = 10
# Finding the processes costs more than looking at them.
_LOOKS_A_FAMILY = 5


@dataclass(frozen=True, slots=True)
class Size:
    """How much to measure. `tiny` is for a test that all parts still run, `full` for results."""

    is_tiny: bool

    def of(self, full: int, tiny: int) -> int:
        """Return the number for this size."""
        return tiny if self.is_tiny else full

    @property
    def name(self) -> str:
        """Its name in the results."""
        return "tiny" if self.is_tiny else "full"

    @property
    def rounds(self) -> int:
        """Number of rounds of each contender."""
        return self.of(3, 1)


@dataclass(frozen=True, slots=True)
class Cost:
    """What some work cost: CPU of the process and its children, wall time, and the peak of memory above its base.

    `peak_mb` is the greatest sum that was seen of the memory of all processes together (PSS: a page that several
    share is counted once), `largest_mb` that of the largest of them, and `largest_started_mb` that of the largest
    which the first one started; both with their base. `written_mb` is what all of them handed to the disk, also what
    was deleted before it got there; 0 where the system does not say.
    """

    units: float
    cpu_s: float
    wall_s: float
    peak_mb: float = 0.0
    largest_mb: float = 0.0
    largest_started_mb: float = 0.0
    written_mb: float = 0.0

    @property
    def cpu_us(self) -> float:
        """CPU microseconds per unit."""
        return 1e6 * self.cpu_s / self.units


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the result. `reached` None: it has no target."""

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
    """What a part found: rows, points of curves (`curve`, `who`, `x`, `y`) for the picture, and what it left out."""

    rows: list[Row] = field(default_factory=list)
    points: list[dict[str, object]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep Python's collector from running, then restore it: what runs next in this process needs it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its ended children."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def written_mb() -> float:
    """Return what this process and its ended children have handed to the disk, as Linux counts it; 0 elsewhere."""
    if sys.platform != "linux":
        return 0.0
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1e6 for line in lines if line.startswith("write_bytes"))


def cost_of(work: Callable[[], float]) -> Cost:
    """Run work, which returns how many units it did, in this process; what it leaves running is waited for."""
    with _orphans_counted():
        cpu, wall, written = cpu_seconds(), time.perf_counter(), written_mb()
        units = work()
        wall_s = time.perf_counter() - wall
    return Cost(units, cpu_seconds() - cpu, wall_s, written_mb=written_mb() - written)


@contextmanager
def _orphans_counted() -> Iterator[None]:
    """Adopt processes whose parent ends, and wait for them: otherwise their cost is unknown.

    The helpers of Python's multiprocessing are such: they end on their own once their parent has ended.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = {child.pid for child in psutil.Process().children()}
    yield
    left = [child for child in psutil.Process().children() if child.pid not in before]
    if alive := psutil.wait_procs(left, _ORPHANS_END_S)[1]:
        raise RuntimeError(f"these processes do not end, so their cost is unknown: {alive}")


class Watch:
    """Measures the memory of a process and its descendants until they end."""

    def __init__(self, pid: int) -> None:
        self._root = pid
        self._family: list[psutil.Process] = []
        self._looks = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self.peak_mb = self.largest_mb = self.largest_started_mb = 0.0

    def look(self) -> float:
        """Take one sample; return the memory of all processes together, in MB."""
        held = []
        try:
            if self._looks % _LOOKS_A_FAMILY == 0:
                root = psutil.Process(self._root)
                self._family = [root, *root.children(recursive=True)]
        except psutil.Error:
            pass
        self._looks += 1
        for process in self._family:
            try:
                held.append(process.memory_full_info().pss / 1e6)
                if process.pid != self._root:
                    self.largest_started_mb = max(self.largest_started_mb, held[-1])
            except psutil.Error:
                continue
        self.largest_mb = max(self.largest_mb, max(held, default=0.0))
        self.peak_mb = max(self.peak_mb, sum(held))
        return sum(held)

    def start(self) -> Watch:
        """Keep sampling, in a thread."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop sampling."""
        self._ended.set()
        self._thread.join()

    def _look_on(self) -> None:
        while not self._ended.is_set():
            self.look()
            self._ended.wait(_LOOK_EVERY_S)


def in_own_process(module: str, contender: str, arguments: Mapping[str, object]) -> Cost:
    """Run one contender of a part in a fresh process. Raises RuntimeError with what it wrote."""
    running = subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.parts.{module}", contender, json.dumps(arguments)],
        cwd=_TESTS,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdin is not None
    assert running.stdout is not None
    is_ready = any(line.strip() == _READY for line in running.stdout)
    watch = Watch(running.pid)
    base_mb = watch.look() if is_ready else 0.0
    watch.start()
    said, failure = running.communicate("go\n" if is_ready else None)
    watch.stop()
    if running.returncode:
        raise RuntimeError(f"{module}: {contender} failed:\n{failure[-2000:]}")
    cost = Cost(**json.loads(said.splitlines()[-1]))
    return replace(
        cost,
        peak_mb=max(watch.peak_mb - base_mb, 0.0),
        largest_mb=watch.largest_mb,
        largest_started_mb=watch.largest_started_mb,
    )


def cost_of_command(
    command: Sequence[str], environment: Mapping[str, str], units: float = 1, accepted: Sequence[int] = (0,)
) -> Cost:
    """Run a command from a cold start; all of it is counted. Raises RuntimeError for an exit code not accepted."""
    with _scratch() as output:
        with _orphans_counted():
            cpu, began, written = cpu_seconds(), time.perf_counter(), written_mb()
            running = subprocess.Popen(command, env=dict(environment), stdout=output, stderr=subprocess.STDOUT)
            watch = Watch(running.pid).start()
            running.wait()
            wall_s = time.perf_counter() - began
            watch.stop()
        cpu_s, handed_mb = cpu_seconds() - cpu, written_mb() - written
        output.seek(0)
        said = output.read().decode(errors="replace")
    if running.returncode not in accepted:
        raise RuntimeError(f"{command} ended with {running.returncode}:\n{said[-2000:]}")
    return Cost(units, cpu_s, wall_s, watch.peak_mb, watch.largest_mb, watch.largest_started_mb, handed_mb)


def _scratch() -> IO[bytes]:
    import tempfile

    return tempfile.TemporaryFile()


def contend(
    module: str, contenders: Sequence[str], arguments: Mapping[str, Mapping[str, object]], rounds: int
) -> dict[str, list[Cost]]:
    """Run all contenders, one after the other, for several rounds; `arguments` are those of each contender."""
    found: dict[str, list[Cost]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name in contenders:
            found[name].append(in_own_process(module, name, arguments[name]))
    return found


def answer_contender(contenders: Mapping[str, Callable[..., Callable[[], float]]]) -> None:
    """Be the process of one contender: prepare it, wait for the word, run it, and print its cost."""
    name, arguments = sys.argv[1], json.loads(sys.argv[2])
    work = contenders[name](**arguments)
    print(_READY, flush=True)  # noqa: T201 - what it is for
    sys.stdin.readline()
    print(json.dumps(asdict(cost_of(work))))  # noqa: T201 - what it is for


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
    """Return the row of a ratio's median, with its spread; `reach` is the target: a minimum or a maximum."""
    value = statistics.median(ratios)
    sign = ">=" if is_least else "<="
    reached = None if reach is None else (value >= reach if is_least else value <= reach)
    text = "" if reach is None else f"{sign} {reach:g}"
    return Row(part, what, value, unit, min(ratios), max(ratios), text, reached, note)


TIMES = (1, 4, 16)


def add_growth(
    result: Result, part: str, stage: str, sizes: Sequence[float], rounds: Sequence[Sequence[float]]
) -> None:
    """Add the cost per cell of a stage at 1x, 4x and 16x, in CPU seconds of each round: a row, and a curve.

    Fixed costs make small nights dearer per cell; costs that grow faster than the cells, large ones.
    """
    ratios = [(cpu_s[2] / sizes[2]) / (cpu_s[1] / sizes[1]) for cpu_s in rounds]
    cpu_s = [statistics.median(costs) for costs in zip(*rounds, strict=True)]
    a_cell = [1e6 * cost / cells for cells, cost in zip(sizes, cpu_s, strict=True)]
    note = "CPU us per cell: " + ", ".join(f"{t}x {us:.3g}" for t, us in zip(TIMES, a_cell, strict=True))
    if len(rounds) == 1:
        note += "; one run each"
    result.rows.append(
        ratio_row(part, f"{stage}: CPU per cell, 16x compared with 4x", ratios, 1.1, is_least=False, note=note)
    )
    result.points += [
        {"curve": "CPU seconds of a stage over the night's cells", "who": stage, "x": cells, "y": cost}
        for cells, cost in zip(sizes, cpu_s, strict=True)
    ]
