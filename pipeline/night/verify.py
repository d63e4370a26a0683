"""Which files of a lake are damaged, what that affects, and how to repair it.

Quick: reads every file that lists other files (manifests, ledger, logs of tables, the published file), and checks that
those exist with their original size. Deep: reads every file completely and compares it with its checksum; checks that
the tables hold as many searches as answers landed and, for a part of each sweep, the rows that those answers give.
"""

import json
import os
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.domain.errors import first_line
from pipeline.lake import Lake
from pipeline.lake.checksums import Recorded, Sum, sum_of, sum_of_file
from pipeline.lake.expected import files_of_lake, missing_files, not_files, without_checksums
from pipeline.lake.mark import MARK
from pipeline.night.cross_checks import CrossChecks
from pipeline.night.damage import Damage, Damages
from pipeline.settings import Settings

_WRITER = re.compile(r"\(process (\d{1,9})\)$")
# A file and its checksum are written in milliseconds; a busy disk takes longer.
_SETTLED_SECONDS = 1.0
_MAX_BODY_BYTES = Settings.model_construct().max_body_bytes


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a check. `unrecorded` files have no checksum: an earlier version wrote them."""

    files: int
    unrecorded: int
    damages: tuple[Damage, ...]


def verify(lake: Lake, *, is_deep: bool, max_body_bytes: int = _MAX_BODY_BYTES) -> Verified:
    """Check all files of a lake without changing any. `max_body_bytes` limits the answers that are read."""
    began = time.time()
    is_written = _is_written(lake, began)
    found = _Look(lake, max_body_bytes, is_deep=is_deep).at_all()
    if not found.damages or not (is_written or _is_written(lake, began)):
        return found
    # Another process may have been between a file and its checksum; real damage persists.
    time.sleep(_SETTLED_SECONDS)
    suspects = frozenset(damage.path for damage in found.damages)
    again = _Look(lake, max_body_bytes, is_deep=is_deep, suspects=suspects).at_all()
    return replace(found, damages=tuple(damage for damage in again.damages if damage.path in suspects))


def _is_written(lake: Lake, since: float) -> bool:
    """Whether another process of this machine is writing to the lake, or has begun to since then."""
    note = lake.root / ".lock.note"
    try:
        found, changed_at = _WRITER.search(note.read_text()), note.stat().st_mtime
        if found is None or int(found[1]) == os.getpid():
            return False
        if changed_at < since:
            os.kill(int(found[1]), 0)
    except PermissionError:
        # The process exists and belongs to another user.
        return True
    except (OSError, ValueError):
        return False
    return True


class _Look:
    """One check of all files; a second one reads only the content of `suspects`."""

    def __init__(
        self, lake: Lake, max_body_bytes: int, *, is_deep: bool, suspects: frozenset[str] | None = None
    ) -> None:
        self._lake = lake
        self._suspects = suspects
        self._is_deep = is_deep
        self._recorded = Recorded(lake.root)
        self._damages = Damages(lake)
        self._cross_checks = CrossChecks(lake, self._damages, max_body_bytes, is_deep=is_deep)
        self._files = self._unrecorded = 0

    def at_all(self) -> Verified:
        if self._lake.root.is_dir():
            for place in files_of_lake(self._lake):
                self._file(place)
            lost = self._lost()
            is_readable = not self._of_another_kind(lost)
            # The lake may have been opened without it.
            self._damages.read(self._lake.local(MARK), lambda: Lake(str(self._lake.root)))
            if is_readable:
                self._cross_checks.run()
            for gone, count in lost.items():
                self._damages.add(gone, "is missing" if count == 1 else f"is missing, with {count:,} files")
            damaged = self._recorded.damaged()
            for sums, how in damaged.items():
                self._damages.add(sums, how)
            for sums, files in without_checksums(self._lake, self._recorded).items():
                if any(each.parent == sums for each in damaged):
                    # Its damage is reported already.
                    continue
                first, others = files[0].relative_to(self._lake.root), len(files) - 1
                named = f"{first} and {others:,} more" if others else f"{first}"
                self._damages.add(sums, f"is missing, empty or cut: no checksum of {named}", is_missing=True)
        return Verified(self._files, self._unrecorded, self._damages.in_order())

    def _file(self, place: Path) -> None:
        if self._suspects is not None and self._lake.path_of(place) not in self._suspects:
            return
        self._files += 1
        recorded = self._recorded.of(place)
        try:
            if place == self._lake.local(MARK) and sum_of(place.read_bytes().strip()) in recorded:
                # It may be restored by hand.
                return
            if not recorded:
                self._unrecorded += 1
                self._structure(place)
            elif self._is_deep:
                self._compare(place, recorded, sum_of_file(place))
            elif place.stat().st_size not in {size for size, _ in recorded}:
                self._compare(place, recorded, (place.stat().st_size, ""))
        except OSError as error:
            self._damages.add(place, f"cannot be read: {error.strerror or error}")

    def _compare(self, place: Path, recorded: set[Sum], found: Sum) -> None:
        if found in recorded:
            return
        is_resized = found[0] not in {size for size, _ in recorded}
        self._damages.add(
            place,
            f"has {found[0]:,} bytes, not as many as were written" if is_resized else "differs from what was written",
        )

    def _structure(self, place: Path) -> None:
        """Check the format of a file without a checksum."""
        try:
            if place.suffix == ".parquet" and self._is_deep:
                pq.ParquetFile(place, page_checksum_verification=True).read()
            elif place.suffix == ".json" and place.parent.name != "_delta_log":
                json.loads(place.read_bytes())
        except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
            self._damages.add(place, f"cannot be read: {first_line(error)}")

    def _lost(self) -> dict[Path, int]:
        """Return the missing files, or the folder for a missing folder, each with its number of files."""
        lost: dict[Path, int] = {}
        for place in missing_files(self._lake, self._recorded):
            gone = [place, *(folder for folder in place.parents if not folder.is_dir())][-1]
            lost[gone] = lost.get(gone, 0) + 1
        return lost

    def _of_another_kind(self, lost: dict[Path, int]) -> bool:
        """Find what has replaced a file or folder, such as a pipe; opening it may never return."""
        places = {place for place in lost if place.exists()} | set(not_files(self._lake))
        for place in sorted(places):
            kind = "a folder" if place.is_dir() else "a file" if place.is_file() else "neither a file nor a folder"
            wanted = f", but was a folder with {lost[place]:,} files" if place.is_file() else ", but was a file"
            self._damages.add(place, f"is {kind}{wanted}")
        return bool(places)
