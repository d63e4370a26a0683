"""Files of a lake on S3 for tasks on machines without the night's folder, exchanged as objects.

A task carries the names of the objects that it reads. The worker fetches those it lacks to its own folder, at the same
paths as where the night runs, and uploads what it wrote. The night fetches that.
"""

import errno
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from filelock import FileLock

from pipeline.domain.errors import LakeError, LakeFull, NightauditError
from pipeline.lake.files import beside, touching
from pipeline.lake.s3.commit_log import IN_FLIGHT, Object
from pipeline.lake.s3.copy import COPY_INDEX, Copy
from pipeline.lake.s3.copy_files import Look, fetch_file, is_passing, is_sums, look_of, looks, name_of, remove_file
from pipeline.lake.s3.in_use import files_in_use, in_use
from pipeline.lake.s3.object_store import Store
from pipeline.process.carrier import Brought
from pipeline.settings import read_settings

# A file that no task has read for this long is removed from a worker's folder.
_KEPT_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Parcel:
    """The files that a task reads; the lake's folder is `root` where the night runs."""

    address: str
    root: str
    files: Mapping[str, Object]

    def do(self, work: Callable[[], object]) -> Brought:
        """Do the work on this machine. Raises LakeError and SettingsError if the store cannot be used."""
        store, root = Store(self.address), Path(self.root)
        here = _WorkersFolder(store, root)
        with here.reading(self.files), touching() as touched:
            result = work()
        return Brought(result, here.send(place.relative_to(root).as_posix() for place in sorted(touched)))


@dataclass(frozen=True, slots=True)
class StoreProbe:
    """Whether a worker can read and write the store, and the folder that the lake has on every machine."""

    address: str
    root: str

    def __call__(self) -> str:
        """Return why it cannot, as a predicate; empty: it can."""
        try:
            Store(self.address).now()
            Path(self.root).mkdir(parents=True, exist_ok=True)
        except NightauditError as error:
            return f"cannot use the lake on S3: {error.message}"
        except OSError as error:
            return f"cannot use the lake on S3: {self.root}: {error.strerror or error}"
        return ""


class Carrier:
    """Sends tasks with the files that they read; `reads` names those from a task's arguments."""

    def __init__(self, copy: Copy, reads: Callable[..., Iterable[str]]) -> None:
        self._copy = copy
        self._reads = reads

    def parcel(self, args: tuple[object, ...]) -> Parcel:
        """Upload what a task needs, and return its parcel."""
        return Parcel(self._copy.address, str(self._copy.root), self._copy.share(self._reads(*args)))

    def land(self, brought: Brought) -> None:
        """Fetch what a task wrote."""
        self._copy.land(brought.files)

    def probe(self) -> StoreProbe:
        """Return what a worker checks before it gets work."""
        return StoreProbe(self._copy.address, str(self._copy.root))


class _Held(msgspec.Struct):
    object: Object
    look: Look | None
    used_at: float
    """When a task last read or wrote it."""


class _WorkersFolder:
    """A worker's folder. Its tasks, and other processes of the machine that read the lake, take turns."""

    def __init__(self, store: Store, root: Path) -> None:
        self._store = store
        self._root = root
        self._file = root.parent / "fetched.json"
        self._tasks = root.parent / "tasks"
        self._most_bytes = read_settings().worker_copy_mb * 1_000_000

    @contextmanager
    def reading(self, files: Mapping[str, Object]) -> Iterator[None]:
        """Fetch the files that the folder lacks, and keep them while the caller reads them."""
        with ExitStack() as stack:
            try:
                stack.enter_context(in_use(self._tasks, files, self._guard()))
            except OSError as error:
                raise self._unusable(error) from None
            self._fetch(files)
            yield

    def _fetch(self, files: Mapping[str, Object]) -> None:
        """Remove what is not to be kept, and fetch the files that the folder lacks."""
        try:
            with self._held() as held:
                lacking = [path for path, it in files.items() if path not in held or held[path].object != it]
                self._remove(held, self._unkept(held, sum(files[path][1] for path in lacking)))
                try:
                    self._fetch_into(held, files)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    # The disk holds less than the setting allows.
                    self._remove(held, self._unkept(held, self._most_bytes))
                    self._fetch_into(held, files)
        except FileNotFoundError as error:
            raise LakeError(
                f"An object of {self._store.address} that a task reads is missing: {error}",
                kept="What was committed before is untouched.",
                hint="Restore it in the bucket, from a version or a backup, then run the same command again.",
            ) from None
        except OSError as error:
            raise self._unusable(error) from None

    def _fetch_into(self, held: dict[str, _Held], files: Mapping[str, Object]) -> None:
        there = {path: held.get(path) for path in files}
        # Noted before they are fetched: if this process is killed, they are still known as fetched.
        for path, it in files.items():
            if there[path] is None and look_of(self._root / path) is None:
                there[path] = held[path] = _Held(it, None, time.time())
        self._save(held)
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            fetched = {path: pool.submit(self._fetched, path, it, there[path]) for path, it in files.items()}
        # Those that were fetched before one failed may be removed like all others.
        for path in [path for path, each in fetched.items() if each.exception() is None]:
            held[path] = fetched.pop(path).result()
        for failed in fetched.values():
            failed.result()

    def send(self, paths: Iterable[str]) -> dict[str, Object | None]:
        """Upload what a task wrote; return the objects, None for files that it removed."""
        sent: dict[str, Object | None] = {}
        try:
            for path in paths:
                place = self._root / path
                sent[path] = self._store.keep(place) if place.exists() else None
            with self._held() as held:
                for path, it in sent.items():
                    if it is not None:
                        # The next task may read it.
                        held[path] = _Held(it, look_of(self._root / path), time.time())
                self._remove(held, [path for path in sent if is_passing(path)])
        except OSError as error:
            raise self._unusable(error) from None
        return sent

    def _unkept(self, held: Mapping[str, _Held], incoming_bytes: int) -> list[str]:
        """Return which files to remove: those unread for long and, of more than may be kept, those unread for longest.

        None that a running task reads or has written again, and none at all where this machine has a copy of the lake:
        they are part of it.
        """
        used = files_in_use(self._tasks)
        if used is None or (self._root.parent / COPY_INDEX).exists():
            return []
        excess = sum(it.object[1] for it in held.values()) + incoming_bytes - self._most_bytes
        unread_since, unkept = time.time() - _KEPT_SECONDS, []
        for path, it in sorted(held.items(), key=lambda each: each[1].used_at):
            look = look_of(self._root / path)
            # Without its look, it was being fetched when the process was killed.
            is_unchanged = look in {it.look, None} or (it.look is None and look is not None and look[0] == it.object[1])
            # Tasks append to the checksums that this machine has recorded.
            may_go = is_unchanged and path not in used and not is_sums(path)
            if may_go and (it.used_at < unread_since or excess > 0):
                unkept.append(path)
                excess -= it.object[1]
        return unkept

    def _remove(self, held: dict[str, _Held], paths: Iterable[str]) -> None:
        """Remove files of this machine alone: the lake keeps them."""
        for path in paths:
            remove_file(self._root, path)
            held.pop(path, None)

    def _unusable(self, error: OSError) -> LakeFull:
        return LakeFull(
            f"The worker's folder {self._root} cannot be used: {error.strerror or error}.",
            kept="The lake in the store is untouched.",
            hint="Free some space there, or let the worker write to that path, which is the same on every machine.",
        )

    @contextmanager
    def _held(self) -> Iterator[dict[str, _Held]]:
        self._root.mkdir(parents=True, exist_ok=True)
        with self._guard():
            try:
                held = msgspec.json.decode(self._file.read_bytes(), type=dict[str, _Held])
            except (OSError, msgspec.MsgspecError):
                # It is lost; files are recognised by their bytes.
                there = looks(self._root)
                held = {path: _Held(("", look[0]), look, time.time()) for path, look in there.items()}
            try:
                yield held
            finally:
                self._save(held)

    def _guard(self) -> FileLock:
        return FileLock(self._root.parent / ".lock")

    def _save(self, held: Mapping[str, _Held]) -> None:
        built = beside(self._file)
        built.write_bytes(msgspec.json.encode(held))
        built.replace(self._file)

    def _fetched(self, path: str, it: Object, held: _Held | None) -> _Held:
        look = look_of(self._root / path)
        is_known = held is not None and look is not None and (held.object, held.look) == (it, look)
        if not is_known and (look is None or look[0] != it[1] or name_of(self._root / path) != it[0]):
            look = fetch_file(self._store, self._root, path, it)
        return _Held(it, look, time.time())
