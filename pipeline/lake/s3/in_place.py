"""The lake's tables as other engines read them in the bucket: each file also under its own path in the lake.

<prefix>/tables/<table>/   Delta tables, as of the last finished step
<prefix>/lake.json         which folder holds the tables, if they were rebuilt
<prefix>/in-place.json     which objects those files are

They are copies that the store itself makes of committed objects, and nightaudit never reads them. After a killed writer
they lag behind the log until the next one has caught up.
"""

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import msgspec

from pipeline.lake.mark import MARK, is_tables_folder
from pipeline.lake.s3.commit_log import IN_FLIGHT, Object
from pipeline.lake.s3.object_store import Store

logger = logging.getLogger(__name__)

_RECORD = "in-place.json"
_LOG = "/_delta_log/"
_LAST_CHECKPOINT = f"{_LOG}_last_checkpoint"


class InPlace:
    """The files of one lake's tables under their own paths. Only the holder of the lake changes them."""

    def __init__(self, address: str) -> None:
        self._store = Store(address)
        # By path, the object that it is a copy of.
        self._there: dict[str, str] = {}
        self._is_read = False

    def update(self, files: Mapping[str, Object]) -> None:
        """Copy new files of tables, and remove those that the lake (its `files`) no longer has.

        Data files are copied before the entries of a log that name them, and removed after it has changed.
        """
        if not self._is_read:
            self._there, self._is_read = self._read(), True
        there = self._there
        wanted = {path: name for path, (name, _) in files.items() if _is_in_place(path)}
        new = {path: name for path, name in wanted.items() if there.get(path) != name}
        gone = there.keys() - wanted.keys()
        if not new and not gone:
            return
        data = [path for path in new if _LOG not in path and path != MARK]
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            list(pool.map(self._copy, data, [new[path] for path in data]))
        for path in sorted(new.keys() - set(data), key=_turn_of):
            self._copy(path, new[path])
        self._remove(gone)
        self._store.put(_RECORD, msgspec.json.encode(there))

    def compare(self) -> None:
        """Remove what a writer that had lost the lake may have copied, and note what is missing, to be copied again."""
        there = self._there
        for folder in {path.partition("/")[0] for path in there} - {MARK}:
            found = self._store.keys(folder).keys()
            self._remove(found - there.keys())
            for path in [path for path in there if path.startswith(f"{folder}/") and path not in found]:
                del there[path]

    def _copy(self, path: str, name: str) -> None:
        try:
            self._store.copy(name, path)
        except FileNotFoundError:
            # Not noted as copied, so the next writer tries again.
            logger.warning(
                "The object %s of %s/%s is missing, so other engines cannot read that table in the bucket. Restore it "
                "in the bucket, from a version or a backup, or from another machine's copy.",
                name,
                self._store.address,
                path,
            )
        else:
            self._there[path] = name

    def _remove(self, paths: Iterable[str]) -> None:
        # A log loses its oldest entries first.
        gone = sorted(paths)
        self._store.delete(gone)
        for path in gone:
            self._there.pop(path, None)

    def _read(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(self._store.get(_RECORD), type=dict[str, str])
        except (FileNotFoundError, msgspec.MsgspecError):
            # None yet, or damaged: all are copied again.
            return {}


def _is_in_place(path: str) -> bool:
    return path == MARK or is_tables_folder(path.partition("/")[0])


def _turn_of(path: str) -> tuple[bool, bool, bool, str]:
    """Entries come in order, then checkpoints, then what names the last one, and at the end which tables count."""
    return path == MARK, path.endswith(_LAST_CHECKPOINT), path.endswith(".parquet"), path
