"""Parity explorer: markets compared with a reference market, down to the two answers behind a gap."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Parity explorer")


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
    # Parity explorer

    **Does the same room have a different price in another market, and since when?** Choose the markets, how similar
    two offers must be, and how far apart two prices may be and still count as equal. Both offers of a pair were seen
    in one sweep, and an offer that was answered in several currencies counts once, so that the counts are those of the
    parity page. If any prices are in one currency, only these are compared. Otherwise, prices in two currencies are
    compared at the reference rate of that day, and count as equal if the difference is too small for such a rate to
    show. Match grades are never mixed, because pairs that share only a board family, or pair the cheapest offers,
    compare different products. The reference market is a setting (NIGHTAUDIT_REFERENCE_MARKET).
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
        "SELECT max(snapshot_date) AS last, bool_or(is_simulated) AS is_simulated, "
        "(SELECT reference_market FROM mart.reference_market) AS reference_market, "
        "(SELECT tolerance_pct FROM ref.analysis) AS tolerance_pct FROM mart.sweep"
    ).row(0, named=True)
    _simulated = (
        " **Simulated data: the bundled sandbox answered, not a supplier.**" if _reported["is_simulated"] else ""
    )
    reference, usual_tolerance = _reported["reference_market"] or "none", _reported["tolerance_pct"]
    mo.callout(
        mo.md(f"Night of {_reported['last']}; reference market: {reference}.{_simulated}"),
        kind="warn" if _simulated else "neutral",
    )
    return reference, usual_tolerance


@app.cell
def _(ask, mo, reference, usual_tolerance):
    _markets = ask("SELECT DISTINCT market FROM state.cell ORDER BY market")["market"].to_list()
    _others = [name for name in _markets if name != reference]
    markets = mo.ui.multiselect(_others, value=_others, label="Markets")
    grade = mo.ui.dropdown(
        {"exact": "exact", "same board family": "board_family", "cheapest only": "cheapest"},
        value="exact",
        label="Match grade",
    )
    product_types = mo.ui.dropdown(
        {"Hotel and Package": ["Hotel", "Package"], "Hotel": ["Hotel"], "Package": ["Package"]},
        value="Hotel and Package",
        label="Product",
    )
    source = mo.ui.dropdown({"list (multi)": "multi", "detail": "detail"}, value="list (multi)", label="Answers")
    tolerance = mo.ui.slider(0, 10, step=0.1, value=usual_tolerance, label="Tolerance, percent", show_value=True)
    mo.hstack([markets, grade, product_types, source, tolerance], justify="start", wrap=True)
    return grade, markets, product_types, source, tolerance


@app.cell
def _(ask, grade, markets, product_types, source, tolerance):
    _markets = ", ".join(f"'{market}'" for market in markets.value or [""])
    _products = ", ".join(f"'{product}'" for product in product_types.value)
    # At the tolerance of the settings the verdict is the published one, which also allows for the smallest coin.
    judged = f"""(
  SELECT *, CASE
    WHEN {tolerance.value}::DOUBLE = analysis.tolerance_pct THEN verdict
    WHEN gap_pct > mart.tolerance_of(currency_basis, {tolerance.value}::DOUBLE, analysis.reference_rate_pct) THEN 'lose'
    WHEN gap_pct < -mart.tolerance_of(currency_basis, {tolerance.value}::DOUBLE, analysis.reference_rate_pct) THEN 'win'
    ELSE 'meet'
  END AS judgement
  FROM mart.market_parity
  CROSS JOIN (SELECT tolerance_pct, reference_rate_pct FROM ref.analysis) AS analysis
  WHERE match_grade = '{grade.value}' AND source = '{source.value}' AND product_type IN ({_products})
    AND market IN ({_markets}) AND currency_basis <> 'supplier_rate'
  QUALIFY mart.rank_of_basis(currency_basis) = min(mart.rank_of_basis(currency_basis)) OVER ()
)"""  # noqa: S608 - the values are our own words, or the relation's
    counted = ask(
        "SELECT market, judgement AS verdict, count(*) AS offers, max(abs(gap_pct)) AS furthest "  # noqa: S608 - our own words
        f"FROM {judged} GROUP BY ALL ORDER BY ALL"
    )
    return counted, judged


@app.cell
def _(SERIES, alt, ask, counted, judged, markets, mo, reference):
    mo.stop(counted.height == 0, mo.md(f"No sweep saw the same offer in one of these markets and in {reference}."))
    _of = dict(counted.select("verdict", "offers").group_by("verdict").sum().iter_rows())
    _bars = (
        alt.Chart(counted)
        .mark_bar()
        .encode(
            x=alt.X("offers:Q", title="Offers", stack="normalize", axis=alt.Axis(format="%")),
            y=alt.Y("market:N", title=None),
            color=alt.Color(
                "verdict:N",
                title=None,
                scale=alt.Scale(domain=["win", "meet", "lose"], range=["#2c64a0", "#b9c6d2", "#b2412f"]),
            ),
            tooltip=["market", "verdict", "offers"],
        )
        .properties(
            width="container",
            height=alt.Step(28),
            # In two lines, for phones.
            title=[
                f"Of {counted['offers'].sum():,} offers, {_of.get('lose', 0):,} are dearer",
                f"than in {reference}, {_of.get('win', 0):,} cheaper",
            ],
        )
    )
    # Bands of a fiftieth of the widest gap, so that small gaps stay distinct where there are no large ones.
    _width = max(0.05, min(15.0, float(counted["furthest"].max())) / 25)
    _bands = ask(
        "SELECT market, round(greatest(-15, least(15, gap_pct)) / $width) * $width AS from_pct, count(*) AS offers "  # noqa: S608 - our own words
        f"FROM {judged} GROUP BY ALL ORDER BY ALL",
        width=_width,
    )
    _every = ask("SELECT DISTINCT market FROM state.cell ORDER BY market")["market"].to_list()
    _spread = (
        alt.Chart(_bands)
        .mark_bar(opacity=0.75, width=10)
        .encode(
            x=alt.X("from_pct:Q", title=["Gap, percent (above 0: dearer;", "the end bars include all beyond 15)"]),
            y=alt.Y("offers:Q", title="Offers", stack=True),
            # The colours of the pages, which also draw the reference market.
            color=alt.Color(
                "market:N",
                title=None,
                scale=alt.Scale(domain=_every, range=list(SERIES)),
                legend=alt.Legend(values=markets.value),
            ),
            tooltip=["market", "from_pct", "offers"],
        )
        .properties(width="container", height=190)
    )
    mo.vstack([_bars, _spread])


@app.cell
def _(ask, judged, mo, pl):
    query = f"""SELECT market, property_id, property_name AS property, check_in, gap_pct, judgement AS verdict, total,
  reference_converted, currency, gap, nights, party, losing_snapshots, room_id, board_id,
  seen_sweep_id, seen_search_id, seen_offer_no, reference_sweep_id, reference_search_id, reference_offer_no
FROM {judged}
LEFT JOIN (SELECT property_id, property_name FROM mart.property) USING (property_id)
WHERE judgement <> 'meet'
ORDER BY abs(gap_pct) DESC, market, property_id, check_in, offer_key
LIMIT 1000"""  # noqa: S608 - our own words
    differing = ask(query)
    mo.stop(differing.height == 0, mo.md("No offer differs by more than the tolerance."))
    chosen_row = mo.ui.table(
        differing.with_columns(pl.col("property_id", "room_id").cast(pl.String), pl.col("gap_pct").round(2)),
        selection="single",
        page_size=10,
        label="Largest gap first, dearer (lose) or cheaper (win); choose a row to see its evidence",
    )
    chosen_row
    return chosen_row, differing, query


@app.cell
def _(ask, chosen_row, mo, pl):
    mo.stop(chosen_row.value.height == 0, mo.md("*Choose a row above to see its two answers here.*"))
    _row = chosen_row.value.row(0, named=True)
    _sides = pl.DataFrame(
        {
            "side": [_row["market"], "reference market"],
            "sweep_id": [_row["seen_sweep_id"], _row["reference_sweep_id"]],
            "search_id": [_row["seen_search_id"], _row["reference_search_id"]],
        }
    )
    _answers = ask(
        "SELECT sweep_id, search_id, market, started_at, http_status, body_sha256, raw_address FROM lake.search "
        "WHERE sweep_id IN $sweeps AND search_id IN $searches",
        sweeps=_sides["sweep_id"].to_list(),
        searches=_sides["search_id"].to_list(),
    )
    mo.vstack(
        [
            mo.md(
                f"### {_row['total']} against {_row['reference_converted']} {_row['currency']}\n\n"
                "`nightaudit show ADDRESS` prints each raw answer with its request; take ADDRESS from `raw_address`."
            ),
            mo.ui.table(_sides.join(_answers, on=["sweep_id", "search_id"], how="left"), selection=None),
        ]
    )


@app.cell
def _(mo, query):
    mo.md(
        f"""
## The same as a query

Run it with `nightaudit query`, or in any DuckDB client that has opened the published file.

```sql
{query}
```
"""
    )


if __name__ == "__main__":
    app.run()
