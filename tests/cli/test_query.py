"""What `nightaudit query` prints: values for people, spreadsheets and programs, and nothing that a terminal obeys."""

from __future__ import annotations

import csv
import io
import json
import sys
from types import SimpleNamespace

import duckdb
import pytest

from pipeline.cli import main

# A title that is set, a clipboard that is written, colours, bells and a text that reads from the right.
HOSTILE = "a\x1b]0;owned\x07b\x1b]52;c;ZXZpbA==\x1b\\c\x1b[31md\x9b31me\x9d0;f\x9cg\x7fh\x08i\u202ej"
OBEYED = {chr(code) for code in (*range(32), 127, *range(128, 160), 0x202E)} - {"\n"}


@pytest.fixture
def query(tmp_path, monkeypatch, capsys):
    """Run `nightaudit query` over a published file with texts of a supplier."""
    lake = tmp_path / "lake"
    (lake / "published").mkdir(parents=True)
    with duckdb.connect(str(lake / "published" / "nightaudit.duckdb")) as session:
        session.execute("CREATE SCHEMA mart")
        session.execute("CREATE TABLE mart.words (place INTEGER, word VARCHAR)")
        session.executemany(
            "INSERT INTO mart.words VALUES (?, ?)", [(0, HOSTILE), (1, "=1+1"), (2, "  @x"), (3, "[bold]no[/bold]")]
        )
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["nightaudit", "query", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return SimpleNamespace(
            code=ended.value.code or 0, **dict(zip(("out", "err"), capsys.readouterr(), strict=True))
        )

    return run


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_no_control_character_reaches_the_terminal(query, form):
    sql = f'SELECT word, word AS "{HOSTILE}", [word], {{word: word}} FROM mart.words'  # noqa: S608 - a text of ours
    done = query(sql, "--format", form)
    assert done.code == 0, done.err
    assert "owned" in done.out
    assert OBEYED.isdisjoint(done.out)


def test_nor_does_one_in_a_message(query):
    done = query(f"SELECT '{HOSTILE}'::INTEGER")
    assert done.code == 2
    assert "owned" in done.err
    assert OBEYED.isdisjoint(done.err)


def test_json_gives_the_value_as_it_is(query):
    done = query("SELECT word FROM mart.words WHERE place = 0", "--format", "json")
    assert json.loads(done.out) == {"word": HOSTILE}


def test_a_cell_of_csv_is_no_formula_and_a_line_ends_as_lines_do(query):
    done = query(
        "SELECT place, word, -1.5 AS price FROM mart.words WHERE place IN (1, 2) ORDER BY place", "--format", "csv"
    )
    assert done.out == "place,word,price\n1,'=1+1,-1.5\n2,'  @x,-1.5\n"


def test_names_of_columns_are_guarded_too(query):
    (names,) = csv.reader(io.StringIO(query('SELECT 1 AS "=1+1" LIMIT 0', "--format", "csv").out))
    assert names == ["'=1+1"]


def test_markup_in_a_text_is_text(query):
    assert "[bold]no[/bold]" in query("SELECT word FROM mart.words WHERE place = 3").out


def test_a_query_is_given_as_much_time_as_one_says(query):
    done = query("SELECT sum(a.range) FROM range(10000000) AS a, range(10000000)", "--seconds", "1.5")
    assert (done.code, "more than 1.5 seconds" in done.err) == (2, True)
