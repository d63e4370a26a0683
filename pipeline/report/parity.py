"""Parity: whether markets are priced alike, what the gaps consist of, and whether floors are kept."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import altair as alt
import polars as pl

from pipeline.report.charts import BAD, DIVERGING, GOOD, INK, SOFT, WIDTH, AnyChart, around_zero, calendar, chart, svg
from pipeline.report.findings import findings, flags
from pipeline.report.page import Column, Page, Section, counted, percent, share, shown
from pipeline.report.read import Reader
from pipeline.report.words import said

_RULES = ("floor_breach", "floor_what_if", "market_disparity", "all_in_gap", "fx_markup")
# Percent below which a median is written as 0.00.
_SEEN_PCT = 0.005
# Each offer once: at the supplier's own rate it was compared in the other currency that it was answered in.
_ONE_SERIES = "source = 'multi' AND currency_basis <> 'supplier_rate'"
_EXACT = f"match_grade = 'exact' AND {_ONE_SERIES}"
_VERDICT_COUNTS = "count(*) AS pairs, " + ", ".join(
    f"count(*) FILTER (WHERE verdict = '{verdict}') AS {verdict}" for verdict in ("win", "meet", "lose")
)
_SUMS = ", ".join(f"coalesce(sum({name}), 0)::BIGINT AS {name}" for name in ("pairs", "win", "meet", "lose"))
_VERDICTS = {"win": "#2c64a0", "meet": "#b9c6d2", "lose": "#b2412f"}
_PARTS = ("policy", "board", "tax_and_fee", "promotion", "fx", "residual")
_ONE_MARKET = (
    "Nothing could be compared yet: that takes the same stay in the reference market and in another one, answered in "
    "the same sweep, and reference rates where the currencies differ."
)
_WATERFALLS = 3
# Pixels of a step of a waterfall, and the part of its width that is kept for the amounts.
_STEP, _FOR_AMOUNTS = 24, 0.3
# Rows that a chart shows before they cannot be read any more.
_MOST_ROWS = 24


def page(reader: Reader) -> Page:
    """Return the report on rate parity."""
    score = reader.rows(
        "report.market_parity",
        order="match_grade DESC, source DESC, parity_score, market, product_type, currency, currency_basis",
    )
    exact = score.filter((pl.col("match_grade") == "exact") & (pl.col("source") == "multi"))
    found = flags(reader, _RULES)
    counts = _verdicts(reader)
    pairs, lose = counts["pairs"], counts["lose"]
    kept, kept_of_each = share(pairs - lose, pairs), share(counts["kept"], counts["properties"])
    # One property with many offers is not the market.
    each = "" if kept == kept_of_each else f"; {kept_of_each} where each property counts once"
    reference = reader.query("SELECT reference_market FROM mart.reference_market").to_series().to_list()
    against = f"the reference market {reference[0]}" if reference and reference[0] else "the reference market"
    return Page(
        "parity",
        f"{kept} of the offers are no dearer than in {against}{each}"
        if pairs
        else "No offer could be compared with another market",
        f"Prices of each market against {against}, like for like; and selling prices against the floor.",
        (
            _score(score, exact),
            _calendar(reader),
            findings(
                "findings",
                found,
                "Prices below the floor, markets that deviate, fees that differ where totals do not.",
                "No findings on parity or floors are open.",
            ),
            _persistence(reader),
            _waterfall(reader),
            _headroom(reader),
            _floors(reader),
            _packages(reader),
            _currencies(reader),
        ),
        tiles=[
            (shown(pairs, 0), "like-for-like pairs"),
            (shown(counts["win"], 0), "win: cheaper"),
            (shown(counts["meet"], 0), "meet: within the tolerance"),
            (shown(lose, 0), "lose: dearer"),
            (shown(found.height, 0), "findings"),
        ],
    )


def _verdicts(reader: Reader) -> dict[str, Any]:
    """Return how exact pairs compare, and of how many properties they are: `kept` adds up the shares of each."""
    limits, values = reader.scope.condition("property_id", "market", "check_in")
    query = f"""
        SELECT {_SUMS}, count(*) AS properties,
            coalesce(sum((1 - lose / pairs)::DECIMAL(18, 9)), 0)::DOUBLE AS kept
        FROM (
            SELECT {_VERDICT_COUNTS} FROM mart.market_parity WHERE {_EXACT} AND {limits} GROUP BY property_id
        )
    """  # noqa: S608 - our own names; what users give is a parameter
    return reader.query(query, values).row(0, named=True)


def _score(score: pl.DataFrame, exact: pl.DataFrame) -> Section:
    counted = exact.filter(pl.col("is_counted") & (pl.col("pairs") > 0))
    worst = counted.sort("parity_score", "market", "product_type", "currency")
    lowest = worst.head(_MOST_ROWS)
    index = ["market", "product_type", "currency", "pairs"]
    long = lowest.unpivot(list(_VERDICTS), index=index, variable_name="verdict", value_name="offers").with_columns(
        (100 * pl.col("offers") / pl.col("pairs")).alias("share"),
        pl.concat_str(["market", "product_type", "currency"], separator=", ").alias("row"),
        pl.col("verdict").replace_strict({name: place for place, name in enumerate(_VERDICTS)}).alias("place"),
    )
    drawn = (
        chart(long, height=max(40, 24 * lowest.height))
        .mark_bar()
        .encode(
            x=alt.X("share:Q", title="Offers, percent of the pairs", scale=alt.Scale(domain=[0, 100])),
            y=alt.Y("row:N", title=None, sort=None),
            order=alt.Order("place:Q"),
            color=alt.Color(
                "verdict:N", title=None, scale=alt.Scale(domain=list(_VERDICTS), range=list(_VERDICTS.values()))
            ),
        )
    )
    first = worst.row(0, named=True) if worst.height else None
    return Section(
        "score",
        f"Lowest score: {first['market']} ({first['product_type']}, {first['currency']}), "
        f"{first['parity_score']:.1f} of 100 by offers, {first['property_score']:.1f} by properties"
        if first
        else "No market could be compared",
        "The chart shows exact pairs of list answers: same room, board, policy, stay and party, seen in one sweep. Win "
        "and lose are beyond the tolerance. Pairs of other grades (same board family, or cheapest only) compare "
        "different products: they have rows of their own and are never added to exact ones. Nor are scores of "
        "different currency bases: a market's score uses pairs in one currency wherever there are any.",
        score,
        [svg(drawn, _of_all(lowest.height, worst.height))] if worst.height else (),
        [
            Column("match_grade", "Match"),
            Column("source", "Answers"),
            Column("market", "Market"),
            Column("product_type", "Product"),
            Column("currency", "Currency"),
            Column("currency_basis", "Compared on"),
            Column("pairs", "Pairs", digits=0),
            Column("parity_score", "Score", digits=1),
            Column("property_score", "By property", digits=1),
            Column("market_score", "By market", digits=1),
            Column("weighted_parity_score", "Weighted", digits=1),
            *([Column("market_weight", "Weight of the market", digits=2)] if _are_weighed(score) else []),
            Column("median_gap_pct", "Median gap", "%", 2, is_change=True),
        ],
        why_empty=_ONE_MARKET,
        source="report.market_parity",
    )


def _are_weighed(score: pl.DataFrame) -> bool:
    return score.filter(pl.col("market_weight") != 1).height > 0


def _of_all(drawn: int, in_all: int) -> str:
    return f"The chart shows the {drawn} lowest scores, of {in_all}." if drawn < in_all else ""


def _calendar(reader: Reader) -> Section:
    limits, values = reader.scope.condition("property_id", "market", "check_in")
    days = reader.named(
        reader.query(
            "SELECT property_id, check_in, count(*) AS pairs, count(*) FILTER (WHERE verdict = 'lose') AS lose, "  # noqa: S608 - our own names; what users give is a parameter
            f"median(gap_pct) AS median_gap_pct FROM mart.market_parity WHERE {_EXACT} AND {limits} "
            "GROUP BY property_id, check_in ORDER BY property_id, check_in",
            values,
        )
    )
    apart = (
        days.group_by("property_id")
        .agg(pl.col("median_gap_pct").abs().max().alias("furthest"))
        .sort("furthest", "property_id", descending=[True, False])
    )
    painted = calendar(
        days,
        "median_gap_pct",
        "Median gap, percent (above 0: dearer)",
        properties=apart["property_id"],
        scale=around_zero(days["median_gap_pct"], DIVERGING[::-1]),
    )
    losing = days.filter(pl.col("lose") > 0).height
    return Section(
        "calendar",
        f"Some market is dearer on {losing:,} of {counted(days.height, 'property day')}"
        if days.height
        else "No property day could be compared",
        "Median gap to the reference market over the exact pairs of a property and check-in. The chart shows the "
        "properties with the largest gaps, at most 40, on the first 60 check-ins. A blank field was not comparable.",
        days,
        [svg(painted)] if days.height else (),
        why_empty=_ONE_MARKET,
        source="mart.market_parity",
    )


def _persistence(reader: Reader) -> Section:
    resolution = reader.rows("report.parity_resolution", order="source DESC, market")
    # As the pairs that the page begins with: an offer of a detail answer, or in a second currency, is the same offer.
    running = reader.counts("count(*) AS offers", "mart.parity_episode", f"is_running AND {_ONE_SERIES}")["offers"]
    return Section(
        "persistence",
        f"{counted(running, 'offer is', 'offers are')} currently dearer than in the reference market"
        if running
        else "No offer is dearer than in the reference market",
        "An episode is a run of sweeps in which an exact pair, on one currency basis, was dearer. Nights without an "
        "answer neither count nor end it. Open episodes have no time to resolve and are in no median. The title "
        "counts each offer of a list answer once; the table counts it again in a second currency.",
        resolution,
        columns=[
            Column("source", "Answers"),
            Column("market", "Market"),
            Column("reference_market", "Against"),
            Column("episodes", "Episodes", digits=0),
            Column("running", "Running", digits=0),
            Column("resolved", "Resolved", digits=0),
            Column("median_days_to_resolve", "Median to resolve", "days", 1),
            Column("longest_running_days", "Longest running", "days", 1),
        ],
        why_empty="No exact pair has been dearer so far.",
        source="report.parity_resolution",
    )


def in_one_currency(parts: pl.DataFrame) -> pl.DataFrame:
    """Return the rows in the currency that most pairs are compared in: sums in different ones cannot be compared."""
    most = (
        parts.group_by("currency")
        .agg(pl.col("comparable").sum())
        .sort("comparable", "currency", descending=[True, False])
    )
    return parts.join(most.head(1), on="currency", how="semi")


def _waterfall(reader: Reader) -> Section:
    parts = reader.rows(
        "report.gap_decomposition", order="match_grade DESC, source DESC, market, product_type, currency"
    )
    # The closest comparison that there is: grades are never shown as if they were one.
    exact = parts.filter(
        (pl.col("source") == "multi") & (pl.col("match_grade") == "exact") & (pl.col("comparable") > 0)
    )
    largest = in_one_currency(exact).sort(pl.col("gap").abs(), descending=True).head(_WATERFALLS)
    drawn = [svg(_steps(row), _pairs_of(row)) for row in largest.iter_rows(named=True)]
    first = largest.row(0, named=True) if largest.height else None
    return Section(
        "gap_decomposition",
        f"{first['market']} ({first['product_type']}) has the largest sum of gaps in {first['currency']}: "
        f"{_signed(first['gap'])} over {counted(first['comparable'], 'pair')}, {first['explained_pct']:.0f}% explained"
        if first
        else "There is no gap to explain",
        "From the reference market's offer to the market's, one factor at a time: policy, board, taxes and fees, "
        "promotion, currency. The parts and the residual add up to the gap, to the cent; a part that the answers do "
        "not state is in the residual, and so is what the market asks by itself. Pairs that meet are left out, also "
        "where only the supplier's rate sets them apart: that is under exchange rates. Explained is the share of the "
        "gaps that is not residual; not stated is the part of it in pairs of which something is not known, and own "
        "price the rest: everything is known, and the market asks another price for the same offer. The chart shows "
        "exact pairs of list answers in the currency of most of them; grades are never mixed, nor currencies compared.",
        parts,
        drawn,
        [
            Column("match_grade", "Match"),
            Column("source", "Answers"),
            Column("market", "Market"),
            Column("product_type", "Product"),
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
        why_empty=_ONE_MARKET,
        source="report.gap_decomposition",
    )


def _pairs_of(row: dict[str, Any]) -> str:
    return f"{row['market']}, {row['product_type']}, {row['currency']}: {counted(row['comparable'], 'exact pair')}"


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
    told = pl.DataFrame(steps).with_columns(
        pl.max_horizontal("from", "to").alias("top"),
        pl.col("amount").map_elements(_signed, return_dtype=pl.String).alias("text"),
    )
    low, high = min(0.0, *told["from"], *told["to"]), max(0.0, *told["from"], *told["to"])
    # Steps go down the page, so that their names have room on a phone too, and the amounts stand right of the bars.
    across = alt.Scale(domain=[low, high + _FOR_AMOUNTS * ((high - low) or 1.0)], nice=False)
    base = chart(told, height=_STEP * told.height).encode(
        y=alt.Y("part:N", title=None, sort=None, axis=alt.Axis(labelOverlap=False, labelLimit=170))
    )
    bars = base.mark_bar().encode(
        x=alt.X("from:Q", title=f"Sum over the pairs, {row['currency']}", scale=across),
        x2=alt.X2("to"),
        color=alt.Color(
            "kind:N",
            title=None,
            scale=alt.Scale(domain=["dearer", "cheaper", "the gap"], range=[BAD, GOOD, SOFT]),
        ),
    )
    amounts = base.mark_text(align="left", dx=4, color=INK, fontSize=11).encode(x="top:Q", text="text:N")
    return alt.layer(bars, amounts).properties(width=WIDTH, height=_STEP * told.height)


def _signed(amount: float | Decimal) -> str:
    return f"{'+' if amount > 0 else ''}{shown(amount, 2)}"


def _headroom(reader: Reader) -> Section:
    limits, values = reader.scope.condition("property_id", "market", "check_in")
    bands = reader.query(
        "SELECT market, greatest(-30, least(30, floor(headroom_pct)))::INTEGER AS from_pct, count(*) AS offers "  # noqa: S608 - our own names; what users give is a parameter
        f"FROM mart.floor_headroom WHERE source = 'multi' AND headroom_pct IS NOT NULL AND {limits} "
        "GROUP BY ALL ORDER BY ALL",
        values,
    )
    drawn = (
        chart(bands, height=190)
        .mark_bar()
        .encode(
            x=alt.X("from_pct:Q", bin="binned", title="Floor against total, percent (30 and more at the ends)"),
            x2=alt.X2("to_pct"),
            y=alt.Y("sum(offers):Q", title="Offers"),
            color=alt.condition("datum.from_pct >= 0", alt.value(BAD), alt.value(GOOD)),
        )
        .transform_calculate(to_pct="datum.from_pct + 1")
    )
    above = int(bands.filter(pl.col("from_pct") >= 0)["offers"].sum())
    return Section(
        "headroom",
        f"{above:,} of {int(bands['offers'].sum()):,} floors lie at or above the total"
        if bands.height
        else "No floor is stated",
        "The mark-up on the total at which the floor is reached; above 0, an offer can only be sold with a mark-up. "
        "Hotel-only offers of list answers; packages have no floor, and a floor that is missing or 0 counts as none.",
        bands,
        [svg(drawn)] if bands.height else (),
        why_empty="No hotel-only offer within these limits states a floor.",
        source="mart.floor_headroom",
    )


def _floors(reader: Reader) -> Section:
    compliance = reader.rows("report.floor_compliance", order="match_grade DESC, source DESC, market")
    # A price is held against the list and the detail of its offer: it counts once, by the list.
    closest = compliance.filter((pl.col("source") == "multi") & (pl.col("match_grade") == "exact"))
    breaches, comparable = int(closest["breaches"].sum()), int(closest["comparable"].sum())
    # Findings are made with a night, and prices are judged as soon as they are loaded.
    later = reader.counts(
        "count(*) AS prices",
        "report.floor_breach",
        "source = 'multi' AND match_grade = 'exact' AND flag_id NOT IN (SELECT flag_id FROM report.flag)",
    )["prices"]
    return Section(
        "floor_compliance",
        (
            f"{breaches:,} of {counted(comparable, 'selling price')} "
            f"{'lies' if breaches == 1 else 'lie'} below the floor"
            + (
                f"; {later:,} of them {'becomes a finding' if later == 1 else 'become findings'} with the next night"
                if later
                else ""
            )
            if comparable
            else "No selling price could be compared with the floor of its exact offer"
        )
        if compliance.height
        else "No selling prices are loaded",
        "Your selling prices against the floors of the offers that match them. A price without a floor never counts as "
        "compliant; one that is outdated, older than the first answer about its stay, or without a reference rate is "
        "not comparable. Prices are judged as they are loaded, and findings are made with each night. The title counts "
        "prices that name room, board and policy, against list answers; the other rows compare the same prices less "
        "closely.",
        compliance,
        columns=[
            Column("match_grade", "Match"),
            Column("source", "Answers"),
            Column("market", "Market"),
            Column("planned", "Prices", digits=0),
            Column("comparable", "Comparable", digits=0),
            Column("kept", "Kept", digits=0),
            Column("breaches", "Below", digits=0),
            Column("without_floor", "No floor", digits=0),
            Column("median_below_pct", "Median below", "%", 1),
        ],
        why_empty="Load your selling prices to compare them with the floors: nightaudit load prices FILE",
        source="report.floor_compliance",
    )


def _packages(reader: Reader) -> Section:
    packages = reader.rows("report.package_discount", order="source DESC, market")
    exposed = int(packages.filter(pl.col("source") == "multi")["exposed"].sum())
    return Section(
        "package_discount",
        f"{counted(exposed, 'package total lies', 'package totals lie')} below the hotel-only floor"
        if packages.height
        else "No package could be compared",
        "The same offer alone and in a package, seen in one sweep. A package total below the hotel-only floor breaks "
        "parity if it is shown on its own. The title counts list answers; detail answers are a separate series.",
        packages,
        columns=[
            Column("source", "Answers"),
            Column("market", "Market"),
            Column("planned", "Planned cells", digits=0),
            Column("answered", "Answered", digits=0),
            Column("comparable", "Comparable", digits=0),
            Column("pairs", "Pairs", digits=0),
            Column("median_discount_pct", "Median discount", "%", 1),
            Column("exposed", "Exposed", digits=0),
            Column("median_leak_pct", "Median leak", "%", 1),
        ],
        why_empty="This section needs hotel-only and package searches for the same stay in one sweep.",
        source="report.package_discount",
    )


def _currencies(reader: Reader) -> Section:
    rates = reader.rows("report.fx_markup_by_currency", order="source DESC, market, base_currency, currency")
    off = rates.filter(pl.col("beyond_rounding") > 0).sort(
        [pl.col("median_markup_pct").abs(), "source", "market", "currency"], descending=[True, True, False, False]
    )
    most = off.row(0, named=True) if off.height else None
    return Section(
        "fx_markup",
        f"{most['market']} is furthest from the reference rate, {most['currency']} against {most['base_currency']}: "
        f"{percent(most['median_markup_pct'], 2, is_change=True)} in the median"
        if most and abs(most["median_markup_pct"]) >= _SEEN_PCT
        else f"{counted(int(off['beyond_rounding'].sum()), 'offer deviates', 'offers deviate')} from the reference "
        "rate; the median does not"
        if most
        else "No offer deviates from the reference rate by more than rounding explains"
        if rates.height
        else "No offer has prices in two currencies with a reference rate",
        "The same offer asked for in two currencies, against the reference rate of the day. Above 0, the supplier's "
        "rate is dearer. A gap between the supplier's rate and the reference rate is shown only here, once per market "
        "and currency pair; it is not a disparity between markets.",
        rates,
        columns=[
            Column("source", "Answers"),
            Column("market", "Market"),
            Column("currency", "Currency"),
            Column("base_currency", "Against"),
            Column("pairs", "Pairs", digits=0),
            Column("beyond_rounding", "Beyond rounding", digits=0),
            Column("median_markup_pct", "Median mark-up", "%", 2, is_change=True),
            Column("lowest_markup_pct", "Lowest", "%", 2, is_change=True),
            Column("highest_markup_pct", "Highest", "%", 2, is_change=True),
        ],
        why_empty="This section needs two currencies in one market, and reference rates: nightaudit load rates FILE",
        source="report.fx_markup_by_currency",
    )
