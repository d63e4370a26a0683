"""Files of a lake on S3 for tasks on machines without the night's folder, exchanged as objects.

A task carries the names of the objects that it reads. The worker fetches those it lacks to its own folder, at the same
paths as where the night runs, and uploads what it wrote. The night fetches that.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from filelock import FileLock

from pipeline.domain.errors import LakeError, LakeFull
from pipeline.lake.files import beside, noted_as_gone, touching
from pipeline.lake.s3.commit_log import IN_FLIGHT, Object
from pipeline.lake.s3.copy import Copy
from pipeline.lake.s3.copy_files import Look, fetch_file, is_passing, look_of, name_of, remove_file
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


class _Held(msgspec.Struct):
    object: Object
    look: Look | None
    used_at: float | None = None
    """When a task last read it; None: it existed before, and must not be removed."""


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
                stack.enter_context(in_use(self._tasks, files))
            except OSError as error:
                raise self._unusable(error) from None
            self._fetch(files)
            yield

    def _fetch(self, files: Mapping[str, Object]) -> None:
        """Fetch the files that the folder lacks, and remove others that are not to be kept."""
        try:
            with self._held() as held, ThreadPoolExecutor(IN_FLIGHT) as pool:
                there = pool.map(lambda path: self._fetched(path, files[path], held.get(path)), files)
                held |= dict(zip(files, there, strict=True))
                self._remove(held, self._unkept(held))
        except FileNotFoundError as error:
            raise LakeError(
                f"An object of {self._store.address} that a task reads is missing: {error}",
                kept="What was committed before is untouched.",
                hint="Restore it in the bucket, from a version or a backup, then run the same command again.",
            ) from None
        except OSError as error:
            raise self._unusable(error) from None

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

    def _unkept(self, held: Mapping[str, _Held]) -> list[str]:
        """Return which files to remove: those unread for long and, of more than may be kept, those unread for longest.

        None that a running task reads, and none that was not fetched for a task.
        """
        ours = {path: (it.used_at, it.object[1]) for path, it in held.items() if it.used_at is not None}
        excess, unread_since = sum(size for _, size in ours.values()) - self._most_bytes, time.time() - _KEPT_SECONDS
        used, unkept = files_in_use(self._tasks), []
        for path, (used_at, size) in sorted(ours.items(), key=lambda it: it[1]):
            if path not in used and (used_at < unread_since or excess > 0):
                unkept.append(path)
                excess -= size
        return unkept

    def _remove(self, held: dict[str, _Held], paths: Iterable[str]) -> None:
        old = list(paths)
        with noted_as_gone(self._root, [self._root / path for path in old if not is_passing(path)]):
            for path in old:
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
        with FileLock(self._root.parent / ".lock"):
            try:
                held = msgspec.json.decode(self._file.read_bytes(), type=dict[str, _Held])
            except (OSError, msgspec.MsgspecError):
                # It is lost; files are recognised by their bytes.
                held = {}
            yield held
            built = beside(self._file)
            built.write_bytes(msgspec.json.encode(held))
            built.replace(self._file)

    def _fetched(self, path: str, it: Object, held: _Held | None) -> _Held:
        place, now = self._root / path, time.time()
        look = look_of(place)
        if held is not None and look is not None and (held.object, held.look) == (it, look):
            return _Held(it, look, held.used_at and now)
        if look is not None and look[0] == it[1] and name_of(place) == it[0]:
            return _Held(it, look)
        return _Held(it, fetch_file(self._store, self._root, path, it), now)
