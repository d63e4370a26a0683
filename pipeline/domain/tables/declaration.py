"""How tables are declared: columns, their types, and the columns that many tables share."""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

TEXT = pa.string()
SMALL = pa.int16()
INT = pa.int32()
LONG = pa.int64()
NUMBER = pa.float64()
FLAG = pa.bool_()
DAY = pa.date32()
INSTANT = pa.timestamp("us", tz="UTC")
MONEY_SCALE = 4
MONEY = pa.decimal128(18, MONEY_SCALE)
# More than any stay costs in any currency, and small enough that sums over rooms and nights still fit MONEY.
MOST_MONEY = 1e11
# Reference rates are stated with up to six or seven decimals.
RATE_SCALE = 8
RATE = pa.decimal128(18, RATE_SCALE)


@dataclass(frozen=True, slots=True)
class Column:
    """A column; its meaning is the published comment, word for word.

    The quality gate checks its values against `values`, `lowest` and `highest`, and NULL against `is_required`.
    `derived` is SQL that computes the column from the others when the table is read; files do not have it.
    """

    name: str
    type: pa.DataType
    meaning: str
    is_required: bool = False
    values: tuple[str, ...] = ()
    lowest: float | None = None
    highest: float | None = None
    derived: str = ""

    @property
    def read_type(self) -> pa.DataType:
        """Its type for readers: ids are int64, even where files hold int32."""
        return LONG if self.type == INT and self.name.endswith("_id") else self.type


@dataclass(frozen=True)
class Table:
    """A table of the lake. `key` is unique over the whole table."""

    name: str
    grain: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @cached_property
    def stored(self) -> tuple[Column, ...]:
        """The columns that its files have."""
        return tuple(column for column in self.columns if not column.derived)

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of its files, in the order of declaration."""
        return pa.schema([pa.field(c.name, c.type, nullable=not c.is_required) for c in self.stored])

    def pick(self, *names: str) -> tuple[Column, ...]:
        """The columns of these names, in the order of declaration."""
        return tuple(column for column in self.columns if column.name in names)


def required(
    name: str,
    kind: pa.DataType,
    meaning: str,
    values: tuple[str, ...] = (),
    lowest: float | None = None,
) -> Column:
    """Return a column that is never NULL."""
    return Column(name, kind, meaning, True, values, lowest)


def amount(name: str, meaning: str) -> Column:
    """Return a column of money that is not negative, and not more than any stay costs."""
    return Column(name, MONEY, meaning, lowest=0, highest=MOST_MONEY)


SWEEP_ID = required("sweep_id", TEXT, "Sweep id: start in UTC and a short hash of what was requested.")
SEARCH_ID = required(
    "search_id", LONG, "HTTP search of the sweep: planned number x 256 + 1; halves of a batch have a higher remainder."
)
OFFER_NO = required("offer_no", INT, "Position of the offer in the answer, from 0.", lowest=0)
RAW_ADDRESS = Column("raw_address", TEXT, "Address of the raw answer: object of the lake, #, row.")

OPERATION = required("operation", TEXT, "`multi` or `single`.")
SOURCE = required("source", TEXT, "`multi` or `detail`: two series that are never mixed.")
PROPERTY_ID = required("property_id", LONG, "The supplier's property id.")
MARKET = required("market", TEXT, "Requested market code: the point of sale.")
PRODUCT_TYPE = required("product_type", TEXT, "`Hotel` or `Package`, as requested.", ("Hotel", "Package"))
CHECK_IN = required("check_in", DAY, "First night of the stay.")
STAY = (
    CHECK_IN,
    required("nights", SMALL, "Nights of the stay; the day of departure is check_in + nights.", lowest=1),
    required("party", TEXT, "Guests of all rooms, joined by +; 2c5-9 is two adults with children aged 5 and 9."),
)
SOLD_IN = (MARKET, PRODUCT_TYPE)
STAY_SOLD_IN = (*SOLD_IN, *STAY)
ASKED = (
    *STAY_SOLD_IN,
    Column("currency_asked", TEXT, "Requested ISO 4217 code; NULL: none was requested."),
)
CELL_KEY = required("cell_key", LONG, "Stable hash of the request, the same for both operations: mart.cell_key.")
