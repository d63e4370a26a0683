"""The page of a case: its evidence as the raw answers have it, side by side, and nothing that could be misused."""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
from dataclasses import asdict
from datetime import timedelta
from decimal import Decimal

import polars as pl
import pytest
from nights import finish, sweep_id
from nights import started_at as night_at
from raw_answers import MAX_BODY, answer, hotel, land, product, record, room

from pipeline.domain.analysis import Analysis
from pipeline.domain.search import Operation
from pipeline.domain.tables import OFFER
from pipeline.inputs.load import load
from pipeline.lake import Lake
from pipeline.lake.database import open_published
from pipeline.lake.relations import finding_rules, relation, sources, views
from pipeline.normalise.segment import normalise_segment
from pipeline.notify.alert_rules import AlertRules
from pipeline.notify.alerts import tell_alerts
from pipeline.notify.pages import page_addresses
from pipeline.publish import publish
from pipeline.publish.pull import LakeFolder, pull
from pipeline.publish.refresh import refresh
from pipeline.report import read as reading
from pipeline.report.case_evidence import pieces
from pipeline.report.case_page import _body, _notes
from pipeline.report.scope import Scope
from pipeline.report.script import TABLES
from pipeline.report.thresholds import named_in
from pipeline.report.write import write_reports
from pipeline.report.written_pages import written_case_pages

HOSTILE = '</code><script>alert("1")</script>\u202e' + "x" * 5_000
CHARGES = {"minSellablePrice": 80, "prePromoTotal": 120.25, "discountPercentage": 0}
LIST = answer(
    *(
        hotel(key, [room([product(charges=CHARGES | {"total": total}, promotions=[])], roomName=HOSTILE)])
        for key, total in ((1, 120.25), (2, 120.25))
    )
)
DETAIL = {
    "property": hotel(1, [room([product(charges=CHARGES | {"total": 131.005}, promotions=[])], roomName=HOSTILE)])
}


def _made(folder) -> Lake:
    """A list and a detail answer of one property that state two totals, and a shop that sells it below the floor."""
    lake = Lake(str(folder / "lake"))
    at = night_at(0)
    for operation, body, number in ((Operation.MULTI, LIST, 0), (Operation.SINGLE, DETAIL, 1)):
        ids = (1, 2) if operation is Operation.MULTI else (1,)
        landed = record(number, body, ids, operation, started_at=at, ended_at=at, headers='{"authorization": "hush"}')
        segment = land(lake, [landed], operation, sweep_id(0))
        normalise_segment(lake, sweep_id(0), segment, MAX_BODY, {})
    finish(lake, 0, cells=3)
    prices = folder / "prices.csv"
    prices.write_text(
        "property_id,market,product_type,check_in,nights,party,currency,price,observed_at,channel\n"
        f"1,GB,Hotel,2030-02-01,2,2,EUR,71.5,{at:%Y-%m-%dT%H:%M:%SZ},<i>shop</i>\n"
    )
    load(lake, "prices", prices, at)
    publish(lake, sweep_id(0), at)
    return lake


@pytest.fixture(scope="session")
def of_two_answers(once_a_run):
    return once_a_run("list-against-detail", _made)


@pytest.fixture
def lake(of_two_answers, tmp_path):
    """A copy. Its views read the files of the first one; raw answers are its own."""
    shutil.copytree(of_two_answers.root, tmp_path / "lake")
    return Lake(str(tmp_path / "lake"))


def page_of(lake, rule: str) -> str:
    """The page of the one case of a rule."""
    write_reports(lake, ["digest"])
    with open_published(lake.published_file) as session:
        found = session.execute("SELECT case_id FROM report.finding_case WHERE rule = ?", [rule]).fetchall()
    ((case_id,),) = found
    return (lake.root / "reports" / sweep_id(0) / "cases" / f"{case_id}.html").read_text()


def row_of(page: str, label: str) -> list[str]:
    """What a row of the comparison says, cell by cell."""
    (row,) = re.findall(rf'<tr><th scope="row">{label}</th>(.*?)</tr>', page)
    return [html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<td>(.*?)</td>", row)]


def test_the_numbers_of_a_page_are_those_of_the_two_raw_answers(lake):
    page = page_of(lake, "list_detail_mismatch")
    # 131.005 - 120.25, with every digit that was sent.
    assert row_of(page, "Total for the stay") == ["131.005 EUR", "120.25 EUR", "≠ +10.755 (+8.9%)"]
    assert row_of(page, "Floor") == ["80.00 EUR", "80.00 EUR", ""]
    assert re.findall(r"<mark>([^<]*)</mark>", page) == ["Highlighted", "131.005 EUR", "120.25 EUR"]
    for body in (LIST, DETAIL):
        assert hashlib.sha256(json.dumps(body).encode()).hexdigest() in page
    text = html.unescape(page)
    for said in (
        "POST /v1/property/multi",
        "POST /v1/property/single",
        "2 property ids",
        '"checkIn": "2030-02-01"',
    ):
        assert said in text
    assert re.search(r"nightaudit explain list_detail_mismatch-[0-9a-f]{16}", page)
    assert f"nightaudit show raw/{sweep_id(0)}/multi-GB-000000.parquet#0" in page


def test_a_price_below_the_floor_stands_beside_the_answer_that_states_the_floor(lake):
    page = page_of(lake, "floor_breach")
    assert "</b>last seen (judged per loaded price, not nightly)</div>" in page
    assert "seen on 1 night (judged per loaded price, not nightly)" in page
    assert "It is judged for each selling price that you load" in page
    assert "<mark>80.00 EUR</mark>" in page
    (price, *_) = re.findall(r"Your selling price</th><td><mark>(.*?)</mark>", page)
    assert price == "71.50 EUR, &lt;i&gt;shop&lt;/i&gt;, 2030-01-01 02:00 UTC: −8.50 (−10.6%) against the floor"


def test_a_page_states_the_settings_that_its_rule_names(lake):
    page = page_of(lake, "floor_breach")
    (named,) = re.findall(r"Settings: (.*?)\.</p>", page)
    assert re.findall(r"<code>(\w+)</code> is ([\d.]+)", named) == [
        ("tolerance_pct", "0.5"),
        ("reference_rate_pct", "3"),
        ("price_days", "7"),
        ("unobserved_nights", "2"),
    ]
    assert named_in("By more than disparity_pct and the tolerance; see reference_market.", asdict(Analysis())) == [
        ("tolerance_pct", "0.5"),
        ("disparity_pct", "1"),
    ]


def test_a_price_loaded_since_does_not_take_the_place_of_the_price_that_was_found(lake, tmp_path):
    """Otherwise the heading states one price and the row below it, which is marked as its reason, another."""
    seen = night_at(0) + timedelta(hours=1)
    newer = tmp_path / "newer.csv"
    newer.write_text(
        "property_id,market,product_type,check_in,nights,party,currency,price,observed_at,channel\n"
        f"1,GB,Hotel,2030-02-01,2,2,EUR,99,{seen:%Y-%m-%dT%H:%M:%SZ},<i>shop</i>\n"
        f"1,GB,Hotel,2030-02-01,2,2,EUR,12,{seen:%Y-%m-%dT%H:%M:%SZ},another shop\n"
    )
    load(lake, "prices", newer, seen)
    refresh(lake)
    page = page_of(lake, "floor_breach")
    assert "Sold at 71.50 EUR" in page
    (price, *_) = re.findall(r"Your selling price</th><td><mark>(.*?)</mark>", page)
    assert price.startswith("71.50 EUR, &lt;i&gt;shop&lt;/i&gt;, 2030-01-01 02:00 UTC: −8.50")
    assert row_of(page, "Newer selling price") == [
        "99.00 EUR, <i>shop</i>, 2030-01-01 03:00 UTC: loaded since, judged with the next night"
    ]


def test_a_page_has_no_secret_and_no_markup_of_a_supplier_and_stays_small(lake):
    page = page_of(lake, "list_detail_mismatch")
    assert "hush" not in page
    # Our own, which the policy permits by its hash.
    assert page.count("<script") == 1
    assert f"<script>{TABLES}</script>" in page
    assert "&lt;script&gt;" in page
    assert "\u202e" not in page
    assert len(page) < 50_000


def test_the_digest_links_each_case_and_each_new_finding_to_its_page(lake):
    (digest,) = write_reports(lake, ["digest"])
    text = digest.file.read_text()
    linked = set(re.findall(r'href="(cases/[^"]+)"', text))
    assert {f"cases/{file.name}" for file in (digest.file.parent / "cases").iterdir()} == linked
    assert re.search(r'(Call|Check) .*<a href="cases/case-[0-9a-f]{16}\.html">see the evidence</a>', text)
    for page in linked:
        links = re.findall(r'href="([^"#]+)"', (digest.file.parent / page).read_text())
        assert "../properties/1.html" in links
        for link in links:
            assert (digest.file.parent / "cases" / link).exists(), link


def test_a_problem_that_ended_leads_to_its_last_evidence(nights_with_findings):
    """A promotion without a name was property 1's until the last night."""
    lake = nights_with_findings
    (digest,) = write_reports(lake, ["digest"])
    text = digest.file.read_text()
    (section,) = re.findall(r'<section id="ended_cases">(.*?)</section>', text, re.DOTALL)
    (page,) = re.findall(r'href="(cases/[^"]+)"', section)
    ended = (digest.file.parent / page).read_text()
    assert "It ended on 3 Jan 2030, after 1 day: the answer changed. The evidence below is the last" in ended
    assert row_of(ended, "Before promotions") == ["150.00 EUR"]
    assert re.search(r"nightaudit explain unnamed_promotion-[0-9a-f]{16}", ended)
    assert "--acknowledge" not in ended
    # The problem is not counted among those that are open.
    assert page not in text.replace(section, "")
    # A complete report does not take it for a page that is left over.
    write_reports(lake, ["digest"])
    assert (digest.file.parent / page).exists()


def test_the_number_of_pages_of_ended_problems_is_bounded_too(nights_with_findings, monkeypatch):
    monkeypatch.setattr(reading, "ENDED_PAGES", 0)
    (digest,) = write_reports(nights_with_findings, ["digest"])
    (section,) = re.findall(r'<section id="ended_cases">(.*?)</section>', digest.file.read_text(), re.DOTALL)
    assert "cases/" not in section
    assert re.search(r'<code class="below">case-[0-9a-f]{16}</code>', section)


def test_a_complete_report_removes_pages_of_what_is_no_case_any_more_and_a_filtered_one_leaves_them(lake, monkeypatch):
    (digest,) = write_reports(lake, ["digest"])
    held = set(written_case_pages(lake))
    ended = digest.file.parent / "cases" / "case-0123456789abcdef.html"
    ended.write_text("a case before the night was published again")
    write_reports(lake, ["digest"], Scope(property_id=1))
    assert ended.exists()
    # Cases beyond the bound are cases too, although they have no page.
    monkeypatch.setattr(reading, "CASE_PAGES", 1)
    write_reports(lake, ["digest"])
    assert len(held) > 1
    assert set(written_case_pages(lake)) == held


def test_the_same_night_gives_the_same_pages(lake):
    first = page_of(lake, "list_detail_mismatch")
    assert page_of(lake, "list_detail_mismatch") == first


def test_raw_answers_that_are_not_kept_are_said_to_be_gone_and_the_numbers_stay(lake):
    shutil.rmtree(lake.root / "raw")
    page = page_of(lake, "list_detail_mismatch")
    assert page.count("The raw answer is no longer kept") == 2
    assert row_of(page, "Total for the stay")[:2] == ["131.005 EUR", "120.25 EUR"]
    assert "<dt>Request body</dt>" not in page


def test_a_pulled_copy_has_the_same_pages_without_raw_answers(lake, tmp_path):
    copy = Lake(str(tmp_path / "laptop"))
    pull(LakeFolder(lake), copy.root)
    assert row_of(page_of(copy, "floor_breach"), "Your selling price") == row_of(
        page_of(lake, "floor_breach"), "Your selling price"
    )
    assert page_of(copy, "list_detail_mismatch").count("This copy has no raw answers") == 2


def test_a_raw_answer_that_is_not_the_one_that_was_loaded_is_not_shown(lake):
    (shard,) = (lake.root / "raw" / sweep_id(0)).glob("single-*.parquet")
    other = record(1, {"property": hotel(1)}, (1,), Operation.SINGLE, started_at=night_at(0), ended_at=night_at(0))
    shard.unlink()
    land(lake, [other], Operation.SINGLE, sweep_id(0))
    page = page_of(lake, "list_detail_mismatch")
    assert page.count("is not the one that was loaded") == 1
    assert page.count("<dt>Request body</dt>") == 1


def test_a_night_has_a_bounded_number_of_pages_and_says_so(lake, monkeypatch):
    (whole,) = write_reports(lake, ["digest"])
    assert "a page, the most costly" not in whole.file.read_text()
    shutil.rmtree(whole.file.parent / "cases")
    monkeypatch.setattr(reading, "CASE_PAGES", 0)
    (bounded,) = write_reports(lake, ["digest"])
    assert not (bounded.file.parent / "cases").exists()
    assert "0 cases have a page, the most costly" in bounded.file.read_text()
    assert "cases/" not in bounded.file.read_text()


def test_the_id_under_which_an_opaque_offer_is_sold_is_on_no_page(lake):
    with open_published(lake.published_file) as session:
        flags = session.execute("SELECT flag_id FROM report.flag WHERE rule = 'list_detail_mismatch'").fetchall()
        (piece,) = pieces(session, lake, [flag for (flag,) in flags]).values()
    sent = [_body(each, each.search | {"sent_property_id": 4711}) for each in piece.answers]
    assert [json.loads(body).get("propertyId") for body in sent] == ["from your private id map", None]
    assert json.loads(sent[1])["propertyIds"] == "from your private id map"


@pytest.mark.parametrize("rule", finding_rules().values(), ids=lambda rule: rule.name)
def test_every_rule_names_the_numbers_that_it_rests_on(rule):
    found_in = relation(*rule.full_name.split("."))
    # Some take their evidence as the relation that they read have it.
    read = [
        relation(*name.split(".")).sql for name in sources(found_in) if name in {view.full_name for view in views()}
    ]
    sql = "".join([found_in.sql, *read])
    columns = {column.name for column in OFFER.columns} | {"penalties", "promotions", "status"}
    for number in rule.numbers:
        role, _, column = number.partition(".")
        assert f"'{role}'" in sql
        assert column in columns
    assert rule.numbers


def test_an_alert_leads_from_each_finding_to_the_page_of_its_case(lake):
    refresh(lake)
    page_of(lake, "list_detail_mismatch")
    shared = {"who": ["me"], "where": "rule = 'list_detail_mismatch'"}
    rules = AlertRules.model_validate(
        {
            "rule": [
                {"name": "findings", "relation": "report.flag", "key": ["flag_id"], **shared},
                {"name": "cases", "relation": "report.finding_case", "key": ["case_id"], **shared},
            ],
            "receiver": {"me": {"webhook_from": "NOT_ASKED_FOR"}},
        }
    )
    reports = lake.root / "reports"
    pages = page_addresses(reports, written_case_pages(lake), "https://rates.example/nightly")
    for reported in tell_alerts(lake, rules, "the digest", case_pages=pages, is_rehearsal=True):
        ((_, text),) = reported.texts
        finding, page, label, where = text.splitlines()
        assert finding.startswith("- property ")
        assert page.strip() in pages.values()
        assert page.startswith(f"  https://rates.example/nightly/{sweep_id(0)}/cases/case-")
        assert label.startswith("Simulated data")
        assert where == "the digest"


def test_each_problem_has_a_page_before_another_one_has_a_second(monkeypatch):
    class OfThree(reading.Reader):
        cases = pl.DataFrame({"case_id": ["a", "b", "c"], "rule": ["x", "x", "y"], "property_id": [1, 1, 1]})
        ended = cases.clear()

    monkeypatch.setattr(reading, "CASE_PAGES", 2)
    assert OfThree(None, Scope()).case_pages == {"a", "c"}


LARGER = "for a stay in two currencies, the larger amount"


@pytest.mark.parametrize(
    ("currency", "in_euro", "said"),
    [
        ("SEK", Decimal("9.00"), [f"In euro at the day's rates; {LARGER}: 9.00 EUR."]),
        ("JPY", None, []),
        ("EUR", Decimal("90.00"), []),
        ("EUR", Decimal("92.00"), [f"In euro at the day's rates; {LARGER}: 92.00 EUR."]),
    ],
)
def test_amounts_of_another_currency_are_given_in_euro_as_well(currency, in_euro, said):
    unsaid = dict.fromkeys(("acknowledged_at", "muted_until", "owner", "note"))
    unsaid |= {"opened_at": night_at(0), "first_seen_at": night_at(0), "closed_at": None, "rule": "market_disparity"}
    case = {
        "scope": "property",
        "amounts": [{"currency": currency, "amount": Decimal(90)}],
        "exposure_eur": in_euro,
        **unsaid,
    }
    assert _notes(case)[1:] == said


@pytest.mark.parametrize(
    ("scope", "said"), [("property", "it had ended in between"), ("market", "it was not one case throughout")]
)
def test_a_market_whose_findings_were_of_properties_before_has_not_ended_in_between(scope, said):
    unsaid = dict.fromkeys(
        ("acknowledged_at", "muted_until", "owner", "note", "exposure_eur", "share_pct", "closed_at")
    )
    case = unsaid | {"scope": scope, "rule": "market_disparity", "amounts": []}
    notes = _notes(case | {"first_seen_at": night_at(0), "opened_at": night_at(3)})
    assert notes == [f"First seen on {night_at(0):%-d %b %Y}; {said}."]
