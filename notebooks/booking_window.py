"""Booking window: how prices, availability and rooms left change as check-in approaches."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Booking window")


@app.cell
def _():
    import altair as alt
    import marimo as mo
    import polars as pl

    from pipeline.domain.errors import NightauditError
    from pipeline.lake import Lake
    from pipeline.lake.database import open_published
    from pipeline.report.charts import SERIES
    from pipeline.settings import read_settings

    return Lake, NightauditError, SERIES, alt, mo, open_published, pl, read_settings


@app.cell
def _(mo):
    mo.md("""
    # Booking window

    **When is the best time to book, and when do stays sell out?** The first answer is *book now* or *wait*, with its
    uncertainty: it rests on comparable past stays, and you see how past answers turned out. The curves follow
    stays up to check-in: how the price of the same offer changed, how many cells were still on sale, and how many rooms
    were picked up. Most stays are still open, so the sell-out curve is an estimate that counts each stay for as long as
    it was observed (Kaplan-Meier). Pick-up is a lower bound, because changes between two sweeps are not seen.
    """)


@app.cell
def _(Lake, NightauditError, mo, open_published, read_settings):
    try:
        session = open_published(Lake(read_settings().lake).published_file)
    except NightauditError as _error:
        mo.stop(True, mo.callout(mo.md(f"{_error.message}\n\n{_error.hint or ''}"), kind="warn"))

    def ask(sql, **values):
        """Return the rows of a query over the published file as a polars frame."""
        return session.sql(sql, params=values or None).pl()

    return (ask,)


@app.cell
def _(ask, mo):
    _reported = ask(
        "SELECT count(*) AS nights, max(snapshot_date) AS last, bool_or(is_simulated) AS is_simulated FROM mart.sweep"
    ).row(0, named=True)
    _simulated = (
        " **Simulated data: the bundled sandbox answered, not a supplier.**" if _reported["is_simulated"] else ""
    )
    _sweeps = f"{_reported['nights']} published sweep{'s' if _reported['nights'] > 1 else ''}"
    mo.callout(
        mo.md(f"{_sweeps}, the last of {_reported['last']}.{_simulated}"),
        kind="warn" if _simulated else "neutral",
    )


@app.cell
def _(ask, mo):
    _markets = ask("SELECT DISTINCT market FROM state.cell ORDER BY market")["market"].to_list()
    markets = mo.ui.multiselect(_markets, value=_markets[:5], label="Markets")
    product_type = mo.ui.dropdown(["Hotel", "Package"], value="Hotel", label="Product")
    ending = mo.ui.dropdown(
        {"answered without a room": "sold_out", "off sale for any reason": "off_sale"},
        value="off sale for any reason",
        label="Ending",
    )
    furthest = mo.ui.slider(5, 365, value=60, label="Maximum days before check-in", show_value=True)
    mo.hstack([markets, product_type, ending, furthest], justify="start", wrap=True)
    return ending, furthest, markets, product_type


@app.cell
def _(SERIES, alt, ask, markets):
    # The colours of the pages, whichever markets are chosen.
    _every = ask("SELECT DISTINCT market FROM state.cell ORDER BY market")["market"].to_list()
    market_colour = alt.Color(
        "market:N",
        title=None,
        scale=alt.Scale(domain=_every, range=list(SERIES)),
        legend=alt.Legend(values=markets.value),
    )
    return (market_colour,)


@app.cell
def _(alt, ask, markets, mo, pl, product_type):
    answers = ask(
        "SELECT market, lead_days, answer, check_in, check_ins, stays, offers, 100 * paid_share AS paid_pct, "
        "100 * cost_share AS cost_pct, lower_pct, balance, balance_lowest, balance_highest, actual_balance, "
        "actual_offers, is_within FROM report.book_or_wait "
        "WHERE source = 'multi' AND product_type = $product_type AND market IN $markets "
        "ORDER BY market, lead_days, decided_on",
        product_type=product_type.value,
        markets=markets.value or [""],
    )
    tonight = answers.filter(answers["check_in"].is_null() & (answers["stays"] > 0)).with_columns(
        decision=pl.format("{}, {}", "market", "lead_days")
    )
    _markets = ", ".join(f"'{market}'" for market in markets.value or [""])
    query = f"""SELECT market, lead_days, answer, round(100 * paid_share, 1) AS paid_pct,
       round(100 * cost_share, 1) AS cost_pct, round(lower_pct, 1) AS lower_pct,
       round(100 * balance_lowest, 1) AS balance_lowest_pct, round(100 * balance_highest, 1) AS balance_highest_pct,
       stays, check_ins
FROM report.book_or_wait
WHERE source = 'multi' AND check_in IS NULL AND stays > 0
  AND product_type = '{product_type.value}'
  AND market IN ({_markets})
ORDER BY market, lead_days"""  # noqa: S608 - the values are the relation's own
    listed = ask(query)
    _said = {answer: int((tonight["answer"] == answer).sum()) for answer in ("wait", "book now", "either", "not known")}
    _by_answer = tonight.group_by("answer").agg(pl.col("lead_days").unique().sort())
    _days = {row["answer"]: ", ".join(map(str, row["lead_days"])) for row in _by_answer.iter_rows(named=True)}
    _in_short = "; ".join(f"**{answer}** {_days[answer]} days ahead" for answer in _said if answer in _days)
    _differ = (
        " Where a number of days is named twice, the answer depends on the market."
        if sum(map(len, _by_answer["lead_days"])) > tonight["lead_days"].n_unique()
        else ""
    )
    _single = tonight.filter((pl.col("check_ins") == 1) & (pl.col("answer") != "not known")).height
    _caveat = (
        f" {_single} of the {tonight.height} answers rest on a single check-in date: what was special about that date "
        "counts in full, and no interval shows it."
        if _single
        else ""
    )
    _base = alt.Chart(tonight).encode(
        y=alt.Y("decision:N", title="Market, days ahead", sort=None),
        color=alt.Color(
            "answer:N",
            title=None,
            scale=alt.Scale(domain=list(_said), range=["#2c64a0", "#b2412f", "#8a97a3", "#c9d1d8"]),
        ),
        tooltip=["market", "lead_days", "answer", "stays", "check_ins", "paid_pct", "cost_pct", "lower_pct"],
    )
    _axis = alt.X(
        "balance_lowest:Q",
        # In two lines, for phones.
        title=["Share of offers where waiting paid off,", "minus share where it cost money"],
        axis=alt.Axis(format="+.0%"),
    )
    _drawn = alt.layer(
        _base.mark_rule(strokeWidth=3, opacity=0.5).encode(x=_axis, x2="balance_highest:Q"),
        _base.mark_point(filled=True, size=80).encode(x="balance:Q"),
        alt.Chart(tonight).mark_rule(strokeDash=[3, 3]).encode(x=alt.datum(0)),
    ).properties(
        width="container",
        height=alt.Step(20),
        title=", ".join(f"{count} x {answer}" for answer, count in _said.items() if count),
    )
    mo.vstack(
        [
            mo.md(
                f"## Book now or wait?\n\nIn these markets: {_in_short}.{_differ}\n\nWaiting **paid off** if the offer "
                "later had a lower total. It **cost money** if it had none, and was gone or dearer when last answered. "
                "Right of the line, waiting paid off more often. A bar is a 95% interval; if it crosses the line, the "
                "answer is *either*. The chart counts offers, not money: `lower_pct` is how much lower the best later "
                f"total was when waiting paid off.{_caveat}"
            ),
            _drawn,
            mo.ui.table(listed, selection=None, page_size=10),
        ]
    ) if tonight.height else mo.md(
        "## Book now or wait?\n\nNot known yet: the answer comes from stays that have begun and were seen on at least "
        "two earlier nights. It appears once the first check-in date of your spec has passed."
    )
    return answers, listed, query


@app.cell
def _(alt, answers, market_colour, mo, pl):
    _past = answers.filter(pl.col("actual_balance").is_not_null() & (pl.col("answer") != "not known"))
    mo.stop(
        _past.height == 0,
        mo.md(
            "### How past answers turned out\n\nNot known yet: this needs a stay that has begun, and other stays "
            "that had begun before its decision."
        ),
    )
    _within = int(_past["is_within"].sum())
    _firm = _past.filter(pl.col("answer").is_in(["wait", "book now"]))
    _right = _firm.filter((pl.col("answer") == "wait") == (pl.col("actual_balance") > 0)).height
    # What those would get right who always give the more frequent of the two answers.
    _paid = _firm.filter(pl.col("actual_balance") > 0).height
    _always = max(_paid, _firm.height - _paid)
    _dates = _past["check_in"].n_unique()
    _of_dates = "1 check-in date" if _dates == 1 else f"{_dates} check-in dates"
    _largest = max(0.1, *(float(_past[name].abs().max()) for name in ("balance", "actual_balance")))
    _ends = pl.DataFrame({"balance": [-_largest, _largest], "actual_balance": [-_largest, _largest]})
    _points = (
        alt.Chart(_past)
        .mark_circle()
        .encode(
            x=alt.X("balance:Q", title="Answer on the day", axis=alt.Axis(format="+.0%")),
            y=alt.Y("actual_balance:Q", title="Outcome", axis=alt.Axis(format="+.0%")),
            color=market_colour,
            size=alt.Size("actual_offers:Q", title="Offers", scale=alt.Scale(range=[20, 220])),
            opacity=alt.condition("datum.is_within", alt.value(0.9), alt.value(0.35)),
            tooltip=["market", "lead_days", "check_in", "answer", "stays", "balance", "actual_balance", "is_within"],
        )
    )
    _diagonal = (
        alt.Chart(_ends).mark_line(strokeDash=[4, 4], color="#8a8a8a").encode(x="balance:Q", y="actual_balance:Q")
    )
    mo.vstack(
        [
            mo.md(
                "### How past answers turned out\n\nEach point is a past decision, answered with what was known on "
                f"that day. **{_within} of {_past.height}** turned out within their interval (95% should). "
                + (
                    f"Of {_firm.height} firm answers, *wait* or *book now*, **{_right}** were right; one and the same "
                    f"answer every time would have been right {_always} times."
                    if _firm.height
                    else "None of the answers was firm."
                )
                + f" They are about {_of_dates}, which all markets share: fewer independent tests than points."
                + " On the dashed line, answer and outcome agree; pale points are outside their interval. An interval "
                "allows for chance among stays, not for events that move a whole market at once."
            ),
            alt.layer(_diagonal, _points).properties(width="container", height=420),
        ]
    )


@app.cell
def _(alt, ask, furthest, market_colour, markets, mo, product_type):
    path = ask(
        "SELECT market, lead_days, pairs, index_first, volatility_pct FROM report.price_path WHERE source = 'multi' "
        "AND pairs > 0 AND product_type = $product_type AND market IN $markets AND lead_days <= $furthest ORDER BY ALL",
        product_type=product_type.value,
        markets=markets.value,
        furthest=furthest.value,
    )
    _lines = (
        alt.Chart(path)
        .mark_line(point=True)
        .encode(
            x=alt.X("lead_days:Q", title="Days before check-in", sort="descending", axis=alt.Axis(tickMinStep=1)),
            y=alt.Y("index_first:Q", title="Price index, first lead time = 100", scale=alt.Scale(zero=False)),
            color=market_colour,
            # Thinner lines are drawn over thicker ones, so that lines which coincide all stay visible.
            strokeWidth=alt.StrokeWidth("market:N", title=None, scale=alt.Scale(range=[6, 1.5])),
            tooltip=["market", "lead_days", "pairs", "index_first"],
        )
        .properties(
            width="container",
            height=240,
            title=[f"{int(path['pairs'].sum()):,} prices,", "each compared with its own past"],
        )
    )
    mo.vstack([mo.md("## Prices"), _lines]) if path.height else mo.md(
        "## Prices\n\nThis chart needs two nights that saw the same offer."
    )


@app.cell
def _(alt, ask, ending, furthest, market_colour, markets, mo, product_type):
    curve = ask(
        "SELECT market, lead_days, at_risk, ended, on_sale_share FROM report.sell_out_curve WHERE operation = 'multi' "
        "AND ending = $ending AND product_type = $product_type AND market IN $markets AND lead_days <= $furthest "
        "ORDER BY ALL",
        ending=ending.value,
        product_type=product_type.value,
        markets=markets.value,
        furthest=furthest.value,
    )
    _is_any = ending.value == "off_sale"
    _ended = "went off sale" if _is_any else "were answered without a room"
    _steps = (
        alt.Chart(curve)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("lead_days:Q", title="Days before check-in", sort="descending", axis=alt.Axis(tickMinStep=1)),
            y=alt.Y(
                "on_sale_share:Q",
                title="Still on sale (estimate)" if _is_any else "Not answered without a room (estimate)",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(zero=False),
            ),
            color=market_colour,
            # Thinner lines are drawn over thicker ones, so that lines which coincide all stay visible.
            strokeWidth=alt.StrokeWidth("market:N", title=None, scale=alt.Scale(range=[6, 1.5])),
            tooltip=["market", "lead_days", "at_risk", "ended", "on_sale_share"],
        )
        .properties(width="container", height=240, title=f"{int(curve['ended'].sum()):,} cells {_ended}")
    )
    mo.vstack([mo.md("## Sell-out"), _steps]) if curve["at_risk"].sum() else mo.md(
        "## Sell-out\n\nThis chart needs two answers for the same cell, on different nights."
    )


@app.cell
def _(ask, mo, pl):
    pick_up = ask(
        "SELECT property_id::VARCHAR AS property_id, property_name AS property, check_in, picked_up, given_back, "
        "reopenings, rooms, cells FROM report.pick_up "
        "LEFT JOIN (SELECT property_id, property_name FROM mart.property) USING (property_id) "
        "WHERE source = 'multi' AND picked_up > 0 ORDER BY picked_up DESC, property_id, check_in LIMIT 200"
    )
    # A room sold for several nights is missing at each check-in date that it concerns, so these are never added up.
    _rooms = pick_up.group_by("property_id").agg(pl.col("picked_up").max())["picked_up"].sum()
    mo.vstack(
        [
            mo.md(
                f"## Pick-up\n\nAt least {int(_rooms):,} rooms were picked up at the properties with the most pick-up: "
                "of each, those of one check-in date, as a room sold for several nights is missing on several dates. "
                "Rooms given back and re-openings are counted separately."
            ),
            mo.ui.table(pick_up, selection=None, page_size=12),
        ]
    ) if pick_up.height else mo.md("## Pick-up\n\nNo room has been picked up yet.")


@app.cell
def _(mo, query):
    mo.md(
        f"""
## The same as a query

This query gives the table under *Book now or wait?* Run it with `nightaudit query`, or in any DuckDB client that has
opened the published file.

```sql
{query}
```
"""
    )


if __name__ == "__main__":
    app.run()
