"""Values of a query that Python cannot hold as DuckDB does: they are given as DuckDB writes them.

An interval of a month is one of thirty days in Python, and bytes would be shown as Python writes them.
"""

from collections.abc import Sequence

import duckdb
from duckdb.sqltypes import DuckDBPyType

_AS_TEXT = frozenset({"blob", "interval"})
_OF_PARTS = frozenset({"array", "list", "map", "struct", "union"})


def run(session: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    """Run a query whose rows are then read from the session; return the names of its columns."""
    session.execute(sql)
    return [column[0] for column in session.description or []]


def run_with_texts(session: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    """Do the same, with intervals and bytes as text, also inside lists and structs."""
    names = run(session, sql)
    selected = _selected([column[1] for column in session.description or []])
    if selected:
        # Its text may end in a semicolon or a comment; this one does not.
        asked = session.execute("SELECT json_deserialize_sql(json_serialize_sql($1::VARCHAR))", [sql]).fetchall()
        # By their places, as names may occur twice.
        session.execute(f"SELECT {selected} FROM ({asked[0][0]})")  # noqa: S608 - a query that was checked
    return names


def _selected(kinds: Sequence[DuckDBPyType]) -> str:
    """Return what selects columns of these types with such values as text; '' if there are none."""
    texts = [_text_of(kind) for kind in kinds]
    if not any(texts):
        return ""
    return ", ".join(f"#{place}{f'::{text}' if text else ''}" for place, text in enumerate(texts, 1))


def _text_of(kind: DuckDBPyType) -> str:
    """Return the type with text in place of such values, as SQL; '' if it has none."""
    if kind.id in _AS_TEXT:
        return "VARCHAR"
    if kind.id not in _OF_PARTS:
        return ""
    parts = [(name, part) for name, part in kind.children if isinstance(part, DuckDBPyType)]
    texts = {name: _text_of(part) for name, part in parts}
    if not any(texts.values()):
        return ""
    return _written(kind.id, {name: texts[name] or str(part) for name, part in parts})


def _written(kind: str, parts: dict[str, str]) -> str:
    if kind == "struct":
        named = (f"{_quoted(name)} {part}" for name, part in parts.items())
        return f"STRUCT({', '.join(named)})"
    if kind == "map":
        return f"MAP({parts['key']}, {parts['value']})"
    return "VARCHAR" if kind == "union" else f"{parts['child']}[]"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
