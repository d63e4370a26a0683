"""`nightaudit load` from the command line: what it says, and with which exit code."""

from __future__ import annotations

import sys

import pytest
from nights import load_night, started_at

from pipeline.cli import main
from pipeline.publish import publish
from pipeline.sample.generate import FOLDER


@pytest.fixture
def run(lake, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    # Wide enough that no line of a message is broken.
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["nightaudit", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code or 0, out + err

    return run


def test_a_file_is_checked_loaded_and_recognised(run):
    file = FOLDER / "weights.csv"
    assert run("load", "weights", file, "--check") == (0, "weights.csv can be loaded: 21 rows.\n")
    code, said = run("load", "weights", file)
    assert code == 0
    assert "Loaded 21 rows of weights.csv." in said
    assert "after the next night" in said
    assert run("load", "weights", file) == (0, "weights.csv was already loaded; nothing changed.\n")


def test_what_is_loaded_after_a_night_can_be_queried_at_once(run, lake):
    publish(lake, load_night(lake, 0), started_at(0))
    assert run("load", "rates", FOLDER / "eurofxref-hist.csv")[1] == "Loaded 80 rows of eurofxref-hist.csv.\n"
    code, said = run("query", "SELECT count(DISTINCT currency) AS found FROM mart.fx_rate_on", "--format", "csv")
    assert (code, said.split()) == (0, ["found", "9"])


def test_a_bad_file_ends_with_exit_code_2_and_its_rows(run, tmp_path):
    file = tmp_path / "map.csv"
    file.write_text("branded_id,unbranded_id\n1,1\n")
    for arguments in (("load", "property-map", file), ("load", "property-map", file, "--check")):
        code, said = run(*arguments)
        assert code == 2
        assert "row 2, column unbranded_id: 1 stands for itself" in said
        assert "Nothing of it was loaded." in said


def test_a_lake_that_is_being_written_is_left_alone(run, lake):
    with lake.writing("a test"):
        code, said = run("load", "weights", FOLDER / "weights.csv")
    assert code == 5
    assert "is being written by a test" in said
