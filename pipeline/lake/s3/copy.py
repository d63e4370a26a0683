"""A lake on S3, as a folder of this machine: updated to the store's last version, and committed from.

<NIGHTAUDIT_LAKE_COPY>/<bucket-prefix-hash>/lake/      a lake like any other
<NIGHTAUDIT_LAKE_COPY>/<bucket-prefix-hash>/copy.json  which version it is, and which object each file
<NIGHTAUDIT_LAKE_COPY>/<bucket-prefix-hash>/aside-…/   what a writer that lost its claim had not committed

Commands work on the folder. What has changed in it is found by size and time, and committed as one entry of the log.
"""

import hashlib
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pipeline.domain.errors import CorruptObject, LakeFull
from pipeline.lake.checksums import FOLDER, Recorded
from pipeline.lake.files import noted_as_gone
from pipeline.lake.mark import MARK
from pipeline.lake.s3.catch_up import CatchUp
from pipeline.lake.s3.commit_log import IN_FLIGHT, Act, Claim, CommitLog, Entry, Listing, Object
from pipeline.lake.s3.copy_files import (
    Index,
    Known,
    Look,
    fetch_file,
    is_sums,
    lined_files,
    look_of,
    looks,
    read_index,
    remove_file,
    write_index,
)
from pipeline.lake.s3.hand_over import HandOver
from pipeline.lake.s3.object_store import Store
from pipeline.settings import read_settings

COPY_INDEX = "copy.json"


class Copy:
    """The folder of one lake on S3, and its place in the log."""

    def __init__(self, address: str) -> None:
        """Describe a copy, without sending or creating anything. Raises SettingsError."""
        self._store = Store(address)
        self.address = self._store.address
        self.log = CommitLog(self._store)
        self.handed = HandOver(address)
        settings = read_settings()
        self.claim_seconds = settings.lake_claim_seconds
        known_as = hashlib.sha256(self.address.encode()).hexdigest()[:8]
        name = re.sub(r"[^a-z0-9]+", "-", self.address.removeprefix("s3://").lower())[:60]
        caches = settings.lake_copy or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "nightaudit"
        self._folder = caches.expanduser().absolute() / f"{name}-{known_as}"
        self.root = self._folder / "lake"
        self._file = self._folder / COPY_INDEX
        self._index = Index(self.address, "", "")
        self.listing = Listing()
        self._one_at_a_time = threading.RLock()
        # Uploaded objects of files that are not committed yet.
        self._sent: dict[str, Known] = {}

    @property
    def id(self) -> str:
        """Id of this folder in its claims."""
        return self._index.id

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Prevent other processes of this machine from opening the copy meanwhile."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._folder / ".lock")
            lock.acquire()
        except OSError as error:
            raise _unusable(self._folder, error) from None
        try:
            yield
        finally:
            lock.release()

    def open(self) -> None:
        """Bring the copy up to the store's last version, unless a process of this machine is writing it."""
        with self.alone():
            self.bring_up(is_to_write=False)

    def look_again(self) -> None:
        """Read the log again; the folder stays as it is."""
        self.listing = self.log.read(self.listing)

    def bring_up(self, *, is_to_write: bool) -> bool:
        """Fetch and remove what has changed in the store. False: a process of this machine is writing the copy.

        Files that a section of this copy has not committed are kept if no other writer has come after it, and moved
        aside otherwise. The caller holds `alone`. Raises LakeError and CorruptObject.
        """
        lock = FileLock(self.root / ".lock")
        if self.root.is_dir():
            try:
                lock.acquire(timeout=0)
            except Timeout:
                return False
        try:
            index = self._index = read_index(self._file, self.address, self.log)
            self.listing = self.log.read(index.listing())
            is_ours = self.listing.claim is not None and self.listing.claim.copy == index.id
            is_current = self.listing.version == index.version and looks(self.root).keys() >= index.files.keys()
            if is_ours or is_to_write or not is_current:
                try:
                    self.listing = CatchUp(self._store, self.root, index).to(self.listing, is_ours=is_ours)
                except BaseException:
                    # Fetched files are not fetched again; the version stays the former one.
                    write_index(self._file, index)
                    raise
                self._save()
        except OSError as error:
            raise _unusable(self._folder, error) from None
        finally:
            lock.release()
        return True

    def commit(self, act: Act, claim: Claim, folders: Iterable[str] | None = None) -> None:
        """Commit all changes, or the new files directly in some folders, in one entry.

        Raises LakeBusy if the claim is lost, and LakeError if the store cannot be reached.
        """
        while not self._committed(act, claim, folders):
            pass

    def _committed(self, act: Act, claim: Claim, folders: Iterable[str] | None) -> bool:
        """Commit. False: the next version was an earlier attempt of this writer, which is known now."""
        with self._one_at_a_time:
            before = dict(self._index.files)
        # Other threads may commit meanwhile: a sign of life, or landed files.
        found, objects = self._uploaded(before, folders)
        removed = self._removed(before.keys() - found.keys()) if folders is None else []
        with self._one_at_a_time:
            known = self._index.files
            changed = {path: it for path, it in objects.items() if path not in known or known[path].object != it}
            entry = Entry.of(act, claim, changed, removed)
            if (changed or removed or act is not Act.COMMIT) and not self.log.append(self.listing, entry):
                late = self.log.read_late(self.listing, claim)
                known.update({path: Known(it, None) for path, it in late.files.items()})
                for path in known.keys() & late.removed:
                    del known[path]
                return False
            known.update({path: Known(it, found[path]) for path, it in objects.items()})
            for path in removed:
                del known[path]
            if folders is None:
                self._save()  # Between two, only the log knows; it is read again if this process dies.
        return True

    def share(self, paths: Iterable[str]) -> dict[str, Object]:
        """Upload files as they are now, for tasks of other machines; return their objects."""
        wanted = list(paths)
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            return dict(zip(wanted, pool.map(self._shared, wanted), strict=True))

    def land(self, files: Mapping[str, Object | None]) -> None:
        """Fetch what a task of another machine wrote, and remove what it removed."""
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            list(pool.map(self._land, files.items()))

    def begin(self, claim: Claim) -> bool:
        """Claim the lake at the copy's version. False: another writer came first."""
        with self._one_at_a_time:
            has_begun = self.log.append(self.listing, Entry.of(Act.BEGIN, claim, {}, []))
            if has_begun:
                self._save()
            return has_begun

    def _save(self) -> None:
        self._index.version, self._index.claim = self.listing.version, self.listing.claim
        self._index.entry = self.listing.entry
        self._folder.mkdir(parents=True, exist_ok=True)
        write_index(self._file, self._index)

    def _uploaded(
        self, known: Mapping[str, Known], folders: Iterable[str] | None
    ) -> tuple[dict[str, Look], dict[str, Object]]:
        """Upload files that differ from the known ones; return all files checked, and the uploaded objects."""
        found, objects = dict[str, Look](), dict[str, Object]()
        # Checksum files are read before the files that their lines are about: they name none that is not committed. A
        # file that lands in between has no line yet, so it waits for the next commit.
        parts = [[""]] if folders is None else [[f"{before}{it}" for it in folders] for before in (f"{FOLDER}/", "")]
        try:
            for part in parts:
                new = {path: look for folder in part for path, look in looks(self.root, folder).items()}
                if folders is not None and part is parts[-1]:
                    sent = {path: objects[path][1] if path in objects else look[0] for path, look in found.items()}
                    lined = lined_files(self.root, sent)
                    new = {path: look for path, look in new.items() if path in known or path in lined}
                todo = [path for path, look in new.items() if path not in known or known[path].look != look]
                with ThreadPoolExecutor(IN_FLIGHT) as pool:
                    objects |= dict(zip(todo, pool.map(self._keep, todo), strict=True))
                found |= new
        except OSError as error:
            raise _unusable(self._folder, error) from None
        return found, objects

    def _shared(self, path: str) -> Object:
        known, look = self._index.files.get(path), look_of(self.root / path)
        return known.object if known is not None and known.look == look else self._keep(path)

    def _land(self, brought: tuple[str, Object | None]) -> None:
        path, it = brought
        if it is None:
            with noted_as_gone(self.root, [self.root / path]):
                remove_file(self.root, path)
            return
        try:
            look = fetch_file(self._store, self.root, path, it)
        except (FileNotFoundError, CorruptObject) as error:
            raise self.handed.lost(path, it, error) from None
        except OSError as error:
            raise _unusable(self._folder, error) from None
        self._sent[path] = Known(it, look)

    def _keep(self, path: str) -> Object:
        place = self.root / path
        look, sent = look_of(place), self._sent.get(path)
        if sent is not None and sent.look == look:
            return sent.object
        # The last line may be incomplete.
        cut = place.read_bytes().rfind(b"\n") + 1 if is_sums(path) else None
        it = self._store.keep(place, cut)
        if cut is None:
            self._sent[path] = Known(it, look)
        return it

    def _removed(self, gone: Iterable[str]) -> list[str]:
        """Return the missing files that the lake has removed; the others are fetched again."""
        there = Recorded(self.root).there
        return sorted(path for path in gone if path != MARK and Path(path).name not in there((self.root / path).parent))


def _unusable(folder: Path, error: OSError) -> LakeFull:
    return LakeFull(
        f"The copy of the lake in {folder} cannot be used: {error.strerror or error}.",
        kept="The lake in the store is untouched.",
        hint="Free some space, or name another folder with NIGHTAUDIT_LAKE_COPY. A deleted copy is downloaded again.",
    )
