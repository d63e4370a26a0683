"""What a plan will cost, before a single call: bytes, hours and days, and the time for audit, publication and reports.

If earlier sweeps of this lake have measured the cost of a cell, their averages are used; otherwise the figures of
`ASSUMED`, for answers of some nine products per property and a supplier a continent away. They are meant to get the
order of magnitude right. An estimate says which of its figures were measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from pipeline.domain.search import Operation
from pipeline.plan import PlanCounts

SECONDS_PER_HOUR = 3600

# The request, the kept headers and the record around them, in addition to the body as received.
RAW_BYTES_PER_SEARCH = 1000


@dataclass(frozen=True, slots=True)
class OperationCost:
    """Average costs of requests.

    Bytes are per requested cell, with or without an offer: as sent (compressed), and as rows of the lake's tables.
    The latency is that of a complete search, in seconds.
    """

    wire_bytes_per_cell: float
    table_bytes_per_cell: float
    latency_seconds: float


# multi: 40 kB compressed and 9 offers at 20 bytes for each of a hundred properties. single: every product of every
# room, with descriptions and images.
ASSUMED: Mapping[Operation, OperationCost] = {
    Operation.MULTI: OperationCost(wire_bytes_per_cell=400, table_bytes_per_cell=200, latency_seconds=1.5),
    Operation.SINGLE: OperationCost(wire_bytes_per_cell=6000, table_bytes_per_cell=800, latency_seconds=1.0),
}
# The sandbox answers from the same machine, as fast as it can with the default number of searches in flight.
ASSUMED_OF_SANDBOX: Mapping[Operation, OperationCost] = {
    Operation.MULTI: OperationCost(wire_bytes_per_cell=400, table_bytes_per_cell=200, latency_seconds=0.13),
    Operation.SINGLE: OperationCost(wire_bytes_per_cell=6000, table_bytes_per_cell=800, latency_seconds=0.05),
}


class TimedStep(StrEnum):
    """A step of a night whose duration is estimated."""

    SWEEP = "sweep"
    AUDIT = "audit"
    PUBLISH = "publish"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class StepCost:
    """Time that a step of a night takes: seconds to begin and end, and seconds per cell of the sweep."""

    begin_seconds: float
    seconds_per_cell: float


# On a machine with two cores, with some nine offers per cell. The sweep is computed from rate and latency.
ASSUMED_STEPS: Mapping[TimedStep, StepCost] = {
    TimedStep.AUDIT: StepCost(begin_seconds=4, seconds_per_cell=40e-6),
    TimedStep.PUBLISH: StepCost(begin_seconds=3, seconds_per_cell=100e-6),
    TimedStep.REPORT: StepCost(begin_seconds=3, seconds_per_cell=40e-6),
}
# A night smaller than this share of the plan does not show what a cell costs, because starting took most of its time.
_TELLING_SHARE = 0.05
# A pace within this share of the allowed rate is that rate.
_NEAR = 0.9


@dataclass(frozen=True, slots=True)
class Duration:
    """Duration of a step in an earlier sweep of this lake.

    `rate_per_second` and `in_flight` are the limits of that sweep, and `paced_seconds` the total time that its requests
    waited for the rate limit; 0 for the other steps. `is_spread`: on a cluster.
    """

    seconds: float
    cells: int
    searches: int
    rate_per_second: float = 0.0
    in_flight: int = 0
    is_spread: bool = False
    paced_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CostHistory:
    """Costs of the last sweeps of this lake: averages by operation, and durations of the steps."""

    sweeps: int
    by_operation: Mapping[Operation, OperationCost] = field(default_factory=dict)
    durations: Mapping[TimedStep, Sequence[Duration]] = field(default_factory=dict)


class Bound(StrEnum):
    """What limits the speed of a sweep; `pace`: it will be as fast as earlier ones with the same limits."""

    RATE = "rate"
    IN_FLIGHT = "in_flight"
    PACE = "pace"


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """Seconds that a step will take, and the number of earlier nights that this comes from; 0: assumed.

    `is_spread`: in those nights, a cluster did it. Otherwise, the time is that of one machine.
    """

    seconds: float
    nights: int
    is_spread: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sweep will cost. `days` is None if no daily cap is set.

    `hours` are those of the sweep, and `bound` limits its speed. `assumed` names the operations that no earlier sweep
    has measured.
    """

    cells: int
    searches: int
    wire_bytes: int
    raw_bytes: int
    table_bytes: int
    hours: float
    bound: Bound
    days: int | None
    assumed: tuple[Operation, ...]
    steps: Mapping[TimedStep, StepEstimate] = field(default_factory=dict)


def estimate(
    counts: PlanCounts,
    rate_per_second: float,
    in_flight: int,
    history: CostHistory | None = None,
    daily_calls: int | None = None,
    *,
    is_simulated: bool = False,
    is_spread: bool = False,
) -> Estimate:
    """Return what the plan will cost at the allowed rate (searches per second) and searches in flight.

    The hours are those of the sweep: at the pace of earlier sweeps with the same limits or, if there are none, the
    longer of what the rate and what latency and concurrency allow. Retries are not counted. `days` is the number of
    days that the searches take under a cap of `daily_calls`.
    """
    history = history or CostHistory(0)
    known = history.by_operation
    assumed = ASSUMED_OF_SANDBOX if is_simulated else ASSUMED
    cost_of = {operation: known.get(operation, assumed[operation]) for operation in counts.cells_by_operation}
    wire_bytes = sum(cells * cost_of[each].wire_bytes_per_cell for each, cells in counts.cells_by_operation.items())
    table_bytes = sum(cells * cost_of[each].table_bytes_per_cell for each, cells in counts.cells_by_operation.items())
    waiting = sum(asked * cost_of[each].latency_seconds for each, asked in counts.searches_by_operation.items())
    at_rate = counts.searches / rate_per_second
    paces = _paces(history, counts, rate_per_second, in_flight)
    slower = (Bound.PACE, counts.searches * median(paces)) if paces else (Bound.IN_FLIGHT, waiting / in_flight)
    # A sweep that is held back by the rate alone never quite reaches it.
    bound = slower[0] if slower[1] * _NEAR > at_rate else Bound.RATE
    sweep = StepEstimate(max(at_rate, slower[1]), len(paces))
    return Estimate(
        cells=counts.cells,
        searches=counts.searches,
        wire_bytes=round(wire_bytes),
        raw_bytes=round(wire_bytes) + RAW_BYTES_PER_SEARCH * counts.searches,
        table_bytes=round(table_bytes),
        hours=sweep.seconds / SECONDS_PER_HOUR,
        bound=bound,
        days=-(-counts.searches // daily_calls) if daily_calls else None,
        assumed=tuple(each for each in cost_of if each not in known),
        steps={
            TimedStep.SWEEP: sweep,
            **{step: _step(step, counts.cells, history, is_spread=is_spread) for step in ASSUMED_STEPS},
        },
    )


def _paces(history: CostHistory, counts: PlanCounts, rate_per_second: float, in_flight: int) -> list[float]:
    """Return the average seconds per search in each earlier sweep with the same limits."""
    return [
        each.seconds / each.searches
        for each in history.durations.get(TimedStep.SWEEP, ())
        if (each.rate_per_second, each.in_flight) == (rate_per_second, in_flight)
        and each.searches >= _TELLING_SHARE * counts.searches
        and each.searches > 0
    ]


def _step(step: TimedStep, cells: int, history: CostHistory, *, is_spread: bool) -> StepEstimate:
    """Return how long a step after the sweep will take: the time to begin, and the earlier time per cell.

    On a cluster, nights that one machine computed count only if there are no others.
    """
    assumed = ASSUMED_STEPS[step]
    telling = [
        each for each in history.durations.get(step, ()) if each.cells > 0 and each.cells >= _TELLING_SHARE * cells
    ]
    spread = [each for each in telling if each.is_spread] if is_spread else []
    telling = spread or [each for each in telling if not each.is_spread]
    if not telling:
        return StepEstimate(assumed.begin_seconds + cells * assumed.seconds_per_cell, 0)
    seconds = []
    for each in telling:
        begin = min(assumed.begin_seconds, each.seconds)
        seconds.append(begin + (each.seconds - begin) * cells / each.cells)
    return StepEstimate(median(seconds), len(telling), is_spread=bool(spread))
