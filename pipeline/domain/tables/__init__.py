"""The lake's tables, declared once, by subject: columns, types, units, grain and keys.

Everything that writes, checks, documents or publishes a table reads these declarations. Money is
DECIMAL(18,4) in the currency of the same row; instants are UTC; `_pct` is 0 to 100.
"""

from pipeline.domain.tables.cell_state import (
    CELL_CLOSED,
    CELL_COUNT,
    CELL_STATE,
    PROPERTY_SALE,
    QUIET_SEARCH,
    STOCK_CHANGE,
)
from pipeline.domain.tables.content import (
    CONTENT_STATES,
    CONTENT_TABLES,
    PROPERTY_CONTENT,
    ROOM_CONTENT,
    WORKING_TABLES,
)
from pipeline.domain.tables.declaration import (
    DAY,
    FLAG,
    INSTANT,
    INT,
    LONG,
    MONEY,
    MONEY_SCALE,
    MOST_MONEY,
    NUMBER,
    RATE,
    RATE_SCALE,
    SMALL,
    TEXT,
    Column,
    Table,
)
from pipeline.domain.tables.finding import (
    CASE_NOTE,
    CASE_OUTLIER,
    CASE_SCOPE,
    CONFIRMATION,
    FAILED_RULE,
    FINDING_COLUMNS,
    FLAG_CLOSED,
    FLAG_ID,
    FLAG_OPEN,
)
from pipeline.domain.tables.inputs import (
    FX_RATE,
    INPUT_TABLES,
    PROPERTY_CHECK_IN,
    PROPERTY_FILE,
    PROPERTY_MAP,
    SELLING_PRICE,
    WEIGHT,
)
from pipeline.domain.tables.offer import OFFER, OFFER_CHANGE, PENALTY, PROMOTION
from pipeline.domain.tables.offer_state import OFFER_CLOSED, OFFER_OPEN, REFERENCE_CHOICE, STATE_FILE
from pipeline.domain.tables.price_state import (
    FLOOR_MOVE,
    PARITY_CLOSED,
    PARITY_GROUP_CLOSED,
    PARITY_GROUP_OPEN,
    PARITY_OPEN,
    PRICE_CHANGE,
    PRICE_MOVE,
    WAITING,
)
from pipeline.domain.tables.quote import QUOTE, QUOTE_OFFER, QUOTE_PENALTY, QUOTE_PROMOTION, QUOTE_TABLES
from pipeline.domain.tables.sweep import CELL, DRIFT, QUALITY, REJECT, SEARCH, SWEEP, SWEEP_PUBLISHED
from pipeline.domain.tables.terms_state import (
    DETAIL_PENALTY,
    POLICY_DRIFT,
    POLICY_STATE,
    PROMOTION_CLOSED,
    PROMOTION_OPEN,
    PROMOTION_STATE,
)

__all__ = [
    "CASE_NOTE", "CELL", "CONFIRMATION", "CONTENT_STATES", "CONTENT_TABLES", "DAY", "DRIFT", "FAILED_RULE",
    "FINDING_COLUMNS", "FLAG", "FLAG_CLOSED", "FLAG_ID", "FX_RATE", "INPUT_TABLES", "INSTANT", "INT", "LONG",
    "MADE_OF_RAW", "MONEY", "MONEY_SCALE", "MOST_MONEY", "NUMBER", "OFFER", "OFFER_CHANGE", "PARITY_GROUP_OPEN",
    "PARITY_OPEN", "PENALTY", "PROMOTION", "PROPERTY_CHECK_IN", "PROPERTY_CONTENT", "PROPERTY_FILE", "PROPERTY_MAP",
    "QUALITY", "QUOTE", "QUOTE_OFFER", "QUOTE_PENALTY", "QUOTE_PROMOTION", "QUOTE_TABLES", "RATE", "RATE_SCALE",
    "REJECT", "ROOM_CONTENT", "SEARCH", "SEGMENT_TABLES", "SELDOM_WRITTEN", "SELLING_PRICE", "SIDE_TABLES", "SMALL",
    "STATE_FILE", "STATE_TABLES", "SWEEP", "SWEEP_PUBLISHED", "TABLES", "TEXT", "WEIGHT", "WORKING_TABLES", "Column",
    "Table",
]  # fmt: skip

# What sweeps fill.
TABLES = {
    table.name: table
    for table in (
        *(SWEEP, SEARCH, CELL, OFFER, PENALTY, PROMOTION, REJECT, DRIFT, OFFER_CHANGE, QUALITY),
        *CONTENT_TABLES,
    )
}

# What the segments of a sweep fill; `cell` is last, as its rows show that a segment is complete.
SEGMENT_TABLES = ("search", "offer", "penalty", "promotion", "reject", "drift", "cell")

# What a sweep, its publication or a quote makes from raw answers. A rebuild carries all other folders of tables over.
MADE_OF_RAW = frozenset(
    {*SEGMENT_TABLES, SWEEP.name, OFFER_CHANGE.name, *(table.name for table in CONTENT_TABLES), *WORKING_TABLES}
) | frozenset(QUOTE_TABLES)

# Not every night writes to these. Their only file may be damaged, and later nights do without it.
SELDOM_WRITTEN = (QUALITY, *CONTENT_TABLES)

# What is not made by sweeps.
SIDE_TABLES = INPUT_TABLES | QUOTE_TABLES | {table.name: table for table in (CONFIRMATION, CASE_NOTE)}

# What is carried from night to night. Analysts read these through the views of `mart`.
STATE_TABLES = (
    *(OFFER_OPEN, OFFER_CLOSED, CELL_STATE, PROMOTION_STATE, PROMOTION_CLOSED, POLICY_STATE),
    *(PROMOTION_OPEN, POLICY_DRIFT, DETAIL_PENALTY),
    *(FLAG_OPEN, FLAG_CLOSED, CASE_SCOPE, CASE_OUTLIER),
    *(CELL_CLOSED, CELL_COUNT, STOCK_CHANGE, PRICE_MOVE, PRICE_CHANGE, WAITING, PROPERTY_SALE, QUIET_SEARCH),
    *(PARITY_OPEN, PARITY_CLOSED, PARITY_GROUP_OPEN, PARITY_GROUP_CLOSED, FLOOR_MOVE),
    REFERENCE_CHOICE,
)
