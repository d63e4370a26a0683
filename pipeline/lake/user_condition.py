"""The condition of an alert rule: what follows WHERE, on one row."""

import re
from functools import cache
from itertools import accumulate
from typing import Any

import duckdb

from pipeline.domain.errors import InputError
from pipeline.lake.user_sql import CANNOT_RUN, Question, parsed, reads_files

# Of an alert rule: a list of thousands of ids, and more brackets than anyone writes.
_MOST_OF_A_CONDITION, _DEEPEST_CONDITION = 20_000, 50
_NESTING = re.compile(r"[()\[\]{}]|\b(?:case|end)\b", re.IGNORECASE)
_OPENS, _CLOSES = frozenset("([{") | {"case"}, frozenset(")]}") | {"end"}
_A_CONDITION = "Write what follows WHERE in a query, for example: market = 'GB' AND size_pct > 5"


def rows_where(session: duckdb.DuckDBPyConnection, relation: str, where: str, order: str) -> Question:
    """Return the query for the rows of `relation` that meet a user's condition, in a fixed order.

    Raises InputError if the text is not one condition on a row.
    """
    chosen, tree = _chosen(session, relation, where)
    return Question(f"{chosen} ORDER BY {order}", reads_files(session, tree))


def refuse_unreadable(where: str) -> None:
    """Raise InputError if a text is not one condition on a row. The names in it are not looked up.

    It is parsed in this process, so what may take long is refused first: the parser's time grows with the square of
    the brackets within each other.
    """
    if len(where) > _MOST_OF_A_CONDITION:
        raise InputError(
            f"The condition is too long: {_MOST_OF_A_CONDITION:,} characters are allowed.", hint=_A_CONDITION
        )
    depths = accumulate((part.lower() in _OPENS) - (part.lower() in _CLOSES) for part in _NESTING.findall(where))
    if max(depths, default=0) > _DEEPEST_CONDITION:
        raise InputError("The condition is nested too deeply.", hint=_A_CONDITION)
    _chosen(_parser(), "relation", where)


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    """Return a session that only parses; starting one takes longer than parsing does."""
    return duckdb.connect(":memory:")


def _chosen(session: duckdb.DuckDBPyConnection, relation: str, where: str) -> tuple[str, dict[str, Any]]:
    """Return the query for the rows that meet a condition, and its tree. Raises InputError; see `rows_where`."""
    chosen = f"SELECT * FROM {relation} WHERE (\n{where}\n)"  # noqa: S608 - compared with what it must be, below
    try:
        tree, plain = parsed(session, chosen), parsed(session, f"SELECT * FROM {relation} WHERE (true)")  # noqa: S608 - names of ours
    except InputError as error:
        reason = error.message.removeprefix(CANNOT_RUN)
        raise InputError(f"The condition cannot be read: {reason}", hint=_A_CONDITION) from None
    # It is a condition if the rest equals a query with another condition; otherwise it closed its bracket early.
    if _without_condition(tree) != _without_condition(plain):
        raise InputError("The condition is not one condition on a row.", hint=_A_CONDITION)
    return chosen, tree


def _without_condition(tree: dict[str, Any]) -> object:
    node = dict(tree["statements"][0]["node"])
    node.pop("where_clause", None)
    # Places in the text are ignored.
    return _without_places(node)


def _without_places(part: object) -> object:
    if isinstance(part, dict):
        return {name: _without_places(value) for name, value in part.items() if not name.startswith("query_location")}
    return [_without_places(value) for value in part] if isinstance(part, list) else part
