"""The page of a case: its summary and best evidence, two answers side by side with their requests.

A case has its own page and no section on a property's page, because it may be about a market. The number of pages is
limited, so that thousands of cases cost no more.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from pipeline.domain.problem import NOTED, markets_of, status_of
from pipeline.domain.quantities import cost_said, counted
from pipeline.domain.search import Operation
from pipeline.lake import Lake
from pipeline.lake.relations import finding_rules
from pipeline.report.case_evidence import Answer, Piece, Row, pieces
from pipeline.report.case_prices import is_about_a_price
from pipeline.report.case_sides import lines_of, stated
from pipeline.report.ended_cases import with_why
from pipeline.report.page import money, percent, shown
from pipeline.report.read import PROPERTY_PAGES, Reader
from pipeline.report.render import render
from pipeline.report.thresholds import named_in, thresholds
from pipeline.report.words import role_said, rule_said, said

# Links to other cases on a page.
_SIBLINGS: Final = 12

# A finding that compares a list answer with a detail answer belongs to neither.
_OF_BOTH: Final = {"list_detail_mismatch"}

# Beside the nights that saw a finding about a selling price: others cannot see it again.
_PER_PRICE: Final = " (judged per loaded price, not nightly)"


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer as a page shows it: its heading in the comparison, its request with its time and address."""

    heading: str
    facts: Sequence[tuple[str, str]]
    body: str
    lost: str


def case_pages(lake: Lake, reader: Reader, links: Sequence[tuple[str, str, str]]) -> Iterator[tuple[str, str]]:
    """Yield file name and text of each case's page; `links` are those of the menu."""
    has_page = pl.col("case_id").is_in(list(reader.case_pages))
    ended = with_why(reader, reader.ended).filter(has_page).rows(named=True)
    rows = [row | {"ended_by": None} for row in reader.cases.filter(has_page).iter_rows(named=True)] + ended
    if not rows:
        return
    found = pieces(reader.session, lake, (item["flag_id"] for row in rows for item in row["evidence"]))
    of_property: dict[int, list[Row]] = {}
    for row in rows:
        if row["property_id"] is not None and row["closed_at"] is None:
            of_property.setdefault(row["property_id"], []).append(row)
    names = dict(reader.properties.select("property_id", "property_name").iter_rows())
    analysis = thresholds(reader)
    hosts = {night["sweep_id"]: night["supplier"] for night in reader.nights}
    for row in rows:
        near = [each for each in of_property.get(row["property_id"], []) if each["case_id"] != row["case_id"]]
        held = [found[item["flag_id"]] for item in row["evidence"] if item["flag_id"] in found]
        rule = finding_rules().get(row["rule"])

        def of_whom(flag: Row, case: Row = row) -> str:
            is_of_case = case["property_id"] is not None
            return "" if is_of_case else _property(names.get(flag["property_id"]), flag["property_id"])

        context = {
            "case": row,
            "problem": rule_said(row["rule"]),
            "whom": whom(row),
            "meaning": rule.meaning.strip() if rule else "",
            "thresholds": named_in(rule.meaning, analysis) if rule else [],
            "relation": rule.full_name if rule else "report.flag",
            "tiles": _tiles(row),
            "notes": _notes(row),
            "ended": _ended(row),
            "pieces": [
                (piece.flag, _placed(piece.flag, of_whom(piece.flag)), lines_of(piece), *_answers(piece, hosts))
                for piece in held
            ],
            "siblings": [
                (f"{rule_said(each['rule'])}, {markets_of(each)}", f"{each['case_id']}.html")
                for each in near[:_SIBLINGS]
            ],
            "more_siblings": len(near[_SIBLINGS:]),
            "property_page": f"../{PROPERTY_PAGES}/{row['property_id']}.html"
            if row["property_id"] in reader.linked_properties
            else "",
            "links": [(text, f"../{href}") for _, text, href in links],
            "night": reader.night,
        }
        yield f"{row['case_id']}.html", render("case", context)


def whom(case: Row) -> str:
    """Return the subject of a case in words: property and market, market, or supplier."""
    if case["scope"] == "supplier":
        return f"the supplier, {markets_of(case)}"
    pair = f", {case['base_currency']} to {case['currency']}" if case["base_currency"] else ""
    if case["scope"] == "market":
        return f"market {case['market']}{pair}"
    return f"{_property(case['property_name'], case['property_id'])}, {markets_of(case)}{pair}"


def remove_others(folder: Path, reader: Reader) -> None:
    """Remove pages of what is no longer a case of the night, as the data may have been published again since."""
    cases = {*reader.cases["case_id"], *reader.ended["case_id"]}
    for page in folder.glob("*.html"):
        if page.stem not in cases:
            page.unlink()


def _property(name: str | None, property_id: int) -> str:
    return f"{name} ({property_id})" if name else f"property {property_id}"


def _tiles(case: Row) -> list[tuple[str, str]]:
    # A case about a complete property, such as one gone quiet, has no stays, and a mark-up has one finding a property.
    over = f"{'offer' if case['offers'] == 1 else 'offers'} for {counted(case['stays'], 'stay')}"
    size = (case["flags"], "findings" if case["flags"] > 1 else "finding")
    if case["rule"] == "fx_markup":
        size = (case["properties"], "properties" if case["properties"] > 1 else "property")
    elif case["stays"]:
        size = (case["offers"], over)
    cost = cost_said(case["exposure_eur"], case["amounts"])
    if case["closed_at"] is not None:
        return [
            ("ended", f"severity was {case['severity']}"),
            (cost or "–", "cost of all its findings"),
            (f"{case['opened_at']:%-d %b %Y}", "opened"),
            (f"{case['closed_at']:%-d %b %Y}", "ended"),
        ]
    return [
        (status_of(case), f"severity {case['severity']}"),
        (cost or "–", "cost: one price difference a stay, added up" if cost else "cost: not about an amount"),
        (shown(size[0], 0), size[1]),
        (f"{case['exposure_weight']:g}", "weight (1 per property if you loaded none)"),
        (f"{case['opened_at']:%-d %b %Y}", "open since"),
        (
            f"{case['last_seen_at']:%-d %b %Y}",
            f"last seen{_PER_PRICE if is_about_a_price(case['rule']) else ''}",
        ),
    ]


def _ended(case: Row) -> str:
    """Return when an ended case ended, and why most of its findings did; empty: it is open."""
    if case["closed_at"] is None:
        return ""
    days = (case["closed_at"] - case["opened_at"]).days
    why = said("ended_by", case["ended_by"] or "value")
    return f"It ended on {case['closed_at']:%-d %b %Y}, after {counted(days, 'day')}: {why}."


def _notes(case: Row) -> list[str]:
    sums = ", ".join(money(each["amount"], each["currency"]) for each in case["amounts"])
    notes = [f"One price difference a stay, added up, by currency: {sums}."] if sums else []
    if case["opened_at"] > case["first_seen_at"]:
        # What was found at single properties before is of the case of their market, too.
        between = "it had ended in between" if case["scope"] == "property" else "it was not one case throughout"
        notes.append(f"First seen on {case['first_seen_at']:%-d %b %Y}; {between}.")
    if case["closed_at"] is None and is_about_a_price(case["rule"]):
        notes.append(
            "It is judged for each selling price that you load, by the answers around the time of that price, and not "
            "every night: it stays open until a newer price keeps the floor, or this one is too old."
        )
    if sums and case["exposure_eur"] is not None and (in_euro := money(case["exposure_eur"], "EUR")) != sums:
        notes.append(f"In euro at the day's rates; for a stay in two currencies, the larger amount: {in_euro}.")
    if case["scope"] != "property" and case["share_pct"] is not None:
        judged = counted(case["properties_judged"], "property", "properties")
        notes.append(f"Found at {percent(case['share_pct'], 0)} of the {judged} of the market that are on sale.")
    return [*notes, *(f"{label}: {shown(case[name])}." for name, label in NOTED.items() if case[name] is not None)]


def _placed(flag: Row, whom: str) -> str:
    """Return the property of a finding, where the case is of several, its answer and its stay in words."""
    said_of = [
        whom,
        "" if flag["rule"] in _OF_BOTH else f"{said('source', flag['source'])} answer",
        f"check-in {flag['check_in']}" if flag["check_in"] else "",
        counted(flag["nights"], "night") if flag["nights"] else "",
        f"party {flag['party']}" if flag["party"] else "",
        f"product {flag['product_type']}" if flag["product_type"] else "",
        f"1 {flag['fx']['from_currency']} = {flag['fx']['rate'].normalize():f} {flag['fx']['to_currency']} "
        f"(reference rate of {flag['fx']['rate_date']})"
        if flag["fx"] and flag["fx"]["rate"] is not None
        else "",
        f"seen on {counted(flag['snapshots'], 'night')}{_PER_PRICE if is_about_a_price(flag['rule']) else ''}",
    ]
    placed = ", ".join(part for part in said_of if part)
    return f"{placed[0].upper()}{placed[1:]}"


def _answers(piece: Piece, hosts: Mapping[str, str]) -> tuple[list[Shown], list[str], int]:
    """Return the compared answers, a line for each of the others, and how many more there are."""
    others = [
        f"{_heading(answer)}: {_evidence_of(answer) or stated(answer, 'status') or 'no offer kept'}"
        for answer in piece.others
    ]
    # Several searches of a night may have the same line.
    return [_shown(answer, hosts) for answer in piece.answers], list(dict.fromkeys(others)), piece.more


def _evidence_of(answer: Answer) -> str:
    # Beside "the floor now", a total would be read as the floor.
    return stated(answer, "floor" if answer.role.startswith("floor") else "total")


def _heading(answer: Answer) -> str:
    role = role_said(answer.role)
    search = answer.search
    place = f"{search['market']}, {search['started_at']:%d %b %Y}" if search else "search not kept"
    return f"{place} ({role})" if role else place


def _shown(answer: Answer, hosts: Mapping[str, str]) -> Shown:
    search = answer.search
    if search is None:
        return Shown(_heading(answer), [], "", answer.lost)
    # A sweep keeps only the host of the address, and no secret.
    address = f"{hosts.get(search['sweep_id'], '')} {Operation(search['operation']).path}".strip()
    facts = [
        ("Request", f"POST {address}"),
        ("Sent", f"{search['started_at']:%Y-%m-%d %H:%M:%S} UTC"),
        ("Answer", f"HTTP {search['http_status']}" if search["http_status"] else search["failure"] or "none"),
        ("SHA-256", search["body_sha256"] or "no body"),
        ("Full answer", f"nightaudit show {search['raw_address']}"),
    ]
    body = _body(answer, search) if answer.raw else ""
    return Shown(_heading(answer), facts, body, answer.lost)


def _body(answer: Answer, search: Row) -> str:
    """Return the body of a request; ids of other properties are counted, and private ones left out."""
    assert answer.raw is not None  # noqa: S101 - the caller has looked
    sent = json.loads(answer.raw.record.request)
    if search["sent_property_id"] is not None:
        # The id of an opaque offer is the user's secret.
        sent |= {name: "from your private id map" for name in ("propertyId", "propertyIds") if name in sent}
    elif len(sent.get("propertyIds", ())) > 1:
        sent["propertyIds"] = counted(len(sent["propertyIds"]), "property id")
    return json.dumps(sent, ensure_ascii=False)
