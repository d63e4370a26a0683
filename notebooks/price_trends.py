"""Price trends: how a price moved from night to night, with its promotions and floor."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Price trends")


@app.cell
def _():
    import altair as alt
    import marimo as mo
    import polars as pl

    from pipeline.domain.errors import NightauditError
    from pipeline.lake import Lake
    from pipeline.lake.database import open_published
    from pipeline.settings import read_settings

    return Lake, NightauditError, alt, mo, open_published, pl, read_settings


@app.cell
def _(mo):
    mo.md("""
    # Price trends

    **How did the price of one room for one stay move from night to night?** Choose a property, a stay and a room. The
    chart follows each offer key (same room, board, cancellation policy, party, market and currency), so a change in
    what is on offer never looks like a price change. A gap in a line means that the offer was off sale. List and
    detail answers are two series and are never drawn as one.
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
    _markets = ask("SELECT DISTINCT market FROM state.offer_open ORDER BY market")["market"].to_list()
    market = mo.ui.dropdown(_markets, value=_markets[0] if _markets else None, label="Market")
    source = mo.ui.dropdown({"list (multi)": "multi", "detail": "detail"}, value="list (multi)", label="Answers")
    mo.hstack([market, source], justify="start", wrap=True)
    return market, source


@app.cell
def _(ask, market, mo, source):
    # Those whose prices moved most often come first, because they have the most to show; those without a stay that is
    # still ahead come last.
    _found = ask(
        "SELECT property_id, any_value(property_name) AS property_name, count(*) FILTER (WHERE is_offered) AS states, "
        "bool_or(is_offered AND check_in > (SELECT max(snapshot_date) FROM mart.sweep)) AS is_ahead "
        "FROM mart.offer_history "
        "LEFT JOIN (SELECT property_id, property_name FROM mart.property) USING (property_id) "
        "WHERE market = $market AND source = $source GROUP BY property_id "
        "ORDER BY is_ahead DESC, states DESC, property_id LIMIT 500",
        market=market.value,
        source=source.value,
    )
    _options = {
        f"{row['property_name'] or 'Property'} {row['property_id']} ({row['states']:,} prices)": row["property_id"]
        for row in _found.to_dicts()
    }
    _first = next(iter(_options), None)
    # Its names are long, and a phone cuts only those of this width.
    hotel = mo.ui.dropdown(_options, value=_first, label="Property", searchable=True, full_width=True)
    hotel
    return (hotel,)


@app.cell
def _(ask, hotel, market, mo, source):
    mo.stop(hotel.value is None, mo.md("Nothing has been on offer here yet."))
    # Stays that are still ahead come first: a price that has passed can no longer be booked.
    _stays = ask(
        "SELECT check_in, nights, party, product_type, count(*) AS states, "
        "check_in > (SELECT max(snapshot_date) FROM mart.sweep) AS is_ahead FROM mart.offer_history "
        "WHERE property_id = $property_id AND market = $market AND source = $source "
        "GROUP BY check_in, nights, party, product_type "
        "ORDER BY is_ahead DESC, states DESC, check_in, nights, party, product_type LIMIT 300",
        property_id=hotel.value,
        market=market.value,
        source=source.value,
    )
    _options = {
        f"{row['check_in']}, {row['nights']} night{'s' if row['nights'] > 1 else ''}, party {row['party']}, "
        f"{row['product_type']}{'' if row['is_ahead'] else ' (has begun)'}": row
        for row in _stays.to_dicts()
    }
    stay = mo.ui.dropdown(_options, value=next(iter(_options), None), label="Stay", searchable=True)
    stay
    return (stay,)


@app.cell
def _(ask, hotel, market, pl, source, stay):
    history = ask(
        "SELECT offer_key, room_id, coalesce(room_name, 'room ' || room_id) AS room, "
        "coalesce(board_name, 'no board') AS board, refundability, is_offered, valid_from, "
        "coalesce(valid_to, last_seen_at) AS valid_to, currency, "
        "total::DOUBLE AS total, pre_promo_total::DOUBLE AS pre_promo_total, floor::DOUBLE AS floor, "
        "available_rooms, change, began_sweep_id, began_search_id FROM mart.offer_history "
        "WHERE property_id = $property_id AND market = $market AND source = $source AND check_in = $check_in "
        "AND nights = $nights AND party = $party AND product_type = $product_type ORDER BY offer_key, valid_from",
        property_id=hotel.value,
        market=market.value,
        source=source.value,
        **{name: stay.value[name] for name in ("check_in", "nights", "party", "product_type")},
    ).with_columns(
        pl.concat_str(["room", "board", pl.col("refundability").str.replace("_", "-")], separator=", ").alias("offer"),
        *(
            pl.col(name).dt.strftime("%Y-%m-%d %H:%M UTC").alias(said)
            for name, said in (("valid_from", "since"), ("valid_to", "until"))
        ),
    )
    return (history,)


@app.cell
def _(history, mo):
    _rooms = history["room"].unique(maintain_order=True).to_list()
    room = mo.ui.dropdown(["all rooms", *_rooms], value=_rooms[0] if _rooms else "all rooms", label="Room")
    # One chart never mixes two currencies.
    _currencies = sorted(history["currency"].drop_nulls().unique())
    currency = mo.ui.dropdown(_currencies, value=_currencies[0] if _currencies else None, label="Currency")
    with_floor = mo.ui.checkbox(value=True, label="Draw floors")
    mo.hstack([room, currency, with_floor], justify="start", wrap=True)
    return currency, room, with_floor


@app.cell
def _(alt, currency, history, mo, pl, room, with_floor):
    _chosen = history if room.value == "all rooms" else history.filter(pl.col("room") == room.value)
    shown = _chosen.filter(pl.col("is_offered") & (pl.col("currency") == currency.value))
    mo.stop(shown.height == 0, mo.md("This room was not on sale, in this currency, in any of the published nights."))
    shown = shown.with_columns(pl.col("offer").str.strip_prefix(f"{room.value}, "))
    # Each interval is drawn from its start to its end; the next interval of its key may start at another price.
    _days = alt.Axis(format="%-d %b", tickCount={"interval": "day", "step": 1}, grid=False)
    _base = alt.Chart(shown).encode(
        x=alt.X("valid_from:T", title="Start of the sweep (UTC)", scale=alt.Scale(type="utc"), axis=_days),
        color=alt.Color("offer:N", title=None, legend=alt.Legend(orient="bottom", columns=1, labelLimit=500)),
        tooltip=["offer", "since", "until", "total", "pre_promo_total", "floor", "available_rooms"],
    )
    _title = f"Total of the stay ({currency.value})"
    _paths = _base.mark_rule(strokeWidth=3).encode(
        x2="valid_to:T", y=alt.Y("total:Q", title=_title, scale=alt.Scale(zero=False))
    )
    _points = _base.mark_point(filled=True, size=50).encode(y="total:Q")
    _before = (
        _base.transform_filter("datum.pre_promo_total > datum.total")
        .mark_rule(strokeWidth=1.5, opacity=0.6)
        .encode(x2="valid_to:T", y="pre_promo_total:Q")
    )
    _layers = [_paths, _points, _before]
    if with_floor.value:
        _floors = _base.transform_filter("isValid(datum.floor)").mark_rule(strokeDash=[4, 4], strokeWidth=1.5)
        _layers.append(_floors.encode(x2="valid_to:T", y="floor:Q"))
    _offers = shown["offer_key"].n_unique()
    # An interval also begins where only the rooms left, the floor or the promotion has changed.
    _totals = shown.sort("offer_key", "valid_from").select("total", before=pl.col("total").shift().over("offer_key"))
    _changes = _totals.filter(pl.col("total") != pl.col("before")).height
    _changed = "1 price change" if _changes == 1 else f"{_changes} price changes"
    _of_offers = "1 offer" if _offers == 1 else f"{_offers} offers"
    mo.vstack(
        [
            alt.layer(*_layers).properties(
                width="container",
                height=340,
                title=f"{_changed} of {_of_offers}",
            ),
            mo.md(
                "Thick line: total. Thin line above it: price before the promotion. Dashed line: the floor "
                "(minSellablePrice), below which a hotel-only product must not be sold."
            ),
        ]
    )
    return (shown,)


@app.cell
def _(mo, shown):
    mo.vstack(
        [
            mo.md("### All intervals in the chart\n\n`began_sweep_id` and `began_search_id` identify the raw answer."),
            mo.ui.table(shown.drop("offer_key", "room_id", "offer", "since", "until"), selection=None, page_size=15),
        ]
    )


@app.cell
def _(currency, history, hotel, market, mo, pl, room, source, stay):
    # By their ids: a supplier's name may hold what ends a quotation.
    _ids = history.filter(pl.col("room") == room.value)["room_id"].drop_nulls().unique().sort()
    _rooms = "" if room.value == "all rooms" else f"\n  AND room_id IN ({', '.join(map(str, _ids))})"
    mo.md(
        f"""
## The same as a query

```sql
SELECT offer_key, room_name, board_name, refundability, valid_from, coalesce(valid_to, last_seen_at) AS valid_to,
       total, pre_promo_total, floor, currency
FROM mart.offer_history
WHERE property_id = {hotel.value}
  AND market = '{market.value}'
  AND source = '{source.value}'
  AND check_in = '{stay.value["check_in"]}'
  AND nights = {stay.value["nights"]}
  AND party = '{stay.value["party"]}'
  AND product_type = '{stay.value["product_type"]}'{_rooms}
  AND currency = '{currency.value}'
  AND is_offered
ORDER BY offer_key, valid_from
```
"""  # noqa: S608 - shown, not run
    )


if __name__ == "__main__":
    app.run()
