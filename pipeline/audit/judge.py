"""Great Expectations as the judge: a frame of measures, a suite of expectations for it, one verdict per value.

The frame has a row per table, market and check, and a column per severity with its bounds beside it. A suite costs a
tenth of a second whatever it looks at, so there is one, and each expectation judges all checks of its severity. Great
Expectations sees these measures and no row of the sweep: ten million rows would cost gigabytes.
"""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import sys
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pipeline.audit.results import Finding, Measure

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

_LOW, _HIGH = "__lowest", "__highest"


# Measures with a value and bounds.
Judged = Sequence[Measure]
# Returns the keys of those that fail.
Judge = Callable[[Judged], set[tuple[str, str, str]]]


def judge(measures: Iterable[Measure], judge_those: Judge | None = None) -> list[Finding]:
    """Judge measures, by `judge_those` if given. One without bounds or without a value is `not_judged`."""
    measured = list(measures)
    judged = [measure for measure in measured if _is_judged(measure)]
    failed = (judge_those or failed_among)(judged) if judged else set()
    return [_finding(measure, failed) for measure in measured]


def failed_among(judged: Judged) -> set[tuple[str, str, str]]:
    """Return the key of each measure that Great Expectations does not accept."""
    return _failed(_context(), judged)


def start() -> None:
    """Import Great Expectations, and let it judge once: a night waits for that."""
    failed_among([Measure("", "", "", "warning", "", "rule", 0.0, 0.0, 0.0)])


def _context() -> Any:  # noqa: ANN401 - a context of Great Expectations, which is typed loosely
    """Return a context in memory that writes nothing, sends nothing and draws no progress bars."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gx = _great_expectations()
        from tqdm import tqdm  # type: ignore[import-untyped]

        # Its hidden progress bars would share a lock among processes, and killed ones would leave it behind.
        tqdm.set_lock(threading.RLock())
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


def _great_expectations() -> ModuleType:
    """Import the library in half its usual time.

    Statistics and charts that none of our expectations uses are imported on first use, and garbage collection is off
    meanwhile.
    """
    name = "scipy.stats"
    if name not in sys.modules and (spec := importlib.util.find_spec(name)) is not None and spec.loader is not None:
        spec.loader = importlib.util.LazyLoader(spec.loader)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        setattr(sys.modules["scipy"], "stats", module)  # noqa: B010 - the checker of types knows no such name
    collects = gc.isenabled()
    gc.disable()
    try:
        with _imported_when_used("altair"):
            import great_expectations as gx
    finally:
        if collects:
            gc.enable()
    return gx


class _Later(ModuleType):
    """Stands in for a module that is imported once something of it is used.

    LazyLoader would import it at `import NAME`, which asks a module for its state.
    """

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - anything of a module
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


@contextmanager
def _imported_when_used(name: str) -> Iterator[None]:
    """Let modules that are imported within import `name` only when they use it; for others, nothing changes."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = _Later(name)
    try:
        yield
    finally:
        del sys.modules[name]


def _failed(context: Any, judged: Sequence[Measure]) -> set[tuple[str, str, str]]:  # noqa: ANN401 - see _context
    """Return the keys of the values that the suite does not accept."""
    import great_expectations as gx
    import pandas as pd  # type: ignore[import-untyped]

    columns: defaultdict[str, list[float | None]] = defaultdict(lambda: [None] * len(judged))
    for row, measure in enumerate(judged):
        columns[measure.severity][row] = measure.observed
        columns[measure.severity + _LOW][row] = measure.lowest
        columns[measure.severity + _HIGH][row] = measure.highest
    frame = pd.DataFrame(columns, dtype="float64")
    asset = context.data_sources.add_or_update_pandas("measures").add_dataframe_asset("sweep")
    batch = asset.add_batch_definition_whole_dataframe("tonight").get_batch({"dataframe": frame})
    expectations = [one for severity in sorted({measure.severity for measure in judged}) for one in _bounded(severity)]
    result = batch.validate(gx.ExpectationSuite("gate", expectations=expectations), result_format="COMPLETE")
    failed = set()
    for one in result.results:
        if one.exception_info.get("raised_exception"):
            raise RuntimeError(f"an expectation could not be judged: {one.exception_info.get('exception_message')}")
        for row in one.result.get("unexpected_index_list") or ():
            failed.add(judged[row].key)
    return failed


def _is_judged(measure: Measure) -> bool:
    return measure.observed is not None and (measure.lowest, measure.highest) != (None, None)


def _bounded(severity: str) -> list[Expectation]:
    from great_expectations.expectations.core.expect_column_pair_values_a_to_be_greater_than_b import (
        ExpectColumnPairValuesAToBeGreaterThanB,
    )

    said: dict[str, Any] = {"or_equal": True, "ignore_row_if": "either_value_is_missing", "severity": severity}
    return [
        ExpectColumnPairValuesAToBeGreaterThanB(column_A=larger, column_B=smaller, **said)
        for larger, smaller in ((severity, severity + _LOW), (severity + _HIGH, severity))
    ]


def _finding(measure: Measure, failed: set[tuple[str, str, str]]) -> Finding:
    outcome = "not_judged"
    if _is_judged(measure):
        outcome = "failed" if measure.key in failed else "passed"
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
