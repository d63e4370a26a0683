"""What users rely on is written down in `surface.txt`: a change to it edits that file, with `make surface`.

Commands and options, settings, exit codes, macros, and the relations of the published file with columns and types.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from nights import FIRST_DAY, load_night, started_at
from typer.main import get_group

from pipeline.cli.commands import app
from pipeline.domain import errors
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.publish import publish
from pipeline.settings import PREFIX, Settings

FILE = Path(__file__).with_name("surface.txt")
# `state` is ours: its names and columns may change.
SCHEMAS = ("lake", "mart", "ref", "report")


def surface(folder: Path) -> str:
    """Return the complete surface; `folder` is for a lake of one night."""
    sections = {
        "commands": commands(),
        "settings": sorted(PREFIX + name.upper() for name in Settings.model_fields),
        "exit codes": exit_codes(),
        **published(folder),
    }
    return "\n".join(f"{name}\n" + "".join(f"  {line}\n" for line in lines) for name, lines in sections.items())


def commands() -> Iterator[str]:
    for name, command in sorted(get_group(app).commands.items()):
        parameters = [
            each.opts[-1] if each.param_type_name == "option" else each.name.upper() for each in command.params
        ]
        yield " ".join([name, *parameters])


def exit_codes() -> list[str]:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "exit_code")]
    return [f"{code} {name}" for code, name in sorted((kind.exit_code, kind.__name__) for kind in kinds)]


def published(folder: Path) -> dict[str, list[str]]:
    lake = Lake(str(folder / "lake"))
    sweep = load_night(lake, 0, cell=[{"check_in": FIRST_DAY}], offer=[{"check_in": FIRST_DAY}])
    file = publish(lake, sweep, started_at(0)).file
    macros = query_published(
        file,
        "SELECT schema_name || '.' || function_name || '(' || array_to_string(parameters, ', ') || ')' "
        "FROM duckdb_functions() WHERE database_name = 'nightaudit' AND function_type LIKE '%macro' ORDER BY 1",
    ).fetchall()
    columns = query_published(
        file,
        "SELECT schema_name || '.' || table_name, column_name || ' ' || data_type FROM duckdb_columns() "  # noqa: S608 - our own names
        f"WHERE database_name = 'nightaudit' AND schema_name IN {SCHEMAS} ORDER BY 1, column_index",
    ).fetchall()
    relations: dict[str, list[str]] = {}
    for relation, column in columns:
        relations.setdefault(relation, []).append(column)
    return {"macros": [row[0] for row in macros], **relations}


def test_the_public_surface_is_the_one_written_down(tmp_path):
    assert surface(tmp_path).splitlines() == FILE.read_text().splitlines(), "if it is meant to change: make surface"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        FILE.write_text(surface(Path(scratch)))
