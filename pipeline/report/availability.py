"""Availability and prices: what is on sale, how it sells out, and how prices move towards the stay."""

from collections.abc import Iterator, Sequence

import polars as pl

from pipeline.domain.quantities import counted
from pipeline.report.chart_kinds import shares, towards_the_stay
from pipeline.report.charts import svg
from pipeline.report.on_sale_calendar import on_sale_calendar
from pipeline.report.page import Column, Page, Section, named, percent, share, shown, whole
from pipeline.report.read import Reader
from pipeline.report.words import are_alike, first_of, said

_TWICE = "This section needs two nights that saw the same offers."
# The most rows that are readable in a chart.
_MOST_ROWS = 24
_LEAD_DAYS_SHOWN = 10
# States of an answered cell, with words and colours.
_STATES = {"offered": ("on sale", "#2c64a0"), "no_offer": ("no offer", "#b08d1a"), "absent": ("absent", "#b9c6d2")}


def page(reader: Reader) -> Page:
    """Return the report on availability and prices over time."""
    latest = reader.rows(
        "report.availability",
        where="sweep_id = (SELECT max_by(sweep_id, started_at) FROM mart.sweep)",
        order="operation, availability, market, product_type",
    )
    # List and detail answers cover different properties; lists cover all.
    operation = "multi" if "multi" in latest["operation"] else "single"
    of_each = {row["operation"]: row for row in reader.figures("answered_total").rows(named=True)}
    counts = of_each.get(operation, dict.fromkeys(("answered", "offered", "no_offer", "absent"), 0))
    answered, offered = counts["answered"], counts["offered"]
    return Page(
        "availability",
        f"{share(offered, answered)} of the cells answered by {said('operation', operation)} searches are on sale"
        if answered
        else "No search within these limits was answered",
        "What can be booked, when it sells out, and how prices change as check-in approaches. A cell is one property "
        "in one market for one stay and party.",
        _sections(reader, latest),
        tiles=[
            (shown(answered, 0), "cells answered"),
            (shown(offered, 0), "cells on sale"),
            (shown(counts["no_offer"], 0), "without an offer"),
            (shown(counts["absent"], 0), "absent from answers"),
        ],
    )


def _sections(reader: Reader, latest: pl.DataFrame) -> Iterator[Section]:
    yield _by_market(latest)
    yield on_sale_calendar(reader)
    yield _sell_out(reader)
    yield _path(reader)
    yield _volatility(reader)
    yield _regret(reader)


def _by_market(latest: pl.DataFrame) -> Section:
    listed = latest.filter(pl.col("answered") > 0).sort("availability", "market", "product_type", "operation")
    # List and detail searches cover different properties, so only one kind is drawn.
    operation = "multi" if "multi" in listed["operation"] else "single"
    of_one = listed.filter(pl.col("operation") == operation)
    rows = of_one.head(_MOST_ROWS)
    drawn = shares(rows, ["market", "product_type"], _STATES, "Percent of the answered cells")
    left = (
        f"The chart shows the {rows.height} with the least on sale, of {of_one.height}."
        if rows.height < of_one.height
        else ""
    )
    least = of_one.row(0, named=True) if of_one.height else None
    printed = [share(*row) for row in of_one.select("offered", "answered").iter_rows()]
    return Section(
        "availability",
        f"Every market has the same share on sale: {printed[0]} of the cells"
        if are_alike(printed)
        else first_of(f"{least['market']} ({least['product_type']}, {said('operation', least['operation'])})", printed)
        + f" the least on sale: {printed[0]} of {_cells(of_one, printed)}"
        if least
        else "Nothing was answered",
        "On sale: the cell has an offer. Absent: the answer does not name the property at all, which is not the same "
        "as sold out; the figures list the supplier's codes. "
        "List and detail searches cover different properties, so their shares are not comparable; the chart shows "
        f"{said('operation', operation)} searches.",
        latest,
        [svg(drawn, left)] if listed.height else (),
        [
            *named(market="Market", product_type="Product", operation="Search"),
            *whole(answered="Answered", offered="On sale", no_offer="No offer", absent="Absent"),
        ],
        why_empty="No cell within these limits was answered in the latest sweep.",
        source="report.availability",
    )


def _cells(rows: pl.DataFrame, printed: Sequence[str]) -> str:
    """Return the number of cells of those with the least on sale, which may have different numbers."""
    numbers = rows.head(printed.count(printed[0]))["answered"]
    return counted(numbers[0], "cell") if numbers.n_unique() == 1 else "their cells"


def _sell_out(reader: Reader) -> Section:
    curves = reader.rows(
        "report.sell_out_curve", where="operation = 'multi'", order="ending DESC, market, product_type, lead_days DESC"
    )
    sold_out = int(curves.filter(pl.col("ending") == "sold_out")["ended"].sum())
    # Always the curve of this ending, or the first cell that is answered without a room would turn it into another one.
    curve = curves.filter(pl.col("ending") == "off_sale")
    ended = int(curve["ended"].sum())
    return Section(
        "sell_out_curve",
        f"{counted(ended, 'cell')} went off sale while observed, {sold_out or 'none'} of them answered without a room"
        if ended
        else "No cell has gone off sale yet",
        "The estimated share of cells still on sale, by days before check-in. A cell goes off sale when it is answered "
        "without an offer, whatever the reason. Answered without a room: the answer names the property without one, or "
        "has the code 1023 or 1025; the other cells are absent from the answer, or have another code. A cell still on "
        "sale counts for as long as it was observed; where few are left (at_risk in the figures), the estimate is "
        "poor. Re-openings are separate. The figures also have the ending `sold_out`, in which only an answer without "
        "a room ends a cell: its share is of cells that have had no such answer, on sale or not.",
        curves,
        towards_the_stay(
            curve.with_columns(pl.col("on_sale_share") * 100),
            "on_sale_share",
            "Still on sale, percent (estimate)",
            weight="at_risk",
            steps=True,
        )
        if ended
        else (),
        why_empty="No cell that was on sale was answered without an offer later."
        if int(curves["at_risk"].sum())
        else "This section needs two nights that answered the same cells.",
        source="report.sell_out_curve",
    )


def _path(reader: Reader) -> Section:
    path = reader.rows("report.price_path", where="source = 'multi' AND index_first IS NOT NULL")
    pairs = int(path["pairs"].sum())
    rose, fell = int(path["raised"].sum()), int(path["lowered"].sum())
    return Section(
        "price_path",
        f"Over all nights, {counted(rose, 'price')} rose and {fell:,} fell, of {pairs:,} comparisons"
        if pairs
        else "No price has been seen twice yet",
        "Each offer on sale on both nights, two in a row that requested it, is compared with itself. A change in what "
        "is on sale does not count as a price change, nor does an offer that comes back at another price. The chained "
        "index shows direction, not level: each market and product type starts at 100.",
        path,
        towards_the_stay(path, "index_first", "Index, first lead time = 100", weight="pairs") if pairs else (),
        why_empty=_TWICE,
        source="report.price_path",
    )


def _volatility(reader: Reader) -> Section:
    path = reader.rows("report.price_path", where="source = 'multi' AND volatility_pct IS NOT NULL")
    most = (
        path.sort(["volatility_pct", "lead_days", "market"], descending=True).row(0, named=True)
        if path.height
        else None
    )
    return Section(
        "volatility",
        f"Prices moved most {counted(most['lead_days'], 'day')} before check-in ({most['market']}, "
        f"{most['product_type']}): {percent(most['volatility_pct'])} between two answers"
        if most
        else "No volatility to show yet",
        "The typical size of the change between consecutive answers to the same offer (root mean square of the "
        "logarithms). Longer gaps between sweeps make it larger: compare lead times, not "
        "suppliers with different schedules.",
        path,
        towards_the_stay(path, "volatility_pct", "Change between answers, percent", weight="pairs", zero=True)
        if path.height
        else (),
        why_empty=_TWICE,
        source="report.price_path",
    )


def _regret(reader: Reader) -> Section:
    regret = reader.rows(
        "report.regret_of_waiting", order="source DESC, market, product_type, lead_days DESC"
    ).with_columns(gone_pct=100 * pl.col("gone_share"), cheaper_pct=100 * pl.col("cheaper_later_share"))
    lists = regret.filter((pl.col("source") == "multi") & pl.col("lowest_later_pct").is_not_null())
    # On the last day before check-in there is no later answer, so nothing to say.
    answered_later = regret.filter(pl.col("answered_later") > 0)
    lowest = "Lowest price later, percent"
    return Section(
        "regret_of_waiting",
        _waiting(regret),
        "What waiting gained or cost, for stays that have begun. 'Cheaper later' is the share of the offers seen again "
        "for which a lower price came; 'lowest later' is the mean change to the lowest later price over all of them, "
        "higher or lower: below 0, booking early cost more. Above 0 in 'last seen': waiting cost more. Offers that "
        "disappeared have no later price and are counted separately. The title is about a week before check-in; the "
        "chart shows 'lowest later' of list answers.",
        regret,
        towards_the_stay(lists, "lowest_later_pct", lowest, weight="comparable", zero=True) if lists.height else (),
        [
            *named(market="Market", product_type="Product", source="Answers"),
            *whole(lead_days="Lead days", comparable="Comparable"),
            Column("cheaper_pct", "Cheaper later", "%", 1),
            Column("lowest_later_pct", "Lowest later", "%", 1, is_change=True),
            Column("last_pct", "Last seen", "%", 1, is_change=True),
            Column("gone_pct", "Gone later", "%", 1),
        ],
        why_empty=f"This section fills once stays that were observed on several nights have begun{_from(reader)}."
        if answered_later.is_empty()
        else "",
        shown=_LEAD_DAYS_SHOWN,
        source="report.regret_of_waiting",
        lines=answered_later,
    )


def _from(reader: Reader) -> str:
    """Return when the first observed stay begins, in words; empty: none is ahead."""
    limits, values = reader.scope.condition("property_id", "market", "check_in")
    first = reader.query(
        f"SELECT min(check_in) FROM mart.cell_latest WHERE {limits} AND check_in > ("  # noqa: S608 - our own names; what users give is a parameter
        "SELECT max(snapshot_date) FROM mart.sweep)",
        values,
    ).item()
    return f"; the first of them begins on {first:%-d %b %Y}" if first else ""


def _waiting(regret: pl.DataFrame) -> str:
    """Return the effect of waiting from about a week ahead, where most offers are comparable."""
    known = regret.filter((pl.col("comparable") > 0) & pl.col("lowest_later_pct").is_not_null())
    if known.height == 0:
        return "No observed stay has begun yet"
    nearest = known.with_columns((pl.col("lead_days") - 7).abs().alias("off")).sort(
        ["off", "comparable", "source", "market", "product_type"], descending=[False, True, True, False, False]
    )
    row = nearest.row(0, named=True)
    change = percent(abs(row["lowest_later_pct"]))
    # A mean that is written as 0.0%.
    is_level = change == percent(0)
    lowest = "as high" if is_level else f"{change} {'lower' if row['lowest_later_pct'] < 0 else 'higher'}"
    cheaper = share(row["cheaper_later_share"], 1)
    return (
        f"Waiting from {counted(row['lead_days'], 'day')} before check-in ({row['market']}, {row['product_type']}): "
        f"a lower price came later for {cheaper} of the offers, and the lowest later price was {lowest} on average; "
        f"{percent(100 * row['gone_share'])} of the offers disappeared"
    )
