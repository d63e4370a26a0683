"""The page of a property: its cases, prices night by night, floors, promotions, and a comparison of its markets.

All pages of a night are made from a few queries. Their number is limited; properties with open cases come first.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import polars as pl

from pipeline.domain.quantities import counted
from pipeline.report.cases import calls, open_cases
from pipeline.report.page import Column, Section, whole
from pipeline.report.property_sections import OfProperty, sections_of, tiles_of
from pipeline.report.read import PROPERTIES, Reader
from pipeline.report.render import render
from pipeline.report.words import said

_OVERVIEW: Final = "index.html"


def property_pages(reader: Reader, links: Sequence[tuple[str, str, str]]) -> Iterator[tuple[str, str]]:
    """Yield file name and text of the properties' pages and of their list."""
    ids = list(reader.property_pages)
    if not ids:
        return
    prices, parity, floors, promotions, rules, cells = (
        _by_property(reader.figures(f"property_{name}", ids), ids)
        for name in ("price", "parity", "floor", "promotion", "rule", "cells")
    )
    about = {row["property_id"]: row for row in reader.properties.iter_rows(named=True)}
    offers = dict(reader.figures("property_offers", ids).iter_rows())
    problems = _by_property(calls(open_cases(reader).filter(pl.col("scope") == "property")), ids)
    known = {
        property_id: OfProperty(
            prices[property_id],
            parity[property_id],
            floors[property_id],
            promotions[property_id],
            rules[property_id],
            cells[property_id],
            problems[property_id],
            offers.get(property_id, 0),
        )
        for property_id in ids
    }
    common = {"night": reader.night, "links": [(text, f"../{href}") for _, text, href in links]}
    for property_id in ids:
        place = about.get(property_id, {"property_id": property_id, "property_name": None})
        held = known[property_id]
        nothing = "" if held.offers else _not_on_sale(cells[property_id])
        made = {"facts": _facts(place), "nothing": nothing, "sections": sections_of(held), "tiles": tiles_of(held)}
        yield f"{property_id}.html", render("property", common | {"place": place} | made)
    if reader.scope.property_id is None:
        yield _OVERVIEW, render("properties", common | {"section": _listed(known, about), "places": reader.places})


def _by_property(rows: pl.DataFrame, ids: Sequence[int]) -> dict[int, pl.DataFrame]:
    parts = rows.partition_by("property_id", as_dict=True)
    return {property_id: parts.get((property_id,), rows.clear()) for property_id in ids}


def _not_on_sale(cells: pl.DataFrame) -> str:
    """Return why a property has no offers, by the status of its cells."""
    if not cells.height:
        return "Nothing is on sale: no stay that is still ahead was requested."
    counted_by = cells.group_by("status").agg(pl.col("cells").sum())
    most_first = counted_by.sort(["cells", "status"], descending=[True, False]).iter_rows(named=True)
    by_status = ", ".join(f"{row['cells']:,} {said('status', row['status'])}" for row in most_first)
    asked = counted(int(cells["cells"].sum()), "cell")
    return (
        f"Nothing is on sale. Of {asked} whose stay is still ahead: {by_status}. Absent means that the answer does not "
        "name the property, which is not the same as sold out."
    )


def _facts(place: Mapping[str, Any]) -> str:
    """Return the facts about a property from the user's file, in words."""
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
    """Return the list of properties with place, group and open cases."""
    named = ("property_name", "city", "country", "stars", "brand", "property_group", "own_code")
    rows = pl.DataFrame(
        [
            {"property_id": property_id}
            | {name: about.get(property_id, {}).get(name) for name in named}
            | {
                "cases": each.cases,
                "cost": of.row(0, named=True)["cost"] if (of := each.problems).height else None,
                "problems": "; ".join(each.problems["rule_words"].unique(maintain_order=True)) or "none",
                "offers": each.offers,
            }
            for property_id, each in known.items()
        ],
        infer_schema_length=None,
    )
    with_cases = rows.filter(pl.col("cases") > 0).height
    return Section(
        "properties",
        f"{with_cases:,} of {counted(len(known), 'property', 'properties')} "
        f"{'has' if 1 in {with_cases, len(known)} else 'have'} open problems",
        "The property with the costliest problem comes first. Its problems are listed by cost, and the cost shown is "
        "that of the first one, over all its markets. What is not about an amount comes last. Each property has a page "
        f"with its cases, prices, floors and promotions; at most {PROPERTIES} per night do. Offers are those on sale, "
        "one in both a list and a detail answer once, one in two currencies twice. Names, cities, brands and groups "
        "come from `nightaudit load properties FILE`.",
        rows,
        columns=[
            Column("property_name", "Property", is_wide=True, below="property_id"),
            Column("city", "City"),
            Column("brand", "Brand", is_wide=True),
            Column("property_group", "Group", is_wide=True),
            Column("stars", "Stars", digits=1),
            Column("cost", "Cost of the costliest problem", digits=0),
            Column("problems", "Open problems", is_wide=True),
            *whole(offers="Offers", cases="Cases"),
        ],
        shown=len(known),
        source="mart.property",
    )
