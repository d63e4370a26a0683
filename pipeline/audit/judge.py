"""Great Expectations as the judge: a frame of measures a table, a suite of expectations for it, one verdict a value.

A frame has a row per market and a column per check; counts of rows that may not be there share a column. Bounds that
are the same for all markets are part of the expectation; bounds that differ stand in the frame, beside what they
bound. No row of the sweep itself is handed over: ten million of them would cost gigabytes, and what is judged is what
they add up to.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.audit.findings import Finding, Measure

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

_LOW, _HIGH = "__lowest", "__highest"


def judge(measures: Iterable[Measure]) -> list[Finding]:
    """Judge measures. One without bounds or without a value is `not_judged`."""
    by_table: defaultdict[str, list[Measure]] = defaultdict(list)
    for measure in measures:
        by_table[measure.table].append(measure)
    context = _context()
    findings = []
    for table, measured in sorted(by_table.items()):
        failed = _failed(context, table, measured)
        findings += [_finding(measure, failed) for measure in measured]
    return findings


def _context() -> Any:  # noqa: ANN401 - a context of Great Expectations, which is typed loosely
    """Return a context that lives in memory, writes nothing, tells nobody, and draws no progress bars."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import great_expectations as gx
        from great_expectations.data_context.types.base import (
            DataContextConfig,
            InMemoryStoreBackendDefaults,
            ProgressBarsConfig,
        )

        config = DataContextConfig(
            store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
            progress_bars=ProgressBarsConfig(globally=False, metric_calculations=False),
            analytics_enabled=False,
        )
        return gx.get_context(project_config=config, mode="ephemeral")


def _failed(context: Any, table: str, measured: Sequence[Measure]) -> set[tuple[str, str]]:  # noqa: ANN401 - see _context
    """Return market and check of each value that the suite does not accept."""
    import great_expectations as gx
    import pandas as pd  # type: ignore[import-untyped]

    columns: defaultdict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    by_column: defaultdict[str, list[Measure]] = defaultdict(list)
    for measure in measured:
        if measure.observed is None or (measure.lowest, measure.highest) == (None, None):
            continue
        column, row = _place(measure)
        by_column[column].append(measure)
        columns[column][row] = measure.observed
        for bound, name in ((measure.lowest, _LOW), (measure.highest, _HIGH)):
            if bound is not None:
                columns[column + name][row] = bound
    if not by_column:
        return set()
    rows = sorted({row for values in columns.values() for row in values})
    frame = pd.DataFrame({name: [values.get(row) for row in rows] for name, values in columns.items()}, dtype="float64")
    asset = context.data_sources.add_or_update_pandas(f"measures of {table}").add_dataframe_asset(table)
    batch = asset.add_batch_definition_whole_dataframe("tonight").get_batch({"dataframe": frame})
    expectations = [one for column, found in by_column.items() for one in _expectations(column, found)]
    result = batch.validate(gx.ExpectationSuite(table, expectations=expectations), result_format="COMPLETE")
    failed = set()
    for one in result.results:
        if one.exception_info.get("raised_exception"):
            raise RuntimeError(f"an expectation could not be judged: {one.exception_info.get('exception_message')}")
        column = one.expectation_config.meta["column"]
        for index in one.result.get("unexpected_index_list") or ():
            market, check = rows[index]
            failed.add((market, check or column))
    return failed


def _place(measure: Measure) -> tuple[str, tuple[str, str]]:
    """Return column and row of a measure: a column a check; of counts that must be 0, and of
    missing values, a column a severity.

    An expectation costs ten milliseconds, whatever it looks at, and most checks count rows that may not be there.
    """
    if (measure.lowest, measure.highest) == (None, 0.0):
        return f"violations_{measure.severity}", (measure.market, measure.check)
    if measure.check.startswith("null_"):
        return f"missing_{measure.severity}", (measure.market, measure.check)
    return measure.check, (measure.market, "")


def _expectations(column: str, measures: Sequence[Measure]) -> list[Expectation]:
    from great_expectations.expectations.core.expect_column_pair_values_a_to_be_greater_than_b import (
        ExpectColumnPairValuesAToBeGreaterThanB,
    )
    from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween

    first = measures[0]
    said: dict[str, Any] = {"severity": first.severity, "meta": {"column": column}}
    if len({(measure.lowest, measure.highest) for measure in measures}) == 1:
        return [ExpectColumnValuesToBeBetween(column=column, min_value=first.lowest, max_value=first.highest, **said)]
    pairs = []
    if any(measure.lowest is not None for measure in measures):
        pairs.append((column, column + _LOW))
    if any(measure.highest is not None for measure in measures):
        pairs.append((column + _HIGH, column))
    return [
        ExpectColumnPairValuesAToBeGreaterThanB(
            column_A=larger, column_B=smaller, or_equal=True, ignore_row_if="either_value_is_missing", **said
        )
        for larger, smaller in pairs
    ]


def _finding(measure: Measure, failed: set[tuple[str, str]]) -> Finding:
    if measure.observed is None or (measure.lowest, measure.highest) == (None, None):
        outcome = "not_judged"
    else:
        outcome = "failed" if (measure.market, measure.check) in failed else "passed"
    return Finding(
        market=measure.market,
        table_name=measure.table,
        check_name=measure.check,
        severity=measure.severity,
        outcome=outcome,
        basis=measure.basis,
        observed=measure.observed,
        lowest=measure.lowest,
        highest=measure.highest,
        nights_before=measure.nights,
        violations=measure.violations or int(outcome == "failed"),
        meaning=measure.meaning,
        examples=measure.examples,
    )
