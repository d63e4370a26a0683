"""Parity: whether markets are priced alike, what the gaps consist of, and whether floors are kept."""

from collections.abc import Iterator, Sequence

import polars as pl

from pipeline.domain.quantities import counted
from pipeline.report.chart_kinds import around_zero, calendar, shares
from pipeline.report.charts import svg
from pipeline.report.findings import Flags, findings, flags
from pipeline.report.floors import floor_compliance, headroom, headroom_calendar, packages
from pipeline.report.gaps import ONE_MARKET, exchange_rates, gap_decomposition
from pipeline.report.page import Column, Page, Section, named, share, shown, whole
from pipeline.report.read import Reader
from pipeline.report.thresholds import thresholds, tolerance_said
from pipeline.report.words import are_alike, first_of

_VERDICTS = {
    "win": ("win: cheaper", "#2c64a0"),
    "meet": ("meet: within the tolerance", "#b9c6d2"),
    "lose": ("lose: dearer", "#b2412f"),
}
# The most rows that are readable in a chart.
_MOST_ROWS = 24
_SCORES_SHOWN = 12


def page(reader: Reader) -> Page:
    """Return the report on rate parity."""
    score = reader.rows(
        "report.market_parity",
        order="match_grade DESC, source DESC, parity_score, market, product_type, currency, currency_basis",
    )
    exact = score.filter((pl.col("match_grade") == "exact") & (pl.col("source") == "multi"))
    found = flags(reader, "parity")
    counts = reader.total("parity_total")
    pairs, lose = counts["pairs"], counts["lose"]
    kept, kept_of_each = share(pairs - lose, pairs), share(counts["kept"], counts["properties"])
    # A property with many offers must not dominate its market.
    each = "" if kept == kept_of_each else f"; {kept_of_each} if each property counts once"
    reference = reader.query("SELECT reference_market FROM mart.reference_market").to_series().to_list()
    against = f"the reference market {reference[0]}" if reference and reference[0] else "the reference market"
    # A converted price meets within a larger tolerance.
    at_rate = " at the reference rate" if counts["currency_basis"] == "reference_rate" else ""
    return Page(
        "parity",
        f"{kept} of the offers are no dearer than in {against}{at_rate}{each}"
        if pairs
        else "No offer could be compared with another market",
        f"Prices of each market against {against}, like for like; and selling prices against the floor."
        f"{_left_out(counts['pairs_left_out'])}"
        f"{_uncompared(reader.total('uncompared_total')['properties'], reference)}",
        _sections(reader, score, exact, found),
        tiles=[
            (shown(pairs, 0), "like-for-like pairs"),
            (shown(counts["win"], 0), "win: cheaper"),
            (shown(counts["meet"], 0), "meet: within the tolerance"),
            (shown(lose, 0), "lose: dearer"),
            (shown(found.number, 0), "findings"),
        ],
    )


def _sections(reader: Reader, score: pl.DataFrame, exact: pl.DataFrame, found: Flags) -> Iterator[Section]:
    yield _score(score, exact, tolerance_said(thresholds(reader)))
    yield _calendar(reader)
    yield findings(
        "findings",
        found,
        "Prices below the floor, markets that deviate, fees that differ where totals do not. Each selling price is "
        "judged once, when it is loaded, so a price below the floor is found on few nights.",
        "No findings on parity or floors are open. They appear as soon as a rule finds one.",
    )
    yield _persistence(reader)
    yield gap_decomposition(reader)
    yield headroom(reader)
    yield headroom_calendar(reader)
    yield floor_compliance(reader)
    yield packages(reader)
    yield exchange_rates(reader)


def _left_out(pairs: int) -> str:
    """Return how many pairs the title leaves out, because they were only compared at the reference rate."""
    if not pairs:
        return ""
    are = "is" if pairs == 1 else "are"
    return f" {counted(pairs, 'pair')} at the reference rate {are} left out of title and tiles."


def _uncompared(properties: int, reference: Sequence[str | None]) -> str:
    """Return how many properties the reference market does not sell, so that no finding is about their prices."""
    if not properties:
        return ""
    sold, compared = ("is", "it is") if properties == 1 else ("are", "they are")
    return (
        f" {counted(properties, 'property', 'properties')} {sold} sold in two or more other markets but not in "
        f"{reference[0]}: {compared} not compared."
    )


def _score(score: pl.DataFrame, exact: pl.DataFrame, tolerance: str) -> Section:
    counted = exact.filter(pl.col("is_counted") & (pl.col("pairs") > 0))
    worst = counted.sort("parity_score", "market", "product_type", "currency")
    lowest = worst.head(_MOST_ROWS)
    drawn = shares(lowest, ["market", "product_type", "currency"], _VERDICTS, "Offers, percent of the pairs")
    left = (
        f"The chart shows the {lowest.height} lowest scores, of {worst.height}." if lowest.height < worst.height else ""
    )
    # The table also has pairs on other bases, which may have lower scores.
    where = " in the chart" if counted.height < exact.filter(pl.col("pairs") > 0).height else ""
    first = worst.row(0, named=True) if worst.height else None
    printed = [f"{score:.1f}" for score in worst["parity_score"]]
    return Section(
        "score",
        f"Every market has the same parity score: {printed[0]} of 100"
        if are_alike(printed)
        else first_of(f"{first['market']} ({first['product_type']}, {first['currency']})", printed)
        + f" the lowest parity score{where}: {printed[0]} of 100; "
        f"{first['property_score']:.1f} if each property counts once"
        if first
        else "No market could be compared",
        "How a market's offers compare with the same offer in the reference market: win is cheaper, lose is dearer, "
        f"meet is within the tolerance ({tolerance}). The chart shows exact pairs of list answers: same room, board, "
        "policy, stay and party, seen in one sweep. Pairs of the same board family, or of the cheapest offers only, "
        "compare different products: they have rows of their own and are never added to exact ones. Where a "
        "market has pairs in one currency, title and chart show only these; the table also has those that were "
        "converted. The score is the percentage of pairs that win or meet. By property, each property counts once. By "
        "market, there is one score per market, over its pairs on the most reliable basis. Weighted, each pair counts "
        "as much as its property (`nightaudit load weights`; 1 if you have loaded none).",
        score,
        [svg(drawn, left)] if worst.height else (),
        [
            *named(
                match_grade="Match",
                source="Answers",
                market="Market",
                product_type="Product",
                currency="Currency",
                currency_basis="Compared on",
            ),
            Column("pairs", "Pairs", digits=0),
            Column("parity_score", "Score", digits=1),
            Column("property_score", "By property", digits=1),
            Column("market_score", "By market", digits=1),
            Column("weighted_parity_score", "Weighted", digits=1),
            *(
                [Column("market_weight", "Weight of the market", digits=2)]
                if (score["market_weight"] != 1).any()
                else []
            ),
            Column("median_gap_pct", "Median gap", "%", 2, is_change=True),
        ],
        why_empty=ONE_MARKET,
        shown=_SCORES_SHOWN,
        source="report.market_parity",
    )


def _calendar(reader: Reader) -> Section:
    days = reader.named(reader.figures_by_property("parity_day"))
    painted = calendar(
        days,
        "median_gap_pct",
        "Median gap, percent (above 0: dearer)",
        pl.col("median_gap_pct").abs().max(),
        around_zero(days["median_gap_pct"]),
        digits=1,
    )
    losing = days.filter(pl.col("lose") > 0).height
    return Section(
        "calendar",
        f"An offer is dearer on {losing:,} of {counted(days.height, 'check-in')} (a date counts once for each property)"
        if days.height
        else "No property and check-in could be compared",
        "Median gap to the reference market over the exact pairs of a property and check-in, in the market that "
        "differs most. The title counts check-ins with any dearer pair, in any market: if few are dearer, the median "
        "may still be 0 or below. The chart shows the properties with the largest gaps, at most 40, on the first 60 "
        "check-ins. A blank field was not comparable.",
        days,
        painted,
        why_empty=ONE_MARKET,
        source="mart.market_parity",
    )


def _persistence(reader: Reader) -> Section:
    resolution = reader.rows("report.parity_resolution", order="match_grade DESC, source DESC, market, currency_basis")
    running, converted = reader.total("parity_running").values()
    more = f"; {counted(converted, 'offer is', 'offers are')} at the reference rate" if converted else ""
    return Section(
        "persistence",
        f"{counted(running, 'offer is', 'offers are')} currently dearer than in the reference market{more}"
        if running or converted
        else "No offer is dearer than in the reference market",
        "An episode is a run of nights on which an offer was dearer than the same offer in the reference market, on "
        "one currency basis; below the exact grade, it follows the cheapest offer of a board family or cell, "
        "whichever offer that is. Nights without an answer neither count nor end it. Ended otherwise: the offer was "
        "gone or no longer requested, its stay began, or the reference market or the currency basis changed. The "
        "median is of resolved episodes. The title counts each exact offer of a list answer once; the rows of the "
        "currency bases are never added up, as an offer may be dearer on two.",
        resolution,
        columns=[
            *named(match_grade="Match", source="Answers", market="Market", reference_market="Against"),
            *named(currency_basis="Compared on"),
            *whole(episodes="Episodes", running="Running", resolved="Resolved", ended_otherwise="Ended otherwise"),
            Column("median_days_to_resolve", "Median to resolve", "days", 1),
            Column("longest_running_days", "Longest running", "days", 1),
        ],
        why_empty="No pair has been dearer so far. The first night on which one is fills this section.",
        source="report.parity_resolution",
    )
