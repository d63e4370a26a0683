"""Findings of a published file by id, as rows with the names of their columns."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.domain.errors import InputError
from pipeline.domain.tables import FINDING_COLUMNS
from pipeline.lake import Lake
from pipeline.lake.database import query_published, rows_of
from pipeline.lake.relations import finding_rules

Row = dict[str, Any]

_FLAG_ID = re.compile(r"(?P<rule>[a-z_0-9]+)-(?P<subject_key>[0-7][0-9a-f]{15})")


def flag_row(lake: Lake, flag_id: str) -> Row:
    """Return the last row of a flag. Raises InputError, with similar flags, for an unknown id."""
    return flag_rows(lake, [flag_id])[0]


def flag_rows(lake: Lake, flag_ids: Sequence[str]) -> list[Row]:
    """Return the last row of each flag, in their order. Raises InputError like `flag_row`."""
    query = (
        "SELECT * FROM report.flag_history WHERE list_contains($flag_ids::VARCHAR[], flag_id) ORDER BY first_flagged_at"
    )
    last = {row["flag_id"]: row for row in rows_in(lake, query, {"flag_ids": list(flag_ids)})}
    for flag_id in flag_ids:
        if flag_id not in last:
            raise _unknown(lake, flag_id)
    return [last[flag_id] for flag_id in flag_ids]


def _unknown(lake: Lake, flag_id: str) -> InputError:
    known = [row["flag_id"] for row in rows_in(lake, "SELECT DISTINCT flag_id FROM report.flag_history ORDER BY ALL")]
    like = [name for name in known if flag_id and name.startswith(flag_id)][:3]
    like = like or difflib.get_close_matches(flag_id, known, 3, 0.6)
    return InputError(
        f"There is no flag {flag_id!r}.",
        hint=f"Did you mean {', '.join(like)}?"
        if like
        else 'List them: nightaudit query "SELECT flag_id, finding FROM report.flag"',
    )


def finding_row(lake: Lake, flag_id: str) -> Row | None:
    """Return the present finding from the relation of the rule in its id; None: there is none."""
    named = _FLAG_ID.fullmatch(flag_id)
    rule = finding_rules().get(named["rule"]) if named else None
    if named is None or rule is None:
        return None
    found_in = rule.full_name
    # By the key, because relations published earlier have no id. Of two findings with one key the larger one counts, as
    # with flags.
    columns = ", ".join(column.name for column in FINDING_COLUMNS)
    query = (
        f"SELECT $flag_id AS flag_id, {columns}, '{found_in}' AS relation FROM {found_in} "  # noqa: S608 - our own names
        "WHERE rule = $rule AND subject_key = $subject_key ORDER BY size_pct DESC NULLS LAST, finding LIMIT 1"
    )
    subject_key = int(named["subject_key"], 16)
    rows = rows_in(lake, query, {"flag_id": flag_id, "rule": named["rule"], "subject_key": subject_key})
    return rows[0] if rows else None


def rows_in(lake: Lake, query: str, parameters: Mapping[str, object] | None = None) -> list[Row]:
    """Return the rows of a query over the published file."""
    return rows_of(query_published(lake.published_file, query, parameters))
