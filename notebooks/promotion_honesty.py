"""Promotion honesty: do struck-through prices match what was charged before?"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Promotion honesty")


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
    # Promotion honesty

    **Was the struck-through price ever charged?** The price before the promotion is compared with all earlier totals
    of the same room, board, policy and stay. The result is an indicator with its evidence, not proof, because prices
    charged between two sweeps are unknown. Offers without enough history get no verdict.
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
        "SELECT count(*) AS nights, max(snapshot_date) AS last, bool_or(is_simulated) AS is_simulated, "
        "(SELECT reference_days FROM ref.analysis) AS reference_days FROM mart.sweep"
    ).row(0, named=True)
    _simulated = (
        " **Simulated data: the bundled sandbox answered, not a supplier.**" if _reported["is_simulated"] else ""
    )
    _sweeps = f"{_reported['nights']} published sweep{'s' if _reported['nights'] > 1 else ''}"
    mo.callout(
        mo.md(
            f"{_sweeps}, the last of {_reported['last']}. A verdict needs "
            f"{_reported['reference_days']} days of history.{_simulated}"
        ),
        kind="warn" if _simulated else "neutral",
    )


@app.cell
def _(ask, mo):
    _markets = ask("SELECT DISTINCT market FROM state.offer_open ORDER BY market")["market"].to_list()
    market = mo.ui.dropdown(_markets, value=_markets[0] if _markets else None, label="Market")
    verdict = mo.ui.dropdown(
        {
            "all": "%",
            "never charged": "never_charged",
            "above the lowest price before": "above_lowest",
            "honest": "honest",
            "not enough history": "not_enough_history",
        },
        value="all",
        label="Verdict",
    )
    mo.hstack([market, verdict], justify="start", wrap=True)
    return market, verdict


@app.cell
def _(alt, ask, market, mo, verdict):
    _counts = ask(
        "SELECT replace(reference_verdict, '_', ' ') AS verdict, count(*) AS offers FROM mart.reference_price "
        "WHERE source = 'multi' AND market = $market AND reference_verdict LIKE $verdict GROUP BY ALL ORDER BY ALL",
        market=market.value,
        verdict=verdict.value,
    )
    _verdict = "" if verdict.value == "%" else f"\n  AND price.reference_verdict = '{verdict.value}'"
    query = f"""SELECT price.reference_verdict, price.property_id, place.property_name, offer.room_name,
       offer.board_name, replace(offer.refundability, '_', '-') AS refundability, price.check_in, price.nights,
       price.product_type, price.currency, price.total, price.pre_promo_total, price.lowest_before, price.highest,
       price.history_days, price.promoted_share_pct, price.offer_key
FROM mart.reference_price AS price
JOIN mart.offer_latest AS offer USING (source, property_id, offer_key)
LEFT JOIN mart.property AS place ON place.property_id = price.property_id
WHERE price.source = 'multi'
  AND price.market = '{market.value}'{_verdict}
ORDER BY array_position(['never_charged', 'above_lowest', 'honest'], price.reference_verdict) NULLS LAST,
         price.pre_promo_total / price.total DESC, price.property_id, price.offer_key
LIMIT 200"""  # noqa: S608 - the values are the relation's own
    found = ask(query)
    _bars = (
        alt.Chart(_counts)
        .mark_bar()
        .encode(
            x=alt.X("offers:Q", title="Promoted offers", axis=alt.Axis(tickMinStep=1)),
            y=alt.Y("verdict:N", title=None),
            color=alt.Color(
                "verdict:N",
                legend=None,
                scale=alt.Scale(
                    domain=["above lowest", "honest", "never charged", "not enough history"],
                    range=["#b08d1a", "#228833", "#b2412f", "#b9c6d2"],
                ),
            ),
            tooltip=["verdict", "offers"],
        )
        .properties(
            width="container",
            height=alt.Step(30),
            title=f"{_counts['offers'].sum():,} promoted offers in {market.value}",
        )
    )
    mo.stop(found.height == 0, mo.md("No promoted offer of this kind is on sale."))
    mo.vstack([_bars, mo.md("Up to 200 of them are listed below: the least honest first, then the deepest discount.")])
    return found, query


@app.cell
def _(found, mo):
    # The number keeps offers apart that read alike; the list would show only the last of them.
    _options = {
        f"{number}. {row['property_name'] or 'Property'} {row['property_id']}, {row['room_name']}, "
        f"{row['board_name']}, {row['refundability']}, check-in {row['check_in']}, nights: {row['nights']}, "
        f"{row['product_type']}, {row['currency']} ({row['reference_verdict'].replace('_', ' ')})": row
        for number, row in enumerate(found.to_dicts(), 1)
    }
    offer = mo.ui.dropdown(_options, value=next(iter(_options)), label="Offer", searchable=True, full_width=True)
    offer
    return (offer,)


@app.cell
def _(alt, ask, mo, offer):
    history = ask(
        "SELECT valid_from, coalesce(valid_to, last_seen_at) AS valid_to, total::DOUBLE AS total, "
        "pre_promo_total::DOUBLE AS pre_promo_total, currency, began_sweep_id, began_search_id "
        "FROM mart.offer_history WHERE source = 'multi' AND property_id = $of AND offer_key = $key AND is_offered "
        "ORDER BY valid_from",
        of=offer.value["property_id"],
        key=offer.value["offer_key"],
    )
    _days = alt.Axis(format="%-d %b", tickCount={"interval": "day", "step": 1}, grid=False)
    _base = alt.Chart(history).encode(
        x=alt.X("valid_from:T", title="Start of the sweep (UTC)", scale=alt.Scale(type="utc"), axis=_days)
    )
    _axis = alt.Axis(title=f"Total of the stay ({offer.value['currency']})")
    _reported = _base.mark_rule(strokeDash=[4, 4], strokeWidth=2, color="#8a8a8a").encode(
        x2="valid_to:T", y=alt.Y("pre_promo_total:Q", axis=_axis, scale=alt.Scale(zero=False))
    )
    _charged = _base.mark_rule(strokeWidth=3, color="#4477aa").encode(x2="valid_to:T", y=alt.Y("total:Q", axis=_axis))
    _points = _base.mark_point(filled=True, size=45, color="#4477aa").encode(
        y=alt.Y("total:Q", axis=_axis), tooltip=["valid_from", "total", "pre_promo_total"]
    )
    mo.vstack(
        [
            alt.layer(_reported, _charged, _points).properties(
                width="container",
                height=260,
                # In two lines, for phones.
                title=[
                    f"Stated before: {offer.value['pre_promo_total']:,.2f};",
                    f"highest ever charged: {offer.value['highest']:,.2f} {offer.value['currency']}",
                ],
            ),
            mo.md("Solid line: price charged. Dashed line: stated price before the promotion."),
            mo.ui.table(history, selection=None, page_size=10),
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
