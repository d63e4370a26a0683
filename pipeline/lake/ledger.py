"""The ledger of published sweeps: what the published file holds, or will hold once it is rebuilt."""

import logging
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath

import duckdb
import msgspec

from pipeline.domain.analysis import Analysis
from pipeline.domain.errors import CorruptObject, NightauditError
from pipeline.lake import Lake
from pipeline.lake.checksums import Recorded
from pipeline.lake.database import query_published
from pipeline.lake.records import read_record

logger = logging.getLogger(__name__)

_FOLDER = "published/ledger"
# A second copy of each entry, as the published file does not hold when and how a night was published.
_COPIES = "nights/ledger"
# How new nights choose a reference market. 1: most offers; 2: most possible pairs in one currency, then most offers.
REFERENCE_RULE = 2
_SWEEPS = "SELECT sweep_id FROM mart.sweep"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One published sweep. States follow each other in the order of `started_at`.

    `audit` is `passed`, `overridden` or `none`; `override_reason` is why a failed sweep was published; `analysis` is
    what its analytics compared with. `reference_rule` is how a reference market is chosen after it. Entries that do not
    state it were written under rule 1, so a rebuild chooses the same market again.
    """

    sweep_id: str
    started_at: datetime
    published_at: datetime
    audit: str = "none"
    override_reason: str | None = None
    analysis: Analysis = field(default_factory=Analysis)
    reference_rule: int = 1


def published_sweeps(lake: Lake) -> list[LedgerEntry]:
    """Return all published sweeps, oldest first."""
    return sorted((_read(lake, name) for name in lake.names(_FOLDER, ".json")), key=lambda entry: entry.started_at)


def enter(lake: Lake, entry: LedgerEntry) -> None:
    """Enter a sweep. Entering it again changes nothing."""
    path, copy = copies_of_entry(entry.sweep_id)
    lake.put_new(path, msgspec.json.encode(entry))
    if not lake.exists(copy):
        lake.put_new(copy, lake.get(path))


def lost_entries(lake: Lake) -> list[str]:
    """Return the sweeps that have only the copy of their entry left."""
    return sorted(lake.names(_COPIES, ".json") - lake.names(_FOLDER, ".json"))


def restore_entries(lake: Lake) -> None:
    """Restore missing entries from their copies, so that a published night is neither published again nor dropped.

    A damaged entry stays in place, with a warning, and its copy is read. Raises CorruptObject, and changes nothing, if
    both an entry and its copy are missing. The caller holds the lake's writer lock.
    """
    there, copied = lake.names(_FOLDER, ".json"), lake.names(_COPIES, ".json")
    recorded = Recorded(lake.root).there(lake.local(_FOLDER))
    wanted = {*_published(lake), *(name.removesuffix(".json") for name in recorded)}
    if lost := sorted(wanted - there - copied):
        raise CorruptObject(
            f"{lake.local(_FOLDER)} has no entry for {lost[0]}, which is published.",
            hint=f"Restore {_FOLDER}/{lost[0]}.json from a backup.",
        )
    for sweep_id in sorted(there ^ copied):
        path, copy = copies_of_entry(sweep_id)
        if sweep_id in there:
            lake.put_new(copy, lake.get(path))
        else:
            logger.warning("The ledger had no entry for %s, which is published; the entry was written again.", sweep_id)
            lake.put_new(path, lake.get(copy))
    for damage in damaged_entries(lake).values():
        logger.warning("%s Its other copy is read. See how to repair it: nightaudit verify --deep", damage)


def damaged_entries(lake: Lake) -> dict[str, str]:
    """Return the entries and copies that cannot be read, with the reason, by object."""
    found = {}
    for folder in (_FOLDER, _COPIES):
        for name in sorted(lake.names(folder, ".json")):
            try:
                _read_one(lake, f"{folder}/{name}.json")
            except CorruptObject as error:
                found[f"{folder}/{name}.json"] = error.message
    return found


def _published(lake: Lake) -> list[str]:
    """Return the sweeps of the published file; none if it is missing or unreadable, because then it is rebuilt."""
    with suppress(NightauditError, duckdb.Error), query_published(lake.published_file, _SWEEPS) as found:
        return [row[0] for row in found.fetchall()]
    return []


def copies_of_entry(sweep_id: str) -> tuple[str, str]:
    """Return the objects that hold an entry: the one that is read, and its copy."""
    return f"{_FOLDER}/{sweep_id}.json", f"{_COPIES}/{sweep_id}.json"


def _read(lake: Lake, name: str) -> LedgerEntry:
    path, copy = copies_of_entry(name)
    try:
        return _read_one(lake, path)
    except CorruptObject:
        if not lake.exists(copy):
            raise
        return _read_one(lake, copy)


def _read_one(lake: Lake, path: str) -> LedgerEntry:
    hint = f"Move it away, then: nightaudit publish {PurePosixPath(path).stem}"
    return read_record(lake, path, LedgerEntry, kept="The published file is unchanged.", hint=hint)
