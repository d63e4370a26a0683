"""Findings: what each says, how long it has been open, and the result of re-querying it."""

import pyarrow as pa

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
    SWEEP_ID,
    TEXT,
    Column,
    Table,
    required,
)

CONFIRMATION = Table(
    "confirmation",
    "One row per re-queried flag and run: the result.",
    ("run_id", "flag_id"),
    (
        required("run_id", TEXT, "Run of `nightaudit confirm`; the raw zone has its answers under this name."),
        required("run_at", INSTANT, "Start of the run."),
        required("is_simulated", FLAG, "TRUE: the answers come from the sandbox."),
        required("flag_id", TEXT, "Re-queried flag: its rule and the subject_key in hex."),
        required(
            "outcome",
            TEXT,
            "`confirmed`: the rule finds it in the new answers too; `gone`: these answers end it, as those of a night "
            "would; `not_confirmable`: see reason.",
            ("confirmed", "gone", "not_confirmable"),
        ),
        Column("reason", TEXT, "Reason for `not_confirmable`; NULL: another outcome."),
        Column("searched_at", INSTANT, "When the last of its searches was sent; NULL: none was."),
        Column("size_pct", NUMBER, "Size of the finding now; NULL: nothing is found."),
        Column("finding", TEXT, "The finding now; NULL: nothing is found."),
        Column("raw_address", TEXT, "Addresses of the new answers, separated by spaces; NULL: none."),
    ),
)

CASE_NOTE = Table(
    "case_note",
    "One row per annotation of a case. Append-only: the last one of each action counts.",
    ("case_id", "noted_at", "action"),
    (
        required("case_id", TEXT, "Annotated case: report.finding_case."),
        required("noted_at", INSTANT, "When the annotation was made."),
        required("action", TEXT, "`acknowledge`, `mute`, `note` or `owner`.", ("acknowledge", "mute", "note", "owner")),
        Column(
            "value",
            TEXT,
            "acknowledge: its smallest and largest size then, in percent, its stays and its cost in euro, `-`: unknown "
            "(one number: the largest size, without sign); mute: first day shown again, as yyyy-MM-dd; note: the text; "
            "owner: the name; empty: removed.",
        ),
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
    "flag_id", TEXT, "Id for `nightaudit explain`: the rule and the subject_key in hex. The same every night."
)

# Columns that every relation of findings has, under these names.
FINDING_COLUMNS = (
    required("rule", TEXT, "Rule that finds it."),
    required("rule_version", INT, "Version of the rule: raised whenever its results change."),
    required("subject_key", LONG, "Hash of the rule and the subject of the finding; the same every night."),
    required(
        "severity",
        TEXT,
        "`low`, `medium` or `high`: by size_pct, unless its rule says otherwise.",
        ("low", "medium", "high"),
    ),
    Column(
        "size_pct",
        NUMBER,
        "Size of the finding in percent of the value that it is compared with; of `excluded_charges_mismatch` in "
        "percent of the total, of `wrong_discount` and `floor_eats_promotion` in percentage points.",
    ),
    Column("amount", MONEY, "Size of the finding in currency; NULL: it is not about money."),
    Column("source", TEXT, "`multi` or `detail`: the series that it is found in; NULL: not in a single series."),
    Column("property_id", LONG, "The supplier's property id; NULL: not about a single property."),
    Column("market", TEXT, "Requested market code; NULL: not about a single market."),
    Column("product_type", TEXT, "`Hotel` or `Package`; NULL: not about a single type."),
    Column("check_in", DAY, "First night of the stay; NULL: not about a single stay."),
    Column("nights", SMALL, "Nights of the stay; NULL: not about a single stay."),
    Column("party", TEXT, "Guests of all rooms; NULL: not about a single party."),
    Column("currency", TEXT, "ISO 4217 code of amount; NULL: not about a single currency."),
    required("finding", TEXT, "The finding in one sentence, with its numbers."),
    required("evidence", EVIDENCE, "Observations behind the finding, each with its raw answer."),
    Column("fx", CONVERSION, "Reference rate used for conversion, and its day; NULL: one currency only."),
)

_FLAG_COLUMNS = (
    FLAG_ID,
    *FINDING_COLUMNS,
    required("relation", TEXT, "Relation of the rule: its SQL is the rule."),
    required("first_flagged_at", INSTANT, "Start of the sweep after which it was first flagged."),
    required("first_flagged_sweep_id", TEXT, "Sweep after which it was first flagged."),
    required("last_flagged_at", INSTANT, "Start of the last sweep that observed its evidence again."),
    required("last_flagged_sweep_id", TEXT, "Last sweep that observed its evidence again."),
    required("snapshots", LONG, "Number of sweeps that found it again; sweeps without an answer do not count."),
)

FAILED_RULE = Table(
    "failed_rule",
    "One row per published night and rule that could not be evaluated; its flags are unchanged.",
    ("sweep_id", "relation"),
    (
        SWEEP_ID,
        required("relation", TEXT, "Relation that failed: its SQL is the rule."),
        required("reason", TEXT, "What it failed with."),
    ),
)

FLAG_OPEN = Table("flag_open", "One row per open finding: not refuted by an answer since.", ("flag_id",), _FLAG_COLUMNS)

FLAG_CLOSED = Table(
    "flag_closed",
    "One row per closed finding and period in which it was open. Append-only.",
    ("flag_id", "first_flagged_at"),
    (
        *_FLAG_COLUMNS,
        required("resolved_at", INSTANT, "Start of the sweep that no longer found it, or the day of check-in."),
        required("resolved_sweep_id", TEXT, "Sweep that closed it."),
        required(
            "ended_by",
            TEXT,
            "`value`: all of its evidence was answered, and the rule finds nothing; `gone`: its offer was no longer on "
            "sale; `not_compared`: only offers of other markets, with which it was compared, were no longer on sale; "
            "`not_asked`: its property, or the currency of an offer of it, is no longer requested; "
            "`reference_changed`: it was compared with the reference market, which is another one now, and does not "
            "sell the offer; `outdated`: its selling price can no longer be judged, as it is older than price_days or "
            "its floor has moved; `rule_changed`: the rule no longer finds it, in a later version or by settings "
            "changed since; `stay_began`.",
        ),
    ),
)

CASE_SCOPE = Table(
    "case_scope",
    "One row per market, or the supplier, that has ever been a case of a rule: its start and end.",
    ("rule", "market", "base_currency", "currency"),
    (
        required("rule", TEXT, "Rule of the findings that its properties share."),
        Column("market", TEXT, "Market code; NULL: the case concerns the supplier."),
        Column("base_currency", TEXT, "ISO 4217 code of one currency of a pair; NULL: no pair."),
        Column("currency", TEXT, "ISO 4217 code of the other currency; NULL: no pair."),
        required("opened_at", INSTANT, "Start of the sweep with which it last became a case."),
        required("last_met_at", INSTANT, "Start of the last sweep in which enough of its properties had the finding."),
        Column("below_since", DAY, "First day after that on which too few had it; NULL: enough have it."),
        Column("ended_at", INSTANT, "Start of the sweep with which it ended; NULL: it is open."),
    ),
)

CASE_OUTLIER = Table(
    "case_outlier",
    "One row per rule, market and property whose finding differs in size from most of its market's.",
    ("rule", "market", "property_id"),
    (
        required("rule", TEXT, "Rule of the findings."),
        required("market", TEXT, "Market whose properties mostly have them."),
        required("property_id", LONG, "Property that deviates; it is a case in addition to its market's."),
        required("size_pct", NUMBER, "Median size of its open flags, in the unit of its rule."),
        required("market_pct", NUMBER, "Median of the same over the properties of the market."),
    ),
)
