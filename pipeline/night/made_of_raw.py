"""Which tables are made from raw answers, and which of them a rebuild cannot make."""

from __future__ import annotations

from pipeline.domain.tables import CONTENT_TABLES, OFFER_CHANGE, QUOTE_TABLES, SEGMENT_TABLES, SWEEP, WORKING_TABLES

# By a sweep, its publication or a quote; all other folders of tables are carried over.
MADE_OF_RAW = frozenset(
    {
        *SEGMENT_TABLES,
        SWEEP.name,
        OFFER_CHANGE.name,
        *(table.name for table in CONTENT_TABLES),
        *WORKING_TABLES,
        *QUOTE_TABLES,
    }
)
