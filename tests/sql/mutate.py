"""Change the SQL of relations in one place at a time, and list the changes that no golden case notices.

Words and signs are flipped; a condition that ties two columns is taken away; a column is left out of what rows are
grouped, partitioned or joined by.

`.venv/bin/python tests/sql/mutate.py [<schema>.<relation> …]`; without any, of all relations with cases, which takes
minutes. A change that survives is a case that is missing, or a part of the relation that makes no difference.
"""

from __future__ import annotations

import argparse
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import duckdb
from session import Golden
from test_golden import CASES, HERE, differs, expected_of

from pipeline.lake.relations import Relation, relation

# What is written, and what is written instead. Words between quotes are left alone.
FLIPS: tuple[tuple[str, str], ...] = (
    (r"\bLEFT JOIN\b", "INNER JOIN"),
    (r"\bINNER JOIN\b", "LEFT JOIN"),
    (r"\bSEMI JOIN\b", "ANTI JOIN"),
    (r"\bANTI JOIN\b", "SEMI JOIN"),
    (r"(?<![<>=-])>=", ">"),
    (r"(?<![<>=-])<=", "<"),
    (r"(?<![<>=-])>(?![>=])", ">="),
    (r"(?<![<>=-])<(?![<>=])", "<="),
    (r"<>", "="),
    (r"\bIS NOT DISTINCT FROM\b", "="),
    (r"\bIS DISTINCT FROM\b", "<>"),
    (r"\bIS NOT NULL\b", "IS NULL"),
    (r"\bIS NULL\b", "IS NOT NULL"),
    (r"\bAND\b(?! (CURRENT|UNBOUNDED|\d))", "OR"),
    (r"\bOR\b(?! REPLACE)", "AND"),
    (r"\bDESC\b", "ASC"),
    (r"\bASC\b", "DESC"),
    (r"\bmin\(", "max("),
    (r"\bmax\(", "min("),
    (r"\bsum\(", "avg("),
    (r"\barg_min\(", "arg_max("),
    (r"\barg_max\(", "arg_min("),
    (r"\bbool_and\(", "bool_or("),
    (r"\bbool_or\(", "bool_and("),
    (r"\bcount\(DISTINCT ", "count("),
    (r"\bSELECT DISTINCT\b", "SELECT"),
    (r"\bgreatest\(", "least("),
    (r"\bleast\(", "greatest("),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r" \* ", " / "),
    (r" / ", " * "),
    (r"\bNOT (?!NULL|DISTINCT|IN\b|EXISTS|MATERIALIZED)", ""),
    (r" FILTER \(\s*WHERE (?:[^()]|\([^()]*\))*\)", ""),
)
# Taken away one by one: what ties two columns, and columns that rows are grouped, partitioned or joined by.
TIE = re.compile(r"\b(ON|AND|WHERE) ([\w.]+ (?:=|IS NOT DISTINCT FROM) [\w.]+\b)(?!\()")
KEYS = re.compile(r"\b(?:PARTITION BY|GROUP BY|USING \()\s*(?!ALL\b)([\w.]+(?:,\s*[\w.]+)*)(?![\w.]*\()")
SECONDS = 5


def changes(sql: str) -> Iterator[tuple[int, str, str]]:
    """Yield line number, what was changed into what, and the SQL with that change."""
    # Nothing begins in a comment or a text.
    covered = [match.span() for match in re.finditer(r"--[^\n]*|'[^']*'", sql)]
    for written, instead in FLIPS:
        for match in re.finditer(written, sql):
            if any(start <= match.start() < end for start, end in covered):
                continue
            what = f"{' '.join(match[0].split())} -> {instead.strip() or 'nothing'}"
            yield line_of(sql, match.start()), what, sql[: match.start()] + instead + sql[match.end() :]
    for match in TIE.finditer(sql):
        yield line_of(sql, match.start(2)), f"{match[2]} -> TRUE", f"{sql[: match.start(2)]}TRUE{sql[match.end(2) :]}"
    for match in KEYS.finditer(sql):
        keys = re.split(r",\s*", match[1])
        for left_out in keys if len(keys) > 1 else ():
            rest = ", ".join(key for key in keys if key != left_out)
            what = f"{match[0].split(match[1])[0].strip()} without {left_out}"
            yield line_of(sql, match.start(1)), what, sql[: match.start(1)] + rest + sql[match.end(1) :]


def line_of(sql: str, place: int) -> int:
    return sql.count("\n", 0, place) + 1


def survivors(golden: Golden, cases: list[Path], made: Relation) -> tuple[int, list[tuple[int, str, str]]]:
    """Return how many changes were tried, and those that no case notices."""
    left = list(changes(made.sql))
    tried = len(left)
    for case in cases:
        expected = expected_of(golden, case)
        if difference := differs(golden, expected, made):
            # Else every change would pass for noticed.
            sys.exit(f"{case.relative_to(HERE)}: {difference}")
        left = [change for change in left if not is_noticed(golden, expected, replace(made, sql=change[2]))]
        golden.empty()
    return tried, left


def is_noticed(golden: Golden, expected: list[dict[str, object]], changed: Relation) -> bool:
    clock = threading.Timer(SECONDS, golden.session.interrupt)
    clock.start()
    try:
        return bool(differs(golden, expected, changed))
    except duckdb.Error:
        # It can no longer be run, or runs forever.
        return True
    finally:
        clock.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("relations", nargs="*")
    known = sorted({".".join(path.parts[-3:-1]) for path in CASES})
    wanted = parser.parse_args().relations or known
    if unknown := [name for name in wanted if name not in known]:
        parser.error(f"no golden case of {', '.join(unknown)}; a relation is named like mart.offer_latest")
    golden, tried, survived = Golden(), 0, 0
    for name in wanted:
        schema, _, short = name.partition(".")
        made = relation(schema, short)
        of_relation, left = survivors(golden, sorted((HERE / schema / short).glob("*.yaml")), made)
        tried += of_relation
        survived += len(left)
        for line, what, _ in left:
            print(f"{name}:{line}: {what}: {made.sql.splitlines()[line - 1].strip()}", flush=True)  # noqa: T201 - a list for people
    print(f"{tried} changes, {survived} survived")  # noqa: T201 - a list for people


if __name__ == "__main__":
    main()
