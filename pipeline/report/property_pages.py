"""The page of a property: its cases, its prices night by night, floors, promotions, and how its markets compare.

All pages of a night are made from a handful of queries. How many there are is bounded, those with open cases first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import polars as pl

from pipeline.report.cases import calls, standing_cases
from pipeline.report.page import Column, Section, counted, render
from pipeline.report.property_sections import OfProperty, sections_of, tiles_of
from pipeline.report.read import PROPERTIES, Reader

# Nights whose prices are drawn.
_NIGHTS = 60
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
# How honest each price before promotions is takes the whole history: what was found of it is in the findings.
_PROMOTIONS: Final = """
WITH found AS (
    SELECT property_id, market, currency, product_type,
        count(*) FILTER (WHERE rule = 'reference_never_charged') AS never_charged,
        count(*) FILTER (WHERE rule = 'reference_above_lowest') AS above_lowest,
        count(*) FILTER (WHERE rule = 'evergreen_promotion') AS evergreen
    FROM report.flag
    WHERE source = 'multi' AND list_contains($ids::BIGINT[], property_id)
    GROUP BY ALL
),

promoted AS (
    SELECT property_id, market, currency, product_type, count(*) AS promoted,
        median(100 * (1 - total::DOUBLE / pre_promo_total::DOUBLE)) AS depth_pct
    FROM mart.offer_latest
    WHERE source = 'multi' AND total < pre_promo_total AND list_contains($ids::BIGINT[], property_id)
    GROUP BY ALL
)

SELECT promoted.*, coalesce(found.never_charged, 0) AS never_charged, coalesce(found.above_lowest, 0) AS above_lowest,
    coalesce(found.evergreen, 0) AS evergreen
FROM promoted
LEFT JOIN found USING (property_id, market, currency, product_type)
ORDER BY ALL
"""
_OFFERS: Final = """
SELECT property_id, count(*) AS offers FROM mart.offer_latest
WHERE list_contains($ids::BIGINT[], property_id) GROUP BY ALL
"""


def property_pages(reader: Reader, links: Sequence[tuple[str, str, str]]) -> Iterator[tuple[str, str]]:
    """Give the file name and the text of the page of each property that has one, and of the list of them."""
    ids = list(reader.property_pages)
    if not ids:
        return
    values: dict[str, Any] = {"ids": ids}
    prices = _by_property(reader.query(_PRICES, values | {"nights": _NIGHTS}), ids)
    parity, floors, promotions = (
        _by_property(reader.query(sql, values), ids) for sql in (_PARITY, _FLOORS, _PROMOTIONS)
    )
    about = {row["property_id"]: row for row in reader.query("SELECT * FROM mart.property").rows(named=True)}
    offers = dict(reader.query(_OFFERS, values).iter_rows())
    problems = _by_property(calls(standing_cases(reader).filter(pl.col("scope") == "property")), ids)
    known = {
        house: OfProperty(
            prices[house],
            parity[house],
            floors[house],
            promotions[house],
            problems[house],
            offers.get(house, 0),
        )
        for house in ids
    }
    common = {"night": reader.night, "links": [(text, f"../{href}") for _, text, href in links]}
    for house in ids:
        place = about.get(house, {"property_id": house, "property_name": None})
        made = {"facts": _facts(place), "sections": sections_of(known[house]), "tiles": tiles_of(known[house])}
        yield f"{house}.html", render("property", common | {"place": place} | made)
    if reader.scope.property_id is None:
        yield _OVERVIEW, render("properties", common | {"section": _listed(known, about)})


def _by_property(rows: pl.DataFrame, ids: Sequence[int]) -> dict[int, pl.DataFrame]:
    parts = rows.partition_by("property_id", as_dict=True)
    return {house: parts.get((house,), rows.clear()) for house in ids}


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


def _listed(known: Mapping[int, OfProperty], about: Mapping[int, Mapping[str, Any]]) -> Section:
    """Return the list of properties: where they are, to whom they belong, and what is open."""
    named = ("property_name", "city", "country", "stars", "brand", "property_group", "own_code")
    rows = pl.DataFrame(
        [
            {"property_id": house}
            | {name: about.get(house, {}).get(name) for name in named}
            | {
                "cases": each.cases,
                "problems": "; ".join(each.problems["rule_words"].unique(maintain_order=True)) or "none",
                "offers": each.offers,
            }
            for house, each in known.items()
        ],
        infer_schema_length=None,
    )
    with_cases = rows.filter(pl.col("cases") > 0).height
    return Section(
        "properties",
        f"{with_cases:,} of {counted(len(known), 'property has', 'properties have')} open cases",
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
        shown=len(known),
        source="mart.property",
    )
