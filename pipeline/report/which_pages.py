"""Which cases and properties of a night get a page, as writing thousands takes long: the most urgent."""

import polars as pl

from pipeline.report.cost import cost_of_cases, is_without_cost


def first_cases(cases: pl.DataFrame, number: int) -> pl.Series:
    """Return the ids of at most `number` cases: the first of each problem comes before further markets of another."""
    problem = pl.struct("rule", pl.coalesce(pl.col("property_id").cast(pl.String), "case_id"))
    is_further = pl.int_range(pl.len()).over(problem) > 0
    return cases.sort(is_further, maintain_order=True)["case_id"].head(number)


def costly_properties(cases: pl.DataFrame) -> list[int]:
    """Return the properties with open problems, in the order of their most costly one, over all its markets."""
    is_waiting = pl.col("status").is_in(["new", "open"]).alias("is_waiting")
    by_problem = (
        cases.drop_nulls("property_id")
        .group_by("property_id", "rule", is_waiting, maintain_order=True)
        .agg(cost_of_cases())
        .sort(
            "is_waiting",
            is_without_cost(),
            "cost_eur",
            descending=[True, False, True],
            nulls_last=True,
            maintain_order=True,
        )
    )
    return by_problem["property_id"].unique(maintain_order=True).to_list()
