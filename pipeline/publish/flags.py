"""Flags: what the rules find after a night, held against the flags that stood before it.

Worked out once the state has moved on to after the night, by the very views that analysts read.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa

from pipeline.domain.tables import FAILED_RULE, FINDING_COLUMNS
from pipeline.lake.database import sql_type
from pipeline.lake.relations import relation

logger = logging.getLogger(__name__)

_REASON_CHARACTERS = 300

# What says nothing of the rule that was being asked.
_NO_FAULT_OF_A_RULE = (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.InterruptException)


def find(session: duckdb.DuckDBPyConnection, names: Sequence[str]) -> None:
    """Ask rules, and put what they find tonight into `night.finding`; see `ask_rules`."""
    ask_rules(session, names)
    session.execute(f"CREATE OR REPLACE TABLE memory.night.finding AS {relation('staging', 'finding').sql}")


def ask_rules(session: duckdb.DuckDBPyConnection, names: Sequence[str]) -> None:
    """Ask every rule, and put what it finds into `night.found` and those that cannot be asked into `night.failed_rule`.

    `names` are relations with their schema. One that fails is reported and keeps no night from being published; its
    flags stay as they were.
    """
    _create_found(session)
    columns = ", ".join(f"{column.name}::{sql_type(column)} AS {column.name}" for column in FINDING_COLUMNS)
    for name in names:
        try:
            session.execute(
                f"INSERT INTO memory.night.found BY NAME SELECT {columns}, '{name}' AS relation FROM {name}"  # noqa: S608 - our own names
            )
        except _NO_FAULT_OF_A_RULE:
            raise
        except duckdb.Error as error:
            reason = str(error).splitlines()[0][:_REASON_CHARACTERS]
            logger.error("%s finds nothing tonight, for it failed: %s", name, reason)  # noqa: TRY400 - a traceback tells no more
            session.execute("INSERT INTO memory.night.failed_rule VALUES (?, ?)", [name, reason])


def gather(session: duckdb.DuckDBPyConnection, found: list[pa.Table], failed: Mapping[str, str]) -> None:
    """Put what rules found in ranges together. A rule that failed in one of them says nothing tonight.

    `found` is emptied on the way: of a large night, it would not fit into memory beside what is made of it. `failed`
    are the reasons by relation.
    """
    _create_found(session)
    while found:
        session.register("found_in_range", found.pop(0))
        session.execute("INSERT INTO memory.night.found BY NAME FROM found_in_range")
        session.unregister("found_in_range")
    for name, reason in sorted(failed.items()):
        session.execute("INSERT INTO memory.night.failed_rule VALUES (?, ?)", [name, reason])
        session.execute("DELETE FROM memory.night.found WHERE relation = ?", [name])


def _create_found(session: duckdb.DuckDBPyConnection) -> None:
    declared = ", ".join(
        f"{column.name} {sql_type(column)}{' NOT NULL' if column.is_required else ''}" for column in FINDING_COLUMNS
    )
    session.execute(f"CREATE OR REPLACE TABLE memory.night.found ({declared}, relation VARCHAR NOT NULL)")
    session.execute("CREATE OR REPLACE TABLE memory.night.failed_rule (relation VARCHAR, reason VARCHAR)")


def _keep_failures(session: duckdb.DuckDBPyConnection) -> None:
    """Keep which rules could not be asked after the night: for its summary and its digest."""
    declared = ", ".join(f"{column.name} {sql_type(column)} NOT NULL" for column in FAILED_RULE.columns)
    # Here and not with the other tables: a file of an earlier version goes on without it until now.
    session.execute(f"CREATE TABLE IF NOT EXISTS nightaudit.state.failed_rule ({declared})")
    session.execute(
        "INSERT INTO nightaudit.state.failed_rule SELECT sweep.sweep_id, failed.relation, failed.reason "
        "FROM memory.night.failed_rule AS failed CROSS JOIN memory.night.sweep AS sweep ORDER BY ALL"
    )


def move_flags_on(session: duckdb.DuckDBPyConnection) -> None:
    """Open, go on with and close flags by what was found after the night. `night.sweep` is the sweep."""
    _keep_failures(session)
    for name in ("finding", "flag_ended", "flag_closed_next", "flag_open_next"):
        session.execute(f"CREATE OR REPLACE TABLE memory.night.{name} AS {relation('staging', name).sql}")
    session.execute(
        "INSERT INTO state.flag_closed BY NAME FROM memory.night.flag_closed_next ORDER BY property_id, flag_id"
    )
    session.execute("TRUNCATE state.flag_open")
    session.execute(
        "INSERT INTO state.flag_open BY NAME FROM memory.night.flag_open_next ORDER BY property_id, flag_id"
    )
    for name in ("found", "failed_rule", "finding", "flag_ended", "flag_closed_next", "flag_open_next"):
        session.execute(f"DROP TABLE memory.night.{name}")
