"""A machine that runs nights by the command: a working folder with a lake, or with a copy of one on S3."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from s3_server import S3Server

from pipeline.lake.database import open_published

NIGHTAUDIT = str(Path(sys.executable).with_name("nightaudit"))
ADDRESS = "s3://bucket/team/lake"
SPEC = """
[properties]
{properties}
[stays]
nights = [1]
[[stays.horizon]]
to_days = {days}
every_days = 1
[ask]
markets = ["GB", "SE"]
parties = ["2"]
currencies = ["EUR"]
operations = ["multi", "single"]
"""


class Machine:
    """A machine: its own working folder, with a lake or with its own copy of one."""

    def __init__(self, folder: Path, server: S3Server | None, **given: str) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        (folder / "sweep.toml").write_text(SPEC.format(properties="sandbox = 4", days=2))
        self.said = ""
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        self.environment |= {"NIGHTAUDIT_SPEC": "sweep.toml", "NIGHTAUDIT_WORKERS": "1"}
        if server is not None:
            self.environment |= {"NIGHTAUDIT_LAKE": ADDRESS, "NIGHTAUDIT_LAKE_COPY": str(folder / "copy")}
            self.environment |= server.environment
        self.environment |= given

    @property
    def root(self) -> Path:
        return next((self.folder / "copy").glob("*/lake"), self.folder / "lake")

    def start(self, *arguments: str, **given: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [NIGHTAUDIT, *arguments],
            cwd=self.folder,
            env=self.environment | given,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, code: int = 0, **given: str) -> str:
        process = self.start(*arguments, **given)
        said = process.communicate(timeout=600)[0]
        assert process.returncode == code, said
        self.said += said
        return said


def night(number: int) -> dict[str, str]:
    return {"NIGHTAUDIT_SANDBOX_CLOCK": f"2026-10-0{number}T02:00:00Z"}


def contents(file: Path) -> dict[str, list[tuple]]:
    """Every row of every relation, but for where the files of the state lie."""
    with open_published(file) as session:
        names = session.execute(
            "SELECT table_schema || '.' || table_name FROM information_schema.tables "
            "WHERE table_catalog = 'nightaudit' AND table_schema || '.' || table_name <> 'state.file'"
        ).fetchall()
        return {name: session.execute(f"FROM {name} ORDER BY ALL").fetchall() for (name,) in names}


# Columns that say when and by which request something was seen, beside those of a point in time, and what cancelling
# cost then: it changes at full hours before check-in.
_WHEN = {
    "latency_ms", "hours_to_check_in", "list_to_detail_seconds", "raw_address", "examples", "match_key", "share_now",
    "is_free_now", "free_now",
}  # fmt: skip


def contents_but_when(file: Path) -> dict[str, list[tuple]]:
    """Every row of every public relation without what no two sweeps share: ids of sweeps, and points in time."""
    with open_published(file) as session:
        columns = session.execute(
            "SELECT table_schema || '.' || table_name, column_name FROM information_schema.columns "
            "WHERE table_catalog = 'nightaudit' AND table_schema IN ('mart', 'report', 'lake', 'ref') "
            "AND data_type NOT LIKE 'TIMESTAMP%' AND NOT ends_with(column_name, 'sweep_id') ORDER BY ordinal_position"
        ).fetchall()
        found = {name: session.table(name) for name, _ in columns}
        return {
            name: relation.select(*(column for of, column in columns if of == name and column not in _WHEN))
            .order("ALL")
            .fetchall()
            for name, relation in found.items()
        }


def assert_same(found: dict[str, list[tuple]], expected: dict[str, list[tuple]]) -> None:
    assert found.keys() == expected.keys()
    for name, rows in expected.items():
        if found[name] != rows:
            more = [row for row in found[name] if row not in rows]
            fewer = [row for row in rows if row not in found[name]]
            pytest.fail(f"{name}: {len(more)} rows unexpected, as {more[:3]}; {len(fewer)} missing, as {fewer[:3]}")
