"""Tables in a real browser: they sort and filter, a link keeps what was typed, and without script they are plain."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from nights import started_at
from playwright.sync_api import sync_playwright

from pipeline.inputs.load import load
from pipeline.publish.refresh import refresh
from pipeline.report.page import Column, Page, Section, named
from pipeline.report.render import render
from pipeline.report.scope import Scope
from pipeline.report.write import write_reports

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install chromium"),
]


# The last hotel is one of whose place nothing is known.
PLACES = {
    number: {"data-city": ["Oslo", "Riga", "Praha"][number % 3], "data-brand": "A & B" if number < 6 else 'The "C"'}
    for number in range(11)
}


@pytest.fixture(scope="module")
def page_of_hotels(tmp_path_factory):
    """Twelve hotels, of which the page shows nine."""
    rows = pl.DataFrame(
        {
            "property_id": range(12),
            "property_name": [f"Hotel {number:02}" for number in range(12)],
            "city": ["Oslo", "Riga", "Praha"] * 4,
            "gap": [float(number * 700 % 1100 - 500) for number in range(12)],
        }
    )
    columns = [
        Column("property_name", "Property", is_wide=True),
        Column("city", "City"),
        Column("gap", "Gap", digits=0, is_change=True),
    ]
    section = Section("hotels", "Hotels", "", rows, columns=columns, shown=9)
    night = {"snapshot_date": "2030-01-01", "sweep_id": "one", "supplier": "sandbox", "is_simulated": True}
    file = tmp_path_factory.mktemp("page") / "index.html"
    file.write_text(
        render(
            "properties", {"section": section, "night": night, "links": [("Parity", "parity.html")], "places": PLACES}
        )
    )
    return file.as_uri()


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def seen(page) -> list[str]:
    return [row.inner_text().split("\t")[0] for row in page.locator("tbody tr").all() if row.is_visible()]


def test_a_table_sorts_by_what_is_clicked_and_shows_what_is_typed(browser, page_of_hotels):
    page = browser.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(page_of_hotels)
    assert len(seen(page)) == 9
    page.get_by_role("button", name="Gap").click()
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    gaps = [number * 700 % 1100 - 500 for number in range(12)]
    assert seen(page) == [f"Hotel {at:02}" for at in sorted(range(12), key=lambda at: -gaps[at])][:9]
    page.get_by_role("searchbox").fill("oslo hotel")
    assert sorted(seen(page)) == ["Hotel 00", "Hotel 03", "Hotel 06", "Hotel 09"]
    assert page.get_by_role("status").inner_text() == "4 of 12 rows"
    assert page.get_by_role("button", name="Show all").count() == 0
    # The address holds both: who opens it sees the same.
    other = browser.new_page()
    other.goto(page.url)
    assert seen(other) == seen(page)
    page.get_by_role("searchbox").fill("")
    page.get_by_role("button", name="Show all 12").click()
    assert len(seen(page)) == 12
    assert said == []


def test_what_is_missing_comes_last_in_either_direction_and_currencies_stay_apart(browser, tmp_path):
    rows = pl.DataFrame(
        {
            "property_id": range(4),
            "property_name": [f"Hotel {number}" for number in range(4)],
            "cost": [None, 22.0, -5.0, 1_300.0],
            "city": ["Oslo", None, "Riga", "Praha"],
            "total": [90.0, 1_200.0, 300.0, 800.0],
            "currency": ["EUR", "SEK", "EUR", "SEK"],
        }
    )
    columns = [
        Column("property_name", "Property", is_wide=True),
        Column("cost", "Cost", digits=0),
        Column("city", "City"),
        Column("total", "Total", digits=2, currency="currency"),
    ]
    night = {"snapshot_date": "2030-01-01", "sweep_id": "one", "supplier": "sandbox", "is_simulated": True}
    file = tmp_path / "index.html"
    section = Section("hotels", "Hotels", "", rows, columns=columns)
    file.write_text(render("properties", {"section": section, "night": night, "links": [], "places": {}}))
    page = browser.new_page()
    page.goto(file.as_uri())
    orders = {}
    for name in ("Cost", "City", "Total"):
        for _ in range(2):
            page.get_by_role("button", name=name).click()
            orders[name, page.locator("th[aria-sort]").get_attribute("aria-sort")] = [
                int(row[-1]) for row in (each.split("\n")[0] for each in seen(page))
            ]
    assert orders == {
        ("Cost", "descending"): [3, 1, 2, 0],
        ("Cost", "ascending"): [2, 1, 3, 0],
        ("City", "ascending"): [0, 3, 2, 1],
        ("City", "descending"): [2, 3, 0, 1],
        # No currency is compared with another one.
        ("Total", "descending"): [2, 0, 1, 3],
        ("Total", "ascending"): [0, 2, 3, 1],
    }


def test_words_sort_as_they_follow_each_other_and_not_by_letter(browser, tmp_path):
    """Severities by weight, states of a case by what is to be done, weekdays and ranges of days in their order."""
    days = ["Sun", "30–59", "Mon", "7–13", "Fri", "0–6"]
    rows = pl.DataFrame(
        {
            "property_id": range(6),
            "property_name": [f"Hotel {number}" for number in range(6)],
            "severity": ["low", "high", "medium", "high", "low", "medium"],
            "status_words": ["muted", "acknowledged", "open", "new", "open", "new"],
            "value_words": days,
            "room": ["Room 10", "Room 9", "Room 1", "Suite", "Attic", "Room 2"],
        }
    )
    columns = [Column("property_name", "Property", is_wide=True), *named(severity="Severity", status_words="Status")]
    columns += named(value_words="Value", room="Room")
    night = {"snapshot_date": "2030-01-01", "sweep_id": "one", "supplier": "sandbox", "is_simulated": True}
    file = tmp_path / "index.html"
    section = Section("hotels", "Hotels", "", rows, columns=columns)
    file.write_text(render("properties", {"section": section, "night": night, "links": [], "places": {}}))
    page = browser.new_page()
    page.goto(file.as_uri())
    found = {}
    for at, name in enumerate(("Severity", "Status", "Value", "Room"), 1):
        page.get_by_role("button", name=name).click()
        found[name] = [row.locator("td").nth(at).inner_text() for row in page.locator("tbody tr").all()]
    assert found["Severity"] == ["high", "high", "medium", "medium", "low", "low"]
    assert found["Status"] == ["new", "new", "open", "open", "acknowledged", "muted"]
    assert [day for day in found["Value"] if day.isalpha()] == ["Mon", "Fri", "Sun"]
    assert [span for span in found["Value"] if not span.isalpha()] == ["0–6", "7–13", "30–59"]
    assert found["Room"] == ["Attic", "Room 1", "Room 2", "Room 9", "Room 10", "Suite"]


@pytest.mark.parametrize(
    ("typed", "hotel"),
    [("krakow", "Kraków"), ("KRAKÓW", "Kraków"), ("krako\u0301w", "Kraków"), ("lodz", "Łódź"), ("strasse", "Straße"),
     ("tromso", "Tromsø"), ("thera", "Θήρα"), ("θηρα", "Θήρα"), ("ærø", "Aero")],
)  # fmt: skip
def test_rows_are_found_without_the_marks_on_letters(browser, tmp_path, typed, hotel):
    names = ["Kraków", "Łódź", "Straße", "Tromsø", "Θήρα", "Aero", "Oslo"]
    rows = pl.DataFrame({"property_id": range(7), "property_name": names})
    columns = [Column("property_name", "Property", is_wide=True)]
    section = Section("hotels", "Hotels", "", rows, columns=columns)
    night = {"snapshot_date": "2030-01-01", "sweep_id": "one", "supplier": "sandbox", "is_simulated": True}
    file = tmp_path / "index.html"
    file.write_text(render("properties", {"section": section, "night": night, "links": [], "places": {}}))
    page = browser.new_page()
    page.goto(file.as_uri())
    page.get_by_role("searchbox").fill(typed)
    # Letters of another script stay what they are.
    assert seen(page) == ([] if typed == "thera" else [hotel])


def test_rows_are_chosen_by_city_and_brand_and_the_link_and_the_menu_keep_the_choice(browser, page_of_hotels):
    page = browser.new_page()
    page.goto(page_of_hotels)
    assert page.get_by_label("City").locator("option").all_inner_texts() == ["all", "Oslo", "Praha", "Riga"]
    # None of them has a group.
    assert page.get_by_label("Group").count() == 0
    page.get_by_label("City").select_option("Riga")
    assert seen(page) == ["Hotel 01", "Hotel 04", "Hotel 07", "Hotel 10"]
    page.get_by_label("Brand").select_option('The "C"')
    assert seen(page) == ["Hotel 07", "Hotel 10"]
    assert page.get_by_role("status").inner_text() == "2 of 12 rows"
    page.get_by_role("searchbox").fill("10")
    assert seen(page) == ["Hotel 10"]
    other = browser.new_page()
    other.goto(page.url)
    assert seen(other) == ["Hotel 10"]
    assert other.get_by_label("City").input_value() == "Riga"
    # The other pages of the night open with the same choice.
    kept = other.get_by_role("link", name="Parity").get_attribute("href")
    assert kept.endswith("/parity.html#city=Riga&brand=The+%22C%22")
    page.get_by_role("searchbox").fill("")
    for name in ("City", "Brand"):
        page.get_by_label(name).select_option("all")
    assert len(seen(page)) == 9
    assert "#" not in page.url


def test_a_choice_that_no_row_of_a_page_has_shows_none_and_says_so(browser, page_of_hotels):
    page = browser.new_page()
    page.goto(f"{page_of_hotels}#city=Lisboa")
    assert seen(page) == []
    assert page.get_by_label("City").input_value() == "Lisboa"
    assert page.get_by_role("status").inner_text() == "0 of 12 rows"


def test_a_page_says_what_its_filters_search_and_the_command_for_the_rest(browser, page_of_hotels, tmp_path):
    whole = Path(page_of_hotels.removeprefix("file://")).read_text()
    file = tmp_path / "index.html"
    table = whole.replace('data-rows="12"', 'data-rows="3400"')
    file.write_text(
        table.replace(
            "</section>",
            '<p class="figures"><span class="count" data-report="parity">9 shown. </span>All:</p></section>',
        )
    )
    page = browser.new_page()
    page.goto(file.as_uri())
    below = page.locator(".count")
    assert below.inner_text() == "9 shown. Sorting and filters search the first 12 rows. "
    page.get_by_label("Brand").select_option("A & B")
    assert page.get_by_role("status").inner_text() == "6 of the first 12 rows"
    assert below.inner_text() == (
        "6 of 3,400 rows shown. Sorting and filters search the first 12 rows; with all of A & B: "
        "nightaudit report parity --brand 'A & B'. "
    )
    page.get_by_label("Brand").select_option("all")
    assert below.inner_text().startswith("9 shown. ")


def test_without_script_a_table_shows_all_of_its_rows(browser, page_of_hotels):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(page_of_hotels)
    assert seen(page) == [f"Hotel {number:02}" for number in range(12)]
    assert page.get_by_role("searchbox").count() == 0
    assert "rows shown" not in page.locator("main").inner_text()
    page.set_viewport_size({"width": 390, "height": 800})
    assert len(seen(page)) == 12
    assert "first 6 rows" not in page.locator("main").inner_text()
    assert page.locator("thead").is_hidden()


def test_print_shows_all_rows_of_a_table_or_those_of_its_filter(browser, page_of_hotels):
    page = browser.new_page()
    page.goto(page_of_hotels)
    assert len(seen(page)) == 9
    page.emulate_media(media="print")
    assert len(seen(page)) == 12
    page.emulate_media(media="screen")
    page.get_by_role("searchbox").fill("11")
    page.emulate_media(media="print")
    assert seen(page) == ["Hotel 11"]


@pytest.fixture(scope="module")
def long_page(tmp_path_factory):
    """A digest with a table of 300 rows, of which the page holds 250 and shows 10."""
    rows = pl.DataFrame({"property_id": range(300), "property_name": [f"Hotel {number:03}" for number in range(300)]})
    columns = [Column("property_name", "Property", is_wide=True)]
    section = Section("hotels", "Hotels", "", rows, columns=columns, shown=10).cut(0, 250)
    night = {"snapshot_date": "2030-01-01", "sweep_id": "one", "supplier": "sandbox", "is_simulated": True, "audit": ""}
    file = tmp_path_factory.mktemp("long") / "index.html"
    page = Page("digest", "Digest", "Lead.", [section])
    context = {"page": page, "label": "Digest", "night": night, "links": [], "places": {}, "property_pages": ()}
    file.write_text(render("page", context | {"folder": "digest", "limits": "", "chosen": {}, "complete": ""}))
    return file.as_uri()


def below(page) -> str:
    return page.locator(".figures:not(.in-print)").inner_text().partition(" All figures")[0]


def test_print_has_the_first_hundred_rows_of_a_long_table_or_those_that_are_shown(browser, long_page):
    page = browser.new_page()
    page.goto(long_page)
    assert below(page).startswith("10 of 300 rows shown.")
    page.get_by_role("button", name="Property").click()
    page.get_by_role("button", name="Property").click()
    page.emulate_media(media="print")
    assert seen(page) == [f"Hotel {number:03}" for number in range(249, 149, -1)]
    printed = page.locator(".in-print")
    assert printed.inner_text() == "100 of 300 rows printed. To print more, show them first."
    assert "10 of 300" not in below(page)
    # Otherwise the head that is repeated on the next sheet is empty.
    assert page.locator("th button").evaluate("button => getComputedStyle(button).display") == "contents"
    page.emulate_media(media="screen")
    page.get_by_role("button", name="Show 250").click()
    page.emulate_media(media="print")
    assert len(seen(page)) == 250
    assert below(page).startswith("250 of 300 rows shown.")
    assert printed.is_hidden()
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(long_page)
    for media in ("screen", "print"):
        plain.emulate_media(media=media)
        assert len(seen(plain)) == 250
        assert below(plain) == "250 of 300 rows shown."
        assert plain.locator(".in-print").is_hidden()


def test_on_a_phone_the_rows_that_are_shown_are_counted_once(browser, long_page):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(long_page)
    assert len(seen(page)) == 6
    assert below(page).startswith("6 of 300 rows shown.")
    assert "10 of 300" not in below(page)


def test_on_a_phone_a_filter_finds_rows_beyond_the_first_six(browser, page_of_hotels):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(page_of_hotels)
    assert len(seen(page)) == 6
    page.get_by_role("searchbox").fill("11")
    assert [name.split("\n")[0] for name in seen(page)] == ["Hotel 11"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.fixture
def digest(nights_with_findings, tmp_path):
    """The address of the digest of a night: property 2 in Oslo has an open case, and 1 in Riga an ended one."""
    lake = nights_with_findings
    places = tmp_path / "properties.csv"
    places.write_text("property_id,property_name,city\n1,One,Riga\n2,Two,Oslo\n3,Three,Oslo\n")
    load(lake, "properties", places, started_at(2))
    refresh(lake)
    write_reports(lake)
    return write_reports(lake, ["digest"])[0].file.as_uri()


@pytest.mark.parametrize(
    "ways",
    [
        [("Two", "properties/2"), ("Nightly digest", "index")],
        [("Two", "properties/2"), ("GB", "cases/case-"), ("Nightly digest", "index")],
        [("see the evidence", "cases/case-"), ("Everything about this property", "properties/2"), ("Parity", "parity")],
        [("Properties", "properties/index"), ("All nights", "index"), ("nightly digest of", "index")],
    ],
    ids=["a property", "its case", "the evidence", "all nights"],
)
def test_whichever_way_leads_back_to_a_page_the_choice_is_kept(browser, digest, ways):
    page = browser.new_page()
    page.goto(digest)
    page.get_by_label("City").select_option("Oslo")
    for name, place in ways:
        page.get_by_role("link", name=name).first.click()
        page.wait_for_load_state()
        assert place in page.url
        assert page.url.endswith("#city=Oslo")
    if "digest" in ways[-1][0].lower():
        assert page.get_by_label("City").input_value() == "Oslo"
        assert (
            page.get_by_role("link", name="One").count() == 0 or not page.get_by_role("link", name="One").is_visible()
        )


def test_a_page_of_a_city_leads_to_its_other_pages_of_that_city_and_to_the_pages_that_exist(browser, digest, lake):
    """Its menu used to lead to complete pages without a filter, and its rows to no page of property or case."""
    folder = Path(digest.removeprefix("file://")).parent
    write_reports(lake, ["digest", "promotions"], Scope(city="oslo"))
    page = browser.new_page()
    page.goto((folder / "digest--city-oslo.html").as_uri())
    here = page.locator("nav [aria-current]")
    assert (here.inner_text(), here.get_attribute("href").split("/")[-1]) == (
        "Nightly digest",
        "digest--city-oslo.html#city=Oslo",
    )
    assert page.get_by_label("City").count() == 0
    page.get_by_role("link", name="Two").first.click()
    assert page.url.endswith("properties/2.html#city=Oslo")
    page.go_back()
    page.get_by_role("link", name="see the evidence").first.click()
    page.get_by_role("link", name="Everything about this property").click()
    assert page.url.endswith("properties/2.html#city=Oslo")
    for name, place in (
        ("Parity", "parity.html#city=Oslo"),
        ("Promotions", "promotions--city-oslo.html#city=Oslo"),
        ("Properties", "properties/index.html#city=Oslo"),
        ("The complete report", "index.html"),
    ):
        page.goto((folder / "digest--city-oslo.html").as_uri())
        page.get_by_role("link", name=name, exact=True).click()
        page.wait_for_load_state()
        assert page.url == f"{folder.as_uri()}/{place}"


def test_a_link_within_a_page_leads_there_and_keeps_the_choice(browser, digest):
    page = browser.new_page(viewport={"width": 1280, "height": 400})
    page.goto(f"{digest}#city=Oslo")
    page.get_by_role("link", name="more").first.click()
    assert page.url.endswith("#city=Oslo")
    assert page.evaluate("document.activeElement.id") == "new_cases"
    assert page.evaluate("scrollY") > 0
    # Without a choice the address may name the place.
    other = browser.new_page()
    other.goto(digest)
    other.get_by_role("link", name="more").first.click()
    assert other.url.endswith("#new_cases")
