"""What the files of a lake say about each other: whether one that is fine names another that is missing or differs."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.domain.errors import LakeFull, NightauditError
from pipeline.domain.tables import CELL, QUALITY, SEARCH, SIDE_TABLES, SWEEP, TABLES, Table
from pipeline.inputs.load import KINDS, InputKind
from pipeline.lake import Lake
from pipeline.lake.database import failed_query, query_published
from pipeline.lake.delta import committed_sizes, is_committed
from pipeline.lake.ledger import copies_of_entry, damaged_entries, lost_entries
from pipeline.lake.pulled import pulled_from
from pipeline.lake.raw import Manifest, is_retired, landed, read_ending, read_manifest
from pipeline.lake.sweep_files import files_of_sweep, retirement, sweep_of
from pipeline.night.compare_raw import compare_with_raw
from pipeline.night.damage import Damages
from pipeline.night.repair import not_as_committed
from pipeline.night.witnesses import missing_folders
from pipeline.publish import LedgerEntry, published_sweeps
from pipeline.sweep.load import is_sweep_loaded


class CrossChecks:
    """Compares manifests, ledger, tables, the published file and users' files; if deep, rows and answers too."""

    def __init__(self, lake: Lake, damages: Damages, max_body_bytes: int, *, is_deep: bool) -> None:
        self._lake = lake
        self._damages = damages
        self._max_body_bytes = max_body_bytes
        self._is_deep = is_deep

    def run(self) -> None:
        """Add what differs to the damage."""
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
            folders = self._damages.read(
                self._lake.root / "tables", lambda: list(missing_folders(self._lake, entries or []))
            )
            for place, what in folders or ():
                self._damages.add(place, what)
        for kind in KINDS.values() if is_whole else ():
            self._inputs(kind)

    def _sweep(self, sweep_id: str) -> None:
        lake = self._lake
        confirmation, manifest_path = lake.local(lake.confirmation_path(sweep_id)), lake.manifest_path(sweep_id)
        if confirmation.exists() or not (landed(lake, sweep_id) or lake.exists(manifest_path)):
            return
        if not lake.exists(manifest_path):
            self._damages.add(lake.local(manifest_path), "is missing, but answers have landed")
            return
        if not lake.exists(lake.ending_path(sweep_id)):
            log = lake.table_root(SWEEP.name) / "_delta_log"
            if self._damages.read(log, lambda: is_sweep_loaded(lake, sweep_id)):
                self._damages.add(lake.local(lake.ending_path(sweep_id)), "is missing, but the sweep is loaded")
        manifest = self._damages.read(lake.local(manifest_path), lambda: read_manifest(lake, sweep_id))
        ending = self._damages.read(lake.local(lake.ending_path(sweep_id)), lambda: read_ending(lake, sweep_id))
        if manifest is None or ending is None:
            return
        there = landed(lake, sweep_id)
        planned = {shard.name for shard in manifest.shards()}
        for name in sorted(planned - there) if ending.is_complete and not is_retired(lake, sweep_id) else ():
            self._damages.add(lake.local(lake.shard_path(sweep_id, name)), "is missing, but the sweep has ended")
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
            self._damages.add(folder, f"holds {rows:,} searches, but {answers:,} answers landed")

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
            self._damages.add(self._lake.table_root(table) / manifest.sweep_id, how)

    def _table(self, table: Table) -> None:
        root = self._lake.table_root(table.name)
        if not root.is_dir():
            return
        log = root / "_delta_log"
        if not any(log.glob("*.json")):
            if any(root.glob("*/*.parquet")):
                self._damages.add(log, "is missing or empty")
            return
        for place, what in (self._damages.read(log, lambda: not_as_committed(self._lake, table)) or {}).items():
            self._damages.add(place, what)

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
                    self._damages.add(root / sweep_id if held else root, "has no rows, but the ledger names its sweep")

    def _is_unasked(self, sweep_id: str) -> bool:
        ending = self._damages.read(
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
                    self._damages.add(folder / pattern, f"is missing, but lake.{kind.table.name} has its rows")

    def _folders_of(self, table: Table) -> set[str] | None:
        """Return the sweeps or files with rows in a table; None: it is unreadable, which is reported separately."""
        root = self._lake.table_root(table.name)
        sizes = self._damages.read(root / "_delta_log", lambda: committed_sizes(self._lake, table))
        return None if sizes is None else {sweep_of(place.relative_to(root).parts[0]) for place in sizes}

    def _ledger(self) -> list[LedgerEntry] | None:
        lake = self._lake
        for sweep_id in lost_entries(lake):
            entry, copy = copies_of_entry(sweep_id)
            self._damages.add(lake.local(entry), f"is missing, but {copy} exists")
        for path, what in damaged_entries(lake).items():
            self._damages.add(lake.local(path), what)
        return self._damages.read(lake.root / "published" / "ledger", lambda: published_sweeps(lake))

    def _published(self, entries: list[LedgerEntry] | None) -> None:
        """Compare published nights, ledger, tables and state; without a ledger, nights and state."""
        lake, file = self._lake, self._lake.published_file
        wanted = {entry.sweep_id for entry in entries or ()}
        for sweep_id in sorted(wanted):
            if not lake.exists(lake.manifest_path(sweep_id)):
                self._damages.add(
                    lake.local(lake.manifest_path(sweep_id)), "is missing, but the ledger names its sweep"
                )
        log = lake.table_root(SWEEP.name) / "_delta_log"
        if unloaded := self._damages.read(log, lambda: {each for each in wanted if not is_sweep_loaded(lake, each)}):
            self._damages.add(log, f"lacks {', '.join(sorted(unloaded)[:3])}, which the ledger names")
        for beside in file.parent.glob(f"{file.name}.*"):
            self._damages.add(beside, "is next to the published file, which is never modified in place")
        if not file.exists():
            if wanted:
                self._damages.add(file, "is missing")
            return
        read = self._damages.read(file, lambda: _sweeps_and_files(file))
        if read is None:
            return
        held, files = read
        if lost := sorted(wanted - held):
            self._damages.add(file, f"lacks {', '.join(lost[:3])}, which the ledger names")
        for sweep_id in sorted(held - wanted) if entries is not None else ():
            self._damages.add(lake.local(copies_of_entry(sweep_id)[0]), "is missing, but its night is published")
        for path, size in files.items():
            place = lake.local(path)
            if not place.exists():
                self._damages.add(place, "is missing, but the published file reads it")
            elif place.stat().st_size != size:
                self._damages.add(place, f"has {place.stat().st_size:,} bytes, but {size:,} were written")


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
