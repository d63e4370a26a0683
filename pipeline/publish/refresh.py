"""Bring the published file up to date between two nights: with inputs, quotes and notes, and after an upgrade."""

import logging
import shutil
from pathlib import Path

import duckdb

from pipeline.domain.errors import CorruptObject, first_line
from pipeline.domain.tables import SIDE_TABLES
from pipeline.domain.texts import literal
from pipeline.lake import Lake, put_in_place
from pipeline.lake.checksums import refuse_damaged
from pipeline.lake.database import attached, connect
from pipeline.lake.delta import committed_files
from pipeline.lake.published_paths import places_read_by
from pipeline.publish.catalogue import fingerprint, finish, write_views
from pipeline.publish.comparisons import compare_again, made_with
from pipeline.publish.state import write_macros
from pipeline.publish.state_files import files_of, write_state_views
from pipeline.publish.summaries import sum_again, summed_with

logger = logging.getLogger(__name__)


def is_behind(lake: Lake) -> bool:
    """Whether another version wrote the published file, or it lacks what users have loaded or requested.

    In the second case its update was stopped, or failed.
    """
    if not lake.published_file.exists():
        return False
    try:
        if not _is_of_this_version(lake.published_file):
            return True
        shown = places_read_by(lake.published_file)
    except (OSError, duckdb.Error):
        return True
    return any(str(file) not in shown for table in SIDE_TABLES.values() for file in committed_files(lake, table))


def _is_of_this_version(file: Path) -> bool:
    """Whether the relations of a published file were written with this version's SQL."""
    with attached(file) as session:
        return session.execute("SELECT relations FROM published.ref.written_with").fetchall() == [(fingerprint(),)]


def catch_up(lake: Lake) -> bool:
    """Refresh the published file if an earlier command was stopped before it did, or after an upgrade.

    False: it is unchanged.
    """
    return is_behind(lake) and refresh(lake)


def refresh(lake: Lake, *, is_required: bool = False) -> bool:
    """Make the published file show what has been loaded. False: there is no file, or it was left unchanged.

    The caller holds the lake's writer lock. Readers see the last file until the next one is complete. What cannot be
    shown now is shown by the next publication, so a failure is logged and is not an error, unless `is_required`.
    """
    file = lake.published_file
    if not file.exists():
        return False
    beside = file.with_name(f".{file.stem}.refresh.duckdb")
    try:
        refuse_damaged(lake.root, [file])
        # A killed refresh also leaves its log, and DuckDB would apply that to the new copy.
        _remove(beside)
        shutil.copyfile(file, beside)
        with connect(lake) as session:
            session.execute(f"ATTACH {literal(str(beside))} AS nightaudit")
            session.execute("SET search_path = 'nightaudit.main'")
            sweeps = session.execute("SELECT sweep_id FROM mart.sweep ORDER BY started_at").fetchall()
            # The lake may have moved since the file was written.
            write_state_views(session, lake, files_of(session))
            comparisons_made_with, summaries_made_with = made_with(session), summed_with(session)
            session.execute("BEGIN")
            write_macros(session)
            write_views(session, lake, [row[0] for row in sweeps])
            compare_again(session, lake, comparisons_made_with)
            session.execute("COMMIT")
            sum_again(session, lake, summaries_made_with)
            finish(session)
        put_in_place(beside, file)
    except (OSError, duckdb.Error, CorruptObject) as error:
        if is_required:
            raise
        logger.warning(
            "The published file could not be updated now; the next night updates it: %s",
            first_line(error),
        )
        return False
    finally:
        _remove(beside)
    return True


def _remove(built: Path) -> None:
    for left_over in built.parent.glob(f"{built.name}*"):
        left_over.unlink(missing_ok=True)
