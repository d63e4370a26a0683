"""Requests and their results: sweeps, searches, cells; what could not be read, or was found by the audit."""

from pipeline.domain.search import STATUSES
from pipeline.domain.tables.declaration import (
    ASKED,
    DAY,
    FLAG,
    INSTANT,
    INT,
    LONG,
    MARKET,
    NUMBER,
    PROPERTY_ID,
    RAW_ADDRESS,
    SEARCH_ID,
    SMALL,
    SWEEP_ID,
    TEXT,
    Column,
    Table,
    required,
)

# The meaning of a status, wherever a cell has one.
ONE_STATUS = f"{', '.join(f'`{status}`' for status in STATUSES[:-1])} or `{STATUSES[-1]}`."

PLANNED_AND_OFFERED = (
    required("planned", LONG, "Planned cells: the sum of the six statuses."),
    required("offered", LONG, "Cells with at least one offer."),
)
NOT_ANSWERED = (
    required("absent", LONG, "Cells of a multi search that are missing from its answer; not the same as sold out."),
    required("rejected", LONG, "Cells refused by the supplier (400)."),
    required("failed", LONG, "Cells whose retries were used up or whose answer was unreadable."),
    required("not_swept", LONG, "Cells not requested: stopped, or out of budget."),
)

SWEEP = Table(
    "sweep",
    "One row per finished sweep.",
    ("sweep_id",),
    (
        SWEEP_ID,
        required("snapshot_date", DAY, "The day that lead days are counted from: started_at in UTC."),
        required("started_at", INSTANT, "Start of the sweep."),
        required("finished_at", INSTANT, "End of the collection."),
        required("state", TEXT, "`complete`: each search was answered or failed; `closed`: ended early."),
        required("is_simulated", FLAG, "TRUE: the answers come from the sandbox."),
        required("supplier", TEXT, "Host of the supplier."),
        required("spec", TEXT, "The sweep's spec in canonical JSON."),
        required("nightaudit_version", TEXT, "Version of the code that collected."),
        required("contract_version", TEXT, "Version of the supplier's document."),
        required("rules_version", INT, "Version of the rules of normalisation."),
        *PLANNED_AND_OFFERED,
        required("no_offer", LONG, "Cells answered without an offer."),
        *NOT_ANSWERED,
        required("searches", LONG, "HTTP searches that ended, including halves of split batches."),
        required("requests", LONG, "HTTP requests sent, counting every attempt."),
        required("offers", LONG, "Offers stored."),
        required("rejects", LONG, "Parts of answers that could not be read."),
        required("wire_bytes", LONG, "Bytes of bodies as received, compressed."),
    ),
)

SEARCH = Table(
    "search",
    "One row per HTTP search that ended, including halves of split batches.",
    ("sweep_id", "search_id"),
    (
        SWEEP_ID,
        SEARCH_ID,
        required("operation", TEXT, "`multi`, `single` or `quote`.", ("multi", "single", "quote")),
        *ASKED,
        required("properties", INT, "Number of requested properties.", lowest=1),
        required(
            "outcome",
            TEXT,
            "`answered`, `rejected` (400), `failed`, or `split`: the batch failed and was searched in halves.",
            ("answered", "rejected", "failed", "split"),
        ),
        Column(
            "sent_property_id",
            LONG,
            "Property id that was sent instead of the cell's own: the unbranded one of the map; NULL: its own.",
        ),
        Column("http_status", SMALL, "HTTP status of the last attempt; NULL: there was no answer."),
        Column("codes", TEXT, "Error codes of the answer, documented or not, separated by commas."),
        Column("messages", TEXT, "Error texts of the answer, one per line; NULL: none."),
        Column("failure", TEXT, "Why the search failed, or why its offers may be incomplete; NULL: neither."),
        required("attempts", SMALL, "Requests sent for this search.", lowest=0),
        required("started_at", INSTANT, "Start of the last attempt."),
        required("ended_at", INSTANT, "End of the last attempt."),
        required("latency_ms", INT, "Milliseconds from the start to the end of the last attempt."),
        required("wire_bytes", LONG, "Bytes of the body as received."),
        Column("body_bytes", LONG, "Bytes of the decompressed body."),
        Column("body_sha256", TEXT, "SHA-256 of the wire bytes of the body, in hex."),
        required("offers", INT, "Offers stored from this answer."),
        required("rejects", INT, "Parts of this answer that could not be read."),
        RAW_ADDRESS,
    ),
)

CELL = Table(
    "cell",
    "One row per planned cell and sweep, with its one status.",
    ("sweep_id", "operation", "property_id", "market", "product_type", "check_in", "nights", "party", "currency_asked"),
    (
        SWEEP_ID,
        SEARCH_ID,
        required("operation", TEXT, "`multi` or `single`.", ("multi", "single")),
        PROPERTY_ID,
        *ASKED,
        required("status", TEXT, ONE_STATUS, STATUSES),
        Column("code", INT, "Error code behind the status; NULL: the supplier gave none."),
        Column("searched_at", INSTANT, "When the search was sent; NULL: not swept."),
        required("offers", INT, "Offers stored for this cell.", lowest=0),
    ),
)

SWEEP_PUBLISHED = Table(
    "sweep",
    "One row per published sweep.",
    ("sweep_id",),
    (
        *SWEEP.columns,
        required("audit", TEXT, "`passed`, `overridden`: published although blocked, or `none`: published unchecked."),
        Column("override_reason", TEXT, "Why it was published although its audit failed; NULL: no override."),
        required("quarantined", LONG, "Offers that the audit removed: rows of `reject` with a rule."),
        required("offers_first", LONG, "Offer keys seen for the first time."),
        required("offers_changed", LONG, "Offer keys with a value that changed since they were last seen."),
        required("offers_gone", LONG, "Offer keys that are no longer on sale."),
        required("offers_back", LONG, "Offer keys that were gone and are on sale again."),
        required(
            "price_changes",
            LONG,
            "Offer keys on sale on both nights (this and the one before that requested them) whose total differs.",
        ),
    ),
)


REJECT = Table(
    "reject",
    "One row per unreadable answer or part of one, and per offer that the audit put in quarantine.",
    ("sweep_id", "search_id", "reject_no"),
    (
        SWEEP_ID,
        SEARCH_ID,
        required("reject_no", INT, "Position in the answer, from 0; for offers in quarantine: 1,000,000 + offer_no."),
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
        required("detail", TEXT, "The type or value found."),
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
        required("basis", TEXT, "`rule`: the same for each night; `history`: earlier nights; `rows`: an SQL rule."),
        Column("observed", NUMBER, "What was found; NULL: nothing to measure."),
        Column("lowest", NUMBER, "Lowest value that passes; NULL: no bound."),
        Column("highest", NUMBER, "Highest value that passes; NULL: no bound."),
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
