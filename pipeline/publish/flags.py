"""Flags: what the rules find after a night, compared with the flags that were open before it.

Computed after the state has been updated for the night, from the same views that analysts read.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

import duckdb
import pyarrow as pa

from pipeline.domain.errors import first_line
from pipeline.domain.tables import FAILED_RULE, FINDING_COLUMNS
from pipeline.lake.column_sql import as_stored, declared
from pipeline.lake.relations import night_relations, rule_versions
from pipeline.publish.state import OVER_ALL, create, make

logger = logging.getLogger(__name__)

_REASON_CHARACTERS = 300

# Failures that are not the rule's own.
NO_FAULT_OF_A_RULE = (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.InterruptException)


def find(session: duckdb.DuckDBPyConnection, names: Sequence[str]) -> None:
    """Run rules and put what they find tonight into `night.finding`; see `ask_rules`."""
    ask_rules(session, names)
    make(session, _made_after("finding"))


def find_ended(session: duckdb.DuckDBPyConnection) -> None:
    """Put the open flags that end tonight into `night.flag_ended`; `night.finding` is there."""
    found = _made_after("finding")
    make(session, (name for name in _made_after("flag_ended") if name not in found))


def ask_rules(session: duckdb.DuckDBPyConnection, names: Sequence[str]) -> None:
    """Run every rule: what it finds goes into `night.found`, rules that fail into `night.failed_rule`.

    `names` are relations with their schema. A rule that fails is reported and does not block publishing; its flags are
    unchanged.
    """
    _create_found(session)
    columns = as_stored(FINDING_COLUMNS)
    for name in names:
        try:
            session.execute(
                f"INSERT INTO memory.night.found BY NAME SELECT {columns}, '{name}' AS relation FROM {name}"  # noqa: S608 - our own names
            )
        except NO_FAULT_OF_A_RULE:
            raise
        except duckdb.Error as error:
            reason = first_line(error)[:_REASON_CHARACTERS]
            logger.error("The rule %s failed, so its flags are unchanged tonight: %s", name, reason)  # noqa: TRY400 - a traceback adds nothing
            session.execute("INSERT INTO memory.night.failed_rule VALUES (?, ?)", [name, reason])


def gather(session: duckdb.DuckDBPyConnection, found: list[pa.Table], failed: Mapping[str, str]) -> None:
    """Combine what rules found in the ranges. A rule that failed in one of them reports nothing tonight.

    `found` is emptied along the way: for a large night, it and the result would not both fit into memory. `failed`
    holds the reasons by relation.
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
    columns = declared(FINDING_COLUMNS)
    session.execute(f"CREATE OR REPLACE TABLE memory.night.found ({columns}, relation VARCHAR NOT NULL)")
    session.execute("CREATE OR REPLACE TABLE memory.night.failed_rule (relation VARCHAR, reason VARCHAR)")
    session.execute("CREATE OR REPLACE TABLE memory.night.rule_version (relation VARCHAR, rule_version INTEGER)")
    session.executemany("INSERT INTO memory.night.rule_version VALUES (?, ?)", [*rule_versions().items()])
    session.execute("CREATE OR REPLACE TABLE memory.night.setting_change (relation VARCHAR, last_other_at TIMESTAMPTZ)")


def note_settings(session: duckdb.DuckDBPyConnection, changed: Mapping[str, datetime]) -> None:
    """Record, by relation, the last night that judged by other settings of the rule than tonight."""
    for change in changed.items():
        session.execute("INSERT INTO memory.night.setting_change VALUES (?, ?)", change)


def _keep_failures(session: duckdb.DuckDBPyConnection) -> None:
    # Created here and not with the other tables: a file of an earlier version does not have it yet.
    session.execute(create("nightaudit.state.failed_rule", FAILED_RULE))
    session.execute(
        "INSERT INTO nightaudit.state.failed_rule SELECT sweep.sweep_id, failed.relation, failed.reason "
        "FROM memory.night.failed_rule AS failed CROSS JOIN memory.night.sweep AS sweep ORDER BY ALL"
    )


def move_flags_on(session: duckdb.DuckDBPyConnection) -> None:
    """Open, continue and close flags by tonight's findings, and the wider cases that they make up.

    `night.sweep` is the sweep.
    """
    _keep_failures(session)
    made = _made_after("flag_closed_next", "flag_open_next")
    make(session, made)
    session.execute("TRUNCATE state.flag_open")
    for name in ("flag_closed", "flag_open"):
        rows = f"FROM memory.night.{name}_next ORDER BY property_id, flag_id"
        session.execute(f"INSERT INTO state.{name} BY NAME {rows}")
    # In this order: outliers of a market's case need the market cases that are open.
    for name in ("case_scope", "case_outlier"):
        make(session, (f"{name}_next",))
        session.execute(f"TRUNCATE state.{name}")
        session.execute(f"INSERT INTO state.{name} BY NAME FROM memory.night.{name}_next ORDER BY ALL")
        session.execute(f"DROP TABLE memory.night.{name}_next")
    for name in ("found", "failed_rule", "rule_version", "setting_change", *made):
        session.execute(f"DROP TABLE memory.night.{name}")


def _made_after(*last: str) -> tuple[str, ...]:
    """Return what flags need that was not computed before the ranges."""
    return tuple(name for name in night_relations(*last) if name not in OVER_ALL)
