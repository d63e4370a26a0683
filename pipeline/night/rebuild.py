"""Every table and the published file, rebuilt from the raw answers: no network, the same rows.

The new tables are written to a folder of their own, sweep by sweep, by the same code as before. Then the published file
is built over them, and both are put in place: lake.json names the new folder, and the new file replaces the old one. A
crash before that changes nothing. A crash in between leaves a published file that reads the old tables. They are kept
until the next rebuild, also for readers that have the old file open.

Quotes are loaded again from their ledger. Users' files and results of earlier audits are carried over; if those are
gone too, as in a backup without tables, the files are loaded and published nights are audited again. What people wrote
about cases, and what confirmations found, is only carried over.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.audit import Limits, Spread, audit, stored_audit
from pipeline.audit.quarantine import leave_out
from pipeline.domain.errors import CorruptObject, LakeError
from pipeline.domain.tables import MADE_OF_RAW, REJECT
from pipeline.inputs.load import KINDS, replay
from pipeline.lake import Lake
from pipeline.lake.checksums import carry_over, refuse_damaged
from pipeline.lake.database import connect
from pipeline.lake.delta import commit_files
from pipeline.lake.raw import Manifest, is_retired, landed, read_ending, read_manifest
from pipeline.lake.sweep_files import quarantine_file
from pipeline.night.gate import nights_like
from pipeline.night.overview import sweep_rows
from pipeline.publish import published_sweeps, republish_all, restore_entries
from pipeline.quote.load import load_ledger
from pipeline.sweep import PartOf, SweepOptions, SweepProgress, run

_KEPT = "The tables and the published file are unchanged."
AS_A_WHOLE = PartOf(_KEPT, "nightaudit rebuild")


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The result of a rebuild; `former` is the old folder, unused once open files are closed."""

    sweeps: tuple[str, ...]
    tables: Path
    former: Path
    published_file: Path | None


async def rebuild(
    lake: Lake,
    options: SweepOptions,
    limits: Limits = Limits(),
    *,
    now: Callable[[], datetime],
    watch: Callable[[SweepProgress], None] = lambda _: None,
) -> Rebuilt:
    """Rebuild every table and the published file. The caller holds the lake's writer lock.

    `limits` are those of a night that is audited again.

    Sweeps that are not loaded yet are left to `resume`. Raises LakeError, before any change, if raw answers of a loaded
    sweep are missing, and CorruptObject if they are damaged.
    """
    # A minimal backup has only the ledger's copies.
    restore_entries(lake)
    before: dict[str, dict[str, Any]] = {}
    with suppress(CorruptObject):
        # A rebuild repairs a damaged table.
        before = sweep_rows(lake)
    manifests = [_replayable(lake, sweep_id) for sweep_id in _loaded(lake, before)]
    fresh = lake.with_new_tables()
    try:
        for manifest in manifests:
            await run(fresh, manifest, None, options, now=now, watch=watch, part_of=AS_A_WHOLE)
            _keep_quarantine(lake, fresh, manifest.sweep_id)
        _refuse_other_searches(before, sweep_rows(fresh))
        _carry_over(lake, fresh)
        _load_again(lake, fresh)
        _audit_again(lake, fresh, limits, Spread(options.workforce))
        load_ledger(fresh, options.max_body_bytes)
        file = republish_all(fresh, fresh.adopt_tables, workforce=options.workforce)
    except BaseException:
        # An adopted folder stays: then only the published file is missing.
        if Lake(str(lake.root)).tables_folder != fresh.tables_folder:
            fresh.remove_folder(fresh.tables_folder)
        raise
    fresh.drop_tables_but(lake.tables_folder)
    ids = tuple(manifest.sweep_id for manifest in manifests)
    return Rebuilt(ids, lake.root / fresh.tables_folder, lake.root / lake.tables_folder, file)


def _loaded(lake: Lake, rows: Mapping[str, Any]) -> list[str]:
    """Return the loaded sweeps, oldest first. Raises LakeError if one of them no longer has raw answers."""
    wanted = (
        rows.keys() | {entry.sweep_id for entry in published_sweeps(lake)} | lake.names(f"{lake.tables_folder}/sweep")
    )
    wanted -= {"_delta_log"}
    if lost := sorted(wanted - set(lake.sweep_ids())):
        raise LakeError(
            f"The raw answers of {', '.join(lost)} are gone; rebuilt tables would lack their rows.",
            kept=_KEPT,
            hint="Restore raw/ from a backup.",
        )
    return sorted(wanted)


def _replayable(lake: Lake, sweep_id: str) -> Manifest:
    manifest, ending = read_manifest(lake, sweep_id), read_ending(lake, sweep_id)
    there = landed(lake, sweep_id)
    planned = {shard.name for shard in manifest.shards()}
    if is_retired(lake, sweep_id):
        raise LakeError(
            f"The raw answers of the sweep {sweep_id} were removed: they were older than NIGHTAUDIT_RAW_NIGHTS.",
            kept=_KEPT,
            hint="Its tables cannot be rebuilt without them; restore them from a backup.",
        )
    if ending is None or (ending.is_complete and planned - there):
        missing = sorted(planned - there)
        raise LakeError(
            f"Raw answers of the loaded sweep {sweep_id} are missing: {', '.join(missing[:3])}"
            f"{f' and {len(missing) - 3} more' if len(missing) > 3 else ''}.",
            kept=_KEPT,
            hint="Restore them from a backup.",
        )
    return manifest


def _refuse_other_searches(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise LakeError if a sweep has lost raw answers without a record."""
    for sweep_id, row in before.items():
        if after[sweep_id]["searches"] != row["searches"]:
            raise LakeError(
                f"Raw answers of the sweep {sweep_id} are missing: {row['searches']:,} searches were loaded, and the "
                f"raw zone holds {after[sweep_id]['searches']:,}.",
                kept=_KEPT,
                hint="Restore its raw folder from a backup.",
            )


def _keep_quarantine(lake: Lake, fresh: Lake, sweep_id: str) -> None:
    """Carry over the offers that the audit removed, as it compared with the nights known then."""
    held = quarantine_file(lake, sweep_id)
    if not held.exists():
        return
    path = quarantine_file(fresh, sweep_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    refuse_damaged(lake.root, [held])
    shutil.copyfile(held, path)
    carry_over(lake.root, held.parent, path.parent)
    with connect(fresh) as session:
        leave_out(session, fresh, sweep_id)
    commit_files(fresh, REJECT, {f"{sweep_id}/quarantine": [fresh.path_of(path)]})


def _audit_again(lake: Lake, fresh: Lake, limits: Limits, spread: Spread) -> None:
    """Audit the published nights whose audit is gone, oldest first, each against those before it."""
    for entry in published_sweeps(lake):
        if entry.audit != "none" and stored_audit(lake, entry.sweep_id) is None:
            nights = nights_like(fresh, read_manifest(fresh, entry.sweep_id), limits.nights)
            audit(fresh, entry.sweep_id, nights, limits, entry.published_at, spread)


def _carry_over(lake: Lake, fresh: Lake) -> None:
    """Link the files of all other tables into the new folder; files are never overwritten."""
    for name in lake.names(lake.tables_folder):
        if name not in MADE_OF_RAW:
            shutil.copytree(lake.table_root(name), fresh.table_root(name), copy_function=_link)
            carry_over(lake.root, lake.table_root(name), fresh.table_root(name))


def _load_again(lake: Lake, fresh: Lake) -> None:
    """Load users' files again whose tables are gone, as in a backup without tables."""
    there = lake.names(lake.tables_folder)
    for kind in KINDS.values():
        if kind.table.name not in there:
            replay(fresh, kind)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
