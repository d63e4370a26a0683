"""Problems for messages and the terminal, grouped and worded as in the digest, with its costs."""

from collections.abc import Collection, Mapping
from typing import Any

import duckdb
import polars as pl

from pipeline.domain.problem import Problem, markets_of, whom_of
from pipeline.domain.quantities import cost_said
from pipeline.lake import Lake
from pipeline.lake.database import failed_query, open_published
from pipeline.report.case_rows import with_opening
from pipeline.report.cases import calls, described
from pipeline.report.ended_cases import ended_problems, with_why
from pipeline.report.read import Reader
from pipeline.report.scope import Scope

_Row = Mapping[str, Any]


def problems_of(lake: Lake, case_ids: Collection[str]) -> list[Problem]:
    """Return the problems of some cases: those that are open, then those that ended, each time the most urgent first.

    Ids that the published file does not have are left out. Raises CorruptObject if the file cannot be read.
    """
    if not case_ids:
        return []
    with open_published(lake.published_file) as session:
        try:
            return _problems(Reader(session, Scope()), case_ids)
        except duckdb.Error as error:
            raise failed_query(lake.published_file, error) from None


def _problems(reader: Reader, case_ids: Collection[str]) -> list[Problem]:
    query = "SELECT * FROM report.finding_case WHERE case_id IN $ids ORDER BY urgency"
    found = with_opening(reader.named(reader.query(query, {"ids": list(case_ids)})))
    is_closed = pl.col("status") == "closed"
    open_now, ended = found.filter(~is_closed), found.filter(is_closed)
    lines = calls(described(reader, open_now)).rows(named=True) if open_now.height else []
    if ended.height:
        lines += ended_problems(described(reader, _with_why(reader, ended))).rows(named=True)
    cases = {row["case_id"]: row for row in found.iter_rows(named=True)}
    return [_problem(line, [cases[case_id] for case_id in line["case_id"].split()]) for line in lines]


def _with_why(reader: Reader, ended: pl.DataFrame) -> pl.DataFrame:
    """Return cases that ended on any night with `ended_by`."""
    # A case whose last stay began ended between two nights: the later one found that.
    sweeps = sorted((night["started_at"], night["sweep_id"]) for night in reader.nights)
    nights = ended.partition_by("closed_at", maintain_order=True)
    return pl.concat(
        with_why(reader, of, next((sweep for began, sweep in sweeps if began >= of["closed_at"][0]), None))
        for of in nights
    )


def _problem(line: _Row, cases: list[_Row]) -> Problem:
    first = cases[0]
    markets = line["market"] if "market" in line else line["in"]
    of_scope = {"property": markets or "", "supplier": ", ".join(first["markets"])}
    return Problem(
        cases={case["case_id"]: _market_and_cost(case) for case in cases},
        status=line.get("status_words", first["status"]),
        title=line["rule_words"],
        whom=whom_of(first),
        markets=of_scope.get(first["scope"], ""),
        finding=line["finding"],
        cost=line["cost"],
        since=line["since"],
        why_it_ended=line.get("why_it_ended", ""),
    )


def _market_and_cost(case: _Row) -> str:
    cost = cost_said(case["exposure_eur"], case["amounts"])
    return f"{markets_of(case)}, {cost}" if cost else markets_of(case)
