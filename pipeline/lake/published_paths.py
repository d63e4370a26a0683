"""Which files of its lake the published file reads, and how a copy of it reads those of another folder."""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import duckdb

from pipeline.domain.errors import CorruptObject, LakeError
from pipeline.domain.texts import literal
from pipeline.lake.checksums import refuse_damaged
from pipeline.lake.database import attached, damaged, has_moved

_READ = re.compile(r"'((?:[^']|'')*\.parquet)'")


def paths_read_by(file: Path) -> set[str]:
    """Return the paths and patterns within its lake that the views of a published file read."""
    return _root_and_paths(file)[1]


def _root_and_paths(file: Path) -> tuple[str, set[str]]:
    """Return the lake's folder in the views, and what they read within it."""
    with attached(file) as session:
        views, root = _views(session), _root(session)
        paths = {path for sql in views.values() for path in paths_in(sql)}
    if strange := sorted(path for path in paths if not path.startswith(root) or ".." in PurePosixPath(path).parts):
        raise CorruptObject(
            f"The published file reads {strange[0]}, which is outside its lake.",
            hint="Rebuild it: nightaudit publish",
        )
    return root, {path.removeprefix(root) for path in paths}


def refuse_damaged_reads(file: Path) -> None:
    """Raise CorruptObject if a published file, or a file that it reads, is not what was written, or of another lake.

    DuckDB reads a changed value as any other, so what hands numbers on asks here first.
    """
    if not file.is_file():
        return
    # Not sought by its lake.json, without which a lake works until its first rebuild.
    lake = file.absolute().parents[1]
    refuse_damaged(lake, [file])
    root, paths = _root_and_paths(file)
    # DuckDB opens the paths as they are written. The lake may be named by a link.
    if not (Path(root).is_dir() and Path(root).samefile(lake)):
        raise damaged(file, "it reads the files of another folder")
    refuse_damaged(lake, (place for path in sorted(paths) for place in sorted(lake.glob(path))))


def places_read_by(file: Path) -> set[str]:
    """Return the paths and patterns that the views of a published file read, as they are written there."""
    with attached(file) as session:
        return {path for sql in _views(session).values() for path in paths_in(sql)}


def _views(session: duckdb.DuckDBPyConnection) -> dict[str, str]:
    return dict(
        session.execute(
            "SELECT schema_name || '.' || view_name, sql FROM duckdb_views() "
            "WHERE database_name = 'published' AND contains(sql, 'read_parquet') ORDER BY ALL"
        ).fetchall()
    )


def refuse_moved(file: Path) -> None:
    """Raise CorruptObject if a published file reads a lake in another folder. A part of it can be read even then."""
    if not has_moved(file):
        return
    with attached(file) as session:
        folder = Path(_root(session))
    # A link is another name of the same folder.
    if not folder.exists() or not folder.samefile(file.absolute().parents[1]):
        raise damaged(file, "it reads the files of another folder")


def paths_in(sql: str) -> Iterable[str]:
    """Return the paths and patterns of Parquet files in the SQL of a view."""
    return (path.replace("''", "'") for path in _READ.findall(sql))


def _root(session: duckdb.DuckDBPyConnection) -> str:
    """Return the lake's folder in the views: where it was when the file was written."""
    row = session.execute("SELECT path FROM published.state.file WHERE table_name = 'cell' LIMIT 1").fetchone()
    known = "" if row is None else str(row[0])
    sql = _views(session).get("state.cell", "")
    root = next((path.removesuffix(known) for path in paths_in(sql) if known and path.endswith(known)), None)
    if root is None:
        raise LakeError(
            "The published file does not list the files that it reads.", hint="Rebuild it: nightaudit publish"
        )
    return root


def read_from_here(file: Path, folder: Path) -> None:
    """Make the views of a copied file read the files of the lake in `folder`."""
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH {literal(str(file))} AS published")
        root, here = _root(session), f"{folder}/"
        if root == here:
            return
        views = _views(session)
        # So that names within the views resolve as before.
        session.execute("USE published")
        session.execute("BEGIN")
        for name, sql in views.items():
            comments = session.execute(
                "SELECT column_name, comment FROM duckdb_columns() WHERE database_name = 'published' "
                "AND schema_name || '.' || table_name = ? AND comment IS NOT NULL",
                [name],
            ).fetchall()
            said = session.execute(
                "SELECT comment FROM duckdb_views() WHERE database_name = 'published' "
                "AND schema_name || '.' || view_name = ?",
                [name],
            ).fetchall()[0][0]
            # Without the last quote: the rest of a path follows.
            made = sql.replace(literal(root)[:-1], literal(here)[:-1])
            session.execute(re.sub(r"^CREATE VIEW", "CREATE OR REPLACE VIEW", made))
            if said is not None:
                session.execute(f"COMMENT ON VIEW {name} IS {literal(said)}")
            for column, comment in comments:
                session.execute(f'COMMENT ON COLUMN {name}."{column}" IS {literal(comment)}')
        session.execute("COMMIT")
        session.execute("CHECKPOINT published")
        session.execute("USE memory")
        session.execute("DETACH published")
