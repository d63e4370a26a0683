"""Unusual events of a complete night: silent or incomparable markets, common price moves, a new reference market."""

from collections.abc import Mapping, Sequence, Set
from datetime import date
from typing import Any

import polars as pl

from pipeline.domain.quantities import counted
from pipeline.report.page import Point, percent
from pipeline.report.read import Reader

# What keeps a reference market from being compared with.
_WITHOUT = {
    "no_offers": "has no offers",
    "rejected": "is rejected by the supplier",
    "not_requested": "is not requested",
    "not_swept": "was not requested, because the night ended early",
}
# Percentage points within which the medians of several markets count as one move.
_ALIKE = 0.5


def of_whole_night(reader: Reader) -> list[Point]:
    """Return the sentences about unusual events of the night."""
    return [
        *_of_silent_markets(reader),
        *_of_missing_rates(reader),
        *_of_late_rates(reader),
        *_of_reference_gap(reader),
        *_of_alike(reader),
        *_of_reference(reader),
        *_of_rules(reader),
    ]


def _of_silent_markets(reader: Reader) -> list[Point]:
    """Return the markets without offers tonight that had several properties on sale; the cause is not a property.

    Once their properties count as quiet, that is a case of the market, which can be acknowledged or muted.
    """
    is_noted = (pl.col("rule") == "property_gone_quiet") & pl.col("status").is_in(["acknowledged", "muted"])
    noted = reader.cases.filter(is_noted & (pl.col("scope") == "market"))["market"].to_list()
    return [
        Point(
            f"Call the supplier about market {row['market']}: none of its {counted(row['answered'], 'answered cell')} "
            f"has an offer. {row['properties']:,} properties were on sale there on {row['sold_date']}.",
            "coverage",
            "bad",
        )
        for row in reader.figures("silent_market").iter_rows(named=True)
        if row["market"] not in noted
    ]


def _of_missing_rates(reader: Reader) -> list[Point]:
    """Return the markets that are compared with no other, so that their silence does not look like good news."""
    rows = list(reader.figures("market_without_rate").iter_rows(named=True))
    if not rows:
        return []
    names = [
        row["market"]
        if row["properties"] == row["on_sale"]
        else f"{row['market']} ({row['properties']:,} of {row['on_sale']:,} properties)"
        for row in rows
    ]
    markets = f"Market {names[0]} is" if len(names) == 1 else f"Markets {_listed(names)} are"
    lacking = {currency for row in rows for currency in row["currencies"]}
    never = {currency for row in rows for currency in row["never_rated"]}
    missing, how = _missing(never, lacking - never), "is loaded (nightaudit load rates FILE)"
    return [Point(f"{markets} not compared: no reference rate {missing} {how}.", "coverage", "warn")]


def _of_late_rates(reader: Reader) -> list[Point]:
    """Return the currencies whose rates are old: prices that follow newer ones look like differences."""
    rows = list(reader.figures("late_reference_rate").iter_rows(named=True))
    if not rows:
        return []
    rates = _listed([f"{row['currency']} ({_day(row['rate_date'])})" for row in rows])
    text = f"Prices are compared at old reference rates of {rates}: load newer ones (nightaudit load rates FILE)"
    return [Point(f"{text} before you call about prices in {'it' if len(rows) == 1 else 'them'}.", "coverage", "warn")]


def _missing(never: Set[str], lately: Set[str]) -> str:
    if not lately:
        return f"for {_listed(sorted(never))}"
    if not never:
        return f"for {_listed(sorted(lately))} of the last seven days"
    return f"for {_listed(sorted(never))}, and none of the last seven days for {_listed(sorted(lately))},"


def _listed(names: Sequence[str]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1]) if len(names) > 1 else names)


def _of_reference_gap(reader: Reader) -> list[Point]:
    """Return that markets are not compared, since when and until when; or that they are again after such nights."""
    return [_gap(row) for row in reader.figures("reference_gap").iter_rows(named=True)]


def _gap(row: Mapping[str, Any]) -> Point:
    market, since = row["reference_market"], _day(row["since_date"])
    if row["is_back"]:
        text = f"Markets are compared with {market} again. It had no offers from {since} on"
        return Point(f"{text}, so a problem that is listed as new may be an old one.", "open_cases")
    until = (
        "The next night that reaches it compares them again."
        if row["reason"] == "not_swept"
        else "The setting NIGHTAUDIT_REFERENCE_MARKET names it: name another market to compare them again."
        if row["is_set"]
        else f"From {_day(row['replaced_date'])} on, another market takes its place; to choose one at once, set "
        "NIGHTAUDIT_REFERENCE_MARKET."
    )
    why = f"the reference market {market} {_WITHOUT[row['reason']]}"
    text = f"Markets have not been compared since {since}: {why}."
    return Point(f"{text} {until}", "open_cases", "bad")


def _day(day: date) -> str:
    return f"{day:%-d %b %Y}"


def _of_alike(reader: Reader) -> list[Point]:
    """Return the markets where most offers moved in the same direction, which is no reason to call a property."""
    if reader.is_first_night:
        return []
    together: list[list[Mapping[str, Any]]] = []
    for row in reader.figures("moved_alike").sort("median_pct").iter_rows(named=True):
        if together and _is_one_move(together[-1][0], row):
            together[-1].append(row)
        else:
            together.append([row])
    return [_moved(rows) for rows in sorted(together, key=len, reverse=True)]


def _is_one_move(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (
        other["median_pct"] - one["median_pct"] <= _ALIKE
        and (one["median_pct"] > 0) == (other["median_pct"] > 0)
        and (one["rate_pct"] is None) == (other["rate_pct"] is None)
    )


def _moved(rows: Sequence[Mapping[str, Any]]) -> Point:
    markets, of_all = sorted({row["market"] for row in rows}), rows[0]["markets"]
    where = (
        f"all {of_all} markets"
        if len(markets) == of_all > 1
        else f"market {markets[0]}"
        if len(markets) == 1
        else f"{len(markets)} of {of_all} markets ({', '.join(markets)})"
    )
    by = percent(sorted(row["median_pct"] for row in rows)[len(rows) // 2], is_change=True)
    moved = f"Most offers moved in the same direction in {where}, by a median of {by}"
    if rows[0]["rate_pct"] is None:
        return Point(f"{moved}: ask the supplier before you call any property.", "price_changes", "warn")
    currencies = ", ".join(sorted({row["currency"] for row in rows}))
    return Point(f"{moved}, as the reference rate of {currencies} did: no call is needed.", "price_changes")


# Whom the markets that were dearer the night before were compared with.
_REFERENCE_BEFORE = """
SELECT DISTINCT reference_market FROM mart.parity_group_episode
WHERE ended_by = 'reference_changed' AND ended_at = $started_at AND reference_market <> $reference_market
"""


def _of_reference(reader: Reader) -> list[Point]:
    """Return whether the reference market has changed, with which gaps and scores start again."""
    # Files of earlier versions lack this column.
    if reader.is_first_night or "chosen_sweep_id" not in reader.columns("mart.reference_market"):
        return []
    ((market, chosen_sweep_id),) = reader.query(
        "SELECT reference_market, chosen_sweep_id FROM mart.reference_market"
    ).iter_rows()
    tonight = {"started_at": reader.night["started_at"], "reference_market": market}
    if chosen_sweep_id == reader.night["sweep_id"]:
        why = "the previous reference market had no offers for too long"
    elif before := reader.query(_REFERENCE_BEFORE, tonight)["reference_market"].to_list():
        why = f"the settings have changed, and it was {before[0]} before"
    else:
        return []
    text = (
        f"From this night on, markets are compared with {market}: {why}. Gaps, scores and losing streaks start again, "
        "and what ends tonight need not have been put right."
    )
    return [Point(text, "open_cases", "warn")]


def _of_rules(reader: Reader) -> list[Point]:
    """Return the rules that could not be evaluated, so that their silence does not look like good news."""
    # Files of earlier versions lack this table.
    there = "SELECT 1 FROM duckdb_tables() WHERE schema_name = 'state' AND table_name = 'failed_rule'"
    if reader.query(there).is_empty():
        return []
    failed = reader.query(
        "SELECT relation, reason FROM state.failed_rule WHERE sweep_id = $sweep_id ORDER BY relation",
        {"sweep_id": reader.night["sweep_id"]},
    )
    return [
        Point(f"{row['relation']} could not be evaluated: {row['reason']}", "findings_by_rule", "bad")
        for row in failed.iter_rows(named=True)
    ]
