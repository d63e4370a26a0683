"""Selling prices, the user's own or seen elsewhere: CSV or Parquet, one price per row.

The columns are those of `COLUMNS`. A room, board or policy that is left out is not guessed; comparisons of that price
then have a lower match grade.
"""

from datetime import timedelta

import polars as pl

from pipeline.inputs import kinds, user_table
from pipeline.inputs.kinds import InputColumn
from pipeline.inputs.problems import Findings
from pipeline.inputs.user_table import readable, report, report_repeated

COLUMNS = (
    InputColumn("property_id", kinds.ID, "the supplier's property id"),
    InputColumn("market", kinds.MARKET, "market code, as in the spec"),
    InputColumn("product_type", kinds.PRODUCT_TYPE, "`Hotel` or `Package`"),
    InputColumn("check_in", kinds.DAY, "first night, yyyy-MM-dd"),
    InputColumn("nights", kinds.COUNT, "nights of the stay"),
    InputColumn("party", kinds.PARTY, "guests, as in the spec: 2, 2c5-9"),
    InputColumn("currency", kinds.CURRENCY, "ISO 4217 code of the price"),
    InputColumn("price", kinds.MONEY, "for the whole stay and all rooms, with a point and up to 4 decimals"),
    InputColumn("observed_at", kinds.INSTANT, "when it was on sale, with its offset: 2026-11-20T02:30:00Z"),
    InputColumn("room_id", kinds.ID, "the supplier's room id", is_required=False),
    InputColumn("board_id", kinds.BOARD, "board basis id", is_required=False),
    InputColumn("policy_key", kinds.SIGNED, "policy, as in `mart.offer_latest`", is_required=False),
    InputColumn("channel", kinds.TEXT, "where it was sold or seen", is_required=False),
)

# Two rows with the same values here are about the same price at the same time.
KEY = tuple(column.name for column in COLUMNS if column.name != "price")

# A reference rate holds over a weekend or a holiday, and no longer.
RATE_HOLDS = timedelta(days=7)


def read_prices(data: bytes, findings: Findings, rates: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the prices of a file; what is wrong is added to `findings`, row by row.

    `rates` has `rate_date` and `currency` of all loaded reference rates; None: they are not checked.
    """
    prices = user_table.read_table(data, COLUMNS, findings)
    report_repeated(findings, readable(prices, KEY), KEY, "the same key")
    if rates is not None:
        unrated = without_rate(prices, rates)
        report(findings, unrated, "currency", lambda code: f"no reference rate of {code} is loaded for that day")
        if rates.is_empty() and unrated.height:
            findings.hint = f"Load reference rates first: nightaudit load rates FILE\n{findings.hint}"
    return prices


def without_rate(prices: pl.DataFrame, rates: pl.DataFrame) -> pl.DataFrame:
    """Return the prices whose currency has no reference rate on the day they were observed or in the week before."""
    asked = (
        prices.drop_nulls(["currency", "observed_at"])
        .filter(pl.col("currency") != "EUR")
        .with_columns(pl.col("observed_at").dt.date().alias("rate_date"))
        .sort("rate_date")
    )
    known = rates.select("currency", "rate_date", pl.col("rate_date").alias("found")).sort("rate_date")
    joined = asked.join_asof(
        known, on="rate_date", by="currency", strategy="backward", tolerance=RATE_HOLDS, check_sortedness=False
    )
    return joined.filter(pl.col("found").is_null())
