"""What analysts wait for: look-ups, and every report relation, on a published history.

`NIGHTAUDIT_BENCH_HISTORY` names a lake that `python -m benchmarks.history` has made, of 50 million observations, for
which there are figures to reach. Without it a smaller one is made first, which only shows where time goes.
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

import duckdb
from benchmarks.history import NIGHTS, OBSERVATIONS, make_history
from benchmarks.measuring import Result, Row, Size
from benchmarks.simulated import World

from pipeline.lake import Lake

PART = "queries"
_LOOK_UPS = {
    "prices of one property": "FROM mart.offer_latest WHERE property_id = $property_id",
    "history of one property": "FROM mart.offer_history WHERE property_id = $property_id",
    "history of one stay": "FROM mart.offer_history WHERE property_id = $property_id AND check_in = $check_in",
    "cells of one property": "FROM mart.cell_latest WHERE property_id = $property_id",
    "one property as of a night": "FROM mart.offer_as_of($sweep_id) WHERE property_id = $property_id",
}
_PATIENCE_S = 60
_SMALLER = 3_000_000


def measure(size: Size, folder: Path) -> Result:
    """Wall time of warm queries, read to the last row; two threads, as DuckDB has by default here."""
    result = Result()
    given = os.environ.get("NIGHTAUDIT_BENCH_HISTORY")
    if given and not size.is_tiny:
        file = Lake(given).published_file
    else:
        world = World(30, 6) if size.is_tiny else World.holding(_SMALLER, NIGHTS)
        file = make_history(Lake(str(folder / "lake")), world)
    with duckdb.connect(":memory:") as session:
        session.execute("SET TimeZone = 'UTC'")
        session.execute(f"ATTACH '{file}' AS history (READ_ONLY)")
        session.execute("USE history")
        offers = session.execute("SELECT sum(offers) FROM mart.sweep").fetchall()[0][0]
        is_whole = offers >= 0.9 * OBSERVATIONS
        result.rows.append(
            Row(PART, "observations in the history", offers / 1e6, "million", reach=f"{OBSERVATIONS / 1e6:g}")
        )
        property_id, check_in = session.execute(
            "SELECT property_id, check_in FROM mart.offer_latest GROUP BY ALL "
            "ORDER BY count(*) DESC, property_id, check_in LIMIT 1"
        ).fetchall()[0]
        sweep_id = session.execute("SELECT sweep_id FROM mart.sweep ORDER BY 1 OFFSET 3 LIMIT 1").fetchall()[0][0]
        known = {"property_id": property_id, "check_in": check_in, "sweep_id": sweep_id}
        for what, query in _LOOK_UPS.items():
            parameters = {name: value for name, value in known.items() if f"${name}" in query}
            result.rows.append(
                _timed(session, f"look-up: {what}", query, parameters, 0.050 if is_whole else None, size)
            )
        relations = session.execute(
            "SELECT DISTINCT schema_name || '.' || table_name FROM duckdb_columns() WHERE database_name = 'history' "
            "AND schema_name = 'report' ORDER BY 1"
        ).fetchall()
        for (name,) in relations:
            result.rows.append(_timed(session, name, f"FROM {name}", {}, 1.0 if is_whole else None, size))
    return result


def _timed(
    session: duckdb.DuckDBPyConnection,
    what: str,
    query: str,
    parameters: dict[str, object],
    most: float | None,
    size: Size,
) -> Row:
    seconds: list[float] = []
    rows = 0
    for _ in range(size.of(4, 2)):
        began = time.perf_counter()
        rows = sum(batch.num_rows for batch in session.sql(query, params=parameters).to_arrow_reader(100_000))
        seconds.append(time.perf_counter() - began)
        if seconds[-1] > _PATIENCE_S:
            break
    warm = seconds[1:] or seconds
    value = statistics.median(warm)
    reach, reached = ("", None) if most is None else (f"<= {most:g} s", value <= most)
    return Row(PART, what, value, "s", min(warm), max(warm), reach, reached, f"{rows:,} rows")
