"""The ledger of published sweeps: what the published file holds, or will hold once it is rebuilt."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from pipeline.domain.analysis import Analysis
from pipeline.domain.errors import CorruptObject
from pipeline.lake import Lake

_FOLDER = "published/ledger"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One published sweep. States follow each other in the order of `started_at`.

    `audit` is `passed`, `overridden` or `none`; `override_reason` is why a sweep was published although it failed;
    `analysis` is what its analytics compared with.
    """

    sweep_id: str
    started_at: datetime
    published_at: datetime
    audit: str = "none"
    override_reason: str | None = None
    analysis: Analysis = field(default_factory=Analysis)


def published_sweeps(lake: Lake) -> list[LedgerEntry]:
    """Return all published sweeps, oldest first."""
    return sorted((_read(lake, name) for name in lake.names(_FOLDER, ".json")), key=lambda entry: entry.started_at)


def enter(lake: Lake, entry: LedgerEntry) -> None:
    """Enter a sweep. Entering it again changes nothing."""
    lake.put_new(f"{_FOLDER}/{entry.sweep_id}.json", msgspec.json.encode(entry))


def _read(lake: Lake, name: str) -> LedgerEntry:
    path = f"{_FOLDER}/{name}.json"
    try:
        return msgspec.json.decode(lake.get(path), type=LedgerEntry)
    except msgspec.MsgspecError as error:
        raise CorruptObject(
            f"{lake.local(path)} cannot be read: {error}",
            kept="The published file is unchanged.",
            hint=f"If sweep {name} was published, restore this file; if not, remove it.",
        ) from None
