"""Raw answers on their way from the workers of a cluster, through the store, to the machine that runs the night.

<prefix>/landed/raw/<sweep>/<shard>.parquet   which object holds the answers of a shard
<prefix>/landed/raw/<sweep>/end.json          the sweep has ended, so nothing more is fetched

A record is created once: the store decides between two workers that sent the same searches. It outlives the worker, so
answers that have landed are neither lost nor requested again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import msgspec

from pipeline.domain.errors import CorruptObject
from pipeline.lake.layout import Layout
from pipeline.lake.s3.commit_log import IN_FLIGHT, Object
from pipeline.lake.s3.object_store import Store

FOLDER = "landed"
_RECORD = tuple[Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")], Annotated[int, msgspec.Meta(ge=0)]]


class HandOver:
    """The records of one lake. Like a lake, it takes new files by their path in the lake."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._store = Store(address)

    def __reduce__(self) -> tuple[type[HandOver], tuple[str]]:
        """Only the address is sent to workers; each has its own credentials."""
        return HandOver, (self._address,)

    def put_new(self, path: str, data: bytes) -> bool:
        """Hand over a file. False: another worker, or an attempt of this one whose answer was lost, has done so."""
        it = self._store.keep_bytes(data)
        return self._store.put_new(f"{FOLDER}/{path}", msgspec.json.encode(it))

    def exists(self, path: str) -> bool:
        """Whether a file has been handed over."""
        return self._store.exists(f"{FOLDER}/{path}")

    def end(self, sweep_id: str) -> None:
        """Let workers begin no further shard of a sweep."""
        self._store.put_new(f"{FOLDER}/{Layout.ending_path(sweep_id)}", b"")

    def has_ended(self, sweep_id: str) -> bool:
        """Whether workers may begin no further shard of a sweep."""
        return self.exists(Layout.ending_path(sweep_id))

    def paths(self, sweep_id: str) -> list[str]:
        """Return the files of a sweep that have been handed over."""
        folder, ending = Layout.raw_folder(sweep_id), Layout.ending_path(sweep_id)
        found = (f"{folder}/{name}" for name in self._store.list_after(f"{FOLDER}/{folder}"))
        return [path for path in found if path != ending]

    def objects(self, paths: Sequence[str]) -> dict[str, Object]:
        """Return the objects of those files that have been handed over. Raises CorruptObject."""
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            found = zip(paths, pool.map(self.object_of, paths), strict=True)
        return {path: it for path, it in found if it is not None}

    def object_of(self, path: str) -> Object | None:
        """Return the object of a file; None: it has not been handed over. Raises CorruptObject."""
        key = f"{FOLDER}/{path}"
        try:
            found: Object = msgspec.json.decode(self._store.get(key), type=_RECORD)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise CorruptObject(
                f"{self._address}/{key} cannot be read: {error}",
                kept="Everything else that has landed is kept.",
                hint="Delete it in the bucket and run the same command again: its searches are requested again.",
            ) from None
        return found

    def lost(self, path: str, it: Object, error: Exception) -> CorruptObject:
        """Return the error for a file whose object is missing or damaged."""
        fault = "missing" if isinstance(error, FileNotFoundError) else "damaged"
        return CorruptObject(
            f"{self._address}/objects/{it[0]}, which a worker has written, is {fault}.",
            kept="Everything else that has landed is kept.",
            hint="Restore it in the bucket, from a version or a backup. If it holds raw answers, you may instead "
            f"delete {self._address}/{FOLDER}/{path}: its searches are then requested again.",
        )

    def remove_unneeded(self, files: Mapping[str, Object], grace_hours: float) -> set[str]:
        """Delete older records that nothing needs, given the lake's files; return the objects of those that are needed.

        A record is needed while the lake lacks its file and the sweep is open.
        """
        needed, unneeded = set[str](), []
        for key in self._store.older_than(self._store.keys(FOLDER), grace_hours):
            path = key.removeprefix(f"{FOLDER}/")
            sweep_id = Path(path).parent.name
            is_open = Layout.manifest_path(sweep_id) in files and Layout.ending_path(sweep_id) not in files
            it = self.object_of(path) if is_open and path not in files else None
            if it is None:
                unneeded.append(key)
            else:
                needed.add(it[0])
        self._store.delete(unneeded)
        return needed
