"""Notes that people write about cases, and the cases that they are about: findings with one cause to call about."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from pipeline.domain.errors import InputError
from pipeline.domain.tables import CASE_NOTE
from pipeline.domain.texts import literal
from pipeline.lake import Lake
from pipeline.lake.checksums import refuse_damaged
from pipeline.lake.database import query_published, rows_of
from pipeline.lake.delta import commit_rows, committed_files
from pipeline.lake.relations import size_unit

Row = dict[str, Any]

PREFIX = "case-"
UNKNOWN = "-"


def _named() -> str:
    return (
        f"SELECT each.*, named.property_name, {size_unit('each.rule')} AS size_unit FROM report.finding_case AS each "  # noqa: S608 - our own words
        "LEFT JOIN mart.property AS named USING (property_id)"
    )


def cases_query(places: Mapping[str, str | None]) -> str:
    """Return a query of the cases that are neither closed nor part of a wider one, the most urgent first.

    `places` has values of columns of `mart.property`, in upper or lower case; None: all.
    """
    chosen = "".join(f" AND lower(named.{of}) = lower({literal(it)})" for of, it in places.items() if it is not None)
    return f"{_named()} WHERE status NOT IN ('closed', 'part_of'){chosen} ORDER BY urgency"


def refuse_unknown_places(lake: Lake, places: Mapping[str, str | None]) -> None:
    """Raise InputError if no property has the given values of columns of `mart.property`."""
    known = {of: it for of, it in places.items() if it is not None}
    has = " AND ".join(f"lower({of}) = lower({literal(it)})" for of, it in known.items())
    if known and not _rows(lake, f"SELECT property_id FROM mart.property WHERE {has} LIMIT 1", {}):  # noqa: S608 - quoted
        asked = ", ".join(f"{of.removeprefix('property_')} {it}" for of, it in known.items())
        raise InputError(
            f"No property has these: {asked}.",
            hint='List the possible values: nightaudit query "SELECT DISTINCT city, brand, property_group FROM '
            'mart.property"',
        )


def open_cases(lake: Lake, limit: int | None, places: Mapping[str, str | None] | None = None) -> list[Row]:
    """Return the open cases as `cases_query` does, `limit` of them; None: all."""
    return _rows(lake, f"{cases_query(places or {})} LIMIT $limit", {"limit": limit})


def case_row(lake: Lake, case_id: str) -> Row:
    """Return a case. Raises InputError for an unknown id."""
    found = _rows(lake, f"{_named()} WHERE case_id = $case_id", {"case_id": case_id})
    if not found:
        raise InputError(f"There is no case {case_id!r}.", hint="List them: nightaudit cases")
    return found[0]


def flags_of_cases(lake: Lake, ids: Sequence[str]) -> list[str]:
    """Return flag ids unchanged, and for each case the flags of its evidence, in its order.

    Raises InputError for an unknown case.
    """
    flags: list[str] = []
    for each in ids:
        if each.startswith(PREFIX):
            flags += [item["flag_id"] for item in case_row(lake, each)["evidence"]]
        else:
            flags.append(each)
    return flags


def say_of_case(
    lake: Lake,
    case_id: str,
    now: datetime,
    *,
    is_acknowledged: bool = False,
    muted_until: date | None = None,
    note: str | None = None,
    owner: str | None = None,
) -> None:
    """Record an annotation of a case; earlier ones are kept. The caller holds the lake's writer lock.

    Raises InputError for an unknown case.
    """
    case = case_row(lake, case_id)
    said: Mapping[str, str | None] = {
        "mute": muted_until.isoformat() if muted_until else None,
        "note": note,
        "owner": owner,
    }
    rows: list[dict[str, str | None]] = [
        {"action": action, "value": value} for action, value in said.items() if value is not None
    ]
    if is_acknowledged:
        rows.append({"action": "acknowledge", "value": _extent(case)})
    noted_at = _after_all(lake, now)
    table = pa.Table.from_pylist(
        [{"case_id": case_id, "noted_at": noted_at, **row} for row in rows], schema=CASE_NOTE.schema
    )
    run = f"case-{noted_at:%Y%m%dT%H%M%S%f}"
    commit_rows(lake, CASE_NOTE, table, run, case_id, f"{run} {case_id}")


def _extent(case: Row) -> str:
    """Return what an acknowledgement holds for, as `lake.case_note` keeps it."""
    known = [case["lowest_pct"], case["highest_pct"], case["stays"], case["exposure_eur"]]
    # Without exchange rates, only these show whether its cost has grown.
    amounts = [f"{each['currency']}={each['amount']}" for each in case["amounts"]]
    return " ".join([*(UNKNOWN if each is None else str(each) for each in known), *amounts])


def _after_all(lake: Lake, now: datetime) -> datetime:
    """Return the time of an annotation: after all others, so that the latest one counts, whatever the clock says.

    It is not before the night that shows the case, either: nights of the sandbox's clock may lie in the future, and an
    acknowledgement from before a case opened does not count.
    """
    files = committed_files(lake, CASE_NOTE)
    refuse_damaged(lake.root, files)
    latest = pl.read_parquet(files, columns=["noted_at"])["noted_at"].max() if files else None
    (night,) = _rows(lake, "SELECT max(started_at) AS started_at FROM mart.sweep", {})
    at = max(now, night["started_at"] or now)
    return max(at, latest + timedelta(microseconds=1)) if isinstance(latest, datetime) else at


def _rows(lake: Lake, query: str, parameters: Mapping[str, object]) -> list[Row]:
    try:
        return rows_of(query_published(lake.published_file, query, parameters))
    except duckdb.CatalogException:
        raise InputError(
            "The published file was written by an older version, which had no cases.",
            hint="The next night adds them; to add them now: nightaudit rebuild",
        ) from None
