"""`nightaudit load` from the command line: what it says, and with which exit code."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

from pipeline.inputs.load import load
from pipeline.publish.refresh import is_behind, refresh
from pipeline.sample.generate import FOLDER


@pytest.fixture
def run(tmp_path, nightaudit):
    def run(*arguments):
        # Wide enough that no line of a message is broken.
        done = nightaudit(tmp_path, *arguments, NIGHTAUDIT_LAKE="lake", COLUMNS="200")
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_file_is_checked_loaded_and_recognised(run):
    file = FOLDER / "weights.csv"
    assert run("load", "weights", file, "--check") == (0, "weights.csv can be loaded: 21 rows.\n")
    code, said = run("load", "weights", file)
    assert code == 0
    assert "Loaded 21 rows of weights.csv." in said
    assert "after the next night" in said
    assert run("load", "weights", file) == (0, "weights.csv was already loaded; nothing changed.\n")


@pytest.mark.usefixtures("lake_of_a_night")
def test_what_is_loaded_after_a_night_can_be_queried_at_once(run):
    assert run("load", "rates", FOLDER / "eurofxref-hist.csv")[1] == "Loaded 80 rows of eurofxref-hist.csv.\n"
    code, said = run("query", "SELECT count(DISTINCT currency) AS found FROM mart.fx_rate_on", "--format", "csv")
    assert (code, said.split()) == (0, ["found", "9"])


def test_what_was_loaded_by_a_command_that_was_killed_then_is_shown_by_the_same_command(run, lake_of_a_night):
    lake, file = lake_of_a_night, FOLDER / "eurofxref-hist.csv"
    # The views of this copy read the files of the original.
    refresh(lake)
    assert not is_behind(lake)
    with lake.writing("a test"):
        load(lake, "rates", file, datetime(2030, 1, 2, tzinfo=UTC))
    assert is_behind(lake)
    assert run("load", "rates", file) == (0, f"{file.name} was already loaded; the published file now shows it.\n")
    code, said = run("query", "SELECT count(DISTINCT currency) AS found FROM mart.fx_rate_on", "--format", "csv")
    assert (code, said.split()) == (0, ["found", "9"])
    assert run("load", "rates", file) == (0, f"{file.name} was already loaded; nothing changed.\n")


def test_a_bad_file_ends_with_exit_code_2_and_its_rows(run, tmp_path):
    file = tmp_path / "map.csv"
    file.write_text("branded_id,unbranded_id\n1,1\n")
    for arguments in (("load", "property-map", file), ("load", "property-map", file, "--check")):
        code, said = run(*arguments)
        assert code == 2
        assert "row 2, column unbranded_id: 1 is mapped to itself" in said
        assert "Nothing was loaded." in said
        assert not (tmp_path / "lake").exists()


@pytest.mark.timeout(60)
def test_a_pipe_or_a_device_is_refused_and_not_waited_for(run, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "endless.csv").symlink_to("/dev/zero")
    for name in ("pipe.csv", "endless.csv"):
        for options in ((), ("--check",)):
            code, said = run("load", "weights", name, *options)
            assert code == 2
            assert f"{name} cannot be read: it is a pipe or a device, not a file." in said
            assert "Choose a file that you can read." in said


def test_a_lake_that_is_being_written_is_left_alone(run, lake):
    with lake.writing("a test"):
        code, said = run("load", "weights", FOLDER / "weights.csv")
    assert code == 5
    assert "is being written to by a test" in said
