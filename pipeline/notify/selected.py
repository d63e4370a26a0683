"""The rows that a rule selects, with the names and pages that a message shows, and what is open besides."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final

from pipeline.domain.errors import InputError
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.lake.relations import MOST_SEVERE_FIRST
from pipeline.lake.user_query import Bounds, Condition, user_query
from pipeline.notify.alert_rules import Rule
from pipeline.notify.match import CASE_PAGE, PROPERTY_NAME, Row, key_of

# A message lists the first few rows: the most severe flags, of different properties, or the most urgent cases.
_OF_EACH_PROPERTY = f"row_number() OVER (PARTITION BY rule, property_id ORDER BY {MOST_SEVERE_FIRST})"

# Rows are held in memory with their evidence.
_MOST_ROWS = 100_000

# A case that is part of a wider one has no page of its own.
_CASES = (
    "SELECT coalesce(part_of_case_id, case_id), rule, property_id, market "
    "FROM report.finding_case WHERE status <> 'closed' AND scope = 'property'"
)

# A property may have several mark-ups in a market, each between its own currencies.
_MARK_UPS = "SELECT flag_id, case_id FROM mart.case_flag WHERE rule = 'fx_markup' AND is_open AND wider_scope IS NULL"

_CASE_RELATION: Final = "report.finding_case"

# Ids of what is open. A case that someone takes on, or one whose severity falls, is not resolved.
_OPEN: Mapping[tuple[str, ...], str] = {
    ("case_id",): "SELECT case_id FROM report.finding_case WHERE status <> 'closed'",
    ("flag_id",): "SELECT flag_id FROM report.flag",
}
# A finding of a property that deviates from its market counts in the property's case only, and a mark-up in that of its
# currencies.
_MUTED = (
    "SELECT DISTINCT flag_id FROM mart.case_flag WHERE is_open "
    "AND case_id IN (SELECT case_id FROM report.finding_case WHERE status = 'muted')"
)


def selected(file: Path, rule: Rule, bounds: Bounds) -> list[Row]:
    """Return the rows of a rule, in the order of a message. Raises InputError if it cannot be evaluated."""
    key = ", ".join('"' + name.replace('"', '""') + '"' for name in rule.key)
    first = {
        "report.flag": f"{_OF_EACH_PROPERTY}, {MOST_SEVERE_FIRST}, ",
        "report.finding_case": "urgency, ",
    }
    order = f"{first.get(rule.relation, '')}{key}"
    try:
        with user_query(file, Condition(rule.relation, rule.where, order), bounds) as answer:
            rows: list[Row] = [
                dict(zip(answer.columns, row, strict=True)) for row in islice(answer.rows(), _MOST_ROWS + 1)
            ]
    except InputError as error:
        # What follows an empty line quotes our own query.
        reason = " ".join(error.message.partition("\n\n")[0].split())
        raise InputError(
            f"The rule {rule.name!r} cannot be evaluated: {reason}",
            kept="No alert was sent.",
            hint=f'Check its relation and `where`: nightaudit query "DESCRIBE {rule.relation}"',
        ) from None
    if len(rows) > _MOST_ROWS:
        raise InputError(
            f"The rule {rule.name!r} selects more than {_MOST_ROWS:,} rows.",
            kept="No alert was sent.",
            hint="Narrow its `where`.",
        )
    return rows


def named(lake: Lake, rows: list[Row]) -> list[Row]:
    """Return rows with the name of their property."""
    if not any(row.get("property_id") is not None for row in rows):
        return rows
    found = query_published(lake.published_file, "SELECT property_id, property_name FROM mart.property").fetchall()
    names = {number: name for number, name in found if name}
    return [{PROPERTY_NAME: names.get(row.get("property_id"))} | dict(row) for row in rows]


def placed(lake: Lake, rows: list[Row], case_pages: Mapping[str, str]) -> list[Row]:
    """Return rows with the page of their case: findings of a rule at a property in a market are one case."""
    if not case_pages or not any("case_id" in row or "flag_id" in row for row in rows):
        return rows
    found = query_published(lake.published_file, _CASES).fetchall()
    cases = {tuple(key): case_id for case_id, *key in found}
    has_mark_ups = any("flag_id" in row and row.get("rule") == "fx_markup" for row in rows)
    mark_ups = dict(query_published(lake.published_file, _MARK_UPS).fetchall()) if has_mark_ups else {}
    shown = []
    for row in rows:
        rule, property_id = row.get("rule"), row.get("property_id")
        # A property that has gone quiet in several markets is a case without a market.
        case_id = (
            row.get("case_id")
            or mark_ups.get(row.get("flag_id"))
            or cases.get((rule, property_id, row.get("market")))
            or cases.get((rule, property_id, None))
        )
        page = case_pages.get(case_id) if case_id else None
        shown.append({**row, CASE_PAGE: page} if page else row)
    return shown


def is_of_cases(rule: Rule) -> bool:
    """Whether a rule's rows are cases, each known by its id."""
    return (rule.relation, rule.key) == (_CASE_RELATION, ("case_id",))


def last_start(lake: Lake) -> datetime | None:
    """Return when the last published sweep began."""
    (found,) = query_published(lake.published_file, "SELECT max(started_at) FROM mart.sweep").fetchall()
    began_at: datetime | None = found[0]
    return began_at


def still_open(lake: Lake, rule: Rule) -> set[str]:
    """Return the keys of what is open, whether or not the rule selects it; none if it counts rows (`least`)."""
    asked = _OPEN.get(rule.key) if rule.least == 1 else None
    return {key for (key,) in query_published(lake.published_file, asked).fetchall()} if asked else set()


def without_muted(lake: Lake, rule: Rule, rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows of a rule without muted cases, and without flags of these, whatever its relation and key."""
    if rule.relation == _CASE_RELATION:
        return [row for row in rows if row["status"] != "muted"]
    # The relation of a rule has the findings that become flags.
    if not any("flag_id" in row for row in rows):
        return rows
    muted = {flag_id for (flag_id,) in query_published(lake.published_file, _MUTED).fetchall()}
    return [row for row in rows if row["flag_id"] not in muted]


def muted_keys(rule: Rule, rows: Sequence[Row], heard: Sequence[Row]) -> set[str]:
    """Return the keys of the `rows` that are not `heard`: muting resolves nothing; none if it counts rows (`least`)."""
    known = {id(row) for row in heard}
    return {key_of(rule, row) for row in rows if id(row) not in known} if rule.least == 1 else set()
