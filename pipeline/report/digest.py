"""The nightly digest: what changed since the last night, on one page."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.report.charts import ACCENT, LINE, chart, svg
from pipeline.report.flags import by_rule_section, ended_flags, ended_section, new_flags, new_section
from pipeline.report.page import Column, Page, Section, shown
from pipeline.report.reading import Reader

_STATUSES = ("offered", "no_offer", "absent", "rejected", "failed", "not_swept")
_STATUS_COLOURS = ("#4477aa", "#b9c6d2", "#8a8a8a", "#d65a6f", "#b2412f", "#e0c060")
_FIRST_NIGHT = "This is the first published night: there is no earlier one to compare with."
# Nights that are drawn.
_NIGHTS = 30


def page(reader: Reader) -> Page:
    """Return the digest of the night that was published last."""
    night = reader.night
    is_first_night = _nights(reader) == 1
    standing, new, ended = reader.rows("report.flag"), new_flags(reader), ended_flags(reader)
    sections = (
        new_section(new, is_first_night=is_first_night),
        ended_section(ended, is_first_night=is_first_night),
        by_rule_section(standing, new, ended),
        _moves(reader),
        _largest(reader),
        _coverage(reader),
        _quality(reader),
    )
    return Page(
        "digest",
        _headline(reader),
        "What changed since the night before, and how far the night's figures can be trusted.",
        sections,
        tiles=[
            (shown(night["planned"], 0), "cells planned"),
            (shown(night["offered"], 0), "cells with an offer"),
            (shown(night["offers"], 0), "offers stored"),
            (shown(night["price_changes"], 0), "prices changed"),
            (shown(night["offers_first"] + night["offers_back"], 0), "offers new or back"),
            (shown(night["offers_gone"], 0), "offers gone"),
            (shown(standing.height, 0), "findings stand"),
            (shown(new.height, 0), "findings new"),
            (shown(ended.height, 0), "findings ended"),
        ],
    )


def _headline(reader: Reader) -> str:
    night = reader.night
    if _nights(reader) == 1:
        return f"First night: {night['offers']:,} offers in {night['planned']:,} planned cells"
    return f"{night['price_changes']:,} prices changed and {night['offers_gone']:,} offers went since the last night"


def _nights(reader: Reader) -> int:
    return int(reader.query("SELECT count(*) FROM mart.sweep").item())


def _moves(reader: Reader) -> Section:
    moves = reader.rows("report.price_move", order="source, property_id, offer_key")
    counted = (
        moves.with_columns(pl.col("change_pct").clip(-30, 30).floor().cast(pl.Int64).alias("from_pct"))
        .group_by("from_pct")
        .agg(pl.len().alias("offers"))
        .sort("from_pct")
    )
    up, down = moves.filter(pl.col("change_pct") > 0).height, moves.filter(pl.col("change_pct") < 0).height
    drawn = (
        chart(counted, height=200)
        .mark_bar(color=ACCENT)
        .encode(
            x=alt.X("from_pct:Q", bin="binned", title="Change of the total, percent (30 and more at the ends)"),
            x2=alt.X2("to_pct"),
            y=alt.Y("offers:Q", title="Offer keys", axis=alt.Axis(tickMinStep=1)),
        )
        .transform_calculate(to_pct="datum.from_pct + 1")
    )
    title = f"{up:,} prices rose and {down:,} fell" if moves.height else "No price changed"
    return Section(
        "price_changes",
        title,
        "Totals of the same offer key, so a change in what is on offer is not taken for a change of price. List and "
        "detail answers are counted apart, each in its own series.",
        counted,
        [svg(drawn)] if moves.height else (),
        why_empty=_FIRST_NIGHT if _nights(reader) == 1 else "No offer key was seen again at another total.",
    )


def _largest(reader: Reader) -> Section:
    order = "abs(change_pct) DESC, source, property_id, offer_key"
    first_of_each = f"row_number() OVER (PARTITION BY property_id ORDER BY {order}) = 1"
    moves = reader.rows("report.price_move", order=order, limit=1000, qualify=first_of_each)
    first = moves.row(0, named=True) if moves.height else None
    title = (
        f"Largest move: {first['change_pct']:+.1f} % to {shown(first['total'])} {first['currency']}"
        if first
        else "No large moves"
    )
    return Section(
        "largest_moves",
        title,
        "The offer of each property whose total changed most. Sweep, search and offer, in the figures, lead to the raw "
        "answers of both nights.",
        moves,
        columns=[
            Column("property_id", "Property"),
            Column("market", "Market"),
            Column("check_in", "Check-in"),
            Column("nights", "Nights", digits=0),
            Column("room_name", "Room", is_wide=True),
            Column("board_name", "Board", is_wide=True),
            Column("previous_total", "Before", digits=2),
            Column("total", "Now", digits=2),
            Column("currency", "Currency"),
            Column("change_pct", "Change", "%", 1),
        ],
        why_empty=_FIRST_NIGHT if _nights(reader) == 1 else "No offer key was seen again at another total.",
    )


def _coverage(reader: Reader) -> Section:
    sweeps = reader.query(
        "SELECT sweep_id, started_at, planned, offered, no_offer, absent, rejected, failed, not_swept FROM mart.sweep "
        "ORDER BY started_at DESC LIMIT $nights",
        {"nights": _NIGHTS},
    ).sort("started_at")
    long = sweeps.unpivot(_STATUSES, index=["started_at"], variable_name="status", value_name="cells").with_columns(
        pl.col("started_at").dt.strftime("%m-%d %H:%M").alias("sweep"),
        pl.col("status").replace_strict({name: place for place, name in enumerate(_STATUSES)}).alias("place"),
    )
    night = reader.night
    answered = night["offered"] + night["no_offer"] + night["absent"]
    share = answered / night["planned"] if night["planned"] else 0.0
    drawn = (
        chart(long, height=200)
        .mark_bar(stroke=LINE, strokeWidth=0.5)
        .encode(
            x=alt.X("sweep:N", sort=None, title="Sweep, start in UTC", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("cells:Q", title="Cells", stack=True),
            order=alt.Order("place:Q"),
            color=alt.Color(
                "status:N",
                title=None,
                sort=list(_STATUSES),
                scale=alt.Scale(domain=list(_STATUSES), range=list(_STATUS_COLOURS)),
            ),
        )
    )
    return Section(
        "coverage",
        f"{share:.1%} of {night['planned']:,} planned cells were answered, {night['failed']:,} failed",
        "Every planned cell has exactly one status. Absent (asked for and not in the answer) is not the same as sold "
        "out; failed and not swept cells say nothing about prices. Sweeps of different specs differ in size.",
        sweeps,
        [svg(drawn)],
    )


def _quality(reader: Reader) -> Section:
    failed = reader.query(
        "SELECT severity, market, table_name, check_name, observed, lowest, highest, violations, meaning "
        "FROM mart.quality WHERE sweep_id = $sweep_id AND outcome = 'failed' ORDER BY ALL",
        {"sweep_id": reader.night["sweep_id"]},
    )
    checks = reader.query(
        "SELECT count(*) FROM mart.quality WHERE sweep_id = $sweep_id", {"sweep_id": reader.night["sweep_id"]}
    ).item()
    return Section(
        "quality",
        f"{failed.height:,} of {checks:,} quality checks failed" if checks else "This night was published unchecked",
        "Checks of the night's data before it was published; a critical one keeps a night back unless someone "
        "overrides it with a reason.",
        failed,
        columns=[
            Column("severity", "Severity"),
            Column("market", "Market"),
            Column("table_name", "Table"),
            Column("check_name", "Check"),
            Column("violations", "Rows", digits=0),
            Column("meaning", "Meaning", is_wide=True),
        ],
        why_empty="Every check that was judged has passed." if checks else "No audit of this sweep is stored.",
    )
