"""A lake: its address, the folder that holds its tables, its sweeps, and its one writer at a time."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.domain.errors import CorruptObject, LakeError, LakeTooNew, SettingsError, UnknownLake
from pipeline.lake.checksums import FOLDER, sum_of
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
from pipeline.lake.objects import Objects, is_broken_link
from pipeline.lake.pulled import refuse_pulled
from pipeline.lake.writer_lock import locked

if TYPE_CHECKING:
    from pipeline.lake.s3.claim import Section
    from pipeline.lake.s3.copy import Copy
    from pipeline.lake.s3.parcels import Carrier


# Text that is meant as an address, even with too few slashes: `s3:/bucket` is not a folder.
_ADDRESS: Final = re.compile(r"://|^[a-z][a-z0-9+.-]+:/", re.IGNORECASE)


class Lake(Objects):
    """Raw answers, tables and what is published of them, in a folder or on S3."""

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
        super().__init__(Path(uri.removeprefix("file://")).absolute() if self.copy is None else self.copy.root)
        self.address = str(self.root) if self.copy is None else self.copy.address
        """The lake's folder, or its address on S3, as users know it."""
        self._section: Section | None = None
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
        return self.exists(self.manifest_path(name)) or is_broken_link(folder)

    def refuse_missing(self) -> None:
        """Raise UnknownLake if there is none: a mistyped path must not look like an empty lake, or become one."""
        if not self.root.is_dir():
            raise UnknownLake(
                f"There is no lake at {self.address} (NIGHTAUDIT_LAKE).",
                kept="Nothing was created or changed.",
                hint="Correct the path. In a new lake, start with: nightaudit nightly",
            )

    # The folder of its tables ------------------------------------------------------------------------------

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

    def _created(self) -> None:
        made = any(is_tables_folder(name) or name in {"raw", "published"} for name in self.names(""))
        self.records_all = not made or (self.root / FOLDER).is_dir()
        self.put_new(MARK, Mark(TABLES, self.records_all).as_json())

    # Its writer --------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Hold the lake's one writer lock. Raises LakeBusy at once if another process has it, and InputError in
        a folder that was pulled.

        The system drops the lock when its process dies, so nothing needs cleaning up after a kill. A lake on S3 is
        claimed there as well, and what was written is committed at the end.
        """
        if self.copy is None:
            with self._locked(what):
                yield
            return
        from pipeline.lake.s3.claim import brought_up_and_claimed

        with brought_up_and_claimed(self.copy, what, self._locked(what)) as section:
            self._section = section
            try:
                yield
            finally:
                self._section = None

    def commit(self) -> None:
        """Commit what was written so far to a lake on S3. No write is in progress."""
        if self._section is not None:
            self._section.commit()

    def drop_unused(self, grace_hours: float) -> None:
        """Remove older objects from S3 that no file of the lake uses any longer."""
        if self._section is not None:
            self._section.drop_unused(grace_hours)

    def _written(self, path: str) -> None:
        if self._section is not None:
            self._section.written(path)

    @contextmanager
    def _locked(self, what: str) -> Iterator[None]:
        if not self.local(MARK).is_file():
            # Not created yet, or lost.
            self._store = None
        refuse_pulled(self.root)
        self._opened()
        with locked(self.root, self.address, what):
            # Another writer may have rebuilt the tables since this lake was opened.
            self._read_mark()
            yield

    # Other machines ----------------------------------------------------------------------------------------

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
            self._written(path)


def _copy_of(address: str) -> Copy:
    # Most lakes are folders and need no store.
    from pipeline.lake.s3.copy import Copy

    copy = Copy(address)
    copy.open()
    return copy
