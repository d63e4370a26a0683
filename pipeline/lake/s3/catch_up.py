"""How a copy catches up with the store: unknown files are moved aside, new ones downloaded, removed ones deleted."""

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from pipeline.domain.errors import CorruptObject
from pipeline.lake.checksums import LOCAL_SUMS, Recorded, record, sum_of_file
from pipeline.lake.files import beside, sync
from pipeline.lake.layout import PUBLISHED
from pipeline.lake.mark import MARK
from pipeline.lake.published_paths import read_from_here
from pipeline.lake.s3.commit_log import IN_FLIGHT, CommitLog, Listing
from pipeline.lake.s3.copy_files import Index, Known, Look, is_unguarded, look_of, looks, name_of, remove_file
from pipeline.lake.s3.object_store import Store

logger = logging.getLogger(__name__)

# These name the files that readers open next, so they are fetched after those, in this order.
_COMES_LATE = ("_delta_log/", MARK, PUBLISHED)


class CatchUp:
    """Brings the folder `root` and its `index` up to a listing."""

    def __init__(self, store: Store, root: Path, index: Index) -> None:
        self._store = store
        self._root = root
        self._index = index

    def to(self, listing: Listing, *, is_ours: bool) -> Listing:
        """Bring the folder up to a listing; if a section of this copy is open (`is_ours`), adopt its files as they are.

        Returns the listing that was reached: a later one if the store no longer has the files of the first.
        Raises CorruptObject and OSError; files fetched by then are in the index.
        """
        found = looks(self._root)
        left = self._adopt(listing, found) if is_ours else self._put_aside(listing, found)
        while True:
            try:
                self._fetch(listing, found, left)
            except FileNotFoundError as error:
                # The store may remove files that no version has any longer while an earlier version is fetched.
                later = CommitLog(self._store).read(listing)
                if later.version == listing.version:
                    raise CorruptObject(
                        f"An object of {self._store.address} is missing: {error}",
                        kept="Nothing was removed from this machine's copy.",
                        hint="Restore it in the bucket, from a version or a backup, or from another machine's copy.",
                    ) from None
                listing = later
            else:
                return listing

    def _adopt(self, listing: Listing, found: Mapping[str, Look]) -> set[str]:
        """Index what a section of this copy has committed but not recorded, because it died.

        Returns the files that stay as they are: all except missing ones that the lake has not removed.
        """
        known, recorded = self._index.files, Recorded(self._root)
        for path, it in listing.files.items():
            if path not in known or known[path].object != it:
                is_it = path in found and name_of(self._root / path) == it[0]
                known[path] = Known(it, found[path] if is_it else None)
        for path in known.keys() - listing.files.keys():
            del known[path]
        missed = {
            path
            for path in listing.files.keys() - found.keys()
            if Path(path).name in recorded.there((self._root / path).parent)
        }
        return listing.files.keys() - missed

    def _put_aside(self, listing: Listing, found: dict[str, Look]) -> set[str]:
        """Move uncommitted files aside; return those that stay because they are written without holding the lake."""
        index, left, aside = self._index, set[str](), []
        was_writing = index.claim is not None and index.claim.copy == index.id
        for path, look in list(found.items()):
            known, it = index.files.get(path), listing.files.get(path)
            if known is not None and known.look == look:
                continue
            if it is not None and name_of(self._root / path) == it[0]:
                index.files[path] = Known(it, look)
            elif is_unguarded(path) and not was_writing:
                if it is None or (known is not None and known.object == it):
                    left.add(path)
            else:
                aside.append(path)
        if aside:
            folder = self._root.parent / f"aside-{datetime.now(UTC):%Y%m%dT%H%M%S}"
            for path in aside:
                place = folder / path
                place.parent.mkdir(parents=True, exist_ok=True)
                (self._root / path).replace(place)
                del found[path]
            logger.warning(
                "%d files of this machine's copy of %s were in no commit; they were moved to %s, and the copy was "
                "reset to the state of the store.",
                len(aside),
                self._store.address,
                folder,
            )
        return left

    def _fetch(self, listing: Listing, found: dict[str, Look], left: set[str]) -> None:
        known, wanted = self._index.files, listing.files

        def is_here(path: str) -> bool:
            it = known.get(path)
            return path in left or (it is not None and it.object == wanted[path] and found.get(path) == it.look)

        missing = [path for path in wanted if not is_here(path)]
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            for late in range(len(_COMES_LATE) + 1):
                todo = [path for path in missing if _turn_of(path) == late]
                for path, it in zip(todo, pool.map(lambda path: self._fetched(path, listing), todo), strict=True):
                    known[path] = it
                    if it.look is not None:
                        found[path] = it.look
        for path in known.keys() - wanted.keys():
            if path not in left:
                remove_file(self._root, path)
            del known[path]

    def _fetched(self, path: str, listing: Listing) -> Known:
        place, it = self._root / path, listing.files[path]
        place.parent.mkdir(parents=True, exist_ok=True)
        built = beside(place)
        try:
            self._store.fetch(*it, built)
            if path == PUBLISHED:
                read_from_here(built, self._root)
                record(self._root, place, sum_of_file(built), LOCAL_SUMS)
            sync(built)
            built.replace(place)
        finally:
            built.unlink(missing_ok=True)
        return Known(it, look_of(place))


def _turn_of(path: str) -> int:
    return next((turn for turn, part in enumerate(_COMES_LATE, 1) if part in path), 0)
