"""The consequences of damage to a file of the lake, and the command or step that repairs it."""

import logging
import shlex
from pathlib import Path, PurePath, PurePosixPath

from pipeline.domain.errors import NightauditError
from pipeline.domain.tables import MADE_OF_RAW, QUALITY, SELDOM_WRITTEN, TABLES, Table
from pipeline.lake import Lake
from pipeline.lake.checksums import FOLDER, damaged_of
from pipeline.lake.delta import committed_files, committed_sizes
from pipeline.lake.layout import PUBLISHED
from pipeline.lake.ledger import copies_of_entry, published_sweeps
from pipeline.lake.mark import MARK
from pipeline.lake.pulled import pulled_from
from pipeline.lake.raw import is_retired
from pipeline.publish.last_published import is_superseded

logger = logging.getLogger(__name__)

_RESTORE = "restore it from a backup"
_CARE = "nightaudit lake --apply"
_MOVE = "move it away, then: "
# The lake's care forgets other files that are gone.
_KEPT_FOREVER = frozenset({"raw", "tables", "published", "quotes", "state", FOLDER, MARK})
_SUPERSEDED = "only readers who opened the file that was published before"
_AFFECTED = {
    "calls": "how many calls of that day are left",
    "durations": "what `nightaudit plan` estimates from earlier nights",
    "nights": "which steps of that night remain to be done",
    "reports": "this page",
    "state": "queries, reports, alerts and later nights",
    MARK: "which folder holds the tables",
    FOLDER: "whether damage is noticed in the files that it lists",
}


def consequences(lake: Lake, path: str, *, is_missing: bool) -> tuple[str, str]:
    """Return what damage to a file or folder of the lake affects, and what repairs it."""
    top, *below = path.split("/")
    move = "" if is_missing else _MOVE
    if of_copy := _of_copy(lake, move, is_missing=is_missing):
        return of_copy
    if top == "raw" and below and below[0] != "inputs":
        return f"rebuild, resume, explain and show of {below[0]}; loaded and published data is unaffected", _RESTORE
    if top.startswith("tables") and below:
        return f"lake.{below[0]}, what is built from it, and later nights", _of_table(lake, top, below, move)
    if "ledger" in below[:1] or path == "published":
        return "what is published", f"{move}{_publish(lake)}" if _is_kept_twice(lake, path) else _RESTORE
    if top == "state" or path.startswith("published/nightaudit"):
        is_beside = path.startswith(f"{PUBLISHED}.")
        is_unread = path.endswith(".parquet") and is_superseded(lake, path)
        affects = _SUPERSEDED if is_unread else _AFFECTED["state"]
        return affects, "remove it" if is_beside else f"{move if top == 'state' else ''}{_publish(lake)}"
    return _AFFECTED.get(top, "what it describes"), _of_others(lake, top, below, move)


def _of_table(lake: Lake, top: str, below: list[str], move: str) -> str:
    table, *rest = below
    if table == QUALITY.name and move and len(rest) == 2 and rest[0] in lake.sweep_ids():
        # The next audit replaces a damaged one; a missing one has to come from a backup.
        return _RESTORE if is_retired(lake, rest[0]) else f"nightaudit audit {rest[0]}"
    return "nightaudit rebuild" if table in MADE_OF_RAW else _of_inputs(top, table) or _RESTORE


def _of_copy(lake: Lake, move: str, *, is_missing: bool) -> tuple[str, str] | None:
    """Return the same for a copy, which can be fetched again; None: it is a lake."""
    if lake.copy is not None:
        return "only this machine; the store has it", f"{'' if is_missing else 'delete it, then: '}nightaudit status"
    if source := pulled_from(lake.root):
        return "queries over this copy", f"{move}nightaudit pull {shlex.quote(source)} {shlex.quote(str(lake.root))}"
    return None


def _of_inputs(top: str, table: str) -> str:
    """Return how to restore the rows of users' files, which are kept; empty for other tables."""
    # Slow to import, and seldom needed: damage is rare.
    from pipeline.inputs.load import KINDS

    of_table = (
        kind.name for kind in KINDS.values() if table in {each.name for each in (kind.table, kind.beside) if each}
    )
    away = f"move {top}/{table} and {FOLDER}/{top}/{table} away, then load one of its files again: nightaudit load "
    return next((f"{away}{kind}" for kind in of_table), "")


def repair_of(lake: Lake, place: Path) -> str:
    """Return what repairs a damaged or missing file of the lake."""
    return consequences(lake, lake.path_of(place), is_missing=not place.exists())[1]


def not_as_committed(lake: Lake, table: Table) -> dict[Path, str]:
    """Return the files of a table that are missing or differ in size from what was committed, and say how."""
    found = {}
    for place, size in committed_sizes(lake, table).items():
        if not place.exists():
            found[place] = "is missing"
        elif (held := place.stat().st_size) != size:
            found[place] = f"has {held:,} bytes, but {size:,} were committed"
    return found


def left_out(lake: Lake) -> list[Path]:
    """Return the table files that the published night is without, as they are missing or damaged."""
    found = [place for table in TABLES.values() for place in not_as_committed(lake, table)]
    seldom_written = [place for table in SELDOM_WRITTEN for place in committed_files(lake, table)]
    return found + damaged_of(lake.root, [place for place in seldom_written if place not in found])


def warn_of_damaged_tables(lake: Lake) -> None:
    """Warn, before a night, of table files whose sizes show damage; the night continues without them."""
    by_repair: dict[str, list[str]] = {}
    for table in TABLES.values():
        for place, what in not_as_committed(lake, table).items():
            by_repair.setdefault(repair_of(lake, place), []).append(f"{place} {what}")
    for repair, found in by_repair.items():
        others = f", and {len(found) - 1:,} more" if len(found) > 1 else ""
        logger.warning("%s%s. The night continues without this data. To repair it: %s.", found[0], others, repair)


def is_forgotten(lake: Lake, path: PurePath) -> bool:
    """Whether a missing file cannot be made again and nothing depends on it."""
    repair = consequences(lake, path.as_posix(), is_missing=True)[1]
    return path.parts[0] not in _KEPT_FOREVER and repair == _CARE


def _is_kept_twice(lake: Lake, path: str) -> bool:
    """Whether the ledger, or an entry of it, has an undamaged copy."""
    copies = copies_of_entry(PurePosixPath(path).stem)
    folders = [str(PurePosixPath(copy).parent) for copy in copies]
    return any(lake.exists(each) for each in (copies if path in copies else folders) if not each.startswith(path))


def _of_others(lake: Lake, top: str, below: list[str], move: str) -> str:
    if top in {MARK, FOLDER}:
        return f"{move}{_CARE}"
    if top in _KEPT_FOREVER:
        return _RESTORE
    if top == "reports" and (command := _that_writes(lake, below)):
        return command
    return f"{move}{_CARE}"


def _that_writes(lake: Lake, below: list[str]) -> str:
    """Return the command that writes a page again; empty for pages of past nights and filtered ones."""
    if not below:
        return "nightaudit report"
    if below == ["dictionary.html"]:
        return "nightaudit docs"
    stem = PurePosixPath(below[1]).stem if len(below) > 1 else ""
    of_latest = [_latest(lake)] == below[:1] and stem != "quality" and "--" not in stem
    return "nightaudit report" if of_latest or below == ["index.html"] else ""


def _publish(lake: Lake) -> str:
    return f"nightaudit publish {_latest(lake)}".strip()


def _latest(lake: Lake) -> str:
    """Return the latest published sweep; empty if the ledger is damaged or empty."""
    try:
        return published_sweeps(lake)[-1].sweep_id
    except (NightauditError, IndexError):
        return ""
