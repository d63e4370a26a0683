"""Findings on a page: a row for all of a rule, property and market, so that no property crowds out the others."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.report.findings import findings
from pipeline.report.rows_held import rows_held


def flags(*found: tuple[str, int, str]) -> pl.DataFrame:
    """Return flags, the most severe first."""
    return pl.DataFrame(
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
            }
            for number, (rule, at, market) in enumerate(found)
        ],
        schema_overrides={"case_page": pl.String},
    )


def test_alike_findings_are_one_row_with_their_number_and_the_figures_have_each():
    section = findings("f", flags(*[("wrong", 1, "DE")] * 300, ("wrong", 2, "DE"), ("wrong", 1, "SE")), "", "")
    assert [(row["flag_id"], row["alike"]) for row in section.table.rows(named=True)] == [
        ("f0", 300),
        ("f300", 1),
        ("f301", 1),
    ]
    assert section.figures.height == 302
    assert section.title == "302 findings are open: all high"


def test_each_property_has_a_row_before_any_has_a_second_that_is_not_among_the_first():
    found = [("wrong", at, market) for at in range(9) for market in ("DE", "GB", "SE")]
    section = findings("f", flags(*found), "", "", of_a_rule=2)
    assert section.shown == 2
    assert section.table["property_id"].head(9).to_list() == list(range(9))


@pytest.mark.parametrize(
    ("tables", "held"),
    [([3, 20], [3, 20]), ([3, 2_000, 50_000], [3, 48, 49]), ([], []), ([9_000] * 4, [25] * 4), ([0, 101], [0, 100])],
)
def test_a_page_holds_small_tables_whole_and_equal_parts_of_large_ones(tables, held):
    assert rows_held(tables, 100) == held
