"""The lake's door: the one module that knows its paths, writes its objects and guards its writers.

<lake>/lake.json                          format of the lake, and which folder holds its tables
<lake>/raw/<sweep>/sweep.json             what was asked, from when: written before the first search
<lake>/raw/<sweep>/<op>-<market>-<shard>.parquet
<lake>/raw/<sweep>/end.json               the sweep has ended; what has not landed is not swept
<lake>/raw/inputs/<kind>/                 files that users loaded, as they were, and a note of each loading
<lake>/quotes/<run>/                      ledger of quotes: an intent before each call, its answer right after
<lake>/tables/<table>/                    Delta tables; data files in one folder a sweep, input or run of quotes
<lake>/tables-<n>/<table>/                the same, after the n-th rebuild from raw
<lake>/published/nightaudit.duckdb        what analysts open
<lake>/calls/<day>/                       leases of the daily cap
<lake>/checksums/                         checksums of all files: see `checksums`
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import obstore
from filelock import FileLock, Timeout
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore

from pipeline.domain.errors import (
    CorruptObject,
    LakeBusy,
    LakeError,
    LakeFull,
    LakeTooNew,
    SettingsError,
    UnknownLake,
    first_line,
)
from pipeline.lake.checksums import FOLDER, Recorded, note_there, record, sum_of
from pipeline.lake.files import note_touched, noted_as_gone, sync

if TYPE_CHECKING:
    from pipeline.lake.s3.claim import Section
    from pipeline.lake.s3.copy import Copy
    from pipeline.lake.s3.parcels import Carrier

# 2: lake.json names the folder of the tables. Older versions would look for them in `tables`.
FORMAT = 2
_TABLES = "tables"
_TABLES_FOLDER = re.compile(rf"{_TABLES}(?:-(?P<number>[1-9][0-9]{{0,8}}))?")


class Lake:
    """A folder of objects and tables, made by the first write. Opening it is cheap and holds no connection."""

    def __init__(self, uri: str, tables_folder: str | None = None, *, may_be_damaged: bool = False) -> None:
        """Open a lake; one that `may_be_damaged`, without its lake.json too, where no rebuild has moved its tables.

        Raises SettingsError, LakeTooNew, and CorruptObject.
        """
        if "://" in uri and not uri.startswith(("file://", "s3://")):
            raise SettingsError(
                f"NIGHTAUDIT_LAKE is {uri!r}; a lake is kept in a folder, or on S3.",
                hint="Set it to a path, for example lake or /srv/nightaudit/lake, or to s3://bucket/prefix.",
            )
        self.copy = _copy_of(uri) if uri.startswith("s3://") else None
        """This machine's copy of a lake on S3: what is gone from it is fetched again. None: a lake in a folder."""
        self._section: Section | None = None
        self.root = Path(uri.removeprefix("file://")).absolute() if self.copy is None else self.copy.root
        self.address = str(self.root) if self.copy is None else self.copy.address
        """What users know the lake by: its folder, or its address on S3."""
        if set("*?[") & set(str(self.root)):
            raise SettingsError(
                f"The lake folder {self.root} cannot be used: DuckDB reads *, ? and [ in its path as wildcards.",
                hint="Set NIGHTAUDIT_LAKE to a folder without these characters.",
            )
        held = next(place for place in (self.root, *self.root.parents) if place.exists())
        if not held.is_dir():
            raise self._unusable(f"{held} is not a folder." if held != self.root else "it is not a folder.")
        self._store: LocalStore | None = None
        self._settled: set[Path] = set()
        self._recorded = Recorded(self.root)
        self._is_pinned = tables_folder is not None
        self.records_all = False
        """Whether checksums were recorded from the lake's first file on; those of an earlier version lack some."""
        self.tables_folder = tables_folder or _TABLES
        try:
            self._check_format()
        except CorruptObject:
            if not may_be_damaged or not (self.root / "lake.json").exists() or self._rebuilt_tables():
                raise

    def __reduce__(self) -> tuple[type[Lake], tuple[str, str]]:
        """Travel to worker processes as the paths alone."""
        return Lake, (str(self.root), self.tables_folder)

    # Paths ------------------------------------------------------------------------------------------------

    @staticmethod
    def raw_folder(sweep_id: str) -> str:
        """Folder of a sweep's raw objects."""
        return f"raw/{sweep_id}"

    @staticmethod
    def manifest_path(sweep_id: str) -> str:
        """Object that says what a sweep asks."""
        return f"raw/{sweep_id}/sweep.json"

    @staticmethod
    def ending_path(sweep_id: str) -> str:
        """Object that says that a sweep has ended."""
        return f"raw/{sweep_id}/end.json"

    @staticmethod
    def confirmation_path(run_id: str) -> str:
        """Object that lists the flags that a run re-queries."""
        return f"raw/{run_id}/confirm.json"

    @staticmethod
    def shard_path(sweep_id: str, shard_name: str) -> str:
        """Object that holds the answers of one shard."""
        return f"raw/{sweep_id}/{shard_name}.parquet"

    @staticmethod
    def inputs_folder(kind: str) -> str:
        """Folder of the files of one kind that users loaded."""
        return f"raw/inputs/{kind}"

    @staticmethod
    def quotes_folder(run_id: str) -> str:
        """Folder of a run of quotes."""
        return f"quotes/{run_id}" if run_id else "quotes"

    def table_file(self, table: str, sweep_id: str, name: str) -> str:
        """Data file of a table."""
        return f"{self.tables_folder}/{table}/{sweep_id}/{name}.parquet"

    def table_root(self, table: str) -> Path:
        """Folder of a Delta table."""
        return self.root / self.tables_folder / table

    @property
    def published_file(self) -> Path:
        """The DuckDB file that analysts open."""
        return self.root / "published" / "nightaudit.duckdb"

    def local(self, path: str) -> Path:
        """Place of an object in the file system."""
        return self.root / path

    # Objects ----------------------------------------------------------------------------------------------

    def put_new(self, path: str, data: bytes) -> bool:
        """Write an object that must not exist yet, and see it to the disk. False: it was there already."""
        try:
            self._put(path, data, "create")
        except AlreadyExistsError:
            return False
        return True

    def put(self, path: str, data: bytes) -> None:
        """Write an object whole, in place of an older one if there is one."""
        self._put(path, data, "overwrite")

    def _put(self, path: str, data: bytes, mode: Literal["create", "overwrite"]) -> None:
        try:
            store = self._made()
            record(self.root, self.local(path), sum_of(data))
            obstore.put(store, path, data, mode=mode, use_multipart=False)
            note_there(self.root, self.local(path))
        except AlreadyExistsError:
            raise
        except (OSError, BaseError) as error:
            raise _write_failed(self.root, path, error) from None
        self._settle(path)
        if self._section is not None:
            self._section.written(path)

    def remove(self, path: str) -> None:
        """Remove an object, if there is one."""
        place = self.local(path)
        if place.exists():
            with noted_as_gone(self.root, [place]):
                place.unlink()
            sync(place.parent)

    def remove_folder(self, path: str) -> None:
        """Remove a folder with all that is in it, if there is one."""
        place, recorded = self.local(path), Recorded(self.root)
        there = [folder / name for folder in recorded.folders(place) for name in recorded.there(folder)]
        with noted_as_gone(self.root, there):
            shutil.rmtree(place, ignore_errors=True)
        if not place.exists():
            shutil.rmtree(self.root / FOLDER / path, ignore_errors=True)

    def get(self, path: str) -> bytes:
        """Read an object. Raises FileNotFoundError, CorruptObject where it is not what was written, or LakeError."""
        if not self.root.is_dir():
            raise FileNotFoundError(path)
        if self.exists(path) and not self.local(path).is_file():
            # A pipe would never end.
            raise CorruptObject(
                f"{self.local(path)} is not a file.",
                kept="Nothing was changed.",
                hint="List the damage and its repairs: nightaudit verify --deep",
            )
        try:
            data = bytes(obstore.get(self._opened(), path).bytes())
        except FileNotFoundError:
            raise
        except (OSError, BaseError) as error:
            raise LakeError(f"{self.local(path)} cannot be read: {first_line(error)}") from None
        # What stands right in the root may be restored by hand.
        if "/" in path:
            self._recorded.refuse(self.local(path), sum_of(data))
        return data

    def get_json(self, path: str) -> dict[str, object]:
        """Read a JSON object. Raises FileNotFoundError or CorruptObject."""
        try:
            value = json.loads(self.get(path))
        except ValueError as error:
            raise CorruptObject(
                f"{self.local(path)} is not readable JSON: {error}",
                kept="Nothing was changed.",
                hint="Restore this file from a backup; what it described cannot be resumed without it.",
            ) from None
        if not isinstance(value, dict):
            raise CorruptObject(f"{self.local(path)} does not hold a JSON object.")
        return value

    def exists(self, path: str) -> bool:
        """Whether an object is there."""
        return self.local(path).exists()

    def names(self, folder: str, suffix: str = "") -> set[str]:
        """Names of the objects right inside a folder, without `suffix`; others are left out."""
        with_suffix = (
            entry.name
            for entry in (os.scandir(self.local(folder)) if self.local(folder).is_dir() else ())
            if entry.name.endswith(suffix)
        )
        return {name[: len(name) - len(suffix)] for name in with_suffix}

    def sweep_ids(self) -> list[str]:
        """All sweeps that were ever started here, oldest first."""
        found = sorted(name for name in self.names("raw") if self.exists(self.manifest_path(name)))
        a_second = Counter(name.partition("-")[0] for name in found)

        def begun(name: str) -> tuple[str, str]:
            # An id tells the second. Where that does not do, the manifest tells more.
            second = name.partition("-")[0]
            is_alone = a_second[second] == 1
            try:
                return second, "" if is_alone else str(self.get_json(self.manifest_path(name)).get("started_at"))
            except LakeError:
                # Its readers meet the damage.
                return second, ""

        return sorted(found, key=begun)

    def free_bytes(self) -> int:
        """Bytes free on the lake's disk."""
        there = next(folder for folder in (self.root, *self.root.parents) if folder.is_dir())
        return shutil.disk_usage(there).free

    def refuse_missing(self) -> None:
        """Raise UnknownLake where no lake is there: a mistyped path must not look like an empty lake, or become one."""
        if not self.root.is_dir():
            raise UnknownLake(
                f"There is no lake at {self.address} (NIGHTAUDIT_LAKE).",
                kept="Nothing was created or changed.",
                hint="Correct the path. In a new lake, start with: nightaudit nightly",
            )

    def carrier(self, reads: Callable[..., Iterable[str]]) -> Carrier | None:
        """Return what takes tasks to machines that lack this folder; `reads` names the files for a task's arguments.

        None: the lake is a folder that all machines see.
        """
        if self.copy is None:
            return None
        from pipeline.lake.s3.parcels import Carrier

        return Carrier(self.copy, reads)

    # Rebuilt tables ----------------------------------------------------------------------------------------

    def with_new_tables(self) -> Lake:
        """Return this lake with a folder for its tables that nothing has used yet. It counts once it is adopted."""
        taken = [int(match["number"] or 1) for match in map(_TABLES_FOLDER.fullmatch, self.names("")) if match]
        fresh = Lake(str(self.root), f"{_TABLES}-{max(taken, default=1) + 1}")
        fresh.copy = self.copy
        return fresh

    def adopt_tables(self) -> None:
        """Make this lake's folder of tables the one that counts, in one step."""
        self.put("lake.json", _mark(FORMAT, records_all=self.records_all, tables=self.tables_folder))

    def drop_tables_but(self, *kept: str) -> None:
        """Remove all other folders of tables: former ones, and what a rebuild that was killed has left."""
        for name in self.names(""):
            if _TABLES_FOLDER.fullmatch(name) and name not in {self.tables_folder, *kept}:
                self.remove_folder(name)

    # Writers ----------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Hold the lake's one writer lock. Raises LakeBusy at once if another process has it.

        The system drops the lock when its process dies, so nothing needs cleaning up after a kill. A lake on S3 is
        claimed there as well, and what was written is committed at the end.
        """
        with ExitStack() as held:
            if self.copy is None:
                held.enter_context(self._locked(what))
            else:
                held.enter_context(self._claimed(self.copy, what))
            yield

    def commit(self) -> None:
        """Commit to a lake on S3 what was written so far; nothing is half written now. In a folder it is there."""
        if self._section is not None:
            self._section.commit()

    def drop_unused(self, grace_hours: float) -> None:
        """Remove from S3 what no file of the lake has any more, once it is older than that. In a folder nothing is."""
        if self._section is not None:
            self._section.drop_unused(grace_hours)

    @contextmanager
    def _claimed(self, copy: Copy, what: str) -> Iterator[None]:
        from pipeline.lake.s3.claim import claimed

        with ExitStack() as held:
            with copy.alone():
                is_up_to_date = copy.bring_up(is_to_write=True)
                held.enter_context(self._locked(what))
                if not is_up_to_date:
                    raise LakeBusy(
                        f"The lake {self.address} was being written by another process of this machine until now.",
                        kept="Nothing was started.",
                        hint="Run it again.",
                    )
                self._section = held.enter_context(claimed(copy, what))
            try:
                yield
            finally:
                self._section = None

    @contextmanager
    def _locked(self, what: str) -> Iterator[None]:
        if not (self.root / "lake.json").is_file():
            # Not made yet, or lost.
            self._store = None
        self._made()
        lock, note = FileLock(self.root / ".lock"), self.root / ".lock.note"
        try:
            lock.acquire(timeout=0)
        except Timeout:
            holder = note.read_text() if note.exists() else "another process"
            raise LakeBusy(
                f"The lake {self.address} is being written by {holder}.",
                kept="Nothing was started.",
                hint="Wait until it ends, or use another lake (NIGHTAUDIT_LAKE). Reading is always possible.",
            ) from None
        except OSError as error:
            raise _write_failed(self.root, ".lock", error) from None
        try:
            try:
                note.write_text(f"{what} (process {os.getpid()})")
            except OSError as error:
                raise _write_failed(self.root, note.name, error) from None
            # Another writer may have rebuilt the tables since this lake was opened.
            self._check_format()
            yield
        finally:
            lock.release()

    # Made by the first write -----------------------------------------------------------------------------

    def _opened(self) -> LocalStore:
        if self._store is None:
            self._store = LocalStore(self.root)
        return self._store

    def _made(self) -> LocalStore:
        """Return the store of a lake that is there; its first writer makes it."""
        if self._store is None or not self.root.is_dir():
            try:
                self.root.mkdir(parents=True, exist_ok=True)
                self._store = LocalStore(self.root)
                # Any version can read a lake whose tables lie where they always did.
                made = any(_TABLES_FOLDER.fullmatch(name) or name in {"raw", "published"} for name in self.names(""))
                self.records_all = not made or (self.root / FOLDER).is_dir()
                self.put_new("lake.json", _mark(1, records_all=self.records_all))
            except LakeError:
                raise
            except (OSError, BaseError) as error:
                raise self._unusable(str(error)) from None
        return self._store

    def _unusable(self, why: str) -> LakeError:
        return LakeError(
            f"The lake folder {self.root} cannot be used: {why}",
            hint="Set NIGHTAUDIT_LAKE to a folder that you can write to.",
        )

    def _settle(self, path: str) -> None:
        # Without this a power cut may leave an empty file under its final name, an answer that seems to have landed,
        # or no name at all.
        place = self.local(path)
        note_touched([place])
        sync(place)
        sync(place.parent)
        # The names of the folders themselves, which were made with their first object.
        for folder in place.parents:
            if folder == self.root or folder in self._settled:
                break
            sync(folder.parent)
            self._settled.add(folder)

    def _check_format(self) -> None:
        try:
            held = self.get_json("lake.json")
        except FileNotFoundError:
            # It is not made yet; or it is gone, and the tables that count are not those of a lake without it.
            if made_anew := self._rebuilt_tables():
                raise CorruptObject(
                    f"{self.root / 'lake.json'} is missing; it names the folder of the current tables: {_TABLES} or "
                    f"{' or '.join(made_anew)}.",
                    kept="Nothing was read or changed.",
                    hint="Restore it from a backup. Without one, write it with the folder of the latest rebuild: "
                    + _mark(FORMAT, records_all=(self.root / FOLDER).is_dir(), tables=made_anew[-1]).decode(),
                ) from None
            return
        found, tables = held.get("format"), str(held.get("tables", _TABLES))
        if not isinstance(found, int) or found > FORMAT:
            raise LakeTooNew(
                f"The lake {self.root} has format {found}; this version of nightaudit reads up to {FORMAT}.",
                kept="Nothing was read or changed.",
                hint="Install the newer version that wrote it, or set NIGHTAUDIT_LAKE to another folder.",
            )
        if not _TABLES_FOLDER.fullmatch(tables):
            raise CorruptObject(f"{self.root / 'lake.json'} names {tables!r}, which cannot be a folder of tables.")
        self.records_all = held.get("checksums") is True
        if not self._is_pinned:
            self.tables_folder = tables

    def _rebuilt_tables(self) -> list[str]:
        matches = [match for match in map(_TABLES_FOLDER.fullmatch, self.names("")) if match and match["number"]]
        return [match[0] for match in sorted(matches, key=lambda match: int(match["number"]))]


def _copy_of(address: str) -> Copy:
    # Most lakes are folders, and need nothing of a store.
    from pipeline.lake.s3.copy import Copy

    copy = Copy(address)
    copy.open()
    return copy


def _mark(number: int, *, records_all: bool, **others: str) -> bytes:
    return json.dumps({"format": number, **others, **({"checksums": True} if records_all else {})}).encode()


def _write_failed(root: Path, path: str, error: Exception) -> LakeFull:
    # It knows errors of slow imports.
    from pipeline.process.failures import what_helps

    return LakeFull(
        f"{root / path} could not be written: {first_line(error)}",
        kept="What had landed before is untouched.",
        hint=what_helps(error),
    )
