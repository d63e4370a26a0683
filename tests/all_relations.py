"""All that a published file shows, to compare two of them."""

from __future__ import annotations

from pipeline.lake import Lake
from pipeline.lake.database import open_published


def contents(lake: Lake) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every relation, but for where the files of the state lie."""
    with open_published(lake.published_file) as session:
        names = session.execute(
            "SELECT table_schema || '.' || table_name FROM information_schema.tables "
            "WHERE table_catalog = 'nightaudit' AND table_schema || '.' || table_name <> 'state.file'"
        ).fetchall()
        return {name: session.execute(f"FROM {name} ORDER BY ALL").fetchall() for (name,) in names}
