"""The log of a Delta table: read again only when it has changed, and recorded, as its writer keeps no checksums."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from pipeline.domain.errors import LakeError, first_line
from pipeline.domain.tables import Table
from pipeline.lake.checksums import Recorded, note_begun, note_gone, note_there, record, refuse_damaged, sum_of_file
from pipeline.lake.lake import Lake

# Commits between two checkpoints; without them each commit would read the log of all nights before.
CHECKPOINT_EVERY = 10
_LAST_CHECKPOINT = "_last_checkpoint"

# Names, sizes and times of the files of a log; while they stay the same, so does its content.
_LogFiles = frozenset[tuple[str, int, int]]


@dataclass
class _Read:
    """A table as it was read last."""

    log: _LogFiles
    delta: DeltaTable
    files: tuple[Path, ...] | None = None


# By folder. A night reads a table's log hundreds of times, and each reading takes milliseconds.
_READ: dict[Path, _Read] = {}
# By folder, the checkpoint that was last found to be what was written: its name, size and time.
_WHOLE: dict[Path, tuple[str, int, int]] = {}


@contextmanager
def reading(root: Path) -> Iterator[None]:
    """Raise LakeError for a log that cannot be read: the library reads parts of it only when they are asked for."""
    try:
        yield
    except BaseException as error:
        # A panic of the library, which no exception class of ours or its own covers.
        is_panic = type(error).__name__ == "PanicException"
        if not is_panic and not isinstance(error, DeltaError | OSError):
            raise
        raise LakeError(
            f"The table {root} cannot be read: {first_line(error)}",
            kept="The raw answers are untouched.",
            hint="List the damage and its repairs: nightaudit verify --deep",
        ) from None


def existing(lake: Lake, table: Table) -> DeltaTable | None:
    """Return a table by its present log; None: it does not exist. Raises LakeError if the log cannot be read."""
    root = lake.table_root(table.name)
    log = _log_files(root)
    known = _READ.get(root)
    if known is not None and known.log == log:
        return known.delta
    with reading(root):
        _refuse_damaged_checkpoint(lake, root, log)
        try:
            delta = DeltaTable(root)
        except TableNotFoundError:
            return None
    # Listed before it was read, so commits in between are read again.
    _READ[root] = _Read(log, delta)
    return delta


def _refuse_damaged_checkpoint(lake: Lake, root: Path, log: _LogFiles) -> None:
    """Raise CorruptObject for a damaged last checkpoint: the library may end in a panic, or read other values."""
    checkpoint = max((file for file in log if file[0].endswith(".parquet")), default=None)
    if checkpoint is not None and _WHOLE.get(root) != checkpoint:
        refuse_damaged(lake.root, [root / "_delta_log" / checkpoint[0]])
        _WHOLE[root] = checkpoint


def files_of(lake: Lake, table: Table, delta: DeltaTable) -> tuple[Path, ...]:
    """Return the data files of a table from `existing`, in order."""
    root = lake.table_root(table.name)
    known = _READ.get(root)
    if known is not None and known.delta is delta and known.files is not None:
        return known.files
    with reading(root):
        actions = delta.get_add_actions()
    files = tuple(sorted(root / path for path in actions["path"].to_pylist()))
    if known is not None and known.delta is delta:
        known.files = files
    return files


def forget(lake: Lake, table: Table) -> None:
    """Read a table again next time, because its object changes with what it commits."""
    _READ.pop(lake.table_root(table.name), None)


def note_log(lake: Lake, table: Table, version: int) -> None:
    """Record what a commit is about to write: a process may be killed before it can record the checksums."""
    log = lake.table_root(table.name) / "_delta_log"
    note_begun(lake.root, log / f"{version:020}.json")
    if (version + 1) % CHECKPOINT_EVERY == 0:
        note_begun(lake.root, log / f"{version:020}.checkpoint.parquet")
        note_begun(lake.root, log / _LAST_CHECKPOINT)


def record_log(lake: Lake, table: Table) -> None:
    """Record the new files of a table's log, as the library that writes them keeps no checksums."""
    recorded, log = Recorded(lake.root), lake.table_root(table.name) / "_delta_log"
    # A name with # belongs to an entry that another process is writing.
    files = sorted(place for place in log.iterdir() if "#" not in place.name and place.is_file())
    for place in files:
        # Only the last checkpoint's file is overwritten.
        is_new = not recorded.of(place) or place.name == _LAST_CHECKPOINT
        if is_new and (found := sum_of_file(place)) not in recorded.of(place):
            record(lake.root, place, found)
            note_there(lake.root, place)
    # The library removes old entries after a checkpoint.
    summed_up = max((place.name.partition(".")[0] for place in files if ".checkpoint" in place.name), default="")
    note_gone(lake.root, [place for place in recorded.missing(log) if place.name.partition(".")[0] < summed_up])


def _log_files(root: Path) -> _LogFiles:
    try:
        with os.scandir(root / "_delta_log") as found:
            stats = [(entry.name, entry.stat(follow_symlinks=False)) for entry in found]
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    return frozenset((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
