"""Limits of a user's shell: too little is reported before anything starts, and enough completes a night."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from tiny_night import write_spec_in

from pipeline.process.limits import needed_by_mb, needed_mb

ROOT = Path(__file__).parents[2]


def under(folder: Path, limits: str, *argv: str, lake: Path | str = "lake") -> subprocess.CompletedProcess[str]:
    """Run Python in a shell that has set limits, with nothing of the user's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTAUDIT_")}
    given = {
        "NIGHTAUDIT_LAKE": str(lake),
        "NIGHTAUDIT_WORKERS": "1",
        "NIGHTAUDIT_SPEC": str(write_spec_in(folder)),
        # An hour after `a_night` began: to the real clock, it would lie in the future.
        "NIGHTAUDIT_SANDBOX_CLOCK": "2030-01-01T03:00:00Z",
    }
    return subprocess.run(
        ["sh", "-c", f'{limits} && exec "$@"', "sh", sys.executable, *argv],
        env=kept | given | {"PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def published_file(tmp_path):
    """A published file of one relation; what a query reads of it is bounded by the query's own settings."""
    place = tmp_path / "lake" / "published"
    place.mkdir(parents=True)
    with duckdb.connect(str(place / "nightaudit.duckdb")) as session:
        session.execute("CREATE TABLE one AS SELECT 1 AS number")


@pytest.mark.parametrize(
    ("limit", "said"), [("-v 2000000", "2,048 MB of address space (ulimit -v)"), ("-n 64", "64 files")]
)
@pytest.mark.parametrize("command", ["nightly", "audit", "lake --apply"])
def test_too_tight_a_limit_is_named_before_anything_is_begun(tmp_path, command, limit, said):
    done = under(tmp_path, f"ulimit {limit}", "-m", "pipeline.cli", *command.split())
    assert done.returncode == 1, done.stderr
    assert said in done.stderr
    assert f"Raise the limit: ulimit {limit[:2]}" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "lake").exists()


@pytest.mark.usefixtures("published_file")
@pytest.mark.parametrize("command", [["settings"], ["spec"], ["query", "SELECT 1"]], ids=lambda argv: argv[0])
def test_a_light_command_runs_with_little_memory_and_names_the_limit_if_there_is_less(tmp_path, command):
    assert_enough_and_no_less(tmp_path, command, "lake")


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [["status"], ["plan"], ["cases"], ["cases", "--format", "csv"], ["metrics"], ["health", "--older-than", "100000"]],
    ids=" ".join,
)
def test_a_command_that_reads_the_lake_asks_for_no_more(tmp_path, a_night, command):
    assert_enough_and_no_less(tmp_path, command, a_night.root)


@pytest.mark.slow
@pytest.mark.parametrize("command", [["drift"], ["verify"], ["verify", "--deep"], ["doctor"]], ids=" ".join)
def test_a_command_that_looks_at_the_files_of_a_lake_finds_with_it_what_it_finds_without_a_limit(
    tmp_path, a_night, command
):
    enough = needed_by_mb(command[0])
    assert enough <= 1_000 + 150 * os.cpu_count() < needed_mb()
    free = under(tmp_path, "true", "-m", "pipeline.cli", *command, lake=a_night.root)
    tight = under(
        tmp_path, f"ulimit -v {enough * 1_000_000 // 1024 + 1}", "-m", "pipeline.cli", *command, lake=a_night.root
    )
    # The night is one made by hand, in which they find faults.
    assert (tight.returncode, tight.stderr) == (free.returncode, free.stderr)
    assert tight.stdout.count("\n") == free.stdout.count("\n")
    assert free.returncode in {0, 1}


def assert_enough_and_no_less(folder: Path, command: list[str], lake: Path | str) -> None:
    """Run a light command with exactly the address space that it needs, and see it refused with any less."""
    enough = needed_by_mb(command[0])
    assert enough <= 400 + 300 + 150 * os.cpu_count() < needed_mb()
    done = under(folder, f"ulimit -v {enough * 1_000_000 // 1024 + 1}", "-m", "pipeline.cli", *command, lake=lake)
    assert done.returncode == 0, done.stderr
    refused = under(folder, f"ulimit -v {enough * 1_000_000 // 1024 - 1}", "-m", "pipeline.cli", *command, lake=lake)
    assert refused.returncode == 1, refused.stderr
    assert f"it needs {enough:,} MB" in refused.stderr
    assert "Raise the limit: ulimit -v" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.slow
def test_a_night_is_not_begun_whose_charts_could_not_be_drawn(tmp_path):
    done = under(tmp_path, "ulimit -v 16000000", "-m", "pipeline.cli", "nightly")
    assert done.returncode == 1, done.stderr
    assert "of address space (ulimit -v)" in done.stderr
    assert not (tmp_path / "lake").exists()


OPEN = """
from pipeline.process.limits import refuse_tight_limits
refuse_tight_limits()
kept = [open("/dev/null") for _ in range(1000)]
"""


def test_the_limit_of_open_files_is_raised_if_the_system_allows_it(tmp_path):
    done = under(tmp_path, "ulimit -S -n 64", "-c", OPEN)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_limits_that_are_not_refused_are_enough(tmp_path):
    limits = f"ulimit -v {needed_mb() * 1_000_000 // 1024 + 1} && ulimit -n 288"
    for command in ("sweep", "audit", "publish", "lake"):
        done = under(tmp_path, limits, "-m", "pipeline.cli", command)
        assert done.returncode == 0, done.stderr
