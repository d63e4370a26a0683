"""What `nightaudit query` prints: values for people, spreadsheets and programs, and nothing that a terminal obeys."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from decimal import Decimal
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest

from pipeline.cli.query_files import write_sheet
from pipeline.cli.terminal import Terminal, cannot_write
from pipeline.domain.problem import whom_of

# A title that is set, a clipboard that is written, colours, bells and a text that reads from the right.
HOSTILE = "a\x1b]0;owned\x07b\x1b]52;c;ZXZpbA==\x1b\\c\x1b[31md\x9b31me\x9d0;f\x9cg\x7fh\x08i\u202ej"
OBEYED = {chr(code) for code in (*range(32), 127, *range(128, 160), 0x202E)} - {"\n"}


@pytest.fixture
def query(tmp_path, monkeypatch, nightaudit):
    """Run `nightaudit query` over a published file with texts of a supplier."""
    lake = tmp_path / "lake"
    (lake / "published").mkdir(parents=True)
    with duckdb.connect(str(lake / "published" / "nightaudit.duckdb")) as session:
        session.execute("CREATE SCHEMA mart")
        session.execute("CREATE TABLE mart.words (place INTEGER, word VARCHAR)")
        session.executemany(
            "INSERT INTO mart.words VALUES (?, ?)", [(0, HOSTILE), (1, "=1+1"), (2, "  @x"), (3, "[bold]no[/bold]")]
        )
    monkeypatch.setenv("COLUMNS", "300")
    return partial(nightaudit, tmp_path, "query", NIGHTAUDIT_LAKE=str(lake))


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_no_control_character_reaches_the_terminal(query, form):
    sql = f'SELECT word, word AS "{HOSTILE}", [word], {{word: word}} FROM mart.words'  # noqa: S608 - a text of ours
    done = query(sql, "--format", form)
    assert done.returncode == 0, done.stderr
    assert "owned" in done.stdout
    assert OBEYED.isdisjoint(done.stdout)


def test_names_and_texts_of_any_length_are_cut_on_the_terminal(capsys):
    for name in ("x" * 2**20, "\x1b" * 2**20):
        case = {"scope": "property", "property_id": 1, "property_name": name, "market": "GB", "base_currency": None}
        assert len(whom_of(case)) < 600
        Terminal(soft_wrap=True).facts([("Offer", f"room_name {name}")])
        assert len(capsys.readouterr().out) < 10_000


def test_nor_does_one_in_a_message(query):
    done = query(f"SELECT '{HOSTILE}'::INTEGER")
    assert done.returncode == 2
    assert "owned" in done.stderr
    assert OBEYED.isdisjoint(done.stderr)


def test_json_gives_the_value_as_it_is(query):
    done = query("SELECT word FROM mart.words WHERE place = 0", "--format", "json")
    assert json.loads(done.stdout) == {"word": HOSTILE}


def test_json_keeps_columns_of_the_same_name(query):
    done = query('SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS "A"', "--format", "json")
    assert json.loads(done.stdout) == {"a": 1, "a_1": 2, "a_1_1": 3, "A": 4}


def test_a_cell_of_csv_is_no_formula_and_a_line_ends_as_lines_do(query):
    done = query(
        "SELECT place, word, -1.5 AS price FROM mart.words WHERE place IN (1, 2) ORDER BY place", "--format", "csv"
    )
    assert done.stdout == "place,word,price\n1,'=1+1,-1.5\n2,'  @x,-1.5\n"


def test_a_list_of_texts_is_guarded_in_a_cell_of_csv_as_a_text_is(query):
    done = query("SELECT ['a;=1+1'] AS words, (-1.5)::DECIMAL(9, 2) AS price", "--format", "csv")
    assert done.stdout == 'words,price\n"[""a;\'=1+1""]",-1.50\n'


PARTS = "{'currency': 'EUR', 'amount': 356.02::DECIMAL(18, 4), 'day': DATE '2030-03-01', 'word': chr(155)}"
NESTED = f"SELECT [{PARTS}] AS sums"


def test_what_has_parts_is_json_in_a_cell_of_csv_and_of_a_sheet(query, tmp_path):
    """Another program reads it; it used to be written as Python writes it."""
    held = [{"currency": "EUR", "amount": "356.0200", "day": "2030-03-01", "word": "\x9b"}]
    done = query(NESTED, "--format", "csv")
    _, (cell,) = csv.reader(io.StringIO(done.stdout))
    assert json.loads(cell) == held
    assert "\x9b" not in done.stdout
    assert query(NESTED, "--format", "xlsx", "--output", str(tmp_path / "a.xlsx")).returncode == 0
    with zipfile.ZipFile(tmp_path / "a.xlsx") as book:
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))  # noqa: S314 - written by us
    texts = [each.text for each in sheet.iter("{http://schemas.openxmlformats.org/spreadsheetml/2006/main}t")]
    assert json.loads(texts[1]) == held
    assert "Decimal" not in query(NESTED).stdout


@pytest.mark.parametrize("form", ["table", "csv", "json"])
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("INTERVAL '14 months 3 days'", "1 year 2 months 3 days"),
        ("INTERVAL '10000000 years'", "10000000 years"),
        ("[to_days(2000000000)]", "2000000000 days"),
        ("'a\\xAA'::BLOB", r"a\xAA"),
        ("{'INTERVAL': INTERVAL 1 DAY, 'b \"c': MAP {'k': 'a\\xAA'::BLOB}, 'n': 1}", "1 day"),
        ("union_value(u := INTERVAL 1 MONTH)", "1 month"),
    ],
)
def test_intervals_and_bytes_are_shown_as_duckdb_writes_them(query, form, value, shown):
    """Not as Python writes them, to which a month is thirty days."""
    done = query(f"SELECT 7 AS a, {value} AS a; -- the end", "--format", form)
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)["a_1"] if form == "json" else done.stdout
    assert shown in str(written)
    assert not re.search(r"timedelta|b'", str(written))
    assert "7" in done.stdout


def test_names_of_columns_are_guarded_too(query):
    (names,) = csv.reader(io.StringIO(query('SELECT 1 AS "=1+1" LIMIT 0', "--format", "csv").stdout))
    assert names == ["'=1+1"]


def test_markup_in_a_text_is_text(query):
    assert "[bold]no[/bold]" in query("SELECT word FROM mart.words WHERE place = 3").stdout


def test_rows_with_too_many_columns_for_the_terminal_are_shown_as_records(query):
    columns = ", ".join(f"{number} AS column_{number:02}" for number in range(40))
    shown = query(f"SELECT {columns} UNION ALL SELECT {columns}").stdout
    assert [line.strip() for line in shown.splitlines() if "Row" in line] == ["Row 1", "Row 2"]
    assert all(f"column_{number:02}" in shown for number in range(40))
    assert "Row" not in query("SELECT 1 AS one, 2 AS two").stdout


def test_a_query_is_given_as_much_time_as_one_says(query):
    done = query("SELECT sum(a.range) FROM range(10000000) AS a, range(10000000)", "--seconds", "1.5")
    assert (done.returncode, "more than 1.5 seconds" in done.stderr) == (2, True)


KINDS = (
    "SELECT 9007199254740993 AS id, 12.3400::DECIMAL(18, 4) AS total, DATE '2030-03-01' AS day, '=1+1' AS word, "
    "TIMESTAMPTZ '2030-03-01 02:00:00+02' AS at, NULL::INTEGER AS nothing, "
    "'NaN'::DOUBLE AS odd, [1, 2] AS items, true AS yes"
)


def test_parquet_keeps_values_and_types(query, tmp_path):
    done = query(KINDS, "--format", "parquet", "--output", str(tmp_path / "a.parquet"))
    assert (done.returncode, done.stdout) == (0, "")
    session = duckdb.connect()
    session.execute("SET TimeZone = 'UTC'")
    read = session.sql(f"FROM '{tmp_path / 'a.parquet'}'")
    wanted = session.sql(KINDS)
    assert list(zip(read.columns, read.types, strict=True)) == list(zip(wanted.columns, wanted.types, strict=True))
    assert str(read.fetchall()) == str(wanted.fetchall())


def test_a_type_that_parquet_lacks_is_reported_and_leaves_no_file(query, tmp_path):
    done = query("SELECT INTERVAL 1 DAY AS span", "--format", "parquet", "--output", str(tmp_path / "a.parquet"))
    assert done.returncode == 2
    assert "Cast that column" in done.stderr
    assert not list(tmp_path.glob("*a.parquet*"))


def test_a_number_of_a_sheet_is_the_shortest_decimal(query, tmp_path):
    """The library wrote 88.49 as 88.48999999999999, which other readers than Excel show."""
    amounts = "88.49::DECIMAL(9, 2) AS a, 0.1::DOUBLE + 0.2 AS b, 1e-9::DOUBLE AS c, 1200 AS d, DATE '2030-03-01' AS e"
    done = query(f"SELECT {amounts}", "--format", "xlsx", "--output", str(tmp_path / "a.xlsx"))
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "a.xlsx") as book:
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))  # noqa: S314 - written by us
    values = [each.text for each in sheet.iter("{http://schemas.openxmlformats.org/spreadsheetml/2006/main}v")]
    assert values == ["88.49", "0.30000000000000004", "1e-09", "1200", "47543"]


def test_an_amount_that_a_double_would_round_is_text_in_a_sheet():
    amounts = [Decimal("12345678901234.5678"), Decimal("-123456789012.3456"), Decimal("0.1000"), Decimal("1E+3")]
    held = io.BytesIO()
    write_sheet(held, ["a", "b", "c", "d"], iter([amounts]))
    with zipfile.ZipFile(held) as book:
        row = book.read("xl/worksheets/sheet1.xml").decode().partition('<row r="2">')[2]
    assert re.findall(r"<(?:v|t)>([^<]*)<", row) == ["12345678901234.5678", "-123456789012.3456", "0.1", "1000"]
    assert row.count("inlineStr") == 1


def test_a_sheet_has_numbers_dates_and_texts_that_are_no_formulas(query, tmp_path):
    done = query(KINDS, "--format", "xlsx", "--output", str(tmp_path / "a.xlsx"))
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "a.xlsx") as book:
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))  # noqa: S314 - written by us
    space = {"": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
    header, row = sheet.findall(".//row", space)
    assert [cell.findtext("is/t", namespaces=space) for cell in header] == [
        "id", "total", "day", "word", "at", "nothing", "odd", "items", "yes"
    ]  # fmt: skip
    found = {
        cell.get("r"): (cell.get("t"), cell.findtext("is/t", namespaces=space) or cell.findtext("v", namespaces=space))
        for cell in row
    }
    assert found == {
        "A2": ("inlineStr", "9007199254740993"),
        "B2": (None, "12.34"),
        "C2": (None, "47543"),
        "D2": ("inlineStr", "=1+1"),
        "E2": (None, "47543"),
        "G2": ("inlineStr", "nan"),
        "H2": ("inlineStr", "[1, 2]"),
        "I2": ("b", "1"),
    }
    assert not sheet.findall(".//f", space)


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_limit_is_of_rows_in_every_form(query, tmp_path, form):
    done = query("FROM range(100000)", "--format", form, "--limit", "7", "--output", str(tmp_path / "a"))
    assert done.returncode == 0, done.stderr
    found = duckdb.sql(f"FROM read_{form}('{tmp_path / 'a'}')").fetchall()
    assert len(found) == 7


@pytest.mark.timeout(60)
def test_a_pipe_is_not_replaced_by_a_result(query, tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    done = query("SELECT 1", "--format", "csv", "--output", str(pipe))
    assert (done.returncode, pipe.is_fifo()) == (2, True)
    assert "it is a pipe or a device, not a file" in done.stderr
    assert f"redirect the standard output: > {pipe}" in " ".join(done.stderr.split())
    assert list(tmp_path.glob(".*part")) == []


@pytest.mark.parametrize(("name", "why"), [("y" * 300, "too long"), (os.fsdecode(b"\xff"), "not UTF-8")])
def test_a_name_that_no_file_can_have_is_refused_before_the_query_is_run(query, tmp_path, name, why):
    done = query("SELECT 1", "--format", "csv", "--output", str(tmp_path / name))
    assert done.returncode == 2
    assert f"cannot be written: its name is {why}" in " ".join(done.stderr.split())
    assert [place.name for place in tmp_path.iterdir()] == ["lake"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_sheet_for_a_full_disk_is_one_error_and_no_traceback():
    program = """
from pipeline.cli.query_files import write_sheet
try:
    with open("/dev/full", "wb") as place:
        write_sheet(place, ["a"], iter([(number,) for number in range(10_000)]))
except OSError as error:
    print(error.errno)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{errno.ENOSPC}\n", "")


@pytest.mark.parametrize(("number", "exit_code"), [(errno.ENOSPC, 6), (errno.EDQUOT, 6), (errno.EACCES, 2)])
def test_a_file_of_an_answer_for_a_full_disk_ends_as_a_full_disk_does(number, exit_code):
    error = cannot_write(Path("a.csv"), OSError(number, os.strerror(number)))
    assert error.exit_code == exit_code
    assert ("Free some space" in error.hint) == (exit_code == 6)
