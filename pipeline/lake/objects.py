"""The objects in a lake's folder: written in one step, synced and recorded; checked when they are read."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Final, Literal

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore

from pipeline.domain.errors import CorruptObject, LakeError, SettingsError, first_line
from pipeline.lake.checksums import FOLDER, Recorded, note_there, record, sum_of
from pipeline.lake.files import note_touched, noted_as_gone, sync
from pipeline.lake.layout import Layout
from pipeline.lake.writer_lock import write_failed
from pipeline.process.regular_file import unusable_name

_LIST: Final = "nightaudit verify --deep"


class Objects(Layout):
    """A folder of objects, created by the first write. Opening it is cheap and holds no connection."""

    def __init__(self, root: Path) -> None:
        """Open the folder at `root`. Raises SettingsError or LakeError if it cannot be used."""
        self.root = root
        if set("*?[") & set(str(root)):
            raise SettingsError(
                f"The lake folder {root} cannot be used: DuckDB reads *, ? and [ in its path as wildcards.",
                hint="Set NIGHTAUDIT_LAKE to a folder without these characters.",
            )
        if why := unusable_name(root):
            raise self._unusable(f"{why}.")
        held = next(place for place in (root, *root.parents) if place.exists())
        if not held.is_dir():
            raise self._unusable(f"{held} is not a folder." if held != root else "it is not a folder.")
        self._store: LocalStore | None = None
        self._settled: set[Path] = set()
        self._recorded = Recorded(root)

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
            store = self._opened()
            record(self.root, self.local(path), sum_of(data))
            obstore.put(store, path, data, mode=mode, use_multipart=False)
            note_there(self.root, self.local(path))
        except AlreadyExistsError:
            raise
        except (OSError, BaseError) as error:
            raise write_failed(self.root, path, error) from None
        self._settle(path)
        self._written(path)

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
        if is_broken_link(place.parent):
            raise _broken_link(place.parent)
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
        if is_broken_link(place):
            raise _broken_link(place)
        found = os.scandir(place) if place.is_dir() else ()
        return {entry.name.removesuffix(suffix) for entry in found if entry.name.endswith(suffix)}

    def free_bytes(self) -> int:
        """Bytes free on the lake's disk."""
        there = next(folder for folder in (self.root, *self.root.parents) if folder.is_dir())
        return shutil.disk_usage(there).free

    def _opened(self) -> LocalStore:
        """Return the store of the objects; the first writer creates it."""
        if self._store is None or not self.root.is_dir():
            try:
                self.root.mkdir(parents=True, exist_ok=True)
                self._store = LocalStore(self.root)
                self._created()
            except LakeError:
                raise
            except (OSError, BaseError) as error:
                raise self._unusable(f"{getattr(error, 'strerror', None) or first_line(error)}.") from None
        return self._store

    def _created(self) -> None:
        """Write what else belongs into a new folder. A folder alone needs nothing."""

    def _written(self, path: str) -> None:
        """Take note of a written object. A folder alone does not."""

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


def is_broken_link(place: Path) -> bool:
    """Whether a name is a link that leads nowhere: in a circle, or to a missing file."""
    return place.is_symlink() and not place.exists()


def _broken_link(place: Path) -> CorruptObject:
    return CorruptObject(
        f"{place} is a broken link.",
        hint=f"If its target is on another disk, mount that disk. Otherwise list the damage and its repairs: {_LIST}",
    )
