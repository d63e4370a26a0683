"""Text from outside does no harm where it is shown."""

from __future__ import annotations

import json

import polars as pl
import pytest

from pipeline.domain.texts import GUARDED, in_a_cell, in_markdown, printable, printable_json

SIGNS = "=+-@＝＋－＠"


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("before", ["", "  ", "a;", "a; ", "a\t", "a\n", "a\n\ufeff ", 'a";"', "a;;\n;"])
def test_a_formula_is_marked_as_text_in_whatever_cell_a_spreadsheet_puts_it(before, sign):
    """Some split a line at `;` or a tab, or end it within a quoted text."""
    given = f"{before}{sign}1+1"
    safe = in_a_cell(given)
    assert safe.replace("'", "").endswith(f"{sign}1+1")
    for cell in safe.replace("\t", ";").replace("\n", ";").split(";"):
        assert cell.strip(' "\ufeff')[:1] not in {*SIGNS}
    assert pl.Series([given]).str.contains(GUARDED).all()


@pytest.mark.parametrize("text", ["", "Room; sea view", "a-b", "a = b", "2 x 2\nquiet", ";", "a\n\n"])
def test_other_texts_stay_as_they_are(text):
    assert in_a_cell(text) == text
    assert not pl.Series([text]).str.contains(GUARDED).any()


@pytest.mark.parametrize("text", ["\tx", "\rx", "\nx", "\r\nx", "\n\n", "\t=1"])
def test_a_text_that_begins_with_a_tab_or_line_break_is_marked_at_its_start(text):
    assert in_a_cell(text).startswith("'")
    assert pl.Series([text]).str.contains(GUARDED).all()


def test_a_text_of_separators_is_split_and_no_more():
    assert in_a_cell("\n; " * 300_000 + "=1").endswith("\n;' =1")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a\n\n# b", "a \\# b"),
        ("a\u2028b\x1b[2J\u202ec", "a b\\\\x1b\\[2J\\\\u202ec"),
        ("~~~ x ~~y~~", "\\~\\~\\~ x \\~\\~y\\~\\~"),
        ("see https://attacker.example/x", "see https：//attacker.example/x"),
        ("see WWW.attacker.example", "see WWW․attacker.example"),
        ("/lake/published/nightaudit.duckdb", "/lake/published/nightaudit.duckdb"),
        ("5 of 7, 66.03 EUR", "5 of 7, 66.03 EUR"),
    ],
)
def test_text_in_markdown_is_one_line_without_marks_controls_or_links(text, written):
    assert in_markdown(text) == written


@pytest.mark.parametrize("hidden", ["\x1b", "\x9b", "\u202e", "\u200b", "\U000e0041", "\U000e007f"])
def test_what_a_reader_cannot_see_is_written_out_and_json_keeps_its_value(hidden):
    assert printable(f"a{hidden}b") == f"a{ascii(hidden)[1:-1]}b"
    document = json.dumps(f"a{hidden}b", ensure_ascii=False)
    assert printable_json(document).isprintable()
    assert json.loads(printable_json(document)) == f"a{hidden}b"
    assert pl.Series([f"a{hidden}b"]).str.contains(GUARDED).all()
