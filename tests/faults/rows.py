"""What a lake holds, as rows that can be counted: relations, Delta tables, raw answers, loaded files, pages."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
from deltalake import DeltaTable

from pipeline.lake import Lake
from pipeline.lake.database import open_published

_SCHEMAS = ("mart", "report", "lake", "ref")


@dataclass(frozen=True)
class Held:
    """Rows by relation or table, and files by folder, each with how often it is there. Rows are digests."""

    rows: Mapping[str, Counter[object]]

    def lost(self, other: Held) -> dict[str, int]:
        """Rows of this that `other` lacks, by relation."""
        return _more(self, other)

    def doubled(self, other: Held) -> dict[str, int]:
        """Rows that `other` has beyond this."""
        return _more(other, self)


def _more(one: Held, other: Held) -> dict[str, int]:
    found = {name: (rows - other.rows.get(name, Counter())).total() for name, rows in one.rows.items()}
    return {name: count for name, count in found.items() if count}


def held(lake: Path, like: tuple[Path, Held] | None = None) -> Held:
    """Read everything that a lake holds.

    `like` is a copy of a lake with what it holds: where all data files are the same to the byte, its relations are not
    read again.
    """
    if like is not None and _data_files(lake) == _data_files(like[0]):
        rows = {name: count for name, count in like[1].rows.items() if name.partition(".")[0] in _SCHEMAS}
    else:
        rows = _relations(lake / "published" / "nightaudit.duckdb")
    return Held(
        rows | _tables(lake) | {f"{folder} files": _files(lake, folder) for folder in ("raw", "inputs", "reports")}
    )


def _relations(file: Path) -> dict[str, Counter[object]]:
    rows: dict[str, Counter[object]] = {}
    if file.exists():
        with open_published(file) as session:
            names = session.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'nightaudit' "
                "UNION ALL SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'nightaudit'"
            ).fetchall()
            for schema, name in names:
                if schema in _SCHEMAS:
                    rows[f"{schema}.{name}"] = _rows(session, f"{schema}.{name}")
    return rows


def _tables(lake: Path) -> dict[str, Counter[object]]:
    rows: dict[str, Counter[object]] = {}
    # A rebuild keeps the former tables for readers that still have the previous file open.
    folder = Lake(str(lake)).tables_folder
    with duckdb.connect(":memory:") as session:
        for log in sorted(lake.glob(f"{folder}/*/_delta_log")):
            files = DeltaTable(log.parent).file_uris()
            rows[f"table {log.parent.name}"] = _rows(session, f"read_parquet({files!r})") if files else Counter()
    return rows


def _files(lake: Path, folder: str) -> Counter[object]:
    # Under these names files are being written; one that a killed process has left is read by nothing.
    unnamed = re.compile(r"\..*|.*#\d+")
    files = (file for file in (lake / folder).rglob("*") if file.is_file() and not unnamed.fullmatch(file.name))
    return Counter((file.relative_to(lake).as_posix(), _digest(file)) for file in files)


def _data_files(lake: Path) -> dict[str, str]:
    """Digests of all that relations are made of; a Delta log says when it was written, and is read as a table."""
    files = [file for name in ("published", "tables*") for place in lake.glob(name) for file in place.rglob("*")]
    kept = (file for file in files if file.is_file() and file.parent.name != "_delta_log" and file.name[0] != ".")
    return {file.relative_to(lake).as_posix(): _digest(file) for file in kept}


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _rows(session: duckdb.DuckDBPyConnection, source: str) -> Counter[object]:
    digests = session.execute(f"SELECT hash(row), count(*) FROM {source} AS row GROUP BY ALL").fetchall()  # noqa: S608 - our own names
    return Counter(dict(digests))
