"""Findings on a page: a row for all of a rule, property and market, so that no property crowds out the others."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.report import findings as module
from pipeline.report.findings import Flags, findings
from pipeline.report.rows_held import rows_held
from pipeline.report.table_cells import cells


def flags(*found: tuple[str, int, str]) -> Flags:
    """Return flags, the most severe first."""
    rows = pl.DataFrame(
        [
            {
                "flag_id": f"f{number}",
                "rule": rule,
                "rule_words": rule,
                "severity": "high",
                "property_id": at,
                "property_name": f"Hotel {at}",
                "market": market,
                "case_page": None,
                "size_pct": 5.0,
            }
            for number, (rule, at, market) in enumerate(found)
        ],
        schema_overrides={"case_page": pl.String},
    )
    narrow = rows.select("flag_id", "rule", "severity", "property_id", "market")
    return Flags(narrow, lambda ids: ids.to_frame("flag_id").join(rows, on="flag_id", maintain_order="left"))


def test_alike_findings_are_one_row_with_their_number_and_the_figures_have_each():
    section = findings("f", flags(*[("wrong", 1, "DE")] * 300, ("wrong", 2, "DE"), ("wrong", 1, "SE")), "", "")
    assert [(row["flag_id"], row["alike"]) for row in section.table.rows(named=True)] == [
        ("f0", 300),
        ("f300", 1),
        ("f301", 1),
    ]
    assert section.figure_rows == section.figures.height == 302
    assert section.title == "302 findings are open: all high"


def test_sizes_of_rules_in_one_table_have_their_unit_beside_them():
    rules = ("unnamed_promotion", "wrong_discount", "floor_eats_promotion", "excluded_charges_mismatch")
    found = flags(*((rule, 1, "DE") for rule in rules))
    section = findings("f", found, "", "")
    (size,) = (column for column in section.columns if column.name == "size_pct")
    assert (size.label, size.unit) == ("Size", "")
    assert [size.text(row) for row in section.rows] == ["5.0%", "5.0 points", "5.0 points", "5.0% of the total"]
    assert 'class="n" data-label="Size">5.0 points<' in cells([size], section.rows[1], (), "")


def test_each_property_has_a_row_before_any_has_a_second_that_is_not_among_the_first():
    found = [("wrong", at, market) for at in range(9) for market in ("DE", "GB", "SE")]
    section = findings("f", flags(*found), "", "", of_a_rule=2)
    assert section.shown == 2
    assert section.table["property_id"].head(9).to_list() == list(range(9))


def test_of_many_findings_a_few_are_read_at_once_and_the_figures_have_all_those_shown_first(monkeypatch):
    """Fails if all columns of all flags are read together: of a large night, they would not fit into memory."""
    found = flags(*[("wrong", at % 7, "DE") for at in range(100)], ("worse", 3, "SE"))
    read: list[int] = []

    def of(ids: pl.Series) -> pl.DataFrame:
        read.append(ids.len())
        return found.of(ids)

    monkeypatch.setattr(module, "_AT_ONCE", 9)
    monkeypatch.setattr(module, "ROWS_OF_A_PAGE", 4)
    section = findings("f", Flags(found.narrow, of), "", "", of_a_rule=2)
    figures = pl.concat(section.parts)
    assert max(read) == 9
    assert (section.figure_rows, section.table_rows, section.table.height) == (101, 8, 4)
    assert figures.height == figures["flag_id"].n_unique() == 101
    assert figures["flag_id"].head(section.shown).to_list() == section.table["flag_id"].head(section.shown).to_list()
    rest = figures["flag_id"][section.shown :].to_list()
    assert rest == [flag for flag in found.narrow["flag_id"] if flag in set(rest)]


@pytest.mark.parametrize(
    ("tables", "held"),
    [([3, 20], [3, 20]), ([3, 2_000, 50_000], [3, 48, 49]), ([], []), ([9_000] * 4, [25] * 4), ([0, 101], [0, 100])],
)
def test_a_page_holds_small_tables_whole_and_equal_parts_of_large_ones(tables, held):
    assert rows_held(tables, 100) == held
