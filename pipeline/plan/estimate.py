"""What a plan will cost, before a single call: bytes, hours and days.

Where earlier sweeps say what a cell costs, their averages are used. Where nothing has been measured yet, the figures
of `ASSUMED` are: they suit answers of some nine products a property and a supplier a continent away, and are meant to
get the order of magnitude right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pipeline.domain.search import Operation
from pipeline.plan import PlanCounts

SECONDS_PER_HOUR = 3600

# The request, the headers of interest and the record around them, beside the body as it came.
RAW_BYTES_PER_SEARCH = 1000


@dataclass(frozen=True, slots=True)
class OperationCost:
    """What asking costs on average.

    Bytes are per cell asked, whether or not it had an offer: as sent (compressed), and as rows of the lake's tables.
    The latency is that of a whole search, in seconds.
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


@dataclass(frozen=True, slots=True)
class CostHistory:
    """The averages of the last sweeps of this lake, for the operations that they used."""

    sweeps: int
    by_operation: Mapping[Operation, OperationCost] = field(default_factory=dict)


class Bound(StrEnum):
    """What keeps a sweep from being faster."""

    RATE = "rate"
    IN_FLIGHT = "in_flight"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sweep will take. Bytes are whole bytes; `days` is None where no daily cap is set.

    `assumed` names the operations of which no earlier sweep is known.
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


def estimate(
    counts: PlanCounts,
    rate_per_second: float,
    in_flight: int,
    history: CostHistory | None = None,
    daily_calls: int | None = None,
) -> Estimate:
    """Return what the plan will cost at the allowed rate (searches a second) and searches in flight.

    The hours are those of asking: the longer of what the rate and what latency and concurrency allow. Repeated
    attempts are not counted. `days` is how many days the searches take under a cap of `daily_calls`.
    """
    known = history.by_operation if history else {}
    cost_of = {operation: known.get(operation, ASSUMED[operation]) for operation in counts.cells_by_operation}
    wire_bytes = sum(cells * cost_of[each].wire_bytes_per_cell for each, cells in counts.cells_by_operation.items())
    table_bytes = sum(cells * cost_of[each].table_bytes_per_cell for each, cells in counts.cells_by_operation.items())
    waiting = sum(asked * cost_of[each].latency_seconds for each, asked in counts.searches_by_operation.items())
    seconds = {Bound.RATE: counts.searches / rate_per_second, Bound.IN_FLIGHT: waiting / in_flight}
    bound = max(seconds, key=lambda each: seconds[each])
    return Estimate(
        cells=counts.cells,
        searches=counts.searches,
        wire_bytes=round(wire_bytes),
        raw_bytes=round(wire_bytes) + RAW_BYTES_PER_SEARCH * counts.searches,
        table_bytes=round(table_bytes),
        hours=seconds[bound] / SECONDS_PER_HOUR,
        bound=bound,
        days=-(-counts.searches // daily_calls) if daily_calls else None,
        assumed=tuple(each for each in cost_of if each not in known),
    )
