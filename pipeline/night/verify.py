"""Which files of a lake are damaged, what that affects, and how to repair it.

Quick: reads every file that lists other files (manifests, ledger, logs of tables, the published file), and checks that
those exist with their original size. Deep: reads every file completely and compares it with its checksum; checks that
the tables hold as many searches as answers landed and, for a part of each sweep, the rows that those answers give.
"""

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.domain.errors import LakeFull, NightauditError, first_line
from pipeline.domain.tables import CELL, QUALITY, SEARCH, SIDE_TABLES, SWEEP, TABLES, Table
from pipeline.inputs.load import KINDS, InputKind
from pipeline.lake import Lake
from pipeline.lake.checksums import Recorded, Sum, sum_of, sum_of_file
from pipeline.lake.database import failed_query, query_published
from pipeline.lake.delta import committed_sizes, is_committed
from pipeline.lake.expected import files_of_lake, missing_files, not_files, without_checksums
from pipeline.lake.ledger import copies_of_entry, damaged_entries, lost_entries
from pipeline.lake.mark import MARK
from pipeline.lake.pulled import pulled_from
from pipeline.lake.raw import Manifest, is_retired, landed, read_ending, read_manifest
from pipeline.lake.sweep_files import files_of_sweep, retirement, sweep_of
from pipeline.night.compare_raw import compare_with_raw
from pipeline.night.repair import consequences, not_as_committed
from pipeline.night.witnesses import missing_folders
from pipeline.publish import LedgerEntry, published_sweeps
from pipeline.settings import Settings
from pipeline.sweep.load import is_sweep_loaded

T = TypeVar("T")

_WRITER = re.compile(r"\(process (\d{1,9})\)$")
# A file and its checksum are written in milliseconds; a busy disk takes longer.
_SETTLED_SECONDS = 1.0
_MAX_BODY_BYTES = Settings.model_construct().max_body_bytes


@dataclass(frozen=True, slots=True, order=True)
class Damage:
    """One damaged or missing file: what is wrong, what that affects, and the command or step that repairs it."""

    path: str
    what: str
    affects: str
    repair: str


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a check. `unrecorded` files have no checksum: an earlier version wrote them."""

    files: int
    unrecorded: int
    damages: tuple[Damage, ...]


def verify(lake: Lake, *, is_deep: bool, max_body_bytes: int = _MAX_BODY_BYTES) -> Verified:
    """Check all files of a lake without changing any. `max_body_bytes` limits the answers that are read."""
    began = time.time()
    is_written = _is_written(lake, began)
    found = _Look(lake, max_body_bytes, is_deep=is_deep).at_all()
    if not found.damages or not (is_written or _is_written(lake, began)):
        return found
    # Another process may have been between a file and its checksum; real damage persists.
    time.sleep(_SETTLED_SECONDS)
    suspects = frozenset(damage.path for damage in found.damages)
    again = _Look(lake, max_body_bytes, is_deep=is_deep, suspects=suspects).at_all()
    return replace(found, damages=tuple(damage for damage in again.damages if damage.path in suspects))


def _is_written(lake: Lake, since: float) -> bool:
    """Whether another process of this machine is writing to the lake, or has begun to since then."""
    note = lake.root / ".lock.note"
    try:
        found, changed_at = _WRITER.search(note.read_text()), note.stat().st_mtime
        if found is None or int(found[1]) == os.getpid():
            return False
        if changed_at < since:
            os.kill(int(found[1]), 0)
    except PermissionError:
        # The process exists and belongs to another user.
        return True
    except (OSError, ValueError):
        return False
    return True


class _Look:
    """One check of all files; a second one reads only the content of `suspects`."""

    def __init__(
        self, lake: Lake, max_body_bytes: int, *, is_deep: bool, suspects: frozenset[str] | None = None
    ) -> None:
        self._lake = lake
        self._suspects = suspects
        self._max_body_bytes = max_body_bytes
        self._is_deep = is_deep
        self._recorded = Recorded(lake.root)
        self._damages: dict[str, Damage] = {}
        self._files = self._unrecorded = 0

    def at_all(self) -> Verified:
        if self._lake.root.is_dir():
            for place in files_of_lake(self._lake):
                self._file(place)
            lost = self._lost()
            is_readable = not self._of_another_kind(lost)
            # The lake may have been opened without it.
            self._read(self._lake.local(MARK), lambda: Lake(str(self._lake.root)))
            if is_readable:
                self._related()
            for gone, count in lost.items():
                self._found(gone, "is missing" if count == 1 else f"is missing, with {count:,} files")
            damaged = self._recorded.damaged()
            for sums, how in damaged.items():
                self._found(sums, how)
            for sums, files in without_checksums(self._lake, self._recorded).items():
                if any(each.parent == sums for each in damaged):
                    # Its damage is reported already.
                    continue
                first, others = files[0].relative_to(self._lake.root), len(files) - 1
                named = f"{first} and {others:,} more" if others else f"{first}"
                self._found(sums, f"is missing, empty or cut: no checksum of {named}", is_missing=True)
        return Verified(self._files, self._unrecorded, tuple(sorted(self._damages.values())))

    # Files -----------------------------------------------------------------------------------------------

    def _file(self, place: Path) -> None:
        if self._suspects is not None and self._lake.path_of(place) not in self._suspects:
            return
        self._files += 1
        recorded = self._recorded.of(place)
        try:
            if place == self._lake.local(MARK) and sum_of(place.read_bytes().strip()) in recorded:
                # It may be restored by hand.
                return
            if not recorded:
                self._unrecorded += 1
                self._structure(place)
            elif self._is_deep:
                self._compare(place, recorded, sum_of_file(place))
            elif place.stat().st_size not in {size for size, _ in recorded}:
                self._compare(place, recorded, (place.stat().st_size, ""))
        except OSError as error:
            self._found(place, f"cannot be read: {error.strerror or error}")

    def _compare(self, place: Path, recorded: set[Sum], found: Sum) -> None:
        if found in recorded:
            return
        is_resized = found[0] not in {size for size, _ in recorded}
        self._found(
            place,
            f"has {found[0]:,} bytes, not as many as were written" if is_resized else "differs from what was written",
        )

    def _structure(self, place: Path) -> None:
        """Check the format of a file without a checksum."""
        try:
            if place.suffix == ".parquet" and self._is_deep:
                pq.ParquetFile(place, page_checksum_verification=True).read()
            elif place.suffix == ".json" and place.parent.name != "_delta_log":
                json.loads(place.read_bytes())
        except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
            self._found(place, f"cannot be read: {first_line(error)}")

    def _lost(self) -> dict[Path, int]:
        """Return the missing files, or the folder for a missing folder, each with its number of files."""
        lost: dict[Path, int] = {}
        for place in missing_files(self._lake, self._recorded):
            gone = [place, *(folder for folder in place.parents if not folder.is_dir())][-1]
            lost[gone] = lost.get(gone, 0) + 1
        return lost

    def _of_another_kind(self, lost: dict[Path, int]) -> bool:
        """Find what has replaced a file or folder, such as a pipe; opening it may never return."""
        places = {place for place in lost if place.exists()} | set(not_files(self._lake))
        for place in sorted(places):
            kind = "a folder" if place.is_dir() else "a file" if place.is_file() else "neither a file nor a folder"
            wanted = f", but was a folder with {lost[place]:,} files" if place.is_file() else ", but was a file"
            self._found(place, f"is {kind}{wanted}")
        return bool(places)

    # What files say about each other --------------------------------------------------------------------

    def _related(self) -> None:
        # A pulled copy has only the files that the published file reads.
        is_whole = pulled_from(self._lake.root) is None
        for sweep_id in sorted(self._lake.names("raw") - {"inputs"}):
            self._sweep(sweep_id)
        for table in (*TABLES.values(), *SIDE_TABLES.values()) if is_whole else ():
            self._table(table)
        entries = self._ledger() if is_whole else None
        self._published(entries)
        self._rows_there(entries or [])
        if is_whole:
            folders = self._read(self._lake.root / "tables", lambda: list(missing_folders(self._lake, entries or [])))
            for place, what in folders or ():
                self._found(place, what)
        for kind in KINDS.values() if is_whole else ():
            self._inputs(kind)

    def _sweep(self, sweep_id: str) -> None:
        lake = self._lake
        confirmation, manifest_path = lake.local(lake.confirmation_path(sweep_id)), lake.manifest_path(sweep_id)
        if confirmation.exists() or not (landed(lake, sweep_id) or lake.exists(manifest_path)):
            return
        if not lake.exists(manifest_path):
            self._found(lake.local(manifest_path), "is missing, but answers have landed")
            return
        if not lake.exists(lake.ending_path(sweep_id)):
            log = lake.table_root(SWEEP.name) / "_delta_log"
            if self._read(log, lambda: is_sweep_loaded(lake, sweep_id)):
                self._found(lake.local(lake.ending_path(sweep_id)), "is missing, but the sweep is loaded")
        manifest = self._read(lake.local(manifest_path), lambda: read_manifest(lake, sweep_id))
        ending = self._read(lake.local(lake.ending_path(sweep_id)), lambda: read_ending(lake, sweep_id))
        if manifest is None or ending is None:
            return
        there = landed(lake, sweep_id)
        planned = {shard.name for shard in manifest.shards()}
        for name in sorted(planned - there) if ending.is_complete and not is_retired(lake, sweep_id) else ():
            self._found(lake.local(lake.shard_path(sweep_id, name)), "is missing, but the sweep has ended")
        if self._is_deep:
            self._searches(sweep_id, there)
            self._rows(manifest)

    def _searches(self, sweep_id: str, shards: set[str]) -> None:
        """Compare the searches of a loaded sweep with the landed answers."""
        lake = self._lake
        folder = lake.table_root(SEARCH.name) / sweep_id
        try:
            if not is_sweep_loaded(lake, sweep_id) or is_retired(lake, sweep_id):
                return
            answers = sum(
                pq.read_metadata(lake.local(lake.shard_path(sweep_id, name))).num_rows for name in sorted(shards)
            )
            rows = sum(pq.read_metadata(file).num_rows for file in files_of_sweep(lake, SEARCH, sweep_id))
        except (pa.ArrowException, OSError, NightauditError):
            # An unreadable file is reported separately.
            return
        if answers != rows:
            self._found(folder, f"holds {rows:,} searches, but {answers:,} answers landed")

    def _rows(self, manifest: Manifest) -> None:
        """Compare rows of a loaded sweep with its raw answers."""
        try:
            differing = compare_with_raw(self._lake, manifest, self._max_body_bytes)
        except LakeFull:
            raise
        except (duckdb.Error, pa.ArrowException, OSError, NightauditError):
            # An unreadable file is reported separately.
            return
        for table, how in differing.items():
            self._found(self._lake.table_root(table) / manifest.sweep_id, how)

    def _table(self, table: Table) -> None:
        root = self._lake.table_root(table.name)
        if not root.is_dir():
            return
        log = root / "_delta_log"
        if not any(log.glob("*.json")):
            if any(root.glob("*/*.parquet")):
                self._found(log, "is missing or empty")
            return
        for place, what in (self._read(log, lambda: not_as_committed(self._lake, table)) or {}).items():
            self._found(place, what)

    def _rows_there(self, entries: list[LedgerEntry]) -> None:
        """Compare the ledger with tables that may be gone with their checksums: searches, cells and audits."""
        for table in (SEARCH, CELL, QUALITY):
            root = self._lake.table_root(table.name)
            wanted = {entry.sweep_id for entry in entries if table is not QUALITY or entry.audit != "none"}
            held = self._folders_of(table)
            for sweep_id in sorted(wanted - held) if held is not None else ():
                is_removed = is_retired(self._lake, sweep_id) or is_committed(self._lake, table, retirement(sweep_id))
                # A night that was stopped before its first answer has cells, and no searches.
                is_unasked = table is SEARCH and self._is_unasked(sweep_id)
                if table is QUALITY or not (is_removed or is_unasked):
                    self._found(root / sweep_id if held else root, "has no rows, but the ledger names its sweep")

    def _is_unasked(self, sweep_id: str) -> bool:
        ending = self._read(
            self._lake.local(self._lake.ending_path(sweep_id)), lambda: read_ending(self._lake, sweep_id)
        )
        return ending is not None and not ending.is_complete and not landed(self._lake, sweep_id)

    def _inputs(self, kind: InputKind) -> None:
        """Compare rows of users' files with the files."""
        folder = self._lake.local(self._lake.inputs_folder(kind.name))
        for input_id in sorted(self._folders_of(kind.table) or ()):
            sha256 = input_id.partition("-")[2]
            for pattern in (f"{input_id}.json", f"{sha256}*"):
                if not any(folder.glob(pattern)):
                    self._found(folder / pattern, f"is missing, but lake.{kind.table.name} has its rows")

    def _folders_of(self, table: Table) -> set[str] | None:
        """Return the sweeps or files with rows in a table; None: it is unreadable, which is reported separately."""
        root = self._lake.table_root(table.name)
        sizes = self._read(root / "_delta_log", lambda: committed_sizes(self._lake, table))
        return None if sizes is None else {sweep_of(place.relative_to(root).parts[0]) for place in sizes}

    def _ledger(self) -> list[LedgerEntry] | None:
        lake = self._lake
        for sweep_id in lost_entries(lake):
            entry, copy = copies_of_entry(sweep_id)
            self._found(lake.local(entry), f"is missing, but {copy} exists")
        for path, what in damaged_entries(lake).items():
            self._found(lake.local(path), what)
        return self._read(lake.root / "published" / "ledger", lambda: published_sweeps(lake))

    def _published(self, entries: list[LedgerEntry] | None) -> None:
        """Compare published nights, ledger, tables and state; without a ledger, nights and state."""
        lake, file = self._lake, self._lake.published_file
        wanted = {entry.sweep_id for entry in entries or ()}
        for sweep_id in sorted(wanted):
            if not lake.exists(lake.manifest_path(sweep_id)):
                self._found(lake.local(lake.manifest_path(sweep_id)), "is missing, but the ledger names its sweep")
        log = lake.table_root(SWEEP.name) / "_delta_log"
        if unloaded := self._read(log, lambda: {each for each in wanted if not is_sweep_loaded(lake, each)}):
            self._found(log, f"lacks {', '.join(sorted(unloaded)[:3])}, which the ledger names")
        for beside in file.parent.glob(f"{file.name}.*"):
            self._found(beside, "is next to the published file, which is never modified in place")
        if not file.exists():
            if wanted:
                self._found(file, "is missing")
            return
        read = self._read(file, lambda: _sweeps_and_files(file))
        if read is None:
            return
        held, files = read
        if lost := sorted(wanted - held):
            self._found(file, f"lacks {', '.join(lost[:3])}, which the ledger names")
        for sweep_id in sorted(held - wanted) if entries is not None else ():
            self._found(lake.local(copies_of_entry(sweep_id)[0]), "is missing, but its night is published")
        for path, size in files.items():
            place = lake.local(path)
            if not place.exists():
                self._found(place, "is missing, but the published file reads it")
            elif place.stat().st_size != size:
                self._found(place, f"has {place.stat().st_size:,} bytes, but {size:,} were written")

    def _read(self, place: Path, look: Callable[[], T]) -> T | None:
        """Return the result of `look`; None if it fails, which is damage of `place`, or of a file in it."""
        try:
            return look()
        except NightauditError as error:
            path = self._lake.path_of(place)
            if not any(found.startswith(f"{path}/") for found in self._damages):
                self._found(place, error.message.splitlines()[0])
            return None

    def _found(self, place: Path, what: str, *, is_missing: bool = False) -> None:
        path = self._lake.path_of(place)
        is_missing = is_missing or not place.exists()
        self._damages.setdefault(path, Damage(path, what, *consequences(self._lake, path, is_missing=is_missing)))


def _sweeps_and_files(file: Path) -> tuple[set[str], dict[str, int]]:
    """Return the sweeps in the published file, and the state's files that it reads, with their sizes."""
    with query_published(file, "SELECT sweep_id FROM mart.sweep") as session:
        try:
            sweeps = {row[0] for row in session.fetchall()}
            return sweeps, dict(session.execute("SELECT path, bytes FROM state.file").fetchall())
        except duckdb.CatalogException:
            # Other versions keep their state elsewhere.
            return sweeps, {}
        except duckdb.Error as error:
            raise failed_query(file, error) from None
