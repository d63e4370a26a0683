"""A lake: reads and writes its objects, knows which folder holds its tables, and lets in one writer at a time."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore

from pipeline.domain.errors import (
    CorruptObject,
    LakeBusy,
    LakeError,
    LakeTooNew,
    SettingsError,
    UnknownLake,
    first_line,
)
from pipeline.lake.checksums import FOLDER, Recorded, note_there, record, sum_of
from pipeline.lake.files import note_touched, noted_as_gone, sync
from pipeline.lake.layout import Layout
from pipeline.lake.mark import (
    FIELDS,
    MARK,
    TABLES,
    Mark,
    is_tables_folder,
    lost,
    next_folder,
    rebuilt_folders,
)
from pipeline.lake.pulled import refuse_pulled
from pipeline.lake.writer_lock import locked, write_failed
from pipeline.process.regular_file import unusable_name

if TYPE_CHECKING:
    from pipeline.lake.s3.claim import Section
    from pipeline.lake.s3.copy import Copy
    from pipeline.lake.s3.parcels import Carrier


# Text that is meant as an address, even with too few slashes: `s3:/bucket` is not a folder.
_ADDRESS: Final = re.compile(r"://|^[a-z][a-z0-9+.-]+:/", re.IGNORECASE)

_LIST: Final = "nightaudit verify --deep"


class Lake(Layout):
    """A folder of objects and tables, created by the first write. Opening it is cheap and holds no connection."""

    def __init__(self, uri: str, tables_folder: str | None = None, *, may_be_damaged: bool = False) -> None:
        """Open a lake. If it `may_be_damaged`, its lake.json may be missing or damaged, unless its tables were rebuilt.

        Raises SettingsError, LakeTooNew, and CorruptObject.
        """
        if _ADDRESS.search(uri) and not uri.startswith(("file://", "s3://")):
            raise SettingsError(
                # It may be a link that holds a secret.
                "The address of the lake is neither a folder nor on S3.",
                hint="Name a path, for example lake or /srv/nightaudit/lake, or s3://bucket/prefix (NIGHTAUDIT_LAKE).",
            )
        self.copy = _copy_of(uri) if uri.startswith("s3://") else None
        """This machine's copy of a lake on S3, whose missing files are fetched again. None: the lake is in a folder."""
        self._section: Section | None = None
        self.root = Path(uri.removeprefix("file://")).absolute() if self.copy is None else self.copy.root
        self.address = str(self.root) if self.copy is None else self.copy.address
        """The lake's folder, or its address on S3, as users know it."""
        if set("*?[") & set(str(self.root)):
            raise SettingsError(
                f"The lake folder {self.root} cannot be used: DuckDB reads *, ? and [ in its path as wildcards.",
                hint="Set NIGHTAUDIT_LAKE to a folder without these characters.",
            )
        if why := unusable_name(self.root):
            raise self._unusable(f"{why}.")
        held = next(place for place in (self.root, *self.root.parents) if place.exists())
        if not held.is_dir():
            raise self._unusable(f"{held} is not a folder." if held != self.root else "it is not a folder.")
        self._store: LocalStore | None = None
        self._settled: set[Path] = set()
        self._recorded = Recorded(self.root)
        self._is_pinned = tables_folder is not None
        self.records_all = False
        """Whether checksums were recorded from the lake's first file on; earlier versions did not."""
        self.tables_folder = tables_folder or TABLES
        try:
            self._read_mark()
        except CorruptObject:
            if not may_be_damaged or not self.exists(MARK) or rebuilt_folders(self.names("")):
                raise

    def __reduce__(self) -> tuple[type[Lake], tuple[str, str]]:
        """Only the paths are sent to worker processes."""
        return Lake, (str(self.root), self.tables_folder)

    # Objects ----------------------------------------------------------------------------------------------

    def put_new(self, path: str, data: bytes) -> bool:
        """Write an object that must not exist yet, and sync it. False: it existed."""
        try:
            self._put(path, data, "create")
        except AlreadyExistsError:
            return False
        return True

    def put(self, path: str, data: bytes) -> None:
        """Write an object, replacing an older one."""
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
            raise write_failed(self.root, path, error) from None
        self._settle(path)
        if self._section is not None:
            self._section.written(path)

    def remove(self, path: str) -> None:
        """Remove an object, if it exists."""
        place = self.local(path)
        if place.exists():
            with noted_as_gone(self.root, [place]):
                place.unlink()
            sync(place.parent)

    def remove_folder(self, path: str) -> None:
        """Remove a folder with its content, if it exists."""
        place, recorded = self.local(path), Recorded(self.root)
        there = [folder / name for folder in recorded.folders(place) for name in recorded.there(folder)]
        with noted_as_gone(self.root, there):
            shutil.rmtree(place, ignore_errors=True)
        if not place.exists():
            shutil.rmtree(self.root / FOLDER / path, ignore_errors=True)

    def get(self, path: str) -> bytes:
        """Read an object. Raises FileNotFoundError, CorruptObject if it is not what was written, or LakeError."""
        if not self.root.is_dir():
            raise FileNotFoundError(path)
        place = self.local(path)
        if _leads_nowhere(place.parent):
            raise _away(place.parent)
        if self.exists(path) and not place.is_file():
            # A pipe would never end.
            raise CorruptObject(f"{place} is not a file.", hint=f"List the damage and its repairs: {_LIST}")
        try:
            self._store = self._store or LocalStore(self.root)
            data = bytes(obstore.get(self._store, path).bytes())
        except FileNotFoundError:
            raise
        except (OSError, BaseError) as error:
            raise LakeError(
                f"{place} cannot be read: {first_line(error)}",
                hint="Check the disk and the permissions of the file.",
            ) from None
        # Files in the root itself may have been restored by hand.
        if "/" in path:
            self._recorded.refuse(place, sum_of(data))
        return data

    def get_json(self, path: str) -> dict[str, object]:
        """Read a JSON object. Raises FileNotFoundError or CorruptObject."""
        try:
            value = json.loads(self.get(path))
            if isinstance(value, dict):
                return value
            reason = "it is not a JSON object"
        except (ValueError, RecursionError) as error:
            reason = str(error)
        raise CorruptObject(
            f"{self.local(path)} is not readable JSON: {reason}", hint=f"List the damage and its repairs: {_LIST}"
        )

    def exists(self, path: str) -> bool:
        """Whether there is something in its place, even a link that leads nowhere."""
        place = self.local(path)
        # Unlike os.path.lexists, these raise where a folder may not be read: it is not taken for an empty one.
        return place.exists() or place.is_symlink()

    def names(self, folder: str, suffix: str = "") -> set[str]:
        """Names of the objects directly in a folder that end in `suffix`, without it.

        Raises CorruptObject if the folder is a link that leads nowhere, perhaps to a disk that is not mounted.
        """
        place = self.local(folder)
        if _leads_nowhere(place):
            raise _away(place)
        found = os.scandir(place) if place.is_dir() else ()
        return {entry.name.removesuffix(suffix) for entry in found if entry.name.endswith(suffix)}

    def sweep_ids(self) -> list[str]:
        """All sweeps of the lake, oldest first."""
        found = sorted(name for name in self.names("raw") if self._is_sweep(name))
        a_second = Counter(name.partition("-")[0] for name in found)

        def begun(name: str) -> tuple[str, str]:
            # An id holds the second of the start; the manifest decides between equal ones.
            second = name.partition("-")[0]
            is_alone = a_second[second] == 1
            try:
                return second, "" if is_alone else str(self.get_json(self.manifest_path(name)).get("started_at"))
            except LakeError:
                # Readers of the manifest report the damage.
                return second, ""

        return sorted(found, key=begun)

    def _is_sweep(self, name: str) -> bool:
        folder = self.local(self.raw_folder(name))
        # The folder behind such a link had a manifest.
        return self.exists(self.manifest_path(name)) or _leads_nowhere(folder)

    def free_bytes(self) -> int:
        """Bytes free on the lake's disk."""
        there = next(folder for folder in (self.root, *self.root.parents) if folder.is_dir())
        return shutil.disk_usage(there).free

    def refuse_missing(self) -> None:
        """Raise UnknownLake if there is none: a mistyped path must not look like an empty lake, or become one."""
        if not self.root.is_dir():
            raise UnknownLake(
                f"There is no lake at {self.address} (NIGHTAUDIT_LAKE).",
                kept="Nothing was created or changed.",
                hint="Correct the path. In a new lake, start with: nightaudit nightly",
            )

    def carrier(self, reads: Callable[..., Iterable[str]]) -> Carrier | None:
        """Return the carrier of tasks to machines that lack this folder; None: all machines see it.

        `reads` names the files for a task's arguments.
        """
        if self.copy is None:
            return None
        from pipeline.lake.s3.parcels import Carrier

        return Carrier(self.copy, reads)

    def receive(self, sweep_id: str, paths: Iterable[str] | None = None) -> None:
        """Fetch raw answers of an open sweep that workers have handed over (on S3): some files, or all.

        Raises CorruptObject if what a worker landed is lost or damaged, and LakeError.
        """
        if self.copy is None:
            return
        handed = self.copy.handed
        wanted = handed.paths(sweep_id) if paths is None else paths
        found = handed.objects([path for path in wanted if not self.exists(path)])
        self.copy.land(found)
        for path in found:
            if self._section is not None:
                self._section.written(path)

    # Rebuilt tables ----------------------------------------------------------------------------------------

    def with_new_tables(self) -> Lake:
        """Return this lake with a new folder for its tables, which counts once it is adopted."""
        fresh = Lake(str(self.root), next_folder(self.names("")))
        fresh.copy = self.copy
        return fresh

    def adopt_tables(self) -> None:
        """Make this lake's folder of tables the one that counts, in one step."""
        self.put(MARK, Mark(self.tables_folder, self.records_all).as_json())

    def drop_tables_but(self, *kept: str) -> None:
        """Remove all other folders of tables: former ones, and those of a killed rebuild."""
        for name in self.names(""):
            if is_tables_folder(name) and name not in {self.tables_folder, *kept}:
                self.remove_folder(name)

    # Writers ----------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Hold the lake's one writer lock. Raises LakeBusy at once if another process has it, and InputError in
        a folder that was pulled.

        The system drops the lock when its process dies, so nothing needs cleaning up after a kill. A lake on S3 is
        claimed there as well, and what was written is committed at the end.
        """
        with self._locked(what) if self.copy is None else self._claimed(self.copy, what):
            yield

    def commit(self) -> None:
        """Commit what was written so far to a lake on S3. No write is in progress."""
        if self._section is not None:
            self._section.commit()

    def drop_unused(self, grace_hours: float) -> None:
        """Remove older objects from S3 that no file of the lake uses any longer."""
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
                        f"Another process on this machine was writing to the lake {self.address} until just now.",
                        kept="Nothing was started.",
                        hint="Run the command again.",
                    )
                self._section = held.enter_context(claimed(copy, what))
            try:
                yield
            finally:
                self._section = None

    @contextmanager
    def _locked(self, what: str) -> Iterator[None]:
        if not self.local(MARK).is_file():
            # Not created yet, or lost.
            self._store = None
        refuse_pulled(self.root)
        self._made()
        with locked(self.root, self.address, what):
            # Another writer may have rebuilt the tables since this lake was opened.
            self._read_mark()
            yield

    # Made by the first write -----------------------------------------------------------------------------

    def _made(self) -> LocalStore:
        """Return the lake's store; the first writer creates the lake."""
        if self._store is None or not self.root.is_dir():
            try:
                self.root.mkdir(parents=True, exist_ok=True)
                self._store = LocalStore(self.root)
                made = any(is_tables_folder(name) or name in {"raw", "published"} for name in self.names(""))
                self.records_all = not made or (self.root / FOLDER).is_dir()
                self.put_new(MARK, Mark(TABLES, self.records_all).as_json())
            except LakeError:
                raise
            except (OSError, BaseError) as error:
                raise self._unusable(f"{getattr(error, 'strerror', None) or first_line(error)}.") from None
        return self._store

    def _unusable(self, why: str) -> LakeError:
        return LakeError(
            f"The lake folder {self.root} cannot be used: {why}",
            kept="Nothing was started.",
            hint="Set NIGHTAUDIT_LAKE to a folder that you can write to.",
        )

    def _settle(self, path: str) -> None:
        # Otherwise a power cut may leave an empty file under its final name, as if an answer had landed, or no name.
        place = self.local(path)
        note_touched([place])
        sync(place)
        sync(place.parent)
        # The folders were created with their first object, so their names are synced too.
        for folder in place.parents:
            if folder == self.root or folder in self._settled:
                break
            sync(folder.parent)
            self._settled.add(folder)

    def _read_mark(self) -> None:
        place, folders = self.local(MARK), set(filter(is_tables_folder, self.names("")))
        rebuilt = rebuilt_folders(folders)
        try:
            mark = self._mark(place, folders)
        except FileNotFoundError:
            # Not created yet; or lost, and after a rebuild nothing else names the current tables.
            if rebuilt:
                raise lost(self.root, rebuilt, self._recorded.of(place), "is missing") from None
            return
        except CorruptObject:
            if rebuilt:
                raise lost(self.root, rebuilt, self._recorded.of(place), "is damaged") from None
            raise
        self.records_all = mark.records_all
        if not self._is_pinned:
            self.tables_folder = mark.tables

    def _mark(self, place: Path, folders: set[str]) -> Mark:
        """Read lake.json, given the `folders` of tables; its checksum decides where it may mislead."""
        held = self.get_json(MARK)
        # Not of its bytes: it may have been restored by hand, with other blanks or in another order.
        found = sum_of(json.dumps({name: held[name] for name in FIELDS if name in held} | held).encode())
        try:
            mark = Mark.of(held, place)
        except LakeTooNew:
            self._recorded.refuse(place, found)
            raise
        if folders != {mark.tables}:
            self._recorded.refuse(place, found)
        return mark


def _leads_nowhere(place: Path) -> bool:
    """Whether a name is a link that leads nowhere: in a circle, or to a missing file."""
    return place.is_symlink() and not place.exists()


def _away(place: Path) -> CorruptObject:
    return CorruptObject(
        f"{place} is a broken link.",
        hint=f"If its target is on another disk, mount that disk. Otherwise list the damage and its repairs: {_LIST}",
    )


def _copy_of(address: str) -> Copy:
    # Most lakes are folders and need no store.
    from pipeline.lake.s3.copy import Copy

    copy = Copy(address)
    copy.open()
    return copy
