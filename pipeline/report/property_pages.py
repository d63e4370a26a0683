"""The page of a property: its cases, its prices night by night, floors, promotions, and how its markets compare.

All pages of a night are made from a handful of queries. How many there are is bounded, those with open cases first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import polars as pl
from markupsafe import Markup

from pipeline.report.cases import calls, standing_cases
from pipeline.report.page import Column, Section, counted, render, shown
from pipeline.report.price_lines import key, price_lines
from pipeline.report.read import PROPERTIES, Reader

# Nights whose prices are drawn, check-ins that have a chart, and markets that have a line.
_NIGHTS, _CHARTS, _MARKETS = 60, 6, 6
_OVERVIEW: Final = "index.html"

# The cheapest hotel-only total of each list answer, in the currency that most markets were asked in.
_PRICES: Final = """
WITH night AS (
    SELECT started_at, snapshot_date FROM mart.sweep ORDER BY started_at DESC LIMIT $nights
),

price AS (
    SELECT offer.property_id, offer.check_in, offer.nights, offer.party, offer.market, offer.currency,
        night.snapshot_date, min(offer.total)::DOUBLE AS total
    FROM mart.offer_history AS offer
    INNER JOIN night ON night.started_at BETWEEN offer.valid_from AND offer.last_seen_at
    WHERE offer.source = 'multi' AND offer.product_type = 'Hotel' AND offer.is_offered AND offer.total IS NOT NULL
        AND list_contains($ids::BIGINT[], offer.property_id)
        AND offer.check_in >= (SELECT max(snapshot_date) FROM night)
    GROUP BY ALL
)

SELECT price.* FROM price
SEMI JOIN (
    SELECT property_id, currency FROM price GROUP BY property_id, currency
    QUALIFY row_number() OVER (PARTITION BY property_id ORDER BY count(DISTINCT market) DESC, currency) = 1
) AS chosen ON chosen.property_id = price.property_id AND chosen.currency = price.currency
ORDER BY ALL
"""
_PARITY: Final = """
SELECT property_id, market, reference_market, check_in, currency, count(*) AS pairs,
    count(*) FILTER (WHERE verdict = 'win') AS win, count(*) FILTER (WHERE verdict = 'meet') AS meet,
    count(*) FILTER (WHERE verdict = 'lose') AS lose, median(gap_pct) AS median_gap_pct
FROM mart.market_parity
WHERE match_grade = 'exact' AND source = 'multi' AND currency_basis <> 'supplier_rate'
    AND list_contains($ids::BIGINT[], property_id)
GROUP BY ALL ORDER BY ALL
"""
_FLOORS: Final = """
SELECT property_id, check_in, nights, market, currency, count(*) AS offers, count(floor) AS with_floor,
    min(total) AS cheapest, max(headroom_pct) AS closest_pct,
    count(*) FILTER (WHERE headroom_pct >= 0) AS above_total
FROM mart.floor_headroom
WHERE source = 'multi' AND list_contains($ids::BIGINT[], property_id)
GROUP BY ALL ORDER BY ALL
"""
_PROMOTIONS: Final = """
SELECT property_id, market, currency, product_type, count(*) AS promoted, avg(depth_pct) AS depth_pct,
    min(began_at)::DATE AS since,
    count(*) FILTER (WHERE reference_verdict = 'honest') AS honest,
    count(*) FILTER (WHERE reference_verdict = 'above_lowest') AS above_lowest,
    count(*) FILTER (WHERE reference_verdict = 'never_charged') AS never_charged,
    count(*) FILTER (WHERE reference_verdict = 'not_enough_history') AS too_new
FROM mart.reference_price
WHERE source = 'multi' AND list_contains($ids::BIGINT[], property_id)
GROUP BY ALL ORDER BY ALL
"""
_OFFERS: Final = """
SELECT property_id, count(*) AS offers FROM mart.offer_latest
WHERE list_contains($ids::BIGINT[], property_id) GROUP BY ALL
"""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of the properties that have a page: rows by property, and names."""

    prices: pl.DataFrame
    parity: pl.DataFrame
    floors: pl.DataFrame
    promotions: pl.DataFrame


def property_pages(reader: Reader, links: Sequence[tuple[str, str, str]]) -> Iterator[tuple[str, str]]:
    """Give the file name and the text of the page of each property that has one, and of the list of them."""
    ids = list(reader.property_pages)
    if not ids:
        return
    values: dict[str, Any] = {"ids": ids}
    known = _Known(
        reader.query(_PRICES, values | {"nights": _NIGHTS}),
        *(reader.query(sql, values) for sql in (_PARITY, _FLOORS, _PROMOTIONS)),
    )
    about = {row["property_id"]: row for row in reader.query("SELECT * FROM mart.property").rows(named=True)}
    offers = dict(reader.query(_OFFERS, values).iter_rows())
    of_cases = calls(standing_cases(reader).filter(pl.col("scope") == "property"))
    lines = {house: of_cases.filter(pl.col("property_id") == house) for house in ids}
    common = {"night": reader.night, "links": [(text, f"../{href}") for _, text, href in links]}
    for house in ids:
        place = about.get(house, {"property_id": house, "property_name": None})
        sections = _sections(known, house, lines[house])
        tiles = _tiles(known, house, lines[house], offers.get(house, 0))
        context = common | {"place": place, "facts": _facts(place), "sections": sections, "tiles": tiles}
        yield f"{house}.html", render("property", context)
    if reader.scope.property_id is None:
        listed = _listed(ids, about, offers, lines)
        yield _OVERVIEW, render("properties", common | {"section": listed})


def _facts(place: Mapping[str, Any]) -> str:
    """Return in words what the file of properties says of one."""
    stars = place.get("stars")
    said = (
        ", ".join(filter(None, (place.get("city"), place.get("country")))),
        f"{stars:g} stars" if stars else "",
        place.get("brand"),
        f"group {place['property_group']}" if place.get("property_group") else "",
        f"your code {place['own_code']}" if place.get("own_code") else "",
    )
    return " · ".join(filter(None, said))


def _of(rows: pl.DataFrame, house: int) -> pl.DataFrame:
    return rows.filter(pl.col("property_id") == house)


def _tiles(known: _Known, house: int, cases: pl.DataFrame, offers: int) -> list[tuple[str, str]]:
    parity, floors = _of(known.parity, house), _of(known.floors, house)
    pairs = int(parity["pairs"].sum())
    return [
        (shown(int(cases["cases"].sum()) if cases.height else 0, 0), "open cases"),
        (shown(offers, 0), "offers on sale"),
        (shown(int(parity["lose"].sum()), 0), f"dearer than in the reference market, of {counted(pairs, 'pair')}"),
        (
            shown(int(floors["above_total"].sum()), 0),
            f"floors at or above the total, of {int(floors['with_floor'].sum()):,}",
        ),
        (shown(int(_of(known.promotions, house)["promoted"].sum()), 0), "offers promoted"),
    ]


def _sections(known: _Known, house: int, cases: pl.DataFrame) -> list[Section]:
    return [
        _cases(cases),
        _prices(_of(known.prices, house)),
        _parity(_of(known.parity, house)),
        _floors(_of(known.floors, house)),
        _promotions(_of(known.promotions, house)),
    ]


def _cases(lines: pl.DataFrame) -> Section:
    if lines.height:
        lines = lines.with_columns(
            pl.col("pages").list.eval(
                pl.struct(
                    pl.element().struct.field("text"),
                    (pl.lit("../") + pl.element().struct.field("href")).alias("href"),
                )
            )
        )
    return Section(
        "cases",
        counted(lines.height, "problem is open", "problems are open") if lines.height else "Nothing to call about",
        "Each line is one problem, in every market where it was found, with the answers that show it.",
        lines,
        columns=[
            Column("rule_words", "Problem", is_wide=True),
            Column("market", "Markets", is_wide=True),
            Column("severity", "Severity"),
            Column("status", "Status"),
            Column("flags", "Findings", digits=0),
            Column("finding", "In words, and the evidence by market", is_wide=True, links="pages"),
        ],
        why_empty="No case of this property is open.",
        source="report.finding_case",
    )


def _prices(path: pl.DataFrame) -> Section:
    charts: list[Markup] = []
    markets = path.group_by("market").len().sort(["len", "market"], descending=[True, False])["market"]
    places = {market: place for place, market in enumerate(markets.head(_MARKETS).sort().to_list())}
    nights: list[date] = path["snapshot_date"].unique().sort().to_list()
    if nights:
        nights = pl.date_range(nights[0], nights[-1], eager=True).to_list()
    by_stay = path.filter(pl.col("market").is_in(list(places))).partition_by(
        ["check_in", "nights", "party"], maintain_order=True
    )
    for stay in by_stay[:_CHARTS]:
        first = stay.row(0, named=True)
        paths = {
            market: list(stay.filter(pl.col("market") == market).select("snapshot_date", "total").iter_rows())
            for market in places
        }
        caption = f"Check-in {first['check_in']}, {counted(first['nights'], 'night')}, party {first['party']}"
        charts.append(price_lines({name: path for name, path in paths.items() if path}, places, nights, caption))
    currency = path["currency"][0] if path.height else ""
    left = f" The first {_CHARTS} of {len(by_stay)} stays are drawn." if len(by_stay) > _CHARTS else ""
    return Section(
        "prices",
        f"The cheapest price of each stay, night by night, in {currency}" if charts else "No price has been seen",
        "The lowest hotel-only total in list answers, by market. Lines that coincide are drawn thin upon thick. A "
        f"line breaks where the property was not on sale.{left}",
        path,
        [key(places), *charts] if charts else (),
        why_empty="No list answer had a hotel-only price for a stay that is still ahead.",
        source="mart.offer_history",
    )


def _parity(rows: pl.DataFrame) -> Section:
    reference = rows["reference_market"][0] if rows.height else ""
    lose, pairs = int(rows["lose"].sum()), int(rows["pairs"].sum())
    return Section(
        "parity",
        f"{lose:,} of {counted(pairs, 'offer')} {'is' if lose == 1 else 'are'} dearer than in {reference}"
        if rows.height
        else "No market could be compared",
        "The same room, board, policy, stay and party in both markets, both answered in one currency in one sweep. "
        "Above 0: dearer than in the reference market.",
        rows,
        columns=[
            Column("market", "Market"),
            Column("check_in", "Check-in"),
            Column("currency", "Currency"),
            Column("pairs", "Compared", digits=0),
            Column("win", "Cheaper", digits=0),
            Column("meet", "Equal", digits=0),
            Column("lose", "Dearer", digits=0),
            Column("median_gap_pct", "Median gap", "%", 1, is_change=True),
        ],
        why_empty="No offer of this property is on sale both in the reference market and in another one.",
        source="mart.market_parity",
    )


def _floors(rows: pl.DataFrame) -> Section:
    above, stated = int(rows["above_total"].sum()), int(rows["with_floor"].sum())
    return Section(
        "floors",
        f"{above:,} of {counted(stated, 'floor')} {'lies' if above == 1 else 'lie'} at or above the total"
        if stated
        else "No floor is stated",
        "The floor is the lowest price at which a hotel-only offer may be sold. Closest floor: the mark-up on the "
        "total at which it is reached; below 0, the total is above the floor.",
        rows,
        columns=[
            Column("check_in", "Check-in"),
            Column("nights", "Nights", digits=0),
            Column("market", "Market"),
            Column("cheapest", "Cheapest total", digits=2, currency="currency"),
            Column("offers", "Offers", digits=0),
            Column("with_floor", "With a floor", digits=0),
            Column("above_total", "Floor above total", digits=0),
            Column("closest_pct", "Closest floor", "%", 1, is_change=True),
        ],
        why_empty="No hotel-only offer of this property is on sale.",
        source="mart.floor_headroom",
    )


def _promotions(rows: pl.DataFrame) -> Section:
    promoted, never = int(rows["promoted"].sum()), int(rows["never_charged"].sum())
    return Section(
        "promotions",
        f"{counted(promoted, 'offer is', 'offers are')} promoted"
        + (f"; {never:,} struck-through {'price was' if never == 1 else 'prices were'} never charged" if never else "")
        if promoted
        else "Nothing is promoted",
        "List offers below their price before promotions, and that price against what was charged earlier for the "
        "same offer: an indicator, not proof.",
        rows,
        columns=[
            Column("market", "Market"),
            Column("product_type", "Product"),
            Column("currency", "Currency"),
            Column("promoted", "Promoted", digits=0),
            Column("depth_pct", "Mean discount", "%", 1),
            Column("since", "First seen"),
            Column("honest", "Honest", digits=0),
            Column("above_lowest", "Above the earlier lowest", digits=0),
            Column("never_charged", "Never charged", digits=0),
            Column("too_new", "Too little history", digits=0),
        ],
        why_empty="No offer of this property is below its price before promotions.",
        source="mart.reference_price",
    )


def _listed(
    ids: Sequence[int],
    about: Mapping[int, Mapping[str, Any]],
    offers: Mapping[int, int],
    lines: Mapping[int, pl.DataFrame],
) -> Section:
    """Return the list of properties: where they are, to whom they belong, and what is open."""
    known = ("property_name", "city", "country", "stars", "brand", "property_group", "own_code")
    rows = pl.DataFrame(
        [
            {"property_id": house}
            | {name: about.get(house, {}).get(name) for name in known}
            | {
                "cases": int(lines[house]["cases"].sum()) if lines[house].height else 0,
                "problems": "; ".join(lines[house]["rule_words"].unique(maintain_order=True)) or "none",
                "offers": offers.get(house, 0),
            }
            for house in ids
        ],
        infer_schema_length=None,
    )
    with_cases = rows.filter(pl.col("cases") > 0).height
    return Section(
        "properties",
        f"{with_cases:,} of {counted(len(ids), 'property has', 'properties have')} open cases",
        f"The most urgent first. Each property has a page with its cases, prices, floors and promotions; at most "
        f"{PROPERTIES} of a night do. Names, cities, brands and groups come from `nightaudit load properties FILE`.",
        rows,
        columns=[
            Column("property_name", "Property", is_wide=True, below="property_id"),
            Column("city", "City"),
            Column("brand", "Brand", is_wide=True),
            Column("property_group", "Group", is_wide=True),
            Column("stars", "Stars", digits=1),
            Column("offers", "Offers", digits=0),
            Column("cases", "Cases", digits=0),
            Column("problems", "Open problems", is_wide=True),
        ],
        shown=len(ids),
        source="mart.property",
    )
