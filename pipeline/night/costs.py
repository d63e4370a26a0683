"""What earlier sweeps cost, for estimates of the next."""

from __future__ import annotations

from pathlib import Path

from pipeline.domain.errors import InputError
from pipeline.domain.search import Operation
from pipeline.lake.database import query_published
from pipeline.lake.relations import relation
from pipeline.plan.estimate import CostHistory, OperationCost


def cost_history(published_file: Path) -> CostHistory | None:
    """Return the averages of the last published sweeps; None where nothing is published yet."""
    if not published_file.exists():
        return None
    try:
        rows = query_published(published_file, relation("staging", "search_cost").sql).fetchall()
    except InputError:
        # A published file of another version must not stand in the way of a plan.
        return None
    costs = {
        Operation(operation): OperationCost(wire_bytes, table_bytes, latency)
        for operation, _, wire_bytes, table_bytes, latency in rows
    }
    return CostHistory(max((row[1] for row in rows), default=0), costs) if costs else None
