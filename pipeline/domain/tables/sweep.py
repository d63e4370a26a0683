"""Requests and their results: sweeps, searches, cells."""

from __future__ import annotations

from pipeline.domain.search import STATUSES
from pipeline.domain.tables.columns import ASKED, PROPERTY_ID, RAW_ADDRESS, SEARCH_ID, SWEEP_ID
from pipeline.domain.tables.declaration import DAY, FLAG, INSTANT, INT, LONG, SMALL, TEXT, Column, Table, required

SWEEP = Table(
    "sweep",
    "One row per finished sweep.",
    ("sweep_id",),
    (
        SWEEP_ID,
        required("snapshot_date", DAY, "The day that lead days are counted from: started_at in UTC."),
        required("started_at", INSTANT, "Start of the sweep."),
        required("finished_at", INSTANT, "End of the collection."),
        required(
            "state", TEXT, "`complete`: each search was answered or failed; `closed`: ended early, the rest not swept."
        ),
        required("is_simulated", FLAG, "TRUE: the answers come from the sandbox."),
        required("supplier", TEXT, "Host of the supplier."),
        required("spec", TEXT, "The sweep's spec in canonical JSON."),
        required("nightaudit_version", TEXT, "Version of the code that collected."),
        required("contract_version", TEXT, "Version of the supplier's document."),
        required("rules_version", INT, "Version of the rules of normalisation."),
        required("planned", LONG, "Planned cells: the sum of the six statuses."),
        required("offered", LONG, "Cells with at least one offer."),
        required("no_offer", LONG, "Cells answered without an offer."),
        required(
            "absent", LONG, "Cells requested in a multi search but missing from its answer; not the same as sold out."
        ),
        required("rejected", LONG, "Cells refused by the supplier (400)."),
        required("failed", LONG, "Cells whose retries were used up or whose answer was unreadable."),
        required("not_swept", LONG, "Cells not requested: stopped, or out of budget."),
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
        required("properties", INT, "Properties asked for.", lowest=1),
        required(
            "outcome",
            TEXT,
            "`answered`, `rejected` (400), `failed`, or `split`: the batch failed and its halves were asked instead.",
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
        required("status", TEXT, "`offered`, `no_offer`, `absent`, `rejected`, `failed` or `not_swept`.", STATUSES),
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
        required("price_changes", LONG, "Offer keys whose total changed since they were last seen."),
    ),
)
