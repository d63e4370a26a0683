"""lake.json: the format of a lake, and which folder holds its tables.

A rebuild writes tables into a folder of their own, `tables-2` and so on; they count once lake.json names them.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pipeline.domain.errors import CorruptObject, LakeTooNew
from pipeline.lake.checksums import FOLDER, Sum, sum_of

MARK = "lake.json"
# Its fields, in the order in which they are written.
FIELDS = ("format", "tables", "checksums")
TABLES = "tables"

# 2: lake.json names the folder of the tables. Older versions would look for them in `tables`.
_FORMAT = 2
_FOLDER = re.compile(rf"{TABLES}(?:-(?P<number>[1-9][0-9]{{0,8}}))?")


@dataclass(frozen=True, slots=True)
class Mark:
    """The content of lake.json."""

    tables: str
    """Folder of the current tables."""
    records_all: bool
    """Whether checksums were recorded from the lake's first file on."""

    @classmethod
    def of(cls, held: Mapping[str, object], place: Path) -> Self:
        """Read the content of the file at `place`. Raises LakeTooNew and CorruptObject."""
        found, tables = held.get("format"), str(held.get("tables", TABLES))
        if not isinstance(found, int) or found > _FORMAT:
            raise LakeTooNew(
                f"The lake {place.parent} has format {found}; this version of nightaudit reads up to {_FORMAT}.",
                kept="Nothing was read or changed.",
                hint="Install the newer version that wrote it, or set NIGHTAUDIT_LAKE to another folder.",
            )
        if not is_tables_folder(tables):
            raise CorruptObject(
                f"{place} is damaged: {tables!r} cannot be the name of a folder of tables.",
                kept="Nothing was read or changed.",
                hint="Restore it from a backup.",
            )
        return cls(tables, held.get("checksums") is True)

    def as_json(self) -> bytes:
        """Return the file's bytes. Any version reads a lake whose tables were never rebuilt."""
        held: dict[str, object] = {"format": 1} if self.tables == TABLES else {"format": _FORMAT, "tables": self.tables}
        return json.dumps(held | ({"checksums": True} if self.records_all else {})).encode()


def is_tables_folder(name: str) -> bool:
    """Whether a folder in the root holds tables: the current ones, former ones, or a rebuild's."""
    return _FOLDER.fullmatch(name) is not None


def next_folder(names: Iterable[str]) -> str:
    """Return a new folder for rebuilt tables, given the names in the root."""
    taken = [int(match["number"] or 1) for match in map(_FOLDER.fullmatch, names) if match]
    return f"{TABLES}-{max(taken, default=1) + 1}"


def rebuilt_folders(names: Iterable[str]) -> list[str]:
    """Return the folders of rebuilt tables among the names in the root, oldest first."""
    matches = [match for match in map(_FOLDER.fullmatch, names) if match and match["number"]]
    return [match[0] for match in sorted(matches, key=lambda match: int(match["number"]))]


def lost(root: Path, rebuilt: list[str], recorded: Collection[Sum], how: str) -> CorruptObject:
    """Return the error of a lake with rebuilt tables whose lake.json, which names the current ones, is of no use.

    `recorded` are the file's checksums: a killed rebuild may have left the latest folder, which no lake.json named.
    """
    possible = [Mark(name, records_all) for name in (*reversed(rebuilt), TABLES) for records_all in (True, False)]
    known = [mark for mark in possible if sum_of(mark.as_json()) in recorded]
    likely = known[0] if known else Mark(rebuilt[-1], (root / FOLDER).is_dir())
    return CorruptObject(
        f"{root / MARK} {how}; it names the folder of the current tables: {TABLES} or {' or '.join(rebuilt)}.",
        kept="Nothing was read or changed.",
        hint=f"Restore it from a backup. Without one, write: {likely.as_json().decode()}",
    )
