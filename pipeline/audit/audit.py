"""The audit of one loaded sweep, from its files to a verdict.

    measure (SQL, one scan a table) ─► bounds (earlier nights) ─► judge (Great Expectations) ─► store

It can be repeated at any time. The first audit decides which offers go into quarantine. A later one, with other
settings or more nights, may reach another verdict, which then counts.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import duckdb

from pipeline.audit.counts import Counts, add_up, prepare
from pipeline.audit.declared import measure_declared, measure_key, measure_types, misfit
from pipeline.audit.domain_measures import measure_domain, measure_sweep
from pipeline.audit.history import History, Limits, with_bounds
from pipeline.audit.judge import Judge, judge
from pipeline.audit.quarantine import choose_quarantined, measure_quarantine, put_in_quarantine
from pipeline.audit.results import Audit, Measure
from pipeline.audit.rules import CHECKED, measure_rules
from pipeline.audit.spread import AuditedNight, Spread, choose_ranges, counted, open_night
from pipeline.audit.store import history, store
from pipeline.domain.errors import LakeError, first_line
from pipeline.domain.tables import SWEEP, TABLES
from pipeline.lake import Lake
from pipeline.lake.checksums import refuse_damaged
from pipeline.lake.database import rows_of
from pipeline.lake.delta import is_committed
from pipeline.lake.raw import read_manifest
from pipeline.lake.sweep_files import files_of_sweep, quarantine_file

__all__ = ["Limits", "audit"]

# A sweep whose files are smaller is read into memory; as tables they take ten times as much.
_HELD_BYTES = 4_000_000


def audit(
    lake: Lake,
    sweep_id: str,
    nights: Sequence[str],
    limits: Limits,
    now: datetime,
    spread: Spread = Spread(),
    judge_those: Judge | None = None,
) -> Audit:
    """Audit a loaded sweep, put its unusable offers in quarantine, and store the findings.

    `nights` are the published sweeps to compare it with, oldest first. A large sweep is `spread`. `judge_those` judges
    measures elsewhere. Raises LakeError if the sweep is not loaded or its files cannot be read. The caller holds the
    lake's writer lock.
    """
    if not is_committed(lake, SWEEP, sweep_id):
        raise LakeError(
            f"The sweep {sweep_id} is not loaded yet, so it cannot be audited.",
            kept="Nothing was changed.",
            hint=f"Finish it first: nightaudit resume {sweep_id}",
        )
    trailing = tuple(nights[-limits.nights :])
    _refuse_other_version(lake, trailing[-1:])
    before = history(lake, trailing)
    measures = list(measure_types(_files(lake, sweep_id)))
    quarantined = 0
    if not any(measure.violations for measure in measures):
        try:
            night = AuditedNight(lake, sweep_id, trailing[-1] if trailing else None)
            with _session(night, before, limits, spread) as (session, counts):
                measures += _measures(session, night, counts, limits, now)
                quarantined = put_in_quarantine(session, lake, sweep_id)
        except duckdb.Error as error:
            raise LakeError(
                f"The sweep {sweep_id} could not be audited: {first_line(error)}",
                kept="The published file is unchanged, and the sweep stays loaded.",
                hint=f"Fix the cause (disk space, memory or a damaged file), then: nightaudit audit {sweep_id}",
            ) from None
    findings = judge(with_bounds(measures, before, limits), judge_those)
    ordered = tuple(sorted(findings, key=lambda f: (f.table_name, f.check_name, f.market)))
    return store(lake, Audit(sweep_id, 0, now, ordered, trailing, quarantined))


def refuse_damaged_rows(lake: Lake, sweep_id: str) -> None:
    """Raise CorruptObject if files that an audit reads of the night before have changed since they were written."""
    refuse_damaged(lake.root, [file for _, file in _files(lake, sweep_id)])


def _refuse_other_version(lake: Lake, nights: Sequence[str]) -> None:
    """Raise LakeError if the night to compare with has other columns than declared now, CorruptObject if damaged."""
    for sweep_id in nights:
        for name, file in _files(lake, sweep_id):
            if reason := misfit(TABLES[name], file):
                refuse_damaged(lake.root, [file])
                raise LakeError(
                    f"The tables of {sweep_id} were written by another version of nightaudit: {file.name} of {name} "
                    f"{reason}.",
                    kept="Nothing was changed, and the published file stays as it is.",
                    hint="Rebuild the tables from the raw answers, offline: nightaudit rebuild",
                )


def _measures(
    session: duckdb.DuckDBPyConnection, night: AuditedNight, counts: Counts, limits: Limits, now: datetime
) -> Iterator[Measure]:
    manifest = read_manifest(night.lake, night.sweep_id)
    yield from measure_sweep(
        session,
        manifest,
        rows_of(session.execute("SELECT * FROM audit.sweep"))[0],
        max((now - manifest.started_at).days, 0),
    )
    for name in CHECKED:
        yield from measure_declared(session, name, counts.declared.get(name))
        yield measure_key(session, name, counts.doubled.get(name))
    yield from measure_domain(session)
    yield from measure_rules(session, counts.broken)
    yield from measure_quarantine(session, limits.quarantined_share)


@contextmanager
def _session(
    night: AuditedNight, before: History, limits: Limits, spread: Spread
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Counts]]:
    """Open a session over the files of the sweep and of the last published night, with what ranges have counted.

    Ranges count, for a large sweep, what concerns single offers. A small sweep has no ranges.
    """
    with open_night(night) as session:
        _plausible_moves(session, before, limits)
        jobs = choose_ranges(session, night, spread.most_rows)
        if len(jobs) > 1:
            with counted(jobs, spread) as parts:
                counts = add_up(session, parts)
                choose_quarantined(session)
                yield session, counts
            return
        if sum(file.stat().st_size for _, file in _files(night.lake, night.sweep_id)) <= _HELD_BYTES:
            # Opening the files of a small sweep for each check would take longer than the checks.
            for name in CHECKED:
                session.execute(f"CREATE TABLE audit.held_{name} AS FROM sweep_files.{name}")
                session.execute(f"CREATE OR REPLACE VIEW sweep_files.{name} AS FROM audit.held_{name}")
        prepare(session)
        choose_quarantined(session)
        yield session, Counts({}, {}, {})


def _plausible_moves(session: duckdb.DuckDBPyConnection, before: History, limits: Limits) -> None:
    """Make the table of how far a price may move, from the bound that history sets for one cell in a thousand."""
    session.execute("CREATE TABLE audit.plausible_move (market VARCHAR, lead VARCHAR, largest DOUBLE)")
    name = "largest_move_lead_"
    keys = [key for key in before if key[2].startswith(name)]
    wanted = [Measure(*key, "warning", "", "history", 1.0, kind="level", of=1e9) for key in keys]
    wide = Limits(limits.deviations, limits.nights, limits.cold_nights)
    for market, _, check, highest in ((*m.key, m.highest) for m in with_bounds(wanted, before, wide)):
        if highest is not None:
            # Twice that bound, since rows that are reported one by one must be beyond doubt.
            session.execute(
                "INSERT INTO audit.plausible_move VALUES (?, ?, 2 * ln(?))", [market, check.removeprefix(name), highest]
            )


def _files(lake: Lake, sweep_id: str) -> list[tuple[str, Any]]:
    return [
        (name, file)
        for name in CHECKED
        for file in files_of_sweep(lake, TABLES[name], sweep_id)
        if file != quarantine_file(lake, sweep_id)
    ]
