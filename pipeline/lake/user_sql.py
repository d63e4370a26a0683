"""Which SQL users may run, and the session that runs it: it reads this lake, and writes nothing.

There are three barriers, each enough for most attempts: DuckDB's own parser must find one SELECT (or DESCRIBE, SHOW,
SUMMARIZE, EXPLAIN of one) that calls only known table functions; the published file is attached read-only; and the
session reaches no files but the lake's, no extension and no setting. The parser is needed because DuckDB lets COPY and
ATTACH write inside a folder that may be read.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from pipeline.domain.errors import InputError
from pipeline.domain.texts import literal

# DuckDB 2.0.0 shares common parts of a query, and then waits forever if a LIMIT ends one of them. Queries are as fast
# without it. It also takes a join with a single row, as `WHERE sweep_id = (SELECT max(sweep_id) …)` is one, to give one
# row: sums of more are then cut to a byte where they are sorted, and a condition on them leaves them out.
UNSAFE_OPTIMIZERS = "common_subplan,statistics_propagation"

# No person writes a longer query; what a text expands to is limited by time and memory.
MOST_CHARACTERS = 1_000_000

LIST_RELATIONS = 'List relations and columns: nightaudit query "SHOW ALL TABLES"'
CANNOT_RUN = "The query cannot be run: "
_ONE_STATEMENT = (
    "Only a single read-only statement can be run: SELECT, FROM, DESCRIBE, SHOW, SUMMARIZE, or EXPLAIN of one of these."
)
_EXPLAIN = re.compile(
    r"\s*EXPLAIN\s+(?P<how>ANALYZE\s+|\(\s*(?:ANALYZE|FORMAT\s+\w+)(?:\s*,\s*(?:ANALYZE|FORMAT\s+\w+))*\s*\))?",
    re.IGNORECASE,
)

# Kinds of statements, or parts of them, that read. DuckDB 2 has others that write, such as DELETE_QUERY_NODE.
_READING_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})

# Table functions that read files, or a relation whose name may be that of a file; the session lets them reach those of
# the lake.
_FILE_READERS = frozenset(
    {
        "glob", "histogram", "histogram_values", "parquet_bloom_probe", "parquet_file_metadata",
        "parquet_full_metadata", "parquet_kv_metadata", "parquet_metadata", "parquet_scan", "parquet_schema",
        "read_blob", "read_csv", "read_csv_auto", "read_json", "read_json_auto", "read_json_objects",
        "read_json_objects_auto", "read_ndjson", "read_ndjson_auto", "read_ndjson_objects", "read_parquet",
        "read_text", "sniff_csv",
    }
)  # fmt: skip
# The other permitted ones. Those missing take SQL as text, change the session, or take an address in memory.
_TABLE_FUNCTIONS = _FILE_READERS | {
    "duckdb_columns", "duckdb_constraints", "duckdb_databases", "duckdb_dependencies", "duckdb_functions",
    "duckdb_indexes", "duckdb_keywords", "duckdb_memory", "duckdb_optimizers", "duckdb_schemas", "duckdb_sequences",
    "duckdb_settings", "duckdb_tables", "duckdb_types", "duckdb_views", "generate_series", "icu_calendar_names",
    "json_each", "json_tree", "pg_timezone_names", "pragma_collations", "pragma_database_size", "pragma_show",
    "pragma_storage_info", "pragma_table_info", "pragma_version", "range", "repeat", "repeat_row", "summary",
    "test_all_types", "unnest",
}  # fmt: skip

# Functions that DuckDB marks as having effects only because their value changes with each call.
_HARMLESS = frozenset(
    {
        "current_connection_id", "current_query", "current_query_id", "current_transaction_id", "currval", "error",
        "gen_random_uuid", "random", "stats", "uuid", "uuidv4", "uuidv7", "vector_type",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """A permitted query. `names_files`: it reads files by name, so a missing one is the user's mistake."""

    sql: str
    names_files: bool


# It plans any statement that it is given as text, and planning EXPORT DATABASE creates a folder.
_OF_STATEMENTS = frozenset({"json_serialize_plan"})


def locked_session(file: Path, spill: Path, memory_mb: int) -> duckdb.DuckDBPyConnection:
    """Return a session in UTC over the published file that reads only this lake and has fixed settings.

    `file` is `<lake>/published/nightaudit.duckdb`; its schemas are on the search path. `spill` is a folder for data
    that does not fit into memory. Raises duckdb.Error if the file cannot be opened.
    """
    lake = file.parents[1]
    session = duckdb.connect(":memory:")
    try:
        settings = {
            "TimeZone": "UTC",
            "memory_limit": f"{memory_mb}MB",
            "temp_directory": str(spill),
            "max_temp_directory_size": f"{4 * memory_mb}MB",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "allow_persistent_secrets": "false",
            "python_enable_replacements": "false",
            "disabled_optimizers": UNSAFE_OPTIMIZERS,
        }
        for name, value in settings.items():
            session.execute(f"SET {name} = {literal(value)}")
        # Attached, not opened: a path that was opened once in a process keeps giving the file that it was then.
        session.execute(f"ATTACH {literal(str(file))} AS nightaudit (READ_ONLY)")
        session.execute("USE nightaudit")
        # The folders that views of the published file read, and the raw answers.
        read = [lake / "published", lake / "raw", lake / "state", *lake.glob("tables*")]
        folders = sorted({f"{place}/" for folder in read for place in (folder, folder.resolve())})
        session.execute(f"SET allowed_directories = [{', '.join(map(literal, folders))}]")
        session.execute("SET enable_external_access = false")
        session.execute("SET lock_configuration = true")
    except BaseException:
        session.close()
        raise
    return session


def question(session: duckdb.DuckDBPyConnection, sql: str) -> Question:
    """Return the permitted query of a user's text. Raises InputError if it does more than read."""
    if len(sql) > MOST_CHARACTERS:
        raise InputError(
            f"The query is too long: it has {len(sql):,} characters, and {MOST_CHARACTERS:,} are allowed.",
            hint="Shorten it, or split it into several queries.",
        )
    explained = _EXPLAIN.match(sql)
    if explained is None:
        return Question(sql, reads_files(session, parsed(session, sql)))
    # Reassembled, so that the explained statement is the checked one.
    inner = sql[explained.end() :]
    names_files = reads_files(session, parsed(session, inner))
    return Question(f"EXPLAIN {(explained['how'] or '').strip()} {inner}", names_files)


def parsed(session: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    """Return the parse tree of one SELECT. Raises InputError for any other text."""
    row = session.execute("SELECT json_serialize_sql($sql::VARCHAR)", {"sql": sql}).fetchone()
    try:
        tree: dict[str, Any] = json.loads(row[0]) if row else {}
    except RecursionError:
        raise InputError("The query is nested too deeply.", hint="Split it into several queries.") from None
    if tree.get("error_type") == "parser":
        raise InputError(f"{CANNOT_RUN}Parser Error: {tree['error_message']}", hint=_ONE_STATEMENT)
    if tree.get("error", True) and _is_open_pivot(session, sql):
        raise InputError(
            "A PIVOT must name the values that become columns; to find them, DuckDB would first create a type.",
            hint="Name them: PIVOT t ON market IN ('DE', 'GB') USING avg(total)",
        )
    if tree.get("error", True) or len(tree["statements"]) != 1:
        raise InputError(_ONE_STATEMENT, hint=LIST_RELATIONS)
    return tree


def _is_open_pivot(session: duckdb.DuckDBPyConnection, sql: str) -> bool:
    """Whether a text is one statement that DuckDB runs as several; only a PIVOT without values is."""
    made = session.extract_statements(sql)
    # DuckDB 2 returns it as one; earlier versions return its parts, which have no text of their own.
    return [each.type for each in made] == [duckdb.StatementType.MULTI] or (len(made) > 1 and not made[0].query)


def reads_files(session: duckdb.DuckDBPyConnection, tree: dict[str, Any]) -> bool:
    """Whether a tree reads files by name. Raises InputError if a part of it does more than read."""
    found = False
    own = "SELECT function_name FROM duckdb_functions() WHERE database_name = 'nightaudit'"
    macros = {name.lower() for (name,) in session.execute(own).fetchall()}
    with_effects = functions_with_effects(session)
    for part in _parts(tree):
        kind = part.get("type")
        if not isinstance(kind, str):
            continue
        if kind.endswith("_NODE") and kind not in _READING_NODES:
            raise InputError(_ONE_STATEMENT, hint=LIST_RELATIONS)
        if kind == "TABLE_FUNCTION":
            name = part["function"]["function_name"].lower()
            if name not in _TABLE_FUNCTIONS and name not in macros:
                raise InputError(f"A query must not use the table function {name}.", hint=LIST_RELATIONS)
            found |= name in _FILE_READERS
        elif kind == "FUNCTION" and part.get("function_name", "").lower() in with_effects:
            raise InputError(f"A query must not use the function {part['function_name'].lower()}.", hint=LIST_RELATIONS)
        elif kind == "BASE_TABLE":
            # Relations have plain names.
            found |= not re.fullmatch(r"\w*", part.get("table_name", ""))
    return found


def functions_with_effects(session: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """Return the functions that do more than compute a value (DuckDB marks most of them) and macros that call them."""
    marked = "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE internal AND has_side_effects"
    found = {name for (name,) in session.execute(marked).fetchall()} - _HARMLESS | _OF_STATEMENTS
    macros = (
        "SELECT lower(function_name), macro_definition FROM duckdb_functions() "
        "WHERE internal AND macro_definition IS NOT NULL"
    )
    calls = re.compile(rf"\b({'|'.join(sorted(found))})\b", re.IGNORECASE)
    return frozenset(
        found | {name for name, definition in session.execute(macros).fetchall() if calls.search(definition)}
    )


def _parts(tree: object) -> Iterator[dict[str, Any]]:
    """Yield every object of a JSON document, without recursion, as a user's text can be nested deeply."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
