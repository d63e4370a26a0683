"""The data dictionary: for each relation of the published file its columns, its sources and a query.

It is made from the comments in the file, so it is correct for the night that it was written from.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import duckdb

from pipeline.lake.relations import read_by, views

# Schemas in the order in which a reader needs them, with their content.
SCHEMAS: Final[Mapping[str, str]] = {
    "mart": "Offers, cells and comparisons, one row each, with the ids of their raw answers.",
    "report": "The figures of the pages: counts with their denominators, and findings.",
    "ref": "Markets, boards and their families, error codes, and the settings that comparisons use.",
    "lake": "The normalised rows of every published sweep, and the data that users loaded.",
}


@dataclass(frozen=True, slots=True)
class DescribedColumn:
    """One column: its type in DuckDB, and its meaning with its unit."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Described:
    """One relation; `reads` and `read_by` are full names of its neighbours."""

    schema: str
    name: str
    grain: str
    columns: Sequence[DescribedColumn]
    reads: Sequence[str]
    read_by: Sequence[str]

    @property
    def full_name(self) -> str:
        """Name with its schema."""
        return f"{self.schema}.{self.name}"

    @property
    def example(self) -> str:
        """A query to begin with: its first columns, a few rows."""
        first = ", ".join(column.name for column in self.columns[:6])
        return f"SELECT {first} FROM {self.full_name} LIMIT 5"  # noqa: S608 - our own names


def described(session: duckdb.DuckDBPyConnection) -> list[Described]:
    """Return the relations of a published file, by schema and name."""
    grains = session.execute(
        "SELECT schema_name, table_name, comment FROM duckdb_tables() "
        "UNION ALL SELECT schema_name, view_name, comment FROM duckdb_views() WHERE NOT internal"
    ).fetchall()
    columns = defaultdict(list)
    for schema, relation, *column in session.execute(
        "SELECT schema_name, table_name, column_name, data_type, coalesce(comment, '') FROM duckdb_columns() "
        "WHERE NOT internal ORDER BY column_index"
    ).fetchall():
        columns[schema, relation].append(DescribedColumn(*column))
    there = {f"{schema}.{name}" for schema, name, _ in grains if schema in SCHEMAS}
    reads = {name: sorted(names & there - {name}) for name, names in read_by(views()).items()}
    made_into = defaultdict(list)
    for name, names in sorted(reads.items()):
        for source in names:
            made_into[source].append(name)
    found = [
        Described(schema, name, grain or "", columns[schema, name], reads.get(full, []), made_into[full])
        for schema, name, grain in grains
        if (full := f"{schema}.{name}") in there
    ]
    return sorted(found, key=lambda each: (list(SCHEMAS).index(each.schema), each.name))
