"""Booking window: how prices, availability and rooms left change as check-in approaches."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Booking window")


@app.cell
def _():
    import altair as alt
    import marimo as mo

    from pipeline.domain.errors import NightauditError
    from pipeline.lake import Lake
    from pipeline.lake.database import open_published
    from pipeline.settings import read_settings

    return Lake, NightauditError, alt, mo, open_published, read_settings


@app.cell
def _(mo):
    mo.md("""
    # Booking window

    **When is the best time to book, and when do stays sell out?** The curves follow stays up to check-in: how the
    price of the same offer changed, how many cells were still on sale, and how many rooms were picked up. Most stays
    are still open, so the sell-out curve is an estimate that counts each stay for as long as it was observed
    (Kaplan-Meier). Pick-up is a lower bound, because changes between two sweeps are not seen.
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
    _told = ask(
        "SELECT count(*) AS nights, max(snapshot_date) AS last, bool_or(is_simulated) AS is_simulated FROM mart.sweep"
    ).row(0, named=True)
    _simulated = " **Simulated data: the bundled sandbox answered, not a supplier.**" if _told["is_simulated"] else ""
    _sweeps = f"{_told['nights']} published sweep{'s' if _told['nights'] > 1 else ''}"
    mo.callout(
        mo.md(f"{_sweeps}, the last of {_told['last']}.{_simulated}"),
        kind="warn" if _simulated else "neutral",
    )


@app.cell
def _(ask, mo):
    _markets = ask("SELECT DISTINCT market FROM state.cell ORDER BY market")["market"].to_list()
    markets = mo.ui.multiselect(_markets, value=_markets[:3], label="Markets")
    product_type = mo.ui.dropdown(["Hotel", "Package"], value="Hotel", label="Product")
    ending = mo.ui.dropdown(
        {"sold out": "sold_out", "off sale for any reason": "off_sale"}, value="off sale for any reason", label="Ending"
    )
    furthest = mo.ui.slider(5, 365, value=60, label="Days before check-in, at most", show_value=True)
    mo.hstack([markets, product_type, ending, furthest], justify="start", wrap=True)
    return ending, furthest, markets, product_type


@app.cell
def _(alt, ask, furthest, markets, mo, product_type):
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
            color=alt.Color("market:N", title=None),
            # Thinner lines are drawn over thicker ones, so that lines which coincide all stay visible.
            strokeWidth=alt.StrokeWidth("market:N", title=None, scale=alt.Scale(range=[6, 1.5])),
            tooltip=["market", "lead_days", "pairs", "index_first"],
        )
        .properties(
            width=680, height=240, title=f"{int(path['pairs'].sum()):,} prices, each compared with its own past"
        )
    )
    mo.vstack([mo.md("## Prices"), _lines]) if path.height else mo.md(
        "## Prices\n\nThis chart takes two nights that saw the same offer."
    )


@app.cell
def _(alt, ask, ending, furthest, markets, mo, product_type):
    curve = ask(
        "SELECT market, lead_days, at_risk, ended, on_sale_share FROM report.sell_out_curve WHERE operation = 'multi' "
        "AND ending = $ending AND product_type = $product_type AND market IN $markets AND lead_days <= $furthest "
        "ORDER BY ALL",
        ending=ending.value,
        product_type=product_type.value,
        markets=markets.value,
        furthest=furthest.value,
    )
    _steps = (
        alt.Chart(curve)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("lead_days:Q", title="Days before check-in", sort="descending", axis=alt.Axis(tickMinStep=1)),
            y=alt.Y(
                "on_sale_share:Q",
                title="Still on sale (estimate)",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(zero=False),
            ),
            color=alt.Color("market:N", title=None),
            # Thinner lines are drawn over thicker ones, so that lines which coincide all stay visible.
            strokeWidth=alt.StrokeWidth("market:N", title=None, scale=alt.Scale(range=[6, 1.5])),
            tooltip=["market", "lead_days", "at_risk", "ended", "on_sale_share"],
        )
        .properties(width=680, height=240, title=f"{int(curve['ended'].sum()):,} cells went off sale")
    )
    mo.vstack([mo.md("## Sell-out"), _steps]) if curve["at_risk"].sum() else mo.md(
        "## Sell-out\n\nThis chart takes two answers to the same cell, on different nights."
    )


@app.cell
def _(ask, mo):
    pick_up = ask(
        "SELECT property_id::VARCHAR AS property_id, property_name AS property, check_in, picked_up, given_back, "
        "reopenings, rooms, cells FROM report.pick_up "
        "LEFT JOIN (SELECT property_id, property_name FROM mart.property) USING (property_id) "
        "WHERE source = 'multi' AND picked_up > 0 ORDER BY picked_up DESC, property_id, check_in LIMIT 200"
    )
    mo.vstack(
        [
            mo.md(
                f"## Pick-up\n\nAt least {int(pick_up['picked_up'].sum()):,} rooms were picked up for the properties "
                "and check-in dates with the most pick-up. Rooms given back and re-openings are counted separately."
            ),
            mo.ui.table(pick_up, selection=None, page_size=12),
        ]
    ) if pick_up.height else mo.md("## Pick-up\n\nNo room has been picked up yet.")


if __name__ == "__main__":
    app.run()
