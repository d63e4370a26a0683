"""Findings: what each says, how long it has been open, and what asking again brought."""

from __future__ import annotations

import pyarrow as pa

from pipeline.domain.tables.columns import SWEEP_ID
from pipeline.domain.tables.declaration import (
    DAY,
    FLAG,
    INSTANT,
    INT,
    LONG,
    MONEY,
    NUMBER,
    RATE,
    SMALL,
    TEXT,
    Column,
    Table,
    required,
)

CONFIRMATION = Table(
    "confirmation",
    "One row per flag that was asked about again, and run: what came of it.",
    ("run_id", "flag_id"),
    (
        required("run_id", TEXT, "Run of `nightaudit confirm`; its answers lie in the raw zone under this name."),
        required("run_at", INSTANT, "Start of the run."),
        required("is_simulated", FLAG, "True if the answers come from the sandbox."),
        required("flag_id", TEXT, "Flag that was asked about: its rule and the subject_key in hex."),
        required(
            "outcome",
            TEXT,
            "`confirmed`: the rule finds it in the new answers too; `gone`: all was answered, and it does not; "
            "`not_confirmable`: see reason.",
            ("confirmed", "gone", "not_confirmable"),
        ),
        Column("reason", TEXT, "Why it is not confirmable; NULL: it is."),
        Column("searched_at", INSTANT, "When the last of its searches was sent; NULL: none was."),
        Column("size_pct", NUMBER, "Size that the rule finds now; NULL: it finds nothing."),
        Column("finding", TEXT, "What the rule finds now; NULL: nothing."),
        Column("raw_address", TEXT, "Where the new answers lie, separated by blanks; NULL: there are none."),
    ),
)

CASE_NOTE = Table(
    "case_note",
    "One row per thing that was said of a case. Append-only: the last of each action holds.",
    ("case_id", "noted_at", "action"),
    (
        required("case_id", TEXT, "Case that it is about: report.finding_case."),
        required("noted_at", INSTANT, "When it was said."),
        required(
            "action",
            TEXT,
            "`acknowledge`, `mute`, `note` or `owner`.",
            ("acknowledge", "mute", "note", "owner"),
        ),
        Column("value", TEXT, "mute: the day up to which, as yyyy-MM-dd; note: the text; owner: the name."),
    ),
)

EVIDENCE = pa.list_(
    pa.struct(
        [
            pa.field("role", TEXT),
            pa.field("source", TEXT),
            pa.field("property_id", LONG),
            pa.field("offer_key", LONG),
            pa.field("sweep_id", TEXT),
            pa.field("search_id", LONG),
            pa.field("offer_no", INT),
        ]
    )
)

CONVERSION = pa.struct(
    [pa.field("from_currency", TEXT), pa.field("to_currency", TEXT), pa.field("rate", RATE), pa.field("rate_date", DAY)]
)

FLAG_ID = required(
    "flag_id", TEXT, "For `nightaudit explain`: the rule and the subject_key in hex. The same every night."
)

# What every relation that finds something says of a finding, under these names.
FINDING_COLUMNS = (
    required("rule", TEXT, "Rule that finds it."),
    required("rule_version", INT, "Version of the rule: raised whenever it would find something else."),
    required("subject_key", LONG, "Stable hash of the rule and of what it is about, over all nights."),
    required("severity", TEXT, "`low`, `medium` or `high`, by size_pct.", ("low", "medium", "high")),
    Column("size_pct", NUMBER, "Size of the finding in percent of what it is held against."),
    Column("amount", MONEY, "Size of the finding in currency; NULL: it is none of money."),
    Column("source", TEXT, "`multi` or `detail`: the series that it is found in; NULL: of no one series."),
    Column("property_id", LONG, "The supplier's property id; NULL: of no one property."),
    Column("market", TEXT, "Market code asked for; NULL: of no one market."),
    Column("product_type", TEXT, "`Hotel` or `Package`; NULL: of no one type."),
    Column("check_in", DAY, "First night of the stay; NULL: of no one stay."),
    Column("nights", SMALL, "Nights of the stay; NULL: of no one stay."),
    Column("party", TEXT, "Guests of all rooms; NULL: of no one party."),
    Column("currency", TEXT, "ISO 4217 code of amount; NULL: of no one currency."),
    required("finding", TEXT, "The finding in one sentence, with its numbers."),
    required("evidence", EVIDENCE, "Observations that the finding rests on: each leads to its raw answer."),
    Column("fx", CONVERSION, "Reference rate that it was converted by, and its day; NULL: one currency."),
)

_FLAG_COLUMNS = (
    FLAG_ID,
    *FINDING_COLUMNS,
    required("relation", TEXT, "Relation that finds it: its SQL is the rule."),
    required("first_flagged_at", INSTANT, "Start of the sweep that it was flagged after for the first time."),
    required("first_flagged_sweep_id", TEXT, "That sweep."),
    required("last_flagged_at", INSTANT, "Start of the last sweep that observed its evidence again."),
    required("last_flagged_sweep_id", TEXT, "That sweep."),
    required("snapshots", LONG, "Sweeps that observed its evidence and found it, without those that got no answer."),
)

FAILED_RULE = Table(
    "failed_rule",
    "One row per published night and rule that could not be asked after it: its flags are unchanged.",
    ("sweep_id", "relation"),
    (
        SWEEP_ID,
        required("relation", TEXT, "Relation that failed: its SQL is the rule."),
        required("reason", TEXT, "What it failed with."),
    ),
)

FLAG_OPEN = Table(
    "flag_open",
    "One row per finding that stands: found, and not answered otherwise since.",
    ("flag_id",),
    _FLAG_COLUMNS,
)

FLAG_CLOSED = Table(
    "flag_closed",
    "One row per finding that stood once, and time that it stood. Append-only.",
    ("flag_id", "first_flagged_at"),
    (
        *_FLAG_COLUMNS,
        required("resolved_at", INSTANT, "Start of the sweep that saw it gone, or the day of check-in."),
        required("resolved_sweep_id", TEXT, "Sweep after which it was closed."),
        required(
            "ended_by",
            TEXT,
            "`value`: all of its evidence was answered, and the rule finds nothing; `gone`: an offer of it was not on "
            "sale any more; `stay_began`.",
        ),
    ),
)

CASE_SCOPE = Table(
    "case_scope",
    "One row per market, or the supplier, that has ever been a case of a rule: since when, and until when.",
    ("rule", "market", "base_currency", "currency"),
    (
        required("rule", TEXT, "Rule that its properties have in common."),
        Column("market", TEXT, "Market code; NULL: it is the supplier."),
        Column("base_currency", TEXT, "ISO 4217 code of one currency of a pair; NULL: of no pair."),
        Column("currency", TEXT, "ISO 4217 code of the other currency; NULL: of no pair."),
        required("opened_at", INSTANT, "Start of the sweep that it became a case with, the last time."),
        required(
            "last_met_at", INSTANT, "Start of the last sweep with which enough of its properties showed the rule."
        ),
        Column("below_since", DAY, "First day since then on which too few did; NULL: enough do."),
        Column("ended_at", INSTANT, "Start of the sweep that it ended with; NULL: it stands."),
    ),
)
