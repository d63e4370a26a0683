"""Maintenance of the lake: fewer files, no more nights than the settings keep, no unused files.

    compact     the files of a night in a table become few, sorted by property
    retire      offers of nights beyond NIGHTAUDIT_OBSERVATION_NIGHTS leave the tables
    retire raw  raw answers of nights beyond NIGHTAUDIT_RAW_NIGHTS are removed
    remove      files that neither a table nor the published file names, once they are older than the grace period
    forget      pages of past nights and notes that are gone, so that `verify` no longer reports them as missing
    record      checksums of files that have lost theirs

Nights that an open flag or the latest offers refer to are kept. Each step is one commit or one removal, so a killed
process leaves an intact lake, and the next run continues.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from itertools import groupby
from pathlib import Path

from pipeline.audit import stored_audit
from pipeline.domain.errors import CorruptObject
from pipeline.domain.tables import OFFER, PENALTY, PROMOTION, SEGMENT_TABLES, SIDE_TABLES, TABLES, Table
from pipeline.lake import Lake
from pipeline.lake.checksums import FOLDER, Recorded, note_gone, record_as_they_are
from pipeline.lake.compact import compact, files_wanted
from pipeline.lake.database import query_published
from pipeline.lake.delta import committed_files, is_committed, replace_files
from pipeline.lake.expected import missing_files, without_checksums
from pipeline.lake.files import touch
from pipeline.lake.published_paths import paths_in
from pipeline.lake.raw import is_retired, landed, retire_shards
from pipeline.lake.sweep_files import quarantine_file, retirement, sweep_files, sweep_of
from pipeline.night.repair import is_forgotten
from pipeline.night.witnesses import missing_folders
from pipeline.publish import LedgerEntry, published_sweeps
from pipeline.publish.refresh import refresh
from pipeline.settings import Settings
from pipeline.sweep.load import is_sweep_loaded

OBSERVATIONS = (OFFER, PENALTY, PROMOTION)

# Sweeps of the latest offers, and those that flags rest on.
_LATEST = "SELECT DISTINCT seen_sweep_id FROM mart.offer_latest"
_BEHIND_FLAGS = "SELECT DISTINCT item.sweep_id FROM (SELECT unnest(evidence) AS item FROM report.flag)"
# If a table has at most this many files, a night merges none.
_FEW = 16


@dataclass(frozen=True, slots=True)
class Care:
    """One step: `kind` is one of those above, for the files of a table or folder and, where given, of one sweep."""

    kind: str
    where: str
    sweep_id: str
    files: int
    bytes: int
    do: Callable[[], None]


def plan_care(settings: Settings, lake: Lake) -> list[Care]:
    """Return the steps in their order, without changing anything."""
    retired = list(_to_retire(settings, lake))
    gone = {(care.where, care.sweep_id) for care in retired}
    compacted = (care for care in _to_compact(lake, lake.sweep_ids(), 1) if (care.where, care.sweep_id) not in gone)
    return [*retired, *compacted, *_to_remove(settings, lake), *_to_note(lake)]


def take_care(settings: Settings, lake: Lake) -> list[Care]:
    """Do all steps, and return them. The caller holds the lake's writer lock. Raises LakeError."""
    last = {"remove", "forget", "record"}
    done = [care for care in plan_care(settings, lake) if care.kind not in last]
    for care in done:
        care.do()
    if _is_behind(lake):
        refresh(lake)
    removed = [*_to_remove(settings, lake), *_to_note(lake)]
    for care in removed:
        care.do()
    lake.drop_unused(settings.grace_hours)
    return [*done, *removed]


def take_nightly_care(settings: Settings, lake: Lake, sweep_id: str) -> None:
    """Do the cheap steps between auditing and publishing a sweep, while nothing published refers to its files."""
    try:
        removed = list(_to_remove(settings, lake))
    except CorruptObject:
        # Publishing reports the damaged published file and rebuilds it.
        removed = []
    for care in [*_to_compact(lake, [sweep_id], _FEW), *removed]:
        care.do()


def _to_compact(lake: Lake, sweep_ids: Iterable[str], few: int) -> Iterator[Care]:
    # The audit decides which offers go into quarantine; a night with some stays as it was loaded.
    published = {entry.sweep_id for entry in published_sweeps(lake)}
    wanted = [each for each in sweep_ids if each in published or stored_audit(lake, each) is not None]
    for name in SEGMENT_TABLES:
        table, held, committed = TABLES[name], sweep_files(lake, TABLES[name]), set(committed_files(lake, TABLES[name]))
        for sweep_id in wanted:
            files = [file for file in held.get(sweep_id, []) if file != quarantine_file(lake, sweep_id)]
            if not committed.issuperset(files) or is_committed(lake, table, f"{sweep_id}/compact"):
                continue
            if len(files) > max(few, files_wanted(files) if files else 1):
                yield _care("compact", name, sweep_id, files, partial(compact, lake, table, sweep_id, files))


def _to_retire(settings: Settings, lake: Lake) -> Iterator[Care]:
    published = published_sweeps(lake)
    if not published or not lake.published_file.exists():
        # Without it, the needed nights are unknown.
        return
    behind_flags = {row[0] for row in query_published(lake.published_file, _BEHIND_FLAGS).fetchall()}
    needed = behind_flags | {row[0] for row in query_published(lake.published_file, _LATEST).fetchall()}
    for sweep_id in _beyond(published, settings.observation_nights):
        if sweep_id in needed:
            continue
        for table in OBSERVATIONS:
            files = [file for file in committed_files(lake, table) if sweep_of(file.parent.name) == sweep_id]
            if files and not is_committed(lake, table, retirement(sweep_id)):
                yield _care("retire", table.name, sweep_id, files, partial(_retire, lake, table, sweep_id, files))
    for sweep_id in _beyond(published, settings.raw_nights):
        # A finding is recomputed from every answer since the first of its evidence.
        if sweep_id in needed or any(first <= sweep_id for first in behind_flags):
            continue
        shards = [lake.local(lake.shard_path(sweep_id, name)) for name in sorted(landed(lake, sweep_id))]
        if shards or not is_retired(lake, sweep_id):
            yield _care("retire raw", "raw", sweep_id, shards, partial(retire_shards, lake, sweep_id))


def _beyond(published: list[LedgerEntry], nights: int) -> list[str]:
    """Return the published sweeps before the latest `nights`; none if all are kept (0)."""
    dates = {entry.sweep_id: entry.started_at.date() for entry in published}
    latest = sorted(set(dates.values()))[-nights:] if nights else []
    return [sweep_id for sweep_id, day in dates.items() if latest and day < latest[0]]


def _retire(lake: Lake, table: Table, sweep_id: str, files: list[Path]) -> None:
    touch([*files, *sweep_files(lake, table).get(sweep_id, [])])
    former = [lake.path_of(file) for file in files]
    replace_files(lake, table, dict.fromkeys(former), retirement(sweep_id))


def _to_remove(settings: Settings, lake: Lake) -> Iterator[Care]:
    oldest = time.time() - settings.grace_hours * 3600
    named = _named_by_published(lake)
    for table in (*TABLES.values(), *SIDE_TABLES.values()):
        left: dict[str, list[Path]] = {}
        for file in _unnamed(lake, table):
            if file.stat().st_mtime <= oldest and not any(fnmatch(str(file), pattern) for pattern in named):
                left.setdefault(sweep_of(file.parent.name), []).append(file)
        for sweep_id, files in sorted(left.items()):
            yield _care("remove", table.name, sweep_id, files, partial(_remove, lake, files))
    # Names of files that the object store was writing.
    left_over = [file for file in sorted(lake.root.glob("raw/*/*#[0-9]*")) if file.stat().st_mtime <= oldest]
    for file in left_over:
        yield _care("remove", "raw", file.parent.name, [file], partial(_remove, lake, [file]))


def _remove(lake: Lake, files: list[Path]) -> None:
    for file in files:
        lake.remove(lake.path_of(file))


def _to_note(lake: Lake) -> Iterator[Care]:
    recorded = Recorded(lake.root)
    gone = [place for place in missing_files(lake, recorded) if is_forgotten(lake, place.relative_to(lake.root))]
    for top, places in groupby(gone, key=lambda place: place.relative_to(lake.root).parts[0]):
        lost = list(places)
        yield Care("forget", top, "", len(lost), 0, partial(note_gone, lake.root, lost))
    for folder, _ in missing_folders(lake, published_sweeps(lake)):
        if is_forgotten(lake, folder.relative_to(lake.root)):
            yield Care("forget", folder.name, "", 0, 0, partial(folder.mkdir, exist_ok=True))
    for sums, files in without_checksums(lake, recorded).items():
        where = sums.relative_to(lake.root / FOLDER).as_posix()
        yield _care("record", where, "", files, partial(record_as_they_are, lake.root, files))


def _unnamed(lake: Lake, table: Table) -> Iterator[Path]:
    """Yield files that neither a table's log nor our own readers refer to; files of open sweeps are left out."""
    root = lake.table_root(table.name)
    named = set(committed_files(lake, table))
    if table.name in TABLES:
        named.update(file for files in sweep_files(lake, table).values() for file in files)
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        is_open = table.name in TABLES and not is_sweep_loaded(lake, sweep_of(folder.name))
        if folder.name == "_delta_log" or not folder.is_dir() or is_open:
            continue
        yield from (file for file in sorted(folder.iterdir()) if ".parquet" in file.name and file not in named)


def _named_by_published(lake: Lake) -> set[str]:
    """Return the files and patterns that the views of the published file read."""
    if not lake.published_file.exists():
        return set()
    views = query_published(lake.published_file, "SELECT sql FROM duckdb_views() WHERE NOT internal").fetchall()
    return {path for (sql,) in views for path in paths_in(sql)}


def _is_behind(lake: Lake) -> bool:
    """Whether the published file reads files that the tables no longer refer to."""
    named = _named_by_published(lake)
    unnamed = (file for table in TABLES.values() for file in _unnamed(lake, table))
    return any(fnmatch(str(file), pattern) for file in unnamed for pattern in named)


def _care(kind: str, where: str, sweep_id: str, files: list[Path], do: Callable[[], None]) -> Care:
    return Care(kind, where, sweep_id, len(files), sum(file.stat().st_size for file in files), do)
