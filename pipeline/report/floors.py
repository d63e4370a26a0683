"""The sections of the parity page that are about floors: of offers, of selling prices, and of packages."""

import altair as alt
import polars as pl

from pipeline.domain.quantities import counted
from pipeline.report.chart_kinds import around_zero, calendar
from pipeline.report.charts import BAD, GOOD, chart, svg
from pipeline.report.page import Column, Section, named, whole
from pipeline.report.read import Reader

_NO_FLOOR = "No hotel-only offer within these limits states a floor."

# What can become of a selling price that an offer matches.
_JUDGED = ("comparable", "without_floor", "not_comparable")
_LOADED_SINCE = (
    "SELECT 1 FROM lake.selling_price AS price "
    "WHERE price.loaded_at > (SELECT max(sweep.finished_at) FROM mart.sweep AS sweep) LIMIT 1"
)


def headroom(reader: Reader) -> Section:
    """Return how far floors are from totals."""
    bands = reader.figures("floor_band")
    drawn = (
        chart(bands.with_columns(to_pct=pl.col("from_pct") + 1), height=190)
        .mark_bar()
        .encode(
            x=alt.X("from_pct:Q", bin="binned", title="Floor against total, percent (30 and more at the ends)"),
            x2=alt.X2("to_pct"),
            y=alt.Y("sum(offers):Q", title="Offers"),
            color=alt.condition("datum.from_pct >= 0", alt.value(BAD), alt.value(GOOD)),
        )
    )
    above = int(bands.filter(pl.col("from_pct") >= 0)["offers"].sum())
    return Section(
        "headroom",
        f"{above:,} of {int(bands['offers'].sum()):,} floors are at or above the total"
        if bands.height
        else "No floor is stated",
        "The mark-up on the total at which the floor is reached; above 0, an offer can only be sold with a mark-up. "
        "Hotel-only offers of list answers; packages have no floor, and a floor that is missing or 0 counts as none.",
        bands,
        [svg(drawn)] if bands.height else (),
        why_empty=_NO_FLOOR,
        source="mart.floor_headroom",
    )


def headroom_calendar(reader: Reader) -> Section:
    """Return how close the closest floor of each property and check-in is to its total."""
    days = reader.named(reader.figures("floor_day"))
    painted = calendar(
        days,
        "closest_pct",
        "Closest floor, percent (above 0: above the total)",
        pl.col("closest_pct").max(),
        around_zero(days["closest_pct"]),
    )
    above = days.filter(pl.col("above_total") > 0).height
    return Section(
        "headroom_calendar",
        f"A floor is at or above its total on {above:,} of {counted(days.height, 'check-in')} (a date counts once for "
        "each property)"
        if days.height
        else "No property and check-in has a floor",
        "The highest floor of a property and check-in, in percent of its offer's total: the mark-up at which it is "
        "reached. The chart shows the properties with the highest floors, at most 40, on the first 60 check-ins. A "
        "blank field has no stated floor.",
        days,
        painted,
        why_empty=_NO_FLOOR,
        source="mart.floor_headroom",
    )


def floor_compliance(reader: Reader) -> Section:
    """Return how many selling prices keep the floor."""
    compliance = reader.rows("report.floor_compliance", order="match_grade DESC, source DESC, market, currency_basis")
    # A price is compared with the list and the detail answer of its offer, but counted only for the list.
    exact = compliance.filter((pl.col("source") == "multi") & (pl.col("match_grade") == "exact"))
    # A converted price keeps a floor within a larger tolerance, so the title counts them only if there are no others.
    is_converted = pl.col("currency_basis") == "reference_rate"
    same, converted = exact.filter(~is_converted), exact.filter(is_converted)
    on = same if same["comparable"].sum() else converted
    breaches, comparable = int(on["breaches"].sum()), int(on["comparable"].sum())
    others = int(exact["comparable"].sum()) - comparable
    at_rate = " at the reference rate" if on is converted else ""
    later = 0
    # Judging all prices once more takes as long as the rest of the section.
    if breaches and not reader.query(_LOADED_SINCE).is_empty():
        later = reader.total("floor_breach_new")["prices_converted" if at_rate else "prices"]
    return Section(
        "floor_compliance",
        (
            f"{breaches:,} of {counted(comparable, 'selling price')} "
            f"{'lies' if breaches == 1 else 'lie'} below the floor{at_rate}"
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
        "compliant; one that is outdated, older than the first answer about its stay, below only one of the floors of "
        "the answers before and after it, or without a reference rate is not comparable. No offer: none that matches "
        "the price was read, so it is compared on no basis. Prices of stays that have begun are left out. Prices are "
        "judged as they are loaded, and findings are made with each night. The title counts prices that name room, "
        "board and policy, against list answers"
        + (f", and leaves out {others:,} that had to be converted" if others else "")
        + "; the other rows are of prices that name less, or of detail answers, and are never added to it.",
        compliance,
        columns=[
            *named(match_grade="Match", source="Answers", market="Market", currency_basis="Compared on"),
            *whole(planned="Prices", comparable="Comparable", kept="At or above", breaches="Below"),
            *whole(without_floor="No floor", not_comparable="Not comparable", no_offer="No offer"),
            Column("median_below_pct", "Median below", "%", 1),
        ],
        why_empty="Load your selling prices to compare them with the floors: `nightaudit load prices FILE`",
        source="report.floor_compliance",
        lines=compliance.with_columns(no_offer=pl.col("planned") - pl.sum_horizontal(_JUDGED)),
    )


def packages(reader: Reader) -> Section:
    """Return what packages cost less, and where that lies below the floor."""
    found = reader.rows("report.package_discount", order="source DESC, market")
    exposed = int(found.filter(pl.col("source") == "multi")["exposed"].sum())
    return Section(
        "package_discount",
        f"{counted(exposed, 'package total lies', 'package totals lie')} below the hotel-only floor"
        if found.height
        else "No package could be compared",
        "The same offer alone and in a package, seen in one sweep. A package total below the hotel-only floor breaks "
        "parity if it is shown on its own. The title counts list answers; detail answers are a separate series.",
        found,
        columns=[
            *named(source="Answers", market="Market"),
            *whole(planned="Planned cells", answered="Answered", comparable="Comparable", pairs="Pairs"),
            Column("median_discount_pct", "Median discount", "%", 1),
            Column("exposed", "Exposed", digits=0),
            Column("median_leak_pct", "Median leak", "%", 1),
        ],
        why_empty="This section needs hotel-only and package searches for the same stay in one sweep.",
        source="report.package_discount",
    )
