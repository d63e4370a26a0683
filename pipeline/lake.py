"""The lake's door: the one module that knows its paths, writes its objects and guards its writers.

<lake>/lake.json                          format of the lake
<lake>/raw/<sweep>/sweep.json             what was asked, from when: written before the first search
<lake>/raw/<sweep>/<op>-<market>-<shard>.parquet
<lake>/raw/<sweep>/end.json               the sweep has ended; what has not landed is not swept
<lake>/raw/inputs/<kind>/                 files that users loaded, as they were, and a note of each loading
<lake>/quotes/<run>/                      ledger of quotes: an intent before each call, its answer right after
<lake>/tables/<table>/                    Delta tables; data files in one folder a sweep, input or run of quotes
<lake>/published/nightaudit.duckdb        what analysts open
<lake>/calls/<day>/                       leases of the daily cap
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import obstore
from filelock import FileLock, Timeout
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore

from pipeline.domain.errors import CorruptObject, LakeBusy, LakeError, LakeFull, LakeTooNew, SettingsError

FORMAT = 1


class Lake:
    """A folder of objects and tables. Opening it creates it; it is cheap and holds no connection."""

    def __init__(self, uri: str) -> None:
        if "://" in uri and not uri.startswith("file://"):
            raise SettingsError(
                f"NIGHTAUDIT_LAKE is {uri!r}; this version keeps its lake in a local folder only.",
                hint="Set it to a path, for example lake or /srv/nightaudit/lake.",
            )
        self.root = Path(uri.removeprefix("file://")).absolute()
        if set("*?[") & set(str(self.root)):
            raise SettingsError(
                f"The lake folder {self.root} cannot be used: *, ? and [ in its path mean other files to DuckDB.",
                hint="Set NIGHTAUDIT_LAKE to a folder without these characters.",
            )
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self._store = LocalStore(self.root)
        except (OSError, BaseError) as error:
            raise LakeError(
                f"The lake folder {self.root} cannot be used: {error}",
                hint="Set NIGHTAUDIT_LAKE to a folder you may write.",
            ) from None
        self._check_format()

    def __reduce__(self) -> tuple[type[Lake], tuple[str]]:
        """Travel to worker processes as the path alone."""
        return Lake, (str(self.root),)

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

    @staticmethod
    def table_file(table: str, sweep_id: str, name: str) -> str:
        """Data file of a table."""
        return f"tables/{table}/{sweep_id}/{name}.parquet"

    def table_root(self, table: str) -> Path:
        """Folder of a Delta table."""
        return self.root / "tables" / table

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
            obstore.put(self._store, path, data, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        except (OSError, BaseError) as error:
            raise _write_failed(self.root, path, error) from None
        _settle(self.local(path))
        return True

    def put(self, path: str, data: bytes) -> None:
        """Write an object whole, in place of an older one if there is one."""
        try:
            obstore.put(self._store, path, data, use_multipart=False)
        except (OSError, BaseError) as error:
            raise _write_failed(self.root, path, error) from None
        _settle(self.local(path))

    def get(self, path: str) -> bytes:
        """Read an object. Raises FileNotFoundError or LakeError."""
        try:
            return bytes(obstore.get(self._store, path).bytes())
        except FileNotFoundError:
            raise
        except (OSError, BaseError) as error:
            raise LakeError(f"{self.local(path)} cannot be read: {_first_line(error)}") from None

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
        return sorted(name for name in self.names("raw") if self.exists(self.manifest_path(name)))

    def free_bytes(self) -> int:
        """Bytes free on the lake's disk."""
        return shutil.disk_usage(self.root).free

    # Writers ----------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Hold the lake's one writer lock. Raises LakeBusy at once if another process has it.

        The system drops the lock when its process dies, so nothing needs cleaning up after a kill.
        """
        lock, note = FileLock(self.root / ".lock"), self.root / ".lock.note"
        try:
            lock.acquire(timeout=0)
        except Timeout:
            holder = note.read_text() if note.exists() else "another process"
            raise LakeBusy(
                f"The lake {self.root} is being written by {holder}.",
                kept="Nothing was started.",
                hint="Wait for it to end, or use another lake (NIGHTAUDIT_LAKE). Reading is always possible.",
            ) from None
        except OSError as error:
            raise _write_failed(self.root, ".lock", error) from None
        try:
            try:
                note.write_text(f"{what} (process {os.getpid()})")
            except OSError as error:
                raise _write_failed(self.root, note.name, error) from None
            yield
        finally:
            lock.release()

    def _check_format(self) -> None:
        try:
            found = self.get_json("lake.json").get("format")
        except FileNotFoundError:
            self.put_new("lake.json", json.dumps({"format": FORMAT}).encode())
            return
        if not isinstance(found, int) or found > FORMAT:
            raise LakeTooNew(
                f"The lake {self.root} has format {found}; this version of nightaudit reads up to {FORMAT}.",
                kept="Nothing was read or changed.",
                hint="Install the newer version that wrote it, or set NIGHTAUDIT_LAKE to another folder.",
            )


def _settle(path: Path) -> None:
    # Without this a power cut may leave an empty file under its final name: an answer that seems to have landed.
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _write_failed(root: Path, path: str, error: Exception) -> LakeFull:
    return LakeFull(
        f"{root / path} could not be written: {_first_line(error)}",
        kept="What had landed before is untouched.",
        hint="Free some space or mend the permissions, then go on with: nightaudit resume",
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
