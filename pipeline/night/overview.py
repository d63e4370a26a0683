"""The sweeps of a lake, how far each has come, and what is published."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from pipeline.domain.errors import CorruptObject, LakeError, NightauditError, first_line
from pipeline.domain.tables import SWEEP
from pipeline.lake import Lake
from pipeline.lake.database import connect, query_published, rows_of, select_files
from pipeline.lake.delta import committed_files
from pipeline.lake.ledger import published_sweeps
from pipeline.lake.published_paths import refuse_moved
from pipeline.lake.pulled import pulled_from
from pipeline.lake.raw import landed, read_ending, read_manifest


@dataclass(frozen=True, slots=True)
class SweepOverview:
    """The progress of one sweep, and its counts once it is loaded."""

    sweep_id: str
    started_at: datetime
    is_simulated: bool
    supplier: str
    planned_cells: int
    planned_searches: int
    landed_searches: int
    state: str
    counts: dict[str, Any] = field(default_factory=dict)
    is_published: bool = False


@dataclass(frozen=True, slots=True)
class Overview:
    """A lake's sweeps, oldest first, and its published file."""

    root: Path
    published_file: Path
    sweeps: tuple[SweepOverview, ...]
    free_bytes: int
    copy_of: str | None = None
    """The lake that this one was pulled from, if any: a copy has published data and no sweeps."""
    fault: str = ""
    """Why the published file cannot be read, and what to do; empty: it can, or does not exist."""

    @property
    def latest_published(self) -> SweepOverview | None:
        """The last published sweep, even if its manifest is damaged."""
        return next((sweep for sweep in reversed(self.sweeps) if sweep.is_published), None)


def overview(lake: Lake) -> Overview:
    """Return the overview of a lake. A sweep with an unreadable manifest is `damaged`; `nightaudit verify` explains."""
    published = {entry.sweep_id for entry in published_sweeps(lake)}
    counts = sweep_rows(lake)
    sweeps = tuple(_one(lake, sweep_id, published, counts) for sweep_id in lake.sweep_ids())
    fault, copy_of = _fault(lake.published_file), pulled_from(lake.root)
    return Overview(lake.root, lake.published_file, sweeps, lake.free_bytes(), copy_of, fault)


def _fault(published_file: Path) -> str:
    if published_file.exists():
        try:
            query_published(published_file, "SELECT max(started_at) FROM mart.sweep").close()
            refuse_moved(published_file)
        except NightauditError as error:
            return str(error)
    return ""


def sweep_rows(lake: Lake) -> dict[str, dict[str, Any]]:
    """Return the loaded sweeps' rows of the `sweep` table, by id. Raises CorruptObject if a file cannot be read."""
    with connect(lake) as session:
        try:
            # A damaged file may be noticed only when its rows are fetched.
            rows = rows_of(session.execute(select_files("sweep", committed_files(lake, SWEEP))))
        except duckdb.Error as error:
            raise CorruptObject(
                f"The sweep table in {lake.table_root(SWEEP.name)} cannot be read: {first_line(error)}",
                hint="List the damage and its repairs: nightaudit verify --deep",
            ) from None
    return {row["sweep_id"]: row for row in rows}


def begun_at(sweep_id: str) -> datetime:
    """Return the start of a sweep, from its id."""
    return datetime.strptime(sweep_id.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def _one(lake: Lake, sweep_id: str, published: set[str], counts: dict[str, dict[str, Any]]) -> SweepOverview:
    try:
        manifest = read_manifest(lake, sweep_id)
    except LakeError:
        # Its row in the table is still good.
        row = counts.get(sweep_id, {})
        began, planned, is_published = begun_at(sweep_id), row.get("planned", 0), sweep_id in published
        return SweepOverview(sweep_id, began, False, "unknown", planned, 0, 0, "damaged", row, is_published)
    if sweep_id in published:
        state = "published"
    elif sweep_id in counts:
        state = "loaded"
    else:
        state = "unfinished" if read_ending(lake, sweep_id) is None else "ended, not loaded"
    return SweepOverview(
        sweep_id,
        manifest.started_at,
        manifest.is_simulated,
        manifest.supplier,
        manifest.cells,
        manifest.searches,
        manifest.searches_in(landed(lake, sweep_id)),
        state,
        counts.get(sweep_id, {}),
        sweep_id in published,
    )
