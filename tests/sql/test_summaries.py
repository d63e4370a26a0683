"""Summaries of a large night read files that hold some columns of each relation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.lake.relations import relation
from pipeline.publish.summaries import SUMMARIES, SUMMED, VALUES


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_large_night_writes_every_column_that_a_summary_reads(golden, name):
    made = relation(*name.split("."))
    sql = made.sql
    for read, columns in SUMMED.items():
        sql = sql.replace(f"{read} AS ", f"(SELECT {', '.join(columns)} FROM {read}) AS ")  # noqa: S608 - our own names
    assert sql != made.sql
    assert golden.rows(replace(made, sql=sql)) == []


def test_every_dimension_of_promotions_has_its_turn(golden):
    golden.give("state.offer_open", [{"offer_key": 1, "total": 50, "pre_promo_total": 100}])
    found = golden.rows(relation("report", "promotion_targeting"))
    assert {row["dimension"] for row in found} == set(VALUES["dimension"])
