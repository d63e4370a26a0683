"""What of a lake is damaged, what that affects, and what mends it.

Quick: everything that other files are found by is read (manifests, ledger, logs of tables, the published file), and
files are there in the size that they were written in. Deep: every file is read whole and held against its checksum,
the tables hold as many searches as raw answers landed, and in a part of each sweep the rows that those answers give.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.domain.errors import LakeFull, NightauditError
from pipeline.domain.shards import segments
from pipeline.domain.tables import SEARCH, SIDE_TABLES, SWEEP, TABLES, Table
from pipeline.lake import Lake
from pipeline.lake.checksums import FOLDER, Recorded, Sum, sum_of_file
from pipeline.lake.database import query_published
from pipeline.lake.delta import committed_sizes
from pipeline.lake.raw import Manifest, is_retired, landed, read_ending, read_manifest
from pipeline.lake.sweep_files import files_of_sweep
from pipeline.night.compare_raw import compare_with_raw
from pipeline.night.rebuild import MADE_ANEW
from pipeline.publish import published_sweeps
from pipeline.settings import Settings
from pipeline.sweep.load import is_sweep_loaded

T = TypeVar("T")

_MAX_BODY_BYTES = Settings.model_fields["max_body_mb"].default * 1_000_000
_RESTORE = "restore it from a backup"
_REBUILD = "nightaudit rebuild"
_PUBLISH = "move it away, then: nightaudit publish"
_REPORT = "nightaudit report"
_FORGET = "move it away: its files are then held against their own forms alone"
_OTHERS = {
    "published": ("queries, reports and alerts", _PUBLISH),
    "reports": ("this page", _REPORT),
    FOLDER: ("what is known of the files that it lists", _FORGET),
}
# What comes and goes beside the lake's own files, and what a stopped writer leaves behind.
_PASSING = frozenset({".lock", ".lock.note", ".spill"})


@dataclass(frozen=True, slots=True, order=True)
class Damage:
    """One file, or what should be one: what is wrong, what that affects, and the command or step that mends it."""

    path: str
    what: str
    affects: str
    mend: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What was looked at, and what is damaged. `unrecorded` files have no checksum: an earlier version wrote them."""

    files: int
    unrecorded: int
    damages: tuple[Damage, ...]


def verify(lake: Lake, *, is_deep: bool, max_body_bytes: int = _MAX_BODY_BYTES) -> Verified:
    """Look at all files of a lake; nothing is changed. `max_body_bytes` is what an answer may have that is read."""
    looked = _Look(lake, max_body_bytes, is_deep=is_deep)
    return looked.at_all()


class _Look:
    def __init__(self, lake: Lake, max_body_bytes: int, *, is_deep: bool) -> None:
        self._lake = lake
        self._max_body_bytes = max_body_bytes
        self._is_deep = is_deep
        self._recorded = Recorded(lake.root)
        self._damages: dict[str, Damage] = {}
        self._files = self._unrecorded = 0

    def at_all(self) -> Verified:
        if self._lake.root.is_dir():
            for place in self._places():
                self._file(place)
            for sweep_id in sorted(self._lake.names("raw") - {"inputs"}):
                self._sweep(sweep_id)
            for table in (*TABLES.values(), *SIDE_TABLES.values()):
                self._table(table)
            self._published()
            for sums, lines in self._recorded.damaged().items():
                self._found(sums, f"{lines} of its lines cannot be read")
        return Verified(self._files, self._unrecorded, tuple(sorted(self._damages.values())))

    # Files -----------------------------------------------------------------------------------------------

    def _places(self) -> Iterator[Path]:
        """Yield all files, but those of tables that a rebuild has replaced."""
        root = self._lake.root
        for top in sorted(root.iterdir()):
            is_replaced = top.name.startswith("tables") and top.name != self._lake.tables_folder
            if top.name in _PASSING or top.name == FOLDER or is_replaced:
                continue
            yield from [top] if top.is_file() else sorted(place for place in top.rglob("*") if place.is_file())

    def _file(self, place: Path) -> None:
        # Under a name like this a file is being built.
        if place.name.startswith(".") and not place.name.endswith(".crc"):
            return
        self._files += 1
        recorded = self._recorded.of(place)
        try:
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
        self._found(place, f"has {found[0]:,} bytes, not as written" if is_resized else "is not what was written")

    def _structure(self, place: Path) -> None:
        """Look at a file without a checksum as closely as its own form allows."""
        try:
            if place.suffix == ".parquet" and self._is_deep:
                pq.ParquetFile(place, page_checksum_verification=True).read()
            elif place.suffix == ".json" and place.parent.name != "_delta_log":
                json.loads(place.read_bytes())
        except (pa.ArrowException, OSError, ValueError) as error:
            self._found(place, f"cannot be read: {str(error).splitlines()[0]}")

    # What files say of each other ------------------------------------------------------------------------

    def _sweep(self, sweep_id: str) -> None:
        lake = self._lake
        confirmation, manifest_path = lake.local(lake.confirmation_path(sweep_id)), lake.manifest_path(sweep_id)
        if confirmation.exists() or not (landed(lake, sweep_id) or lake.exists(manifest_path)):
            return
        if not lake.exists(manifest_path):
            self._found(lake.local(manifest_path), "is missing, and answers have landed")
            return
        manifest = self._read(lake.local(manifest_path), lambda: read_manifest(lake, sweep_id))
        ending = self._read(lake.local(lake.ending_path(sweep_id)), lambda: read_ending(lake, sweep_id))
        if manifest is None or ending is None:
            return
        there = landed(lake, sweep_id)
        planned = {shard.name for part in manifest.partitions for each in segments(part) for shard in each.shards}
        for name in sorted(planned - there) if ending.is_complete and not is_retired(lake, sweep_id) else ():
            self._found(lake.local(lake.shard_path(sweep_id, name)), "is missing, and the sweep has ended")
        if self._is_deep:
            self._searches(sweep_id, there)
            self._rows(manifest)

    def _searches(self, sweep_id: str, shards: set[str]) -> None:
        """Hold the searches of a loaded sweep against the answers that landed."""
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
            # An unreadable file is reported by itself.
            return
        if answers != rows:
            self._found(folder, f"holds {rows:,} searches, and {answers:,} answers landed")

    def _rows(self, manifest: Manifest) -> None:
        """Hold rows of a loaded sweep against what its raw answers give."""
        try:
            differing = compare_with_raw(self._lake, manifest, self._max_body_bytes)
        except LakeFull:
            raise
        except (duckdb.Error, pa.ArrowException, OSError, NightauditError):
            # A file that cannot be read is damage by itself.
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
        sizes = self._read(log, lambda: committed_sizes(self._lake, table)) or {}
        for place, size in sizes.items():
            if not place.exists():
                self._found(place, "is missing")
            elif place.stat().st_size != size:
                self._found(place, f"has {place.stat().st_size:,} bytes, where {size:,} were committed")

    def _published(self) -> None:
        lake, file = self._lake, self._lake.published_file
        entries = self._read(lake.root / "published" / "ledger", lambda: published_sweeps(lake))
        wanted = {entry.sweep_id for entry in entries or ()}
        log = lake.table_root(SWEEP.name) / "_delta_log"
        if unloaded := self._read(log, lambda: {each for each in wanted if not is_sweep_loaded(lake, each)}):
            self._found(log, f"lacks {', '.join(sorted(unloaded)[:3])}, which the ledger names")
        if not wanted or not file.exists():
            if wanted:
                self._found(file, "is missing")
            return
        query = "SELECT sweep_id FROM mart.sweep"
        held = self._read(file, lambda: {row[0] for row in query_published(file, query).fetchall()})
        if held is not None and (lost := sorted(wanted - held)):
            self._found(file, f"lacks {', '.join(lost[:3])}, which the ledger names")

    def _read(self, place: Path, look: Callable[[], T]) -> T | None:
        """Return what is read there; None where it cannot be, which is damage of `place`."""
        try:
            return look()
        except NightauditError as error:
            self._found(place, error.message.splitlines()[0])
            return None

    def _found(self, place: Path, what: str) -> None:
        path = place.relative_to(self._lake.root).as_posix()
        self._damages.setdefault(path, Damage(path, what, *_consequences(path)))


def _consequences(path: str) -> tuple[str, str]:
    """Return what damage of a file affects, and what mends it."""
    top, *below = path.split("/")
    if top == "raw" and below[:1] != ["inputs"]:
        return f"rebuild, resume, explain and show of {below[0]}; what is loaded and published stays", _RESTORE
    if top.startswith("tables") and below[0] in MADE_ANEW - {SWEEP.name}:
        return f"lake.{below[0]}, what is made of it, and nights to come", _REBUILD
    if top.startswith("tables"):
        return f"lake.{below[0]}, what is made of it, and nights to come", _RESTORE
    if top == "published" and below[0] == "ledger":
        return "what is published", _RESTORE
    return _OTHERS.get(top, ("what it describes", _RESTORE))
