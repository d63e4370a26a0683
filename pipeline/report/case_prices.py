"""The selling prices that findings are about: each as it was found, and the one that has been loaded since."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

import duckdb
import polars as pl

from pipeline.lake import Lake
from pipeline.lake.database import rows_of
from pipeline.lake.ledger import published_sweeps
from pipeline.lake.relations import finding_rules, relation

Row = Mapping[str, Any]

# Of prices with one key, as in `mart.price_against_floor`: the one observed last counts, as the newest file states it.
_LATEST: Final = itemgetter("observed_at", "input_id")

_PRICES: Final = """
SELECT flag.flag_id, price.*
FROM shown_flag AS flag
INNER JOIN lake.selling_price AS price
    ON
        price.property_id = flag.property_id
        AND price.market = flag.market
        AND price.product_type = flag.product_type
        AND price.check_in = flag.check_in
        AND price.nights = flag.nights
        AND price.party = flag.party
WHERE
    flag.subject_key = mart.subject_key(
        flag.rule,
        mart.price_subject(
            flag.source, price.property_id, price.market, price.check_in, price.nights, price.party, price.currency,
            price.room_id, price.board_id, price.policy_key, price.channel
        )
    )
"""
_OF_FLAGS: Final = {
    "flag_id": pl.String,
    "rule": pl.String,
    "subject_key": pl.Int64,
    "source": pl.String,
    "property_id": pl.Int64,
    "market": pl.String,
    "product_type": pl.String,
    "check_in": pl.Date,
    "nights": pl.Int64,
    "party": pl.String,
}


@dataclass(frozen=True, slots=True)
class SellingPrice:
    """The price in a finding, and the `newer` one of the same key, if any. `is_judged`: a night has seen that one."""

    found: Row
    newer: Row | None
    is_judged: bool


def selling_prices(session: duckdb.DuckDBPyConnection, lake: Lake, flags: Sequence[Row]) -> dict[str, SellingPrice]:
    """Return the prices of flags that are about one, by flag: the latest that the night knew which last found it."""
    about = [flag for flag in flags if is_about_a_price(flag["rule"])]
    if not about:
        return {}
    shown = pl.DataFrame([[flag[name] for name in _OF_FLAGS] for flag in about], schema=_OF_FLAGS, orient="row")
    session.register("shown_flag", shown.to_arrow())
    try:
        loaded = rows_of(session.execute(_PRICES))
    finally:
        session.unregister("shown_flag")
    by_flag = defaultdict(list)
    for row in loaded:
        by_flag[row["flag_id"]].append(row)
    # A folder that was pulled has no ledger. Nothing is loaded between the two times while a night runs.
    published_at = dict(session.execute("SELECT sweep_id, finished_at FROM mart.sweep").fetchall())
    published_at |= {entry.sweep_id: entry.published_at for entry in published_sweeps(lake)}
    found = {}
    for flag in about:
        ordered = sorted(by_flag[flag["flag_id"]], key=_LATEST)
        known = [row for row in ordered if row["loaded_at"] <= published_at[flag["last_flagged_sweep_id"]]]
        if known:
            newer = ordered[-1] if ordered[-1] is not known[-1] else None
            is_judged = newer is not None and newer["loaded_at"] <= max(published_at.values())
            found[flag["flag_id"]] = SellingPrice(known[-1], newer, is_judged)
    return found


def is_about_a_price(rule: str) -> bool:
    """Return whether findings of a rule are about a selling price that was loaded."""
    of = finding_rules().get(rule)
    return of is not None and "price_input_id" in relation(*of.full_name.split(".")).meanings
