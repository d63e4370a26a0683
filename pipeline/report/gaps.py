"""The sections of the parity page that explain gaps: what they consist of, and what the supplier's rates add."""

from collections.abc import Sequence
from math import ceil, floor
from typing import Any

import altair as alt
import polars as pl

from pipeline.domain.quantities import counted
from pipeline.report.charts import BAD, GOOD, INK, SOFT, WIDTH, AnyChart, chart, svg
from pipeline.report.page import Column, Section, named, percent, shown, whole
from pipeline.report.read import Reader
from pipeline.report.words import said

# Why a section is empty.
ONE_MARKET = (
    "Nothing could be compared yet. A comparison needs the same stay in the reference market and in another market, "
    "answered in the same sweep, and reference rates if the currencies differ."
)
_PARTS = ("policy", "board", "tax_and_fee", "promotion", "fx", "residual")
# What the gaps of a market consist of, in percent.
_SHARES = ("explained_pct", "unstated_pct", "own_price_pct")
_WATERFALLS = 3
# Height of a waterfall's step in pixels, and the part of its width for amounts.
_STEP, _FOR_AMOUNTS = 24, 0.3

# Percent below which a median is written as 0.00.
_SEEN_PCT = 0.005


def in_one_currency(parts: pl.DataFrame) -> pl.DataFrame:
    """Return the rows in the currency of most pairs, as sums in different currencies cannot be compared."""
    most = (
        parts.group_by("currency")
        .agg(pl.col("comparable").sum())
        .sort("comparable", "currency", descending=[True, False])
    )
    return parts.join(most.head(1), on="currency", how="semi")


def add_up(shares: Sequence[float | None]) -> list[int | None]:
    """Return shares in percent as whole numbers that add up to 100; none if one is unknown or all are 0."""
    known = [each for each in shares if each is not None]
    if len(known) < len(shares) or not sum(known):
        return [None] * len(shares)
    exact = [100 * each / sum(known) for each in known]
    rounded: list[int | None] = [floor(each) for each in exact]
    by_rest = sorted(range(len(exact)), key=lambda at: floor(exact[at]) - exact[at])
    for at in by_rest[: 100 - sum(map(floor, exact))]:
        rounded[at] = ceil(exact[at])
    return rounded


def gap_decomposition(reader: Reader) -> Section:
    """Return the parts of the gaps to the reference market, drawn for the largest."""
    parts = reader.rows(
        "report.gap_decomposition", order="match_grade DESC, source DESC, market, product_type, currency"
    )
    lines = parts
    if set(_SHARES) <= set(parts.columns):
        rounded = [add_up(row) for row in parts.select(_SHARES).iter_rows()]
        lines = parts.with_columns(pl.DataFrame(rounded, dict.fromkeys(_SHARES, pl.Int64), orient="row"))
    # Only the exact grade is drawn, as grades are never mixed.
    exact = lines.filter(
        (pl.col("source") == "multi") & (pl.col("match_grade") == "exact") & (pl.col("comparable") > 0)
    )
    largest = in_one_currency(exact).sort(pl.col("gap").abs(), descending=True).head(_WATERFALLS)
    drawn = [
        svg(
            _steps(row),
            f"{row['market']}, {row['product_type']}, {row['currency']}: {counted(row['comparable'], 'exact pair')}",
        )
        for row in largest.iter_rows(named=True)
    ]
    first = largest.row(0, named=True) if largest.height else None
    return Section(
        "gap_decomposition",
        f"{first['market']} ({first['product_type']}) has the largest gap: {counted(first['comparable'], 'pair')} "
        f"{'costs' if first['comparable'] == 1 else 'cost'} {shown(abs(first['gap']), 2)} {first['currency']} "
        f"{'more' if first['gap'] > 0 else 'less'} in total; {first['explained_pct']:.0f}% is explained"
        if first
        else "There is no gap to explain",
        "From the reference market's offer to the market's, one factor at a time: policy, board, taxes and fees, "
        "promotion, currency. The parts and the residual add up to the gap, to the cent. The residual is the rest: "
        "factors that are unknown, such as a fee that an answer does not state, and what the market simply charges "
        "more or less. Pairs that meet are left out, even if "
        "the supplier's exchange rate makes them differ: see exchange rates. Explained is the share of the gaps that "
        "is not residual. Not stated is the residual of pairs with an unknown factor, and own price that of pairs "
        "whose factors are all known: the market charges another price for the same offer. The chart shows "
        "exact pairs of list answers in the currency of most of them; grades are never mixed, nor currencies compared.",
        parts,
        drawn,
        [
            *named(match_grade="Match", source="Answers", market="Market", product_type="Product"),
            Column("comparable", "Pairs", digits=0),
            Column("gap", "Gap", digits=2, currency="currency", is_change=True),
            *(Column(part, said("part", part).capitalize(), digits=2, is_change=True) for part in _PARTS),
            Column("explained_pct", "Explained", "%", 0),
            *(
                [Column("unstated_pct", "Not stated", "%", 0), Column("own_price_pct", "Own price", "%", 0)]
                if "own_price_pct" in parts.columns
                else []
            ),
        ],
        why_empty=ONE_MARKET,
        source="report.gap_decomposition",
        lines=lines,
    )


def _steps(row: dict[str, Any]) -> AnyChart:
    steps: list[dict[str, object]] = []
    reached = 0.0
    for part in _PARTS:
        amount = float(row[part]) if row[part] is not None else 0.0
        label = said("part", part) if row[part] is not None else f"{said('part', part)} (not stated)"
        kind = "dearer" if amount > 0 else "cheaper"
        steps.append({"part": label, "from": reached, "to": reached + amount, "kind": kind, "amount": amount})
        reached += amount
    steps.append({"part": "gap", "from": 0.0, "to": reached, "kind": "the gap", "amount": reached})
    bars_of = pl.DataFrame(steps).with_columns(
        pl.max_horizontal("from", "to").alias("top"),
        pl.col("amount").map_elements(lambda it: f"{'+' if it > 0 else ''}{shown(it, 2)}", pl.String).alias("text"),
    )
    low, high = min(0.0, *bars_of["from"], *bars_of["to"]), max(0.0, *bars_of["from"], *bars_of["to"])
    # Steps run down the page, so that their names fit on a phone; amounts are right of the bars.
    across = alt.Scale(domain=[low, high + _FOR_AMOUNTS * ((high - low) or 1.0)], nice=False)
    base = chart(bars_of, height=_STEP * bars_of.height).encode(
        y=alt.Y("part:N", title=None, sort=None, axis=alt.Axis(labelOverlap=False, labelLimit=170))
    )
    bars = base.mark_bar().encode(
        x=alt.X("from:Q", title=f"Sum over the pairs, {row['currency']}", scale=across),
        x2=alt.X2("to"),
        color=alt.Color(
            "kind:N", title=None, scale=alt.Scale(domain=["dearer", "cheaper", "the gap"], range=[BAD, GOOD, SOFT])
        ),
    )
    amounts = base.mark_text(align="left", dx=4, color=INK, fontSize=11).encode(x="top:Q", text="text:N")
    return alt.layer(bars, amounts).properties(width=WIDTH, height=_STEP * bars_of.height)


def exchange_rates(reader: Reader) -> Section:
    """Return how far the supplier's rates are from the reference rates."""
    rates = reader.rows("report.fx_markup_by_currency", order="source DESC, market, base_currency, currency")
    off = rates.filter(pl.col("beyond_rounding") > 0).sort(
        [pl.col("median_markup_pct").abs(), "source", "market", "currency"], descending=[True, True, False, False]
    )
    # An offer in both kinds of answers is counted once: as most titles of the page do, in list answers.
    source = "multi" if "multi" in off["source"] else "detail"
    off = off.filter(pl.col("source") == source)
    most = off.row(0, named=True) if off.height else None
    kind = "" if source == "multi" else f" of {said('source', source)} answers"
    deviate = counted(int(off["beyond_rounding"].sum()), f"offer{kind} deviates", f"offers{kind} deviate")
    return Section(
        "fx_markup",
        f"{most['market']} is furthest from the reference rate, {most['currency']} against {most['base_currency']}: "
        f"median {percent(most['median_markup_pct'], 2, is_change=True)}"
        if most and abs(most["median_markup_pct"]) >= _SEEN_PCT
        else f"{deviate} from the reference rate; the median offer does not"
        if most
        else "No offer deviates from the reference rate by more than rounding explains"
        if rates.height
        else "No offer has prices in two currencies with a reference rate",
        "The same offer requested in two currencies, against the reference rate of the day. Above 0, the supplier's "
        "rate is dearer. A gap between the supplier's rate and the reference rate is one case per market and currency "
        "pair, not a disparity between markets. The title is about list answers, unless only detail answers deviate; "
        "the two are separate series.",
        rates,
        columns=[
            *named(source="Answers", market="Market", currency="Currency", base_currency="Against"),
            *whole(pairs="Pairs", beyond_rounding="Beyond rounding"),
            Column("median_markup_pct", "Median mark-up", "%", 2, is_change=True),
            Column("lowest_markup_pct", "Lowest", "%", 2, is_change=True),
            Column("highest_markup_pct", "Highest", "%", 2, is_change=True),
        ],
        why_empty="This section needs two currencies in one market, and reference rates: `nightaudit load rates FILE`",
        source="report.fx_markup_by_currency",
    )
