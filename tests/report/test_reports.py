"""Reports: pages that stand alone, files beside them, and nothing in them that a supplier could misuse."""

from __future__ import annotations

import csv
import gc
import io
import json
import math
import re
from datetime import date
from decimal import Decimal
from html.parser import HTMLParser

import altair as alt
import duckdb
import polars as pl
import pyarrow.csv
import pytest
from markupsafe import Markup, escape
from nights import load_night, started_at, sweep_id

from pipeline.domain.errors import InputError, LakeError
from pipeline.domain.texts import printable
from pipeline.inputs.load import load
from pipeline.lake import Lake
from pipeline.lake.database import open_published, query_published
from pipeline.publish import publish
from pipeline.publish.refresh import refresh
from pipeline.report.chart_kinds import calendar
from pipeline.report.charts import chart, svg
from pipeline.report.dictionary import described
from pipeline.report.figures import as_csv, as_json
from pipeline.report.menu import link_quality_page
from pipeline.report.page import Column
from pipeline.report.page_files import REPORTS
from pipeline.report.promotions import _counted
from pipeline.report.read import Reader
from pipeline.report.scope import Scope
from pipeline.report.script import TABLES, TABLES_SOURCE
from pipeline.report.words import readable
from pipeline.report.write import write_dictionary, write_reports
from pipeline.report.written_pages import reports_page

from .conftest import CHECK_IN, FORMULA, SCRIPT, night


def folder(lake, number):
    return lake.root / "reports" / sweep_id(number)


def _csv(frame: pl.DataFrame) -> str:
    return b"".join(as_csv(frame)).decode()


def rows(file):
    return list(csv.DictReader(file.read_text().splitlines()))


def test_nothing_that_a_report_read_is_kept_once_it_is_written(two_nights):
    def readers():
        gc.collect()
        return {id(each) for each in gc.get_objects() if isinstance(each, Reader)}

    before = readers()
    write_reports(two_nights)
    assert readers() <= before


def test_every_report_is_a_page_that_asks_the_network_for_nothing(two_nights):
    written = write_reports(two_nights)
    assert [page.name for page in written] == list(REPORTS)
    for file in [*(page.file for page in written), two_nights.root / "reports" / "index.html"]:
        text = file.read_text()
        assert len(text) < 2_000_000
        links = re.findall(r"""(?:src|href|url\(|xlink:href)=?["'(]?([^"')\s>]+)""", text)
        assert [link for link in links if link.startswith(("http", "//", "data:text"))] == []
        # Our own script and no other: the page's policy names its hash.
        scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        assert scripts == [TABLES]
        assert text.count("<script") == 1
        assert f"script-src {TABLES_SOURCE}" in text
        for link in re.findall(r'href="([^"#]+)"', text):
            assert (file.parent / link).exists(), link


def test_a_page_has_its_landmark_and_what_scrolls_and_what_is_drawn_has_a_name(two_nights):
    for page in two_nights.root.glob("reports/**/*.html"):
        text = page.read_text()
        assert text.count("<main>") == text.count("</main>") == 1, page
        assert text.count('class="scroll"') == text.count('class="scroll" tabindex="0" role="region" aria-label='), page
        assert "graphics-" not in text, page
        assert "Chart of the figures linked below it" not in text, page


@pytest.mark.slow
def test_each_chart_has_a_text_of_its_own_that_says_what_it_shows(two_nights):
    write_reports(two_nights)
    for page in two_nights.root.glob("reports/**/*.html"):
        # A chart is drawn twice, for a screen and for a phone, and one of them is shown.
        seen = re.sub(r'<div class="narrow">.*?</div>', "", page.read_text(), flags=re.DOTALL)
        texts = re.findall(r'<svg [^>]*role="img" aria-label="([^"]*)"', seen)
        assert all(text.startswith("Chart: ") for text in texts), page
        assert len(set(texts)) == len(texts), page
    digest = (two_nights.root / "reports" / sweep_id(1) / "index.html").read_text()
    assert (
        "Chart: 1 price rose and 1 fell. Vertical axis: Offers. Horizontal axis: Change of the total, percent" in digest
    )
    about = (two_nights.root / "reports" / sweep_id(1) / "properties" / "1.html").read_text()
    assert "Check-in 2030-03-01, 2 nights, party 2: GB from 100.00 on 1 Jan to 120.00 on 2 Jan" in about


@pytest.mark.slow
def test_the_same_night_gives_the_same_bytes(two_nights):
    write_reports(two_nights)
    first = {file: file.read_bytes() for file in (two_nights.root / "reports").rglob("*.*")}
    write_reports(two_nights)
    assert {file: file.read_bytes() for file in (two_nights.root / "reports").rglob("*.*")} == first


def test_what_a_supplier_sent_is_text_in_pages_and_in_spreadsheets(two_nights):
    write_reports(two_nights, ["digest"])
    page = (folder(two_nights, 1) / "index.html").read_text()
    assert SCRIPT not in page
    assert "&lt;script&gt;" in page
    names = {
        row["property_id"]: row["room_name"] for row in rows(folder(two_nights, 1) / "digest" / "largest_moves.csv")
    }
    assert names == {"1": SCRIPT, "2": f"'{FORMULA}"}


def test_the_digest_says_that_another_market_is_the_reference_from_now_on(two_nights, nights_of_two_markets):
    reported = "From this night on, markets are compared with DE"
    (changed,) = write_reports(nights_of_two_markets, ["digest"])
    assert reported in changed.file.read_text()
    (kept,) = write_reports(two_nights, ["digest"])
    assert reported not in kept.file.read_text()


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\n=1", "\r\n=1", "\tx", " =1", "\ufeff=1", "＝1", "－1"]
)
def test_no_cell_of_a_spreadsheet_begins_like_a_formula(text):
    (row,) = csv.DictReader(io.StringIO(_csv(pl.DataFrame({"name": [text]})), newline=""))
    # Also before what would be run after a tab or a line break, where another cell may begin.
    assert row["name"].startswith("'")
    assert row["name"].replace("'", "") == printable(text)


# What a terminal obeys: ESC with a window's title, BEL, NUL, CSI of C1, DEL, and what turns round what follows.
OBEYED = "a\x00b\x1b]0;owned\x07c\x9b2Jd\x7fe\u202ef\ufeffg"


def test_no_figure_holds_what_a_terminal_obeys_and_none_is_lost():
    frame = pl.DataFrame({"name": [OBEYED, "=" + OBEYED, "plain", None], "all": [[OBEYED], [], [], None]})
    written = _csv(frame)
    shown = "a\\x00b\\x1b]0;owned\\x07c\\x9b2Jd\\x7fe\\u202ef\\ufeffg"
    assert [row["name"] for row in csv.DictReader(io.StringIO(written, newline=""))] == [
        shown,
        f"'={shown}",
        "plain",
        "",
    ]
    page = as_json({"rows": frame.to_dicts()})
    for text in (written, page.decode()):
        assert [letter for letter in text if letter != "\n" and not letter.isprintable()] == []
    assert json.loads(page)["rows"][0]["name"] == OBEYED


def test_what_is_not_a_number_is_null_in_json():
    assert json.loads(as_json({"rows": [{"ratio": math.nan}, {"ratio": math.inf}, {"ratio": 0.5}]})) == {
        "rows": [{"ratio": None}, {"ratio": None}, {"ratio": 0.5}]
    }


HOSTILE = [
    "<b>bold</b>",
    "</svg><img src=x onerror=alert(1)>",
    "a\u202eb",
    "a\x07\x1b\ufffeb",
    "🏨 \"a\" 'b' & c",
    "فندق",
    "a " * 400,
]


def test_a_name_without_end_costs_a_chart_no_more_than_another():
    names = ["Hotel", "x" * 1_000_000]
    days = pl.DataFrame({"property_id": [0, 1], "property_name": names, "check_in": [CHECK_IN] * 2, "share": [1.0] * 2})
    (drawn,) = calendar(days, "share", "Share", pl.col("share").first(), alt.Scale())
    assert len(escape(drawn)) < 100_000


def test_names_are_text_in_charts():
    days = pl.DataFrame(
        {
            "property_id": range(len(HOSTILE)),
            "property_name": HOSTILE,
            "check_in": [CHECK_IN] * len(HOSTILE),
            "share": [1.0] * len(HOSTILE),
        }
    )
    (drawn,) = calendar(days, "share", "Share", pl.col("share").first(), alt.Scale())
    drawn = escape(drawn) + escape(svg(chart(days).mark_bar().encode(y="share:Q"), HOSTILE[1]))
    # Read as HTML, the SVG has no element that a name has brought along, and its text is that of the names.
    read = _Read()
    read.feed(drawn)
    assert read.tags <= {
        "figure",
        "figcaption",
        "div",
        "svg",
        "g",
        "path",
        "rect",
        "text",
        "defs",
        "lineargradient",
        "stop",
        "line",
        "clippath",
    }
    assert "<b>bold</b> 0" in read.texts
    assert "ab 2" in read.texts
    assert max(map(len, read.texts)) < 100


class _Read(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts = set(), []

    def handle_starttag(self, tag, _attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("length", [30_000, 1_000_000])
def test_names_without_measure_cost_a_chart_no_more_than_others(length):
    def drawn(names):
        days = pl.DataFrame(
            {"property_id": [1, 2], "property_name": names, "check_in": [CHECK_IN] * 2, "share": [0.5, 1.0]}
        )
        (made,) = calendar(days, "share", "Share", pl.col("share").first(), alt.Scale())
        return escape(made) + escape(svg(chart(days).mark_bar().encode(y="share:Q"), names[0]))

    # The same texts up to where they are cut: they stay two.
    made = drawn(["x" * length, "x" * (length + 1)])
    assert len(made) < 2 * len(drawn(["x" * 100, "y" * 100])) + 5_000
    assert made.count("xxx… 1<") == made.count("xxx… 2<") > 0


def test_a_text_that_turns_others_round_or_fills_the_page_is_tamed():
    assert Column("name", "Name").text({"name": "a" * 1000}) == "a" * 399 + "…"
    assert Column("name", "Name").text({"name": "word " * 100}).endswith("word word…")
    assert readable("1\u202e2\x07") == "12"
    assert isinstance(readable(Markup("<b>\u202e</b>")), Markup)


def test_the_figures_are_the_same_in_each_form(two_nights):
    write_reports(two_nights, ["digest"])
    found = {}
    table = pl.read_parquet(folder(two_nights, 1) / "digest" / "largest_moves.parquet")
    found["parquet"] = [(row["property_id"], str(row["change_amount"])) for row in table.iter_rows(named=True)]
    found["csv"] = [
        (int(row["property_id"]), row["change_amount"])
        for row in rows(folder(two_nights, 1) / "digest" / "largest_moves.csv")
    ]
    sections = json.loads((folder(two_nights, 1) / "digest.json").read_text())["sections"]
    (moves,) = [section for section in sections if section["name"] == "largest_moves"]
    found["json"] = [(row["property_id"], row["change_amount"]) for row in moves["rows"]]
    assert set(map(tuple, found.values())) == {((1, "20.0000"), (2, "-5.0000"))}
    assert moves["rows_in_all"] == 2


def test_the_first_night_says_why_there_is_nothing_to_compare(lake):
    write_reports(lake, ["digest"])
    assert "first published night" in (folder(lake, 0) / "index.html").read_text()


def test_a_limited_report_lies_beside_the_whole_one(two_nights):
    write_reports(two_nights, ["digest"])
    whole = (folder(two_nights, 1) / "index.html").read_bytes()
    (limited,) = write_reports(two_nights, ["digest"], Scope(property_id=2, market="GB", first=date(2030, 3, 1)))
    assert limited.file.name == "digest--property-2--GB--from-2030-03-01.html"
    assert "Limited to property 2, market GB" in limited.file.read_text()
    moved = rows(folder(two_nights, 1) / limited.file.stem / "largest_moves.csv")
    assert [row["property_id"] for row in moved] == ["2"]
    assert (folder(two_nights, 1) / "index.html").read_bytes() == whole


@pytest.mark.slow
def test_a_report_limited_by_city_brand_or_group_names_the_properties_of_the_file(lake, tmp_path):
    file = tmp_path / "properties.csv"
    file.write_text(
        "property_id,property_name,city,brand,property_group\n1,Fjord,Oslo,A & B,North\n2,Sole,Roma,A & B,South\n"
    )
    load(lake, "properties", file, started_at(0))
    night(lake, 1, {1: 120, 2: 95, 3: 50})
    moved = {}
    for scope in (Scope(city="oslo"), Scope(brand="A & B"), Scope(brand="a-b"), Scope(group="South"), Scope()):
        try:
            (written,) = write_reports(lake, ["digest"], scope)
        except InputError as error:
            moved[scope.words] = error.message
            continue
        found = rows(folder(lake, 1) / f"digest{scope.suffix}" / "largest_moves.csv")
        moved[scope.words] = {(row["property_id"], row["property_name"]) for row in found}
        assert scope.words in written.file.read_text() or "&" in scope.words
    assert moved == {
        "city oslo": {("1", "Fjord")},
        "brand A & B": {("1", "Fjord"), ("2", "Sole")},
        "brand a-b": "No upcoming stay within these limits was ever requested: brand a-b.",
        "group South": {("2", "Sole")},
        "": {("1", "Fjord"), ("2", "Sole"), ("3", "")},
    }
    assert len({Scope(brand=name).suffix for name in ("A & B", "a-b", "A+B", "ab")}) == 4


def test_a_limited_report_leaves_out_what_it_cannot_limit(two_nights):
    (limited,) = write_reports(two_nights, ["digest"], Scope(market="GB"))
    page = limited.file.read_text()
    assert 'id="coverage"' not in page
    (note,) = re.findall(r'<p class="note">(Left out[^<]*)</p>', page)
    assert "only known for the complete night" in note
    assert "coverage" in note
    (moves,) = re.findall(r'<section id="largest_moves">.*?</section>', page, re.DOTALL)
    assert "whole night" not in moves
    # Numbers of the whole night are no numbers of a limited page.
    assert "offers stored" not in page
    assert "planned cells were answered" not in page


def test_the_titles_of_limited_reports_are_limited_too(two_nights):
    titles = {
        hotel: [written.title for written in write_reports(two_nights, ["digest"], Scope(property_id=hotel))]
        for hotel in (1, 3)
    }
    assert titles == {
        1: ["Property 1: 0 problems open, 0 new; 1 price changed"],
        3: ["Property 3: 0 problems open, 0 new; 0 prices changed"],
    }
    (whole,) = write_reports(two_nights, ["availability"])
    (limited,) = write_reports(two_nights, ["availability"], Scope(property_id=1))
    tiles = [json.loads(file.with_suffix(".json").read_text())["tiles"][0] for file in (whole.file, limited.file)]
    assert tiles == [{"value": "3", "label": "cells answered"}, {"value": "1", "label": "cells answered"}]


def test_limits_without_rows_and_days_in_the_wrong_order_are_refused(two_nights):
    with pytest.raises(InputError, match="is after"):
        Scope(first=date(2030, 3, 2), last=date(2030, 3, 1))
    with pytest.raises(InputError, match=r"No upcoming stay .* property 99"):
        write_reports(two_nights, ["digest"], Scope(property_id=99))


def test_without_a_published_night_there_is_no_report(tmp_path):
    with pytest.raises(InputError, match="Nothing is published"):
        write_reports(Lake(str(tmp_path / "none")))


def test_the_page_over_all_nights_links_what_there_is(lake):
    write_reports(lake, ["digest"])
    night(lake, 1, {1: 120, 2: 95, 3: 100})
    write_reports(lake, ["digest"])
    text = (lake.root / "reports" / "index.html").read_text()
    assert text.index(sweep_id(1)) < text.index(sweep_id(0))
    assert f'href="{sweep_id(0)}/index.html"' in text


def test_the_page_over_all_nights_lists_limited_reports_under_what_they_are_limited_to(lake):
    write_reports(lake, ["parity"], Scope(market="GB", first=date(2030, 3, 1)))
    text = (lake.root / "reports" / "index.html").read_text()
    assert ">Parity (GB, from 2030-03-01)</a>" in text


def test_the_menu_offers_no_page_that_is_not_there(lake):
    (written,) = write_reports(lake, ["parity"])
    assert "promotions.html" not in written.file.read_text()


@pytest.mark.slow
def test_list_and_detail_answers_are_two_series_and_no_title_adds_them_up(lake):
    stay = {"property_id": 4, "check_in": CHECK_IN}
    cells = [
        stay | {"operation": "multi", "search_id": 257, "offers": 1},
        stay | {"operation": "single", "search_id": 513, "status": "no_offer", "offers": 0},
    ]
    offer = stay | {"search_id": 257, "room_id": 7, "currency": "EUR", "total": Decimal(100)}
    publish(lake, load_night(lake, 1, cell=cells, offer=[offer]), started_at(1))
    (written,) = write_reports(lake, ["availability"])
    assert written.title == "100% of the cells answered by list searches are on sale"


def test_the_sell_out_chart_draws_what_is_still_on_sale_also_when_a_cell_is_answered_without_a_room(lake):
    """One such cell used to turn the chart into that of cells that had no such answer, on the same axis."""
    endings = [{"offers": 1}, {"status": "absent"}, {"status": "absent"}, {"status": "no_offer", "code": 1023}]
    # The answer names the property without a room, as a list does: without a code.
    endings.append({"status": "no_offer"})
    for number, of in ((1, [{"offers": 1}] * 5), (2, endings)):
        cells = [
            {"property_id": at, "search_id": at * 256 + 1, "check_in": CHECK_IN} | each for at, each in enumerate(of, 4)
        ]
        offers = [
            {name: cell[name] for name in ("property_id", "search_id", "check_in")}
            | {"room_id": 7, "board_id": 14, "currency": "EUR", "total": Decimal(100)}
            for cell in cells
            if cell.get("offers")
        ]
        publish(lake, load_night(lake, number, cell=cells, offer=offers), started_at(number))
    (written,) = write_reports(lake, ["availability"])
    sections = json.loads(written.file.with_suffix(".json").read_text())["sections"]
    (section,) = (each for each in sections if each["name"] == "sell_out_curve")
    assert section["title"] == "4 cells went off sale while observed, 2 of them answered without a room"
    assert "names the property without one, or has the code 1023 or 1025" in section["note"]
    (chart,) = re.findall(r'<section id="sell_out_curve">.*?</section>', written.file.read_text(), re.DOTALL)
    lowest = min(row["on_sale_share"] for row in section["rows"] if row["ending"] == "off_sale")
    assert lowest < min(row["on_sale_share"] for row in section["rows"] if row["ending"] == "sold_out")
    assert f"Still on sale, percent (estimate): {100 * lowest:g} to 100" in chart


def test_prices_loaded_after_the_night_are_reported_as_no_findings_yet(lake, tmp_path):
    stay = {"property_id": 4, "check_in": CHECK_IN}
    terms = {"room_id": 7, "board_id": 3, "policy_key": 5, "currency": "EUR"}
    offer = stay | terms | {"total": Decimal(100), "floor": Decimal(110)}
    publish(lake, load_night(lake, 1, cell=[stay | {"offers": 1}], offer=[offer]), started_at(1))
    prices = tmp_path / "prices.csv"
    select = "property_id, market, product_type, check_in, nights, party, currency, room_id, board_id, policy_key"
    query = f"SELECT {select}, 90 AS price, '{started_at(1).isoformat()}' AS observed_at FROM mart.offer_latest"  # noqa: S608 - our own names
    pyarrow.csv.write_csv(query_published(lake.published_file, query).to_arrow_table(), prices)
    load(lake, "prices", prices, started_at(2))
    refresh(lake)
    write_reports(lake, ["parity"])
    (page,) = lake.root.glob("reports/**/parity.json")
    titles = {section["name"]: section["title"] for section in json.loads(page.read_text())["sections"]}
    assert titles["floor_compliance"] == (
        "1 of 1 selling price lies below the floor; 1 of them becomes a finding with the next night"
    )


def test_a_lake_that_was_moved_is_reported_and_what_to_do(lake, tmp_path):
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "property_id,market,product_type,check_in,nights,party,currency,price,observed_at\n"
        "1,GB,Hotel,2030-03-01,2,2,EUR,90,2030-01-01T02:00:00Z\n"
    )
    load(lake, "prices", prices, started_at(0))
    assert refresh(lake)
    lake.root.rename(tmp_path / "moved")
    with pytest.raises(LakeError, match="cannot be read completely") as caught:
        write_reports(Lake(str(tmp_path / "moved")))
    assert "nightaudit publish" in caught.value.hint


@pytest.mark.parametrize(
    "change",
    [
        "CREATE OR REPLACE VIEW report.finding_case AS SELECT * EXCLUDE (market) FROM report.finding_case_now",
        "DROP VIEW mart.property_requested",
    ],
)
def test_a_file_published_by_another_version_is_reported_and_what_to_do(lake, change):
    with duckdb.connect(lake.published_file) as session:
        session.execute("CREATE VIEW report.finding_case_now AS FROM report.finding_case")
        session.execute(change)
    with pytest.raises(LakeError, match="does not hold what this version") as caught:
        write_reports(lake)
    assert "nightaudit publish" in caught.value.hint


@pytest.mark.slow
def test_the_digest_tells_what_became_of_findings(nights_with_findings):
    (written,) = write_reports(nights_with_findings, ["digest"])
    sections = json.loads(written.file.with_name("digest.json").read_text())["sections"]
    found = {section["name"]: section["rows"] for section in sections}
    assert [row["property_id"] for row in found["new_findings"]] == [2]
    assert [(row["property_id"], row["ended_by"]) for row in found["ended_findings"]] == [(1, "value")]
    (rule,) = found["findings_by_rule"]
    assert (rule["rule"], rule["standing"], rule["new"], rule["ended"]) == ("unnamed_promotion", 1, 1, 1)


def test_the_dictionary_says_what_every_relation_and_column_is_and_what_it_is_made_of(two_nights):
    write_reports(two_nights, ["digest"])
    written = write_dictionary(two_nights)
    page = written.read_text()
    with open_published(two_nights.published_file) as session:
        found = {each.full_name: each for each in described(session)}
        for name in ("mart.offer_latest", "mart.property", "report.flag", "ref.market", "lake.search"):
            assert f'<section id="{name}">' in page
            assert session.execute(found[name].example).description
    assert all(each.grain and all(column.meaning for column in each.columns) for each in found.values())
    assert "lake.property_file" in found["mart.property"].reads
    assert "mart.property" in found["lake.property_file"].read_by
    anchors = set(re.findall(r'id="([\w.]+)"', page))
    assert set(re.findall(r'href="#([\w.]+)"', page)) <= anchors
    assert 'href="dictionary.html"' in reports_page(two_nights).read_text()
    assert "://" not in page


def test_a_dictionary_that_was_written_once_is_that_of_the_night_of_the_latest_report(lake):
    night(lake, 0, {1: 100})
    write_reports(lake, ["digest"])
    dictionary = lake.root / "reports" / "dictionary.html"
    assert not dictionary.exists()
    write_dictionary(lake)
    night(lake, 1, {1: 100})
    write_reports(lake, ["digest"])
    assert "as of the night 2030-01-02" in dictionary.read_text()
    assert 'href="dictionary.html"' in reports_page(lake).read_text()


@pytest.mark.slow
def test_without_limits_what_was_summed_up_is_what_every_offer_gives(lake):
    # Seen often enough that what the offers cost in between is known.
    for number in (20, 40, 41, 60, 80):
        before = {1: 150, 2: 100} if number > 40 else None
        night(lake, number, {1: 100, 2: 99 if before else 100, 3: 100}, before=before)
    with open_published(lake.published_file) as session:
        of_all = _counted(Reader(session, Scope()))
        of_each = _counted(Reader(session, Scope(market="GB")))
    assert of_all == of_each
    assert of_all["comparable"] > 0
    assert of_all["never_charged"] > 0


def test_the_quality_page_gets_the_menu_and_the_script_that_keeps_a_choice_once(tmp_path):
    page = tmp_path / "quality.html"
    page.write_text("<meta content=\"default-src 'none'; img-src data:\">\n<nav></nav>\n<p>a check</p>\n</body>\n")
    link_quality_page(tmp_path, [("digest", "Nightly digest", "index.html")])
    written = page.read_text()
    assert '<a href="index.html">Nightly digest</a>' in written
    assert f'img-src data:; script-src {TABLES_SOURCE}">' in written
    assert written.count(f"<script>{TABLES}</script>") == 1
    link_quality_page(tmp_path, [("digest", "Nightly digest", "index.html")])
    assert page.read_text() == written
