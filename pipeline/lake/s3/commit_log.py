"""The log of a lake on S3: one entry per version, each created once. The store decides between two writers.

An entry begins a section of writing (which claims the lake), commits files, renews the claim or ends it. Versions are
counted without gaps, so a writer that lost its claim finds its next version taken. Entries are kept: they are small,
and say who wrote what, and when.
"""

import secrets
from collections.abc import Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from enum import StrEnum
from typing import Self, TypeVar

import msgspec

from pipeline.domain.errors import CorruptObject, LakeBusy, LakeTooNew
from pipeline.lake.s3.object_store import Store

# Opening a lake reads at most this many entries, starting at the last snapshot.
SNAPSHOT_EVERY = 100
IN_FLIGHT = 16
_FORMAT = 1
_RESTORE = "Restore it in the bucket, from a version or a backup."

Object = tuple[str, int]
"""An object's name (the SHA-256 of its bytes) and size."""


class Act(StrEnum):
    """The effect of an entry on the claim; each kind may commit files."""

    BEGIN = "begin"
    COMMIT = "commit"
    RENEW = "renew"
    END = "end"


class Claim(msgspec.Struct, frozen=True):
    """A writer: `copy` is the id of its folder, and `seconds` how long it may be silent."""

    token: str
    copy: str
    by: str
    doing: str
    seconds: float


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One version; `at` is the time by the writer's clock, for information."""

    format: int
    id: str
    act: Act
    claim: Claim
    at: datetime
    files: dict[str, Object] = {}
    removed: list[str] = []

    @classmethod
    def of(cls, act: Act, claim: Claim, files: Mapping[str, Object], removed: list[str]) -> Self:
        """Return an entry with the present time."""
        at = datetime.now(UTC).replace(microsecond=0)
        return cls(_FORMAT, secrets.token_hex(16), act, claim, at, dict(files), removed)


class Listing(msgspec.Struct):
    """All files of a lake as of a version, and the claim that is open then."""

    version: int = 0
    files: dict[str, Object] = {}
    claim: Claim | None = None
    format: int = _FORMAT
    entry: str = ""
    """Id of the version's entry; empty: unknown."""

    def apply(self, version: int, entry: Entry) -> None:
        """Apply the entry of the next version."""
        self.version, self.entry = version, entry.id
        self.files.update(entry.files)
        for path in entry.removed:
            self.files.pop(path, None)
        self.claim = None if entry.act is Act.END else entry.claim


T = TypeVar("T", Entry, Listing)


class CommitLog:
    """The log in its store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def holds(self, version: int, entry: str) -> bool:
        """Whether the log has this entry as its version; not so after an older backup was restored in the store."""
        if not version:
            return True
        name = f"log/{_name(version)}"
        try:
            data = self._store.get(name)
        except FileNotFoundError:
            return False
        return entry in {"", _decoded(data, Entry, f"{self._store.address}/{name}").id}

    def read(self, since: Listing) -> Listing:
        """Return the listing of the last version, starting from an earlier one."""
        listing = msgspec.structs.replace(since, files=dict(since.files))
        names = list(self._store.list_after("log", _name(since.version) if since.version else ""))
        if len(names) > SNAPSHOT_EVERY:
            listing = self._snapshot(since.version) or listing
            names = [name for name in names if name > _name(listing.version)]
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            for name, data in zip(names, pool.map(lambda name: self._store.get(f"log/{name}"), names), strict=True):
                if name != _name(listing.version + 1):
                    raise CorruptObject(
                        f"{self._store.address}/log/{_name(listing.version + 1)} is missing.", hint=_RESTORE
                    )
                listing.apply(listing.version + 1, _decoded(data, Entry, f"{self._store.address}/log/{name}"))
        return listing

    def append(self, listing: Listing, entry: Entry) -> bool:
        """Write the next version and apply it. False: another writer has it."""
        version = listing.version + 1
        if not self._store.put_new(f"log/{_name(version)}", msgspec.json.encode(entry)):
            # An attempt of our own, whose answer was lost, may have written it.
            there = self._store.get(f"log/{_name(version)}")
            if _decoded(there, Entry, f"{self._store.address}/log/{_name(version)}").id != entry.id:
                return False
        listing.apply(version, entry)
        if version % SNAPSHOT_EVERY == 0:
            self._store.put_new(f"snapshots/{_name(version)}", msgspec.json.encode(listing))
        return True

    def read_late(self, listing: Listing, claim: Claim) -> Entry:
        """Apply the next version, which this writer wrote, and return it. Raises LakeBusy if another one did.

        A store that was frozen may still write an entry after its writer has given it up, because no answer came.
        """
        name = f"log/{_name(listing.version + 1)}"
        entry = _decoded(self._store.get(name), Entry, f"{self._store.address}/{name}")
        if entry.claim.token != claim.token:
            raise lost(self._store.address)
        listing.apply(listing.version + 1, entry)
        return entry

    def silent_seconds(self, listing: Listing) -> float:
        """Return how long nothing has been written, by the store's clock."""
        return (self._store.now() - self._store.time_of(f"log/{_name(listing.version)}")).total_seconds()

    def remove_unused(self, listing: Listing, grace_hours: float, also_used: Set[str] = frozenset()) -> int:
        """Delete unused objects and older snapshots; return the number of objects. Only for a writer.

        Objects that workers have handed over are `also_used`.
        """
        used = {name for name, _ in listing.files.values()} | also_used
        old = self._store.older_than(self._store.list_after("objects"), grace_hours)
        unused = [f"objects/{name}" for name in old if name not in used]
        self._store.delete(unused)
        self._store.delete([f"snapshots/{name}" for name in list(self._store.list_after("snapshots"))[:-2]])
        return len(unused)

    def _snapshot(self, version: int) -> Listing | None:
        names = list(self._store.list_after("snapshots", _name(version) if version else ""))
        if not names:
            return None
        try:
            data = self._store.get(f"snapshots/{names[-1]}")
        except FileNotFoundError:
            # A later one has replaced it.
            return self._snapshot(version)
        return _decoded(data, Listing, f"{self._store.address}/snapshots/{names[-1]}")


def lost(address: str) -> LakeBusy:
    """Return the error of a writer that another one has replaced."""
    return LakeBusy(
        f"Another machine has taken over the lake {address}: this one had been silent for too long.",
        kept="What was committed before is in the lake; the rest is moved aside when this machine next opens the lake.",
        hint="See what the other machine is doing: nightaudit status. Run this command again only after it has ended.",
    )


def _name(version: int) -> str:
    return f"{version:020}.json"


def _decoded(data: bytes, kind: type[T], name: str) -> T:
    try:
        found = msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        try:
            is_newer = int(msgspec.json.decode(data)["format"]) > _FORMAT
        except (msgspec.MsgspecError, LookupError, TypeError, ValueError):
            is_newer = False
        if is_newer:
            raise _too_new(name) from None
        raise CorruptObject(f"{name} cannot be read: {error}", hint=_RESTORE) from None
    if found.format > _FORMAT:
        raise _too_new(name)
    if strange := [path for path in found.files if not path or {"", ".", ".."} & set(path.split("/"))]:
        raise CorruptObject(f"{name} is damaged: {strange[0]!r} is not a path in a lake.", hint=_RESTORE)
    return found


def _too_new(name: str) -> LakeTooNew:
    return LakeTooNew(
        f"{name} was written by a newer version of nightaudit.",
        kept="Nothing was read or changed.",
        hint="Install the newer version that wrote it.",
    )
