"""The page of a property: what is open, what it cost night by night, and where its floors and promotions are."""

from __future__ import annotations

import html
import re
from decimal import Decimal

import pytest
from nights import load_night, started_at, sweep_id

from pipeline.cli.load import load as load_command
from pipeline.inputs.load import load
from pipeline.publish import publish
from pipeline.publish.refresh import refresh
from pipeline.report import read as reading
from pipeline.report.scope import Scope
from pipeline.report.write import write_reports

from .conftest import CHECK_IN, SCRIPT, night


def page_of(lake, property_id: int, number: int) -> str:
    return (lake.root / "reports" / sweep_id(number) / "properties" / f"{property_id}.html").read_text()


def section(page: str, name: str) -> str:
    """The text of a section, as it is read."""
    (found,) = re.findall(rf'<section id="{name}">(.*?)</section>', page, re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", found)).split())


def tiles(page: str) -> list[tuple[str, str]]:
    """The numbers at the top of a page with their labels."""
    return re.findall(r"<div><b>(.*?)</b>(.*?)</div>", page)


def test_a_property_has_a_page_with_its_cases_and_promotions_and_the_digest_leads_there(nights_with_findings):
    lake = nights_with_findings
    (digest,) = write_reports(lake, ["digest"])
    assert 'href="properties/2.html"' in digest.file.read_text()
    page = page_of(lake, 2, 2)
    assert "1 problem is open" in section(page, "cases")
    assert "1 offer is promoted" in section(page, "promotions")
    for link in re.findall(r'href="([^"#]+)"', page):
        assert (digest.file.parent / "properties" / link).exists(), link
    quiet = page_of(lake, 3, 2)
    assert "Nothing to call about: none of" in section(quiet, "rules")
    assert "Nothing is promoted: none of 1 offer has a struck-through price" in section(quiet, "promotions")
    assert "1 did before" in section(page_of(lake, 1, 2), "rules")


def test_no_section_of_a_page_is_empty_and_what_is_missing_says_what_will_fill_it(lake):
    """The only market cannot be compared; property 4 is not on sale."""
    asked = {"property_id": 4, "market": "GB", "check_in": CHECK_IN, "offers": 0, "search_id": 1025, "status": "absent"}
    publish(lake, load_night(lake, 1, cell=[asked]), started_at(1))
    write_reports(lake, ["digest"])
    for number, missing in (
        (1, ["No market could be compared"]),
        (4, ["No price has been seen", "No floor is stated"]),
    ):
        page = page_of(lake, number, 1)
        assert 'class="empty"' not in page
        is_calm = "Nothing to call about" in section(page, "rules")
        assert is_calm is (number == 1)
        left = section(page, "not_yet")
        assert all(title in left for title in missing)
        assert left.count("fills this") == page.count("<dt>")
    assert "0 of 1 cell are on sale" in section(page_of(lake, 4, 1), "on_sale")


def test_a_property_with_offers_in_two_currencies_says_that_they_count_twice(lake):
    asked = {"property_id": 5, "market": "GB", "check_in": CHECK_IN}
    kinds = [
        asked | {"currency_asked": currency, "search_id": 257 + number}
        for number, currency in enumerate(("EUR", "GBP"))
    ]
    cells = [kind | {"offers": 1} for kind in kinds]
    sold = {"room_id": 7, "board_id": 14, "total": Decimal(90)}
    offers = [kind | sold | {"currency": kind["currency_asked"]} for kind in kinds]
    publish(lake, load_night(lake, 1, cell=cells, offer=offers), started_at(1))
    write_reports(lake, ["digest"])
    assert ("2", "offers on sale, one in two currencies twice") in tiles(page_of(lake, 5, 1))
    assert "currencies twice" in (lake.root / "reports" / sweep_id(1) / "properties" / "index.html").read_text()


@pytest.mark.slow
def test_a_property_without_offers_says_what_came_of_its_cells(lake):
    asked = {"property_id": 4, "market": "GB", "check_in": CHECK_IN, "offers": 0}
    cells = [
        asked | {"search_id": 1025, "status": "absent"},
        asked | {"search_id": 1026, "status": "no_offer", "party": "1"},
    ]
    publish(lake, load_night(lake, 1, cell=cells), started_at(1))
    write_reports(lake, ["digest"])
    came = "Of 2 cells whose stay is still ahead: 1 absent, 1 no offer."
    assert came in page_of(lake, 4, 1)
    assert "Nothing is on sale" not in page_of(lake, 1, 1)
    assert "pairs of markets could be compared" in page_of(lake, 4, 1)
    assert "of 0 pairs" not in page_of(lake, 4, 1)


@pytest.mark.slow
def test_the_prices_of_a_property_are_drawn_night_by_night(two_nights):
    write_reports(two_nights, ["digest"])
    page = page_of(two_nights, 1, 1)
    assert "The cheapest price of each stay, night by night, in EUR" in section(page, "prices")
    # From 100 to 120 in one step: both are on the axis, and the line is level on each night.
    assert re.findall(r'text-anchor="end">([\d,]+)</text>', page) == ["100", "110", "120"]
    (line,) = re.findall(r'<path d="([^"]*)"', page)
    assert re.fullmatch(r"M[\d.]+ [\d.]+H[\d.]+L[\d.]+ [\d.]+H[\d.]+", line)


def test_the_list_of_properties_names_them_as_their_file_does(lake, tmp_path):
    file = tmp_path / "properties.csv"
    file.write_text("property_id,property_name,city,brand,property_group\n1,<b>Fjord</b>,Oslo,A & B,North\n")
    load(lake, "properties", file, started_at(0))
    refresh(lake)
    write_reports(lake, ["digest"])
    listed = page_of(lake, "index", 0)
    assert 'href="1.html">&lt;b&gt;Fjord&lt;/b&gt;</a>' in listed
    assert "Oslo" in listed
    assert SCRIPT not in page_of(lake, 1, 0)
    assert "&lt;b&gt;Fjord&lt;/b&gt;" in page_of(lake, 1, 0)


def test_names_that_were_loaded_are_said_to_need_new_pages(lake, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    file = tmp_path / "properties.csv"
    file.write_text("property_id,property_name\n1,One\n")
    load_command("properties", file, check=False)
    # There are no pages yet.
    assert "nightaudit report" not in capsys.readouterr().out
    write_reports(lake, ["digest"])
    file.write_text("property_id,property_name\n1,Another\n")
    load_command("properties", file, check=False)
    assert "the pages do after: nightaudit report" in capsys.readouterr().out


def test_how_many_pages_there_are_is_bounded_and_a_report_about_one_property_has_its_page(two_nights, monkeypatch):
    monkeypatch.setattr(reading, "PROPERTIES", 1)
    write_reports(two_nights, ["digest"])
    folder = two_nights.root / "reports" / sweep_id(1) / "properties"
    assert {file.name for file in folder.iterdir()} >= {"1.html", "index.html"}
    (folder / "1.html").unlink()
    write_reports(two_nights, ["digest"], Scope(market="GB"))
    assert not (folder / "1.html").exists()
    write_reports(two_nights, ["digest"], Scope(property_id=1))
    assert (folder / "1.html").exists()


@pytest.mark.slow
def test_the_same_night_gives_the_same_page(lake):
    night(lake, 1, {1: 120, 2: 95, 3: 100})
    write_reports(lake, ["digest"])
    first = page_of(lake, 1, 1)
    write_reports(lake, ["digest"])
    assert page_of(lake, 1, 1) == first
