"""The SQL under `sql/`: one file is one relation, named like the file, in the schema named like its folder.

A file begins with comments. The first says the grain; the others document columns, as `-- column: meaning`. What
follows is one SELECT.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pipeline.domain.tables import SIDE_TABLES, STATE_TABLES, TABLES

_COLUMN_LINE = re.compile(r"-- (?P<name>[a-z_0-9]+): (?P<meaning>.+)")


def sql_folder() -> Path:
    """Return the folder of the SQL: beside the packages in a checkout, inside them when installed."""
    installed = Path(__file__).parents[1] / "_sql"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "sql"


@dataclass(frozen=True)
class Relation:
    """One SQL file."""

    schema: str
    name: str
    grain: str
    sql: str
    meanings: dict[str, str] = field(default_factory=dict)
    header: str = ""
    """All that the file says of itself."""

    @property
    def full_name(self) -> str:
        """Name with its schema."""
        return f"{self.schema}.{self.name}"


@cache
def relation(schema: str, name: str) -> Relation:
    """Read `sql/<schema>/<name>.sql`."""
    text = (sql_folder() / schema / f"{name}.sql").read_text(encoding="utf-8")
    header = [line for line in text.splitlines() if line.startswith("--")]
    body = "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip().rstrip(";")
    said = "\n".join(line.removeprefix("--").removeprefix(" ") for line in header)
    matches = (_COLUMN_LINE.fullmatch(line) for line in header[1:])
    meanings = {match["name"]: match["meaning"] for match in matches if match}
    return Relation(schema, name, header[0].removeprefix("-- "), body, meanings, said)


@cache
def declared_meanings() -> dict[str, str]:
    """Return what the declared tables say of each column: the same name means the same everywhere."""
    meanings: dict[str, str] = {}
    for table in (*STATE_TABLES, *TABLES.values(), *SIDE_TABLES.values()):
        for column in table.columns:
            meanings.setdefault(column.name, column.meaning)
    return meanings
