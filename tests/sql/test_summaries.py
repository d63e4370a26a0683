"""Summaries of a large night read files that hold some columns of each relation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.lake.relations import relation
from pipeline.publish.summaries import SUMMARIES, SUMMED


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_large_night_writes_every_column_that_a_summary_reads(golden, name):
    made = relation(*name.split("."))
    sql = made.sql
    for read, columns in SUMMED.items():
        sql = sql.replace(f"{read} AS ", f"(SELECT {', '.join(columns)} FROM {read}) AS ")  # noqa: S608 - our own names
    assert sql != made.sql
    assert golden.rows(replace(made, sql=sql)) == []
