"""Unreadable parts, deviations from the supplier's document, and results of the audit."""

from __future__ import annotations

from pipeline.domain.tables.columns import MARKET, RAW_ADDRESS, SEARCH_ID, SWEEP_ID
from pipeline.domain.tables.declaration import INSTANT, INT, LONG, NUMBER, TEXT, Column, Table, required

REJECT = Table(
    "reject",
    "One row per unreadable answer or part of one, and per offer that the audit put in quarantine.",
    ("sweep_id", "search_id", "reject_no"),
    (
        SWEEP_ID,
        SEARCH_ID,
        required("reject_no", INT, "Position in the answer, from 0; of offers in quarantine 1,000,000 + offer_no."),
        MARKET,
        Column("property_id", LONG, "Property of the part; NULL: unreadable."),
        required(
            "part",
            TEXT,
            "`answer`, `property`, `room_stay` or `offer`; in quarantine also `penalty` or `promotion` without "
            "an offer.",
            ("answer", "property", "room_stay", "offer", "penalty", "promotion"),
        ),
        required("path", TEXT, "Path of the part in the body."),
        required("reason", TEXT, "Why it is unreadable, or how it breaks the rule."),
        Column("sample", TEXT, "The part as sent, cut to 500 characters."),
        RAW_ADDRESS,
        Column(
            "rule", TEXT, "Rules of the audit that the offer breaks, separated by commas; NULL: the part is unreadable."
        ),
        Column("offer_no", INT, "Offer in quarantine, or named by the part; NULL: unreadable."),
    ),
)

DRIFT = Table(
    "drift",
    "One row per deviation from the supplier's document, sweep, market and segment.",
    ("sweep_id", "operation", "market", "segment", "path", "kind", "detail"),
    (
        SWEEP_ID,
        required("operation", TEXT, "`multi`, `single` or `quote`."),
        MARKET,
        required("segment", INT, "Segment: part of the sweep's market that was normalised together."),
        required("path", TEXT, "Path of the field, arrays as []."),
        required("kind", TEXT, "`unknown_field`, `changed_type`, `new_value`, `not_asked` or `duplicate`."),
        required("detail", TEXT, "The type or value met."),
        required("occurrences", LONG, "How often."),
        required("example_raw_address", TEXT, "Raw address of one example."),
    ),
)

QUALITY = Table(
    "quality",
    "One row per sweep, audit, market, table and check: its result.",
    ("sweep_id", "audit_no", "market", "table_name", "check_name"),
    (
        SWEEP_ID,
        required("audit_no", INT, "Number of the sweep's audit, from 1; the highest counts."),
        required("audited_at", INSTANT, "When the audit was made."),
        required("market", TEXT, "Requested market code; `all`: the complete sweep."),
        required("table_name", TEXT, "Table that was checked."),
        required("check_name", TEXT, "What was checked."),
        required("severity", TEXT, "`critical` keeps the sweep from being published, `warning` is reported."),
        required("outcome", TEXT, "`passed`, `failed`, or `not_judged`: too few nights to compare with."),
        required("basis", TEXT, "`rule`: the same for each night; `history`: the nights before; `rows`: an SQL rule."),
        Column("observed", NUMBER, "What was found; NULL: nothing to measure."),
        Column("lowest", NUMBER, "Least that passes; NULL: no bound."),
        Column("highest", NUMBER, "Most that passes; NULL: no bound."),
        required("nights_before", INT, "Nights that the bounds come from; 0: a rule."),
        required(
            "violations",
            LONG,
            "Number of rows, keys or cells that break a rule; for checks without a count, 1 (failed) or 0 (passed).",
        ),
        required("meaning", TEXT, "The check in words."),
        Column("examples", TEXT, "Up to three rows that break the rule, as JSON, with their raw addresses."),
    ),
)
