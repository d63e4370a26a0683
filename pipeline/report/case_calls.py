"""The summary's sentences about cases: which problems are new, and whom to call first and why."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import polars as pl

from pipeline.domain.quantities import counted
from pipeline.lake.relations import finding_rules
from pipeline.report.case_prices import is_about_a_price
from pipeline.report.cases import calls, persist, problems, waiting_of
from pipeline.report.findings import SEVERITIES
from pipeline.report.page import Point

# Properties to call, and new problems, that the summary names.
_CALLS = _NAMED = 3
# Problems of a market or the supplier that it names after them.
_WIDE_CALLS = 2
_ORDER = (
    " Whom to call first: (1) problems of high severity; (2) among equals, prices and properties gone quiet "
    "before promotions, penalties and fees; (3) among equals, the most costly."
)
# What follows the calls: one sentence about the user's own prices, and those about a market or the supplier.
_FOLLOWING = {
    (True, True): " Your own selling prices follow, then what is about a market or the supplier.",
    (True, False): " Your own selling prices follow.",
    (False, True): " What is about a market or the supplier follows.",
    (False, False): "",
}


def cases_points(cases: pl.DataFrame, silent_markets: Collection[str] = ()) -> list[Point]:
    """Return which problems opened, how many persist, and which properties to call first and why.

    Own selling prices need no call: the most urgent one is named after these. Of markets that sell nothing tonight, no
    price is worth a call.
    """
    waiting = waiting_of(cases)
    if not waiting.height:
        return [Point("No open case needs a decision.", "open_cases", "good")]
    new, before = (waiting.filter(is_new) for is_new in (pl.col("status") == "new", pl.col("status") != "new"))
    lines = calls(waiting.with_columns(status=pl.lit("open")))
    # A line names its markets: it stands if a single one of them sells.
    markets = pl.col("market").str.split(", ")
    is_silent = (markets.list.set_difference(list(silent_markets)).list.len() == 0).fill_null(value=False)
    worth = lines.filter(~is_silent).rows(named=True)
    of_properties = [row for row in worth if row["scope"] == "property"]
    of_own = [row for row in of_properties if _is_own_price(row)]
    # A price that was loaded says more than one that the usual mark-up would give.
    loaded = {row["whom"] for row in of_own if is_about_a_price(row["rule"])}
    own = _most_urgent(row for row in of_own if is_about_a_price(row["rule"]) or row["whom"] not in loaded)
    wide = _most_urgent(row for row in worth if row["scope"] != "property")
    further, wide = [_name(row) for row in wide[_WIDE_CALLS:]], wide[:_WIDE_CALLS]
    first = _most_urgent(row for row in of_properties if not _is_own_price(row))[:_CALLS] + own[:1] + wide
    is_by_cost = [row["cost_eur"] for row in first] == [row["cost_eur"] for row in worth[: len(first)]]
    following = f"{_FOLLOWING[bool(own), bool(wide)]} The tables list all by cost."
    order = "" if is_by_cost else f"{_ORDER}{following}"
    tone = "bad" if "high" in lines["severity"] else "warn"
    opened = f"{problems(new)} opened{_named(calls(new))} {problems(before)} {persist(before)}.{order}"
    points = [Point(opened, "new_cases" if new.height else "open_cases", tone)]
    in_earlier = set(calls(before).select("whom", "rule").iter_rows()) if before.height else set()
    for number, row in enumerate(first):
        place = f" ({row['market']})" if row["scope"] == "property" and row["market"] else ""
        # A case of several markets names them itself.
        place = "" if place in row["finding"] else place
        to_do = _to_do(row)
        if row["scope"] != "property" and number:
            to_do = f"Then {to_do[0].lower()}{to_do[1:]}"
        # The finding may speak of a longer time: found since is not true since.
        cost = f" Cost: {row['cost']}, found" if row["cost"] else " Found"
        since = f"{cost} since {row['since']:%-d %b %Y}."
        others = sum(each["whom"] == row["whom"] for each in worth) - 1
        also = f" {counted(others, 'more problem')} there." if others else ""
        if row["scope"] == "property" and _is_own_price(row) and len(own) > 1:
            also += f" {counted(len(own) - 1, 'more property needs', 'more properties need')} the same check."
        if further and number == len(first) - 1:
            also += f" Also call about {', '.join(further)}."
        text = f"{to_do}: {row['rule_words']}{place}. {row['finding']}{since}{also}"
        pages = (row["case_page"] or "", row["property_page"] or "")
        tone = "bad" if row["severity"] == "high" else "warn"
        section = "open_cases" if (row["whom"], row["rule"]) in in_earlier else "new_cases"
        points.append(Point(text, section, tone, *pages, bold=to_do.removesuffix(" about")))
    return points


def _named(new: pl.DataFrame) -> str:
    """Return new problems with their properties, the most costly first."""
    if not new.height:
        return ","
    named = [f"{row['rule_words']} ({_named_by(row)}{_back(row)})" for row in new.head(_NAMED).iter_rows(named=True)]
    more = [f"and {new.height - _NAMED:,} more"] if new.height > _NAMED else []
    return f": {'; '.join([*named, *more])}."


def _back(row: Mapping[str, Any]) -> str:
    return ", back" if row["status_words"] == "back" else ""


def _most_urgent(lines: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the most urgent line about each property, market or supplier. `lines` are by cost."""
    of_each: dict[str, Mapping[str, Any]] = {}
    for each in sorted(lines, key=lambda row: (row["severity"] != "high", _is_label(row))):
        of_each.setdefault(each["whom"], each)
    return list(of_each.values())


def _is_label(row: Mapping[str, Any]) -> bool:
    rule = finding_rules().get(row["rule"])
    return rule is not None and rule.about == "label"


def _is_own_price(row: Mapping[str, Any]) -> bool:
    rule = finding_rules().get(row["rule"])
    return rule is not None and rule.concerns == "selling_price"


def _to_do(row: Mapping[str, Any]) -> str:
    """Return what to do about a problem: whom to call, whom to check before, or which price of one's own to check."""
    name, rule = _name(row), finding_rules().get(row["rule"])
    if _is_own_price(row):
        return f"Check your selling price of {name}" if row["scope"] == "property" else f"Check your prices in {name}"
    if rule and SEVERITIES.index(row["severity"]) > SEVERITIES.index(rule.call_from):
        return f"Check {name} before you call"
    return f"Call {name} about" if row["scope"] == "property" else f"Call the supplier about {name}"


def _name(row: Mapping[str, Any]) -> str:
    """Return a name with its id, as two properties may have one name."""
    name, property_id = row["property_name"], row["property_id"]
    return (name if property_id is None else f"{name} ({property_id})") if name else f"property {property_id}"


def _named_by(row: Mapping[str, Any]) -> str:
    """Return the same for a place within brackets."""
    name, property_id = row["property_name"], row["property_id"]
    return (name if property_id is None else f"{name}, property {property_id}") if name else f"property {property_id}"
