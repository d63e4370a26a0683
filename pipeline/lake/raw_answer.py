"""One raw answer: from the address that every search carries to its request and body.

It is checked against what was loaded: if the tables know the search, the body's SHA-256 must be theirs.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.domain.errors import CorruptObject, InputError
from pipeline.domain.tables import SEARCH
from pipeline.lake.database import connect, select_files
from pipeline.lake.lake import Lake
from pipeline.lake.raw import RawRecord, read_manifest, read_shard
from pipeline.lake.sweep_files import files_of_sweep

_ADDRESS = re.compile(r"raw/(?P<sweep>[^/#]+)/(?P<shard>[^/#]+)\.parquet#(?P<row>\d{1,9})")
_EXAMPLE = 'nightaudit query "SELECT raw_address FROM lake.search LIMIT 1"'
# What helps when raw answers and tables differ.
RESTORE = "Restore the shard from a backup, or rebuild the tables from what the raw zone holds now: nightaudit rebuild"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A raw record, and whether the tables hold its search; if so, its body is the one that was loaded."""

    address: str
    sweep_id: str
    record: RawRecord
    body_sha256: str | None
    is_loaded: bool


def evidence_at(
    lake: Lake,
    address: str,
    *,
    records_of: Callable[[Lake, str, str], Sequence[RawRecord]] = read_shard,
    loaded: tuple[str | None] | None = None,
) -> Evidence:
    """Return the raw record at an address.

    For many addresses, pass a `records_of` that remembers the last shard and, in `loaded`, the SHA-256 from the tables,
    which is looked up otherwise.
    Raises InputError for an address of another form or beyond the shard's rows, UnknownSweep, and CorruptObject if the
    shard is damaged or its body is not the one that was loaded.
    """
    sweep_id, shard, row = _parts(address)
    if not lake.exists(lake.confirmation_path(sweep_id)):
        read_manifest(lake, sweep_id)
    try:
        records = records_of(lake, sweep_id, shard)
    except FileNotFoundError:
        raise InputError(
            f"The sweep {sweep_id} has no raw shard {shard}.", hint=f"Find addresses in lake.search: {_EXAMPLE}"
        ) from None
    if row >= len(records):
        raise InputError(
            f"The raw shard {shard} has {len(records)} rows, numbered from 0; there is no row {row}.",
            hint=f"Find addresses in lake.search: {_EXAMPLE}",
        )
    record = records[row]
    found = hashlib.sha256(record.body).hexdigest() if record.body else None
    loaded = loaded or _loaded_sha256(lake, sweep_id, record.search_id)
    if loaded and loaded[0] != found:
        raise CorruptObject(
            f"The body at {address} is not the one that was loaded: its SHA-256 is {found}, that of lake.search "
            f"{loaded[0]}.",
            hint=RESTORE,
        )
    return Evidence(address, sweep_id, record, found, is_loaded=bool(loaded))


def _parts(address: str) -> tuple[str, str, int]:
    match = _ADDRESS.fullmatch(address.strip())
    # Names of only dots would lead out of the raw zone.
    if not match or {".", ".."} & {match["sweep"], match["shard"]}:
        raise InputError(
            f"{address!r} is not a raw address: raw/<sweep>/<shard>.parquet#<row>, or quotes/<run>/<no>-answer.json.",
            hint=f"Find addresses in lake.search: {_EXAMPLE}",
        )
    return match["sweep"], match["shard"], int(match["row"])


def _loaded_sha256(lake: Lake, sweep_id: str, search_id: int) -> tuple[str | None] | None:
    """Return the SHA-256 of a search in the tables; None: it is not loaded yet."""
    files = files_of_sweep(lake, SEARCH, sweep_id)
    query = f"SELECT body_sha256 FROM ({select_files('search', files)}) WHERE search_id = ?"  # noqa: S608 - our own names
    with connect(lake) as session:
        found: tuple[str | None] | None = session.execute(query, [search_id]).fetchone()
    return found
