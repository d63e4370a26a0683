"""The cells of a segment: what was planned, and the one status of each."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pipeline.domain.codes import ERROR_CODES, CodeKind
from pipeline.domain.search import STATUSES, CellStatus, Operation
from pipeline.domain.tables import CELL
from pipeline.normalise.columns import AskedSearches, constant, in_declared_order, spread
from pipeline.normalise.read_answer import Reading
from pipeline.supplier.envelope import Rest

Verdict = tuple[CellStatus, int | None]
"""The status of a cell, with the code that goes with it."""

_STATUS_OF_KIND = {CodeKind.NO_AVAILABILITY: CellStatus.NO_OFFER, CodeKind.VALIDATION: CellStatus.REJECTED}
OFFERED: Verdict = (CellStatus.OFFERED, None)
FAILED: Verdict = (CellStatus.FAILED, None)
_STATUS_NUMBERS = {status: number for number, status in enumerate(CellStatus)}


class Cells:
    """The cells of a segment, one list a column."""

    def __init__(self) -> None:
        self.search: list[int] = []
        self.property_id: list[int] = []
        self.status: list[int] = []
        self.code: list[int | None] = []
        self.offers: list[int] = []

    def add(self, search: int, property_ids: Sequence[int], verdicts: Sequence[Verdict], offers: Sequence[int]) -> None:
        """Add the cells of one search, a verdict and a number of offers each."""
        self.search += [search] * len(property_ids)
        self.property_id += property_ids
        self.status += [_STATUS_NUMBERS[status] for status, _ in verdicts]
        self.code += [code for _, code in verdicts]
        self.offers += offers

    def add_all(self, search: int, property_ids: Sequence[int], status: CellStatus, code: int | None = None) -> None:
        """Add the cells of a search that share one status and have no offers."""
        count = len(property_ids)
        self.add(search, property_ids, [(status, code)] * count, [0] * count)

    def table(self, operation: Operation, searches: AskedSearches) -> pa.Table:
        """Return the cells as declared; `searches` are those that they refer to."""
        search = np.array(self.search, dtype=np.int32)
        columns = searches.columns(search) | {
            "operation": constant(operation.value, len(search)),
            "property_id": pa.array(self.property_id, pa.int64()),
            "status": spread(STATUSES, pa.string(), np.array(self.status, dtype=np.int32)),
            "code": pa.array(self.code, pa.int32()),
            "offers": pa.array(self.offers, pa.int32()),
        }
        return in_declared_order(CELL, columns, len(search))


def verdicts(operation: Operation, reading: Reading, property_ids: Sequence[int]) -> list[Verdict]:
    """Return the verdict of an answer on each requested property."""
    unlisted = status, code = _verdict_on_unlisted(operation, reading)
    without_products = (CellStatus.NO_OFFER, code if status is CellStatus.NO_OFFER else None)
    if reading.is_failure:
        without_products = unlisted
    found: list[Verdict] = []
    for property_id in property_ids:
        offers = reading.returned.get(property_id)
        if offers:
            found.append(OFFERED)
        elif reading.is_unreadable or property_id in reading.unreadable:
            found.append(unlisted if status is CellStatus.FAILED else FAILED)
        else:
            found.append(unlisted if offers is None else without_products)
    return found


def _verdict_on_unlisted(operation: Operation, reading: Reading) -> Verdict:
    """Return the verdict of an answer on the properties that it does not list."""
    rest, code = reading.rest
    if rest is Rest.NOT_LISTED:
        return (CellStatus.ABSENT if operation is Operation.MULTI else CellStatus.NO_OFFER), None
    if rest is Rest.CODE and code is not None:
        return _STATUS_OF_KIND[ERROR_CODES[code].kind], code
    # An unknown code or a failure says nothing about what is on sale.
    return CellStatus.FAILED, code
