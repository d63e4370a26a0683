"""Offer explorer: drag over lead times and see the markets, boards and properties behind them."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Offer explorer")


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
    # Offer explorer

    **What is on sale, when, where and at what price?** Drag over a range of lead times, click markets, boards or
    properties (with Shift: several): every other chart follows. A chart is not filtered by its own selection, so what
    you left out stays visible, but paler. Double-click to clear a selection. With the keyboard, use the controls above
    the charts. Only list answers are shown, as they were when each cell was last answered;
    offers without a currency are left out.
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

    return ask, session


@app.cell
def _(ask, mo):
    _reported = ask("SELECT max(snapshot_date) AS last, bool_or(is_simulated) AS is_simulated FROM mart.sweep").row(
        0, named=True
    )
    _simulated = (
        " **Simulated data: the bundled sandbox answered, not a supplier.**" if _reported["is_simulated"] else ""
    )
    mo.callout(mo.md(f"Night of {_reported['last']}.{_simulated}"), kind="warn" if _simulated else "neutral")


@app.cell
def _(session):
    # Counted once when the notebook opens, in all the detail that charts need: selections are answered from memory.
    session.execute(
        "CREATE OR REPLACE TEMP TABLE offers_by AS "
        "SELECT product_type, offer.currency, lead_days::SMALLINT AS lead_days, "
        "market, board_family, property_id, count(*)::UINTEGER AS offers, sum(total_per_night::DOUBLE) AS per_night, "
        "count_if(mart.taken_off(total, pre_promo_total, unit.minor_unit) > 0)::UINTEGER AS promoted "
        "FROM mart.offer_latest AS offer LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency "
        "WHERE source = 'multi' AND total > 0 AND offer.currency IS NOT NULL GROUP BY ALL"
    )
    # Far fewer rows, for everything that does not concern single properties.
    session.execute(
        "CREATE OR REPLACE TEMP TABLE offers_of_all AS SELECT product_type, currency, lead_days, market, "
        "board_family, sum(offers) AS offers, sum(per_night) AS per_night, sum(promoted) AS promoted "
        "FROM offers_by GROUP BY ALL"
    )
    session.execute(
        "CREATE OR REPLACE TEMP TABLE named AS SELECT property_id, "
        "coalesce(any_value(name.property_name) || ' ', '') || property_id AS property "
        "FROM offers_by LEFT JOIN (SELECT property_id, property_name FROM mart.property) AS name USING (property_id) "
        "GROUP BY property_id"
    )
    counted = session.table("temp.offers_by")
    counted_of_all = session.table("temp.offers_of_all")
    return counted, counted_of_all


@app.cell
def _(counted_of_all, mo):
    # The currency in which most markets can be compared comes first.
    _currencies = counted_of_all.aggregate(
        "currency, count(DISTINCT market) AS markets, sum(offers) AS offers", "currency"
    )
    _codes = [row[0] for row in _currencies.order("markets DESC, offers DESC, currency").fetchall()]
    _types = [row[0] for row in counted_of_all.aggregate("product_type").order("product_type").fetchall()]
    mo.stop(not _codes, mo.md("Nothing was on sale yet."))
    currency = mo.ui.dropdown(_codes, value=_codes[0], label="Currency")
    product_type = mo.ui.dropdown(_types, value=_types[0], label="Product")
    shown = mo.ui.dropdown(
        {
            "number of offers": "offers",
            "mean price per night": "per_night",
            "share with a promotion, percent": "promoted_pct",
        },
        value="number of offers",
        label="Show",
    )
    mo.hstack([shown, currency, product_type], justify="start", wrap=True)
    return currency, product_type, shown


@app.cell
def _(mo):
    # What is selected in each chart; nothing is selected: everything is shown.
    get_lead, set_lead = mo.state([])
    get_markets, set_markets = mo.state([])
    get_boards, set_boards = mo.state([])
    get_properties, set_properties = mo.state([])
    return (
        get_boards,
        get_lead,
        get_markets,
        get_properties,
        set_boards,
        set_lead,
        set_markets,
        set_properties,
    )


@app.cell
def _(counted, counted_of_all, currency, product_type):
    on_sale = f"product_type = '{product_type.value}' AND currency = '{currency.value}'"
    _found = counted_of_all.filter(on_sale)
    asked = _found.aggregate("min(lead_days), max(lead_days)").fetchall()[0]
    offered = {
        column: [value for (value,) in relation.aggregate(column).order(column).fetchall()]
        for column, relation in (
            ("market", _found),
            ("board_family", _found),
            ("property_id", counted.filter(on_sale).project("property_id::VARCHAR AS property_id")),
        )
    }

    # A selection outlives a change of currency or product. What is not on sale there would filter unseen.
    def kept(column, values):
        """Return the selected values of a column that are on sale in the currency and product."""
        return [value for value in values if value in offered[column]]

    def kept_days(days):
        """Return the selected lead times that are on sale in the currency and product; all of them: nothing."""
        if not days or asked[0] is None or days[-1] < asked[0] or days[0] > asked[1]:
            return []
        within = max(days[0], asked[0]), min(days[-1], asked[1])
        return [] if within == asked else list(within)

    return asked, kept, kept_days, offered, on_sale


@app.cell
def _(asked, get_lead, kept_days, mo, set_lead):
    # A cell that sets a state does not run again for it, so that the control keeps the focus of the keyboard.
    lead_control = None
    if asked[0] is not None and asked[0] < asked[1]:
        lead_control = mo.ui.range_slider(
            *asked,
            value=kept_days(get_lead()) or list(asked),
            label="Lead time, days",
            show_value=True,
            debounce=True,
            on_change=lambda days: set_lead([] if tuple(days) == asked else list(days)),
        )
    return (lead_control,)


@app.cell
def _(get_markets, kept, mo, offered, set_markets):
    market_control = mo.ui.multiselect(
        offered["market"],
        value=kept("market", get_markets()),
        label="Markets",
        on_change=set_markets,
    )
    return (market_control,)


@app.cell
def _(get_boards, kept, mo, offered, set_boards):
    board_control = mo.ui.multiselect(
        offered["board_family"],
        value=kept("board_family", get_boards()),
        label="Boards",
        on_change=set_boards,
    )
    return (board_control,)


@app.cell
def _(board_control, lead_control, market_control, mo):
    mo.hstack(
        [each for each in (lead_control, market_control, board_control) if each is not None], justify="start", wrap=True
    )


@app.cell
def _(alt, counted, counted_of_all, currency, kept, kept_days, mo, on_sale, shown):
    def condition(lead=(), markets=(), boards=(), properties=()):
        """Return what is selected as conditions in SQL."""
        parts = []
        if days := kept_days(lead):
            parts.append(f"lead_days BETWEEN {days[0]} AND {days[-1]}")
        for column, values in (("market", kept("market", markets)), ("board_family", kept("board_family", boards))):
            if values:
                names = ", ".join(f"'{value}'" for value in values)
                parts.append(f"{column} IN ({names})")
        if of := kept("property_id", properties):
            parts.append(f"property_id IN ({', '.join(of)})")
        return parts

    def grouped(column, chosen):
        """For each value of a column, return what the charts show of the offers that meet all conditions."""
        is_of_properties = any("property_id" in part for part in (column, *chosen))
        sums = (
            (counted if is_of_properties else counted_of_all)
            .filter(" AND ".join([on_sale, *chosen]))
            .aggregate(
                f"{column}, sum(offers)::BIGINT AS offers, sum(per_night) AS per_night, sum(promoted) AS promoted",
                column,
            )
        )
        figures = sums.project(
            f"{column}, offers, per_night / offers AS per_night, 100.0 * promoted / offers AS promoted_pct"
        )
        return figures.project(f"*, {shown.value}::DOUBLE AS shown")

    def first(properties):
        """Return the order of properties: a selected one stays visible, however few of its offers are left."""
        chosen = kept("property_id", properties)
        is_chosen = f"property_id IN ({', '.join(chosen)}) DESC, " if chosen else ""
        return f"{is_chosen}{shown.value} DESC, property_id"

    says = [
        alt.Tooltip("offers:Q", format=","),
        alt.Tooltip("per_night:Q", format=",.2f", title=f"{currency.value} per night"),
        alt.Tooltip("promoted_pct:Q", format=".1f", title="promoted, percent"),
    ]
    # Of a long label the end of the name is left out, not the id after it, which tells two properties apart.
    _id = "slice(datum.label, lastindexof(datum.label, ' ') + 1)"
    _label = f"length(datum.label) > 31 ? slice(datum.label, 0, 29 - length({_id})) + '… ' + {_id} : datum.label"
    what = f"{shown.selected_key}, {currency.value}" if "price" in shown.selected_key else shown.selected_key

    def bars(frame, column, title, chosen, tell):
        """Return a bar chart; `tell` is called with the values whose bars are clicked."""
        clicked = alt.selection_point(
            name="clicked", fields=[column], clear="dblclick", value=[{column: value} for value in kept(column, chosen)]
        )
        drawn = (
            alt.Chart(frame)
            .mark_bar(color="#2c64a0", cursor="pointer")
            .encode(
                x=alt.X("shown:Q", title=what, axis=alt.Axis(tickCount=4)),
                y=alt.Y("label:N", title=None, sort=None, axis=alt.Axis(labelLimit=200, labelExpr=_label)),
                tooltip=["label", *says],
            )
            .add_params(clicked)
            .properties(width="container", height=alt.Step(20), title=alt.Title(title, frame="bounds"))
        )
        return mo.ui.altair_chart(drawn, on_change=lambda rows: tell(rows[column].to_list()))

    return bars, condition, first, grouped, says, what


@app.cell
def _(alt, condition, get_boards, get_lead, get_markets, get_properties, grouped, kept_days, mo, says, set_lead, what):
    _days = grouped(
        "lead_days", condition(markets=get_markets(), boards=get_boards(), properties=get_properties())
    ).pl()
    mo.stop(_days.height == 0, mo.md("No offer matches the selection. Double-click a chart to clear its selection."))
    _lead = kept_days(get_lead())
    _from, _to = _days["lead_days"].min() - 1, _days["lead_days"].max() + 1
    _brush = alt.selection_interval(name="brush", encodings=["x"], **({"value": {"x": _lead}} if _lead else {}))
    _chart = (
        alt.Chart(_days)
        .mark_bar(color="#2c64a0", width=alt.expr(f"0.9 * width / {_to - _from}"))
        .encode(
            x=alt.X(
                "lead_days:Q",
                title="Days before check-in",
                axis=alt.Axis(tickMinStep=1),
                scale=alt.Scale(domain=[_from, _to], nice=False),
            ),
            y=alt.Y("shown:Q", title=what, axis=alt.Axis(tickCount=4)),
            tooltip=["lead_days", *says],
        )
        .add_params(_brush)
        .properties(width="container", height=150, title="Lead time: drag over a range")
    )

    def _narrow(rows):
        days = rows["lead_days"]
        set_lead([days.min(), days.max()] if len(days) else [])

    lead_chart = mo.ui.altair_chart(_chart, on_change=_narrow)
    lead_chart
    return (lead_chart,)


@app.cell
def _(bars, condition, get_boards, get_lead, get_markets, get_properties, grouped, set_markets):
    _found = grouped("market", condition(get_lead(), boards=get_boards(), properties=get_properties()))
    market_chart = bars(
        _found.project("*, market AS label").order("market").pl(), "market", "Markets", get_markets(), set_markets
    )
    return (market_chart,)


@app.cell
def _(bars, condition, get_boards, get_lead, get_markets, get_properties, grouped, set_boards):
    _found = grouped("board_family", condition(get_lead(), get_markets(), properties=get_properties()))
    board_chart = bars(
        _found.project("*, replace(board_family, '_', ' ') AS label").order("board_family").pl(),
        "board_family",
        "Boards",
        get_boards(),
        set_boards,
    )
    return (board_chart,)


@app.cell
def _(bars, condition, first, get_boards, get_lead, get_markets, get_properties, grouped, session, set_properties):
    _found = grouped("property_id", condition(get_lead(), get_markets(), get_boards()))
    _order = first(get_properties())
    _most = _found.order(_order).limit(15)
    _labelled = _most.join(session.table("temp.named"), "property_id").order(_order)
    property_chart = bars(
        # As text: a browser's numbers end at 2^53.
        _labelled.project("* REPLACE (property_id::VARCHAR AS property_id), property AS label").pl(),
        "property_id",
        "Top fifteen properties",
        get_properties(),
        set_properties,
    )
    return (property_chart,)


@app.cell
def _(board_chart, market_chart, mo, property_chart):
    # Charts as wide as their column, and one column on a phone.
    mo.Html(
        '<div style="display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1rem">'
        f"<div>{market_chart}{board_chart}</div><div>{property_chart}</div></div>"
    )


@app.cell
def _(condition, currency, first, get_boards, get_lead, get_markets, get_properties, mo, product_type):
    def _of(column, chosen):
        conditions = f"\n  WHERE {' AND '.join(chosen)}" if chosen else ""
        name = " any_value(property_name) AS property_name," if column == "property_id" else ""
        return f"""  SELECT {column},{name} count(*) AS offers, avg(total_per_night) AS per_night,
    100.0 * count_if(is_promoted) / count(*) AS promoted_pct
  FROM on_sale{conditions}
  GROUP BY {column}"""  # noqa: S608 - shown, not run; the values are the relation's own

    _lead, _markets, _boards, _properties = get_lead(), get_markets(), get_boards(), get_properties()
    # Each chart leaves out its own selection.
    _charts = [
        _of("lead_days", condition((), _markets, _boards, _properties)),
        _of("market", condition(_lead, (), _boards, _properties)),
        _of("board_family", condition(_lead, _markets, (), _properties)),
        _of("property_id", condition(_lead, _markets, _boards)) + f"\n  ORDER BY {first(_properties)}\n  LIMIT 15",
    ]
    _union = "\n) UNION ALL BY NAME (\n".join(_charts)
    mo.md(
        f"""
## The same as a query

One row for each bar of the four charts; without `LIMIT 15`, all properties. Run it with `nightaudit query`, or in any
DuckDB client that has opened the published file.

```sql
WITH on_sale AS (
  SELECT offer.*, property_name, mart.taken_off(total, pre_promo_total, unit.minor_unit) > 0 AS is_promoted
  FROM mart.offer_latest AS offer
  LEFT JOIN mart.property AS place ON place.property_id = offer.property_id
  LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency
  WHERE source = 'multi' AND total > 0
    AND product_type = '{product_type.value}' AND offer.currency = '{currency.value}'
)
(
{_union}
)
ORDER BY lead_days, market, board_family, {first(_properties)}
```
"""  # noqa: S608 - shown, not run; the values are the relation's own
    )


if __name__ == "__main__":
    app.run()
