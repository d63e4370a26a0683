"""Loading a user's file: checked as a whole, kept unchanged, recorded, and appended to its table.

The note, `raw/inputs/<kind>/<number>-<hash>.json`, makes a file part of the lake; its rows follow from it. The next
load finishes one that was killed in between, and `replay` restores lost tables from files and notes alone. Of files
about the same thing, the one with the highest number counts.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from pipeline.domain.errors import InputError
from pipeline.domain.tables import FX_RATE, PROPERTY_CHECK_IN, PROPERTY_FILE, PROPERTY_MAP, SELLING_PRICE, WEIGHT, Table
from pipeline.inputs.problems import Findings
from pipeline.inputs.property_files import read_map, read_properties, read_weights
from pipeline.inputs.reference_rates import read_rates
from pipeline.inputs.selling_prices import read_prices
from pipeline.inputs.user_table import REFUSED
from pipeline.lake import Lake
from pipeline.lake.checksums import refuse_damaged
from pipeline.lake.delta import commit_rows, committed_files, is_committed
from pipeline.lake.records import read_record, write_record
from pipeline.process.regular_file import open_regular

_HASH_DIGITS = 16


@dataclass(frozen=True, slots=True)
class InputKind:
    """A kind of file. `is_version`: each file replaces the one before; otherwise its rows are added.

    `read` adds faults to the findings. It gets the loaded reference rates, or None for a file that was checked before.
    """

    name: str
    table: Table
    suffixes: tuple[str, ...]
    is_version: bool
    read: Callable[[bytes, Findings, pl.DataFrame | None], pl.DataFrame]
    beside: Table | None = None
    """A table of the rows that state any of its columns. An older lake has it from its next load on."""


@dataclass(frozen=True, slots=True)
class Note:
    """The note of a loaded file. `number` counts the files of its kind from 0."""

    number: int
    sha256: str
    suffix: str
    file_name: str
    loaded_at: datetime
    rows: int

    @property
    def input_id(self) -> str:
        """Name of the load: its number first, so that a later one is greater."""
        return f"{self.number:06d}-{self.sha256[:_HASH_DIGITS]}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of a load. `is_new` False: the file had been loaded before, or was only checked."""

    kind: str
    rows: int
    is_new: bool
    note: Note | None


KINDS = {
    kind.name: kind
    for kind in (
        InputKind("prices", SELLING_PRICE, (".csv", ".parquet"), False, read_prices),
        InputKind("rates", FX_RATE, (".csv", ".zip"), False, read_rates),
        InputKind("property-map", PROPERTY_MAP, (".csv", ".parquet"), True, read_map),
        InputKind("weights", WEIGHT, (".csv", ".parquet"), True, read_weights),
        InputKind("properties", PROPERTY_FILE, (".csv", ".parquet"), True, read_properties, PROPERTY_CHECK_IN),
    )
}


def check(lake: Lake, kind_name: str, file: Path) -> Loaded:
    """Read a file and return how many rows it has. Raises InputError that lists its faults."""
    kind = _kind(kind_name)
    rows = rows_of_file(kind, _bytes_of(kind, file), file.name, known_rates(lake))
    return Loaded(kind.name, rows.height, is_new=False, note=None)


def load(lake: Lake, kind_name: str, file: Path, now: datetime) -> Loaded:
    """Load a file; the caller holds the lake's writer lock. Loading the same file again changes nothing.

    Loading an earlier version of a map or of weights again restores it. Raises InputError that lists the file's faults,
    and LakeError.
    """
    kind = _kind(kind_name)
    data = _bytes_of(kind, file)
    finished = replay(lake, kind)
    sha256 = hashlib.sha256(data).hexdigest()
    notes = list(notes_of(lake, kind))
    same = [note for note in (notes[-1:] if kind.is_version else notes) if note.sha256 == sha256]
    if same:
        return Loaded(kind.name, same[0].rows, is_new=same[0] in finished, note=same[0])
    rows = rows_of_file(kind, data, file.name, known_rates(lake))
    note = Note(len(notes), sha256, file.suffix.lower(), file.name, now, rows.height)
    lake.put_new(_kept_path(kind, note), data)
    write_record(lake, f"{lake.inputs_folder(kind.name)}/{note.input_id}.json", note)
    _commit(lake, kind, note, rows)
    return Loaded(kind.name, rows.height, is_new=True, note=note)


def replay(lake: Lake, kind: InputKind) -> list[Note]:
    """Append the rows of all noted files of a kind that are not in its table yet, and return their notes."""
    finished = []
    for note in notes_of(lake, kind):
        if not all(is_committed(lake, table, note.input_id) for table in (kind.table, kind.beside) if table):
            data = lake.get(_kept_path(kind, note))
            _commit(lake, kind, note, rows_of_file(kind, data, note.file_name))
            finished.append(note)
    return finished


def notes_of(lake: Lake, kind: InputKind) -> Iterator[Note]:
    """Yield the notes of a kind, oldest first. Raises CorruptObject."""
    folder = lake.inputs_folder(kind.name)
    for name in sorted(lake.names(folder, ".json")):
        kept = "The loaded files, in the same folder, are untouched."
        yield read_record(lake, f"{folder}/{name}.json", Note, kept=kept, hint="Restore it from a backup.")


def known_rates(lake: Lake) -> pl.DataFrame:
    """Return `rate_date` and `currency` of all reference rates that are loaded."""
    files = committed_files(lake, FX_RATE)
    if not files:
        return pl.DataFrame(schema={"rate_date": pl.Date, "currency": pl.String})
    refuse_damaged(lake.root, files)
    return pl.read_parquet(files, columns=["rate_date", "currency"]).unique()


def _commit(lake: Lake, kind: InputKind, note: Note, rows: pl.DataFrame) -> None:
    stamped = rows.with_columns(
        pl.lit(note.input_id).alias("input_id"), pl.lit(note.loaded_at, pl.Datetime("us", "UTC")).alias("loaded_at")
    )
    table = stamped.select([column.name for column in kind.table.columns]).to_arrow()
    commit_rows(lake, kind.table, table, note.input_id, "rows", note.input_id)
    if kind.beside:
        given = stamped.select([column.name for column in kind.beside.columns])
        optional = [column.name for column in kind.beside.columns if not column.is_required]
        stated = given.filter(pl.any_horizontal(pl.col(optional).is_not_null()))
        commit_rows(lake, kind.beside, stated.to_arrow(), note.input_id, "rows", note.input_id)


def rows_of_file(kind: InputKind, data: bytes, file_name: str, rates: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the rows of a file. Raises InputError that lists its faults, row by row."""
    findings = Findings(file_name)
    rows = kind.read(data, findings, rates)
    findings.refuse_faults()
    if rows.is_empty():
        raise InputError(
            f"{file_name} cannot be loaded: it has a header and no rows.", hint="Check how it was exported."
        )
    return rows.drop(REFUSED, strict=False)


def _kept_path(kind: InputKind, note: Note) -> str:
    return f"{Lake.inputs_folder(kind.name)}/{note.sha256}{note.suffix}"


def _kind(name: str) -> InputKind:
    if name not in KINDS:
        raise InputError(f"{name!r} is not a kind of file that nightaudit loads.", hint=f"Kinds: {', '.join(KINDS)}")
    return KINDS[name]


def _bytes_of(kind: InputKind, file: Path) -> bytes:
    if file.suffix.lower() not in kind.suffixes:
        raise InputError(
            f"{file} cannot be loaded: its name must end in {' or '.join(kind.suffixes)}.",
            hint="Name a file of that format; pipeline/cli/README.md describes its columns.",
        )
    try:
        with open_regular(file) as opened:
            return opened.read()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.", hint="Choose a file that you can read.") from None
