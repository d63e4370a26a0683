"""The numbers that pages begin with: what they count, and that they agree with one another."""

from __future__ import annotations

import json
from datetime import date
from types import SimpleNamespace

import polars as pl
import pytest
from nights import load_night, started_at, sweep_id

from pipeline.audit.quality_page import as_markdown, write_report
from pipeline.audit.results import Audit, Finding
from pipeline.domain.analysis import Analysis
from pipeline.domain.quantities import measured
from pipeline.inputs.case_notes import say_of_case
from pipeline.inputs.load import load
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.publish import publish
from pipeline.publish.refresh import refresh
from pipeline.report.availability import _cells, _waiting
from pipeline.report.chart_kinds import around_zero
from pipeline.report.digest import _quality
from pipeline.report.floors import floor_compliance
from pipeline.report.gaps import add_up, exchange_rates, in_one_currency
from pipeline.report.page import share
from pipeline.report.parity import _persistence
from pipeline.report.property_sections import _parity as _of_property
from pipeline.report.scope import Scope
from pipeline.report.write import write_reports

from .conftest import night

STAY = {"check_in": date(2030, 3, 1), "nights": 2, "party": "2"}
OFFER = {"room_id": 7, "board_id": 14, "currency": "EUR"}


@pytest.fixture(scope="session")
def dearer_and_cheaper(once_a_run):
    """GB pays 100 for each of four properties; DE pays 90 for one, 100 for two, 110 for one. Their floor is 95."""

    def make(folder):
        made = Lake(str(folder / "lake"))
        asked = [
            (2 * number + place, STAY | {"property_id": number, "market": market}, total)
            for number, there in ((1, 90), (2, 100), (3, 100), (4, 110))
            for place, (market, total) in enumerate((("GB", 100), ("DE", there)))
        ]
        cells = [cell | {"search_id": search, "offers": 1} for search, cell, _ in asked]
        offers = [OFFER | cell | {"search_id": search, "total": total, "floor": 95} for search, cell, total in asked]
        load_night(made, 0, cell=cells, offer=offers)
        publish(made, sweep_id(0), started_at(0), analysis=Analysis(reference_market="GB"))
        return made

    return once_a_run("dearer-and-cheaper", make)


@pytest.mark.slow
def test_the_headline_of_the_parity_page_is_the_sum_of_its_tiles(dearer_and_cheaper):
    (page,) = write_reports(dearer_and_cheaper, ["parity"])
    assert page.title == "75.0% of the offers are no dearer than in the reference market GB"
    reported = json.loads(page.file.with_name("parity.json").read_text())
    tiles = {tile["label"].split(":")[0]: tile["value"] for tile in reported["tiles"]}
    assert tiles == {"like-for-like pairs": "4", "win": "1", "meet": "2", "lose": "1", "findings": "2"}
    titles = {section["name"]: section["title"] for section in reported["sections"]}
    assert titles["persistence"] == "1 offer is currently dearer than in the reference market"
    assert titles["calendar"] == "An offer is dearer on 1 of 4 check-ins (a date counts once for each property)"
    assert (
        titles["headroom_calendar"]
        == "A floor is at or above its total on 1 of 4 check-ins (a date counts once for each property)"
    )


@pytest.mark.slow
def test_the_parity_page_counts_the_properties_that_are_not_compared(tmp_path):
    """AT sells property 1 only; ES and SE sell 1 to 3, DE sells 4 alone."""
    lake = Lake(str(tmp_path / "lake"))
    sold = [("AT", 1), *((market, number) for market in ("ES", "SE") for number in (1, 2, 3)), ("DE", 4)]
    asked = [
        STAY | {"property_id": number, "market": market, "search_id": search}
        for search, (market, number) in enumerate(sold)
    ]
    offers = [OFFER | cell | {"total": 100} for cell in asked]
    load_night(lake, 0, cell=[cell | {"offers": 1} for cell in asked], offer=offers)
    publish(lake, sweep_id(0), started_at(0), analysis=Analysis(reference_market="AT"))
    pages = [
        write_reports(lake, ["parity"], scope)[0].file.read_text()
        for scope in (Scope(), Scope(property_id=2), Scope(property_id=1), Scope(market="ES"))
    ]
    said = "sold in two or more other markets but not in AT"
    assert [page.count(said) for page in pages] == [1, 1, 0, 0]
    assert f"2 properties are {said}: they are not compared." in pages[0]
    assert f"1 property is {said}: it is not compared." in pages[1]


@pytest.mark.slow
def test_a_market_that_differs_is_not_lost_among_those_that_do_not(tmp_path):
    """GB, DE and SE pay 100 for a stay at the only property, and NL pays 85: it is what the digest calls about."""
    lake = Lake(str(tmp_path / "lake"))
    stay = STAY | {"property_id": 1}
    asked = [(search, market, 85 if market == "NL" else 100) for search, market in enumerate(("GB", "DE", "NL", "SE"))]
    cells = [stay | {"market": market, "search_id": search, "offers": 1} for search, market, _ in asked]
    offers = [OFFER | stay | {"market": market, "search_id": search, "total": total} for search, market, total in asked]
    load_night(lake, 0, cell=cells, offer=offers)
    publish(lake, sweep_id(0), started_at(0), analysis=Analysis(reference_market="GB"))
    page, _ = write_reports(lake, ["parity", "digest"])
    (day,) = pl.read_csv(page.file.with_name("parity") / "calendar.csv").rows(named=True)
    assert (day["market"], day["median_gap_pct"], day["pairs"], day["lose"]) == ("NL", -15.0, 3, 0)
    about = (page.file.parent / "properties" / "1.html").read_text()
    assert "Of 3 offers, 0 are dearer than in GB, 1 cheaper; furthest: −15.0% in NL (median of a check-in)" in about
    assert "of 3 pairs differ from the reference market (0 dearer, 1 cheaper)" in about


@pytest.mark.slow
def test_the_digest_tells_that_the_settings_name_another_reference_market(tmp_path):
    """SE is dearer than GB and DE, with which it is compared from the second night on; nothing changes on the third."""
    lake = Lake(str(tmp_path / "lake"))
    stay = STAY | {"property_id": 1}
    asked = [(search, market, 120 if market == "SE" else 100) for search, market in enumerate(("GB", "DE", "SE"))]
    cells = [stay | {"market": market, "search_id": search, "offers": 1} for search, market, _ in asked]
    offers = [OFFER | stay | {"market": market, "search_id": search, "total": total} for search, market, total in asked]
    told = []
    for number, reference in enumerate(("GB", "DE", "DE")):
        load_night(lake, number, cell=cells, offer=offers)
        publish(lake, sweep_id(number), started_at(number), analysis=Analysis(reference_market=reference))
        (digest,) = write_reports(lake, ["digest"])
        told.append("with DE: the settings have changed, and it was GB before." in digest.file.read_text())
    assert told == [False, True, False]


@pytest.mark.slow
def test_the_digest_says_which_markets_are_not_compared_for_lack_of_a_reference_rate(tmp_path):
    """DE, GB, SE and CH sell in currencies of their own; rates are loaded for one after the other, and grow too old."""
    lake = Lake(str(tmp_path / "lake"))
    asked = [
        (2 * number + place, STAY | {"property_id": place, "market": market}, currency, total)
        for number, (market, currency, total) in enumerate(
            (("DE", "EUR", 100), ("GB", "GBP", 86), ("SE", "SEK", 1000), ("CH", "CHF", 95))
        )
        for place in (0, 1)
    ]
    cells = [cell | {"search_id": search, "offers": 1} for search, cell, _, _ in asked]
    offers = [
        OFFER | cell | {"search_id": search, "currency": currency, "total": total}
        for search, cell, currency, total in asked
    ]
    told = []
    loaded = {1: "Date,GBP\n2030-01-01,0.86\n", 2: "Date,SEK\n2030-01-01,10\n", 10: "Date,CHF\n2030-01-01,0.95\n"}
    for number in (0, 1, 2, 6, 9, 10):
        if rates := loaded.get(number):
            (tmp_path / "rates.csv").write_text(rates)
            load(lake, "rates", tmp_path / "rates.csv", started_at(number))
        load_night(lake, number, cell=cells, offer=offers)
        publish(lake, sweep_id(number), started_at(number), analysis=Analysis(reference_market="DE"))
        (page,) = write_reports(lake, ["digest"])
        told.append(
            [point for point in json.loads(page.file.with_name("digest.json").read_text())["points"] if "rate" in point]
        )
    how = "is loaded (nightaudit load rates FILE)."
    old = "Prices are compared at old reference rates of GBP (1 Jan 2030) and SEK (1 Jan 2030): load newer ones "
    old += "(nightaudit load rates FILE) before you call about prices in them."
    all_three = "Markets CH, GB and SE are not compared: no reference rate for CHF"
    assert told == [
        [f"{all_three}, GBP and SEK {how}"],
        [f"Markets CH and SE are not compared: no reference rate for CHF and SEK {how}"],
        [f"Market CH is not compared: no reference rate for CHF {how}"],
        [f"Market CH is not compared: no reference rate for CHF {how}", old],
        [f"{all_three}, and none of the last seven days for GBP and SEK, {how}"],
        [f"{all_three}, GBP and SEK of the last seven days {how}"],
    ]


@pytest.mark.parametrize(
    ("shares", "written"),
    [
        ((33.5, 33.0, 33.5), [34, 33, 33]),
        ((0.0, 50.5, 79.5), [0, 39, 61]),
        ((100.0, 0.0, 0.0), [100, 0, 0]),
        ((50.0, 50.0, None), [None] * 3),
        ((0.0, 0.0, 0.0), [None] * 3),
    ],
)
def test_the_shares_of_a_gap_add_up_to_a_hundred(shares, written):
    """Residuals in both directions are more than the gap that is left of them: they are shares of their sum."""
    assert add_up(shares) == written


@pytest.mark.slow
def test_one_property_with_many_offers_is_not_the_market(tmp_path):
    """Of four properties, one has seven dearer rooms, and the others one room each that meets."""
    lake = Lake(str(tmp_path / "lake"))
    asked = [
        (search, STAY | {"property_id": number, "market": market}, rooms, total if market == "DE" else 100)
        for number, rooms, total in ((1, 1, 100), (2, 1, 100), (3, 1, 100), (4, 7, 110))
        for search, market in ((2 * number, "GB"), (2 * number + 1, "DE"))
    ]
    cells = [cell | {"search_id": search, "offers": rooms} for search, cell, rooms, _ in asked]
    offers = [
        OFFER | cell | {"search_id": search, "offer_no": room, "room_id": room, "total": total}
        for search, cell, rooms, total in asked
        for room in range(rooms)
    ]
    load_night(lake, 0, cell=cells, offer=offers)
    publish(lake, sweep_id(0), started_at(0), analysis=Analysis(reference_market="GB"))
    (page,) = write_reports(lake, ["parity"])
    assert page.title == (
        "30.0% of the offers are no dearer than in the reference market GB; 75.0% if each property counts once"
    )


@pytest.mark.slow
def test_what_most_prices_do_is_not_put_down_to_a_property(tmp_path):
    """A rise in two of three markets is one call; what follows a rate is none; one large property is no market."""
    made = Lake(str(tmp_path / "lake"))

    def said(number, factors, large=1.0):
        cells, offers = [], []
        for (market, currency), factor in factors.items():
            for each in range(1, 5):
                cell = STAY | {"property_id": each, "market": market, "search_id": 10 * len(cells)}
                rooms = 40 if each == 4 else 1
                cells.append(cell | {"offers": rooms})
                total = round(100 * (factor * large if each == 4 else factor), 2)
                offers += [
                    OFFER | cell | {"currency": currency, "offer_no": room, "room_id": room, "total": total}
                    for room in range(rooms)
                ]
        load_night(made, number, cell=cells, offer=offers)
        publish(made, sweep_id(number), started_at(number))
        (page,) = write_reports(made, ["digest"])
        points = json.loads(page.file.with_name("digest.json").read_text())["points"]
        alike = [point for point in points if "moved in the same direction" in point]
        assert points[: len(alike)] == alike, "it may be the reason not to call a property, so it comes before any call"
        return alike

    de, gb, se = ("DE", "EUR"), ("GB", "EUR"), ("SE", "SEK")
    days = [
        (number, f"{started_at(number).date()},{rate}") for number, rate in ((0, 10), (1, 10), (2, 10.4), (3, 10.4))
    ]
    rates = tmp_path / "rates.csv"
    rates.write_text("Date,SEK\n" + "\n".join(line for _, line in days) + "\n")
    load(made, "rates", rates, started_at(0))
    assert said(0, {de: 1, gb: 1, se: 10}) == []
    (risen,) = said(1, {de: 1.03, gb: 1.03, se: 10})
    assert risen.startswith(
        "Most offers moved in the same direction in 2 of 3 markets (DE, GB), by a median of +3.0%: ask the supplier"
    )
    (followed,) = said(2, {de: 1.03, gb: 1.03, se: 10.4})
    assert followed.endswith("in market SE, by a median of +4.0%, as the reference rate of SEK did: no call is needed.")
    assert said(3, {de: 1.03, gb: 1.03, se: 10.4}, large=1.2) == []


@pytest.mark.slow
def test_the_largest_move_may_be_of_an_offer_without_a_currency(tmp_path):
    made = Lake(str(tmp_path / "lake"))
    cell = STAY | {"property_id": 1, "market": "GB", "search_id": 1}
    for number, total in ((0, 100), (1, 130)):
        load_night(made, number, cell=[cell | {"offers": 1}], offer=[OFFER | cell | {"currency": None, "total": total}])
        publish(made, sweep_id(number), started_at(number))
    (page,) = write_reports(made, ["digest"])
    reported = page.file.with_name("digest.json").read_text()
    assert "The largest move: +30.0%, to 130.00 (currency not stated) (property 1, GB" in reported
    assert "None" not in reported


@pytest.mark.slow
def test_a_market_that_the_supplier_rejects_is_named(tmp_path):
    made = Lake(str(tmp_path / "lake"))
    cells = [STAY | {"property_id": 1, "market": market, "search_id": no} for no, market in enumerate(("DE", "PL"))]
    rejected = cells[1] | {"status": "rejected", "code": 1027}
    load_night(made, 0, cell=[cells[0] | {"offers": 1}, rejected], offer=[OFFER | cells[0] | {"total": 100}])
    publish(made, sweep_id(0), started_at(0))
    (page,) = write_reports(made, ["digest"])
    points = json.loads(page.file.with_name("digest.json").read_text())["points"]
    assert any(point.endswith("0 failed, 1 rejected by the supplier (PL).") for point in points)


@pytest.mark.slow
def test_that_a_night_ended_before_the_reference_market_is_said_and_which_markets_it_did_not_reach(tmp_path):
    """AT is what ES and SE are compared with; the calls of nights 1 and 2 are used up before it and SE."""
    made = Lake(str(tmp_path / "lake"))
    for number in range(4):
        cells, offers = [], []
        for search, market in enumerate(("AT", "ES", "SE")):
            cell = STAY | {"property_id": 1, "market": market, "search_id": search}
            is_reached = number in (0, 3) or market == "ES"
            cells.append(cell | ({"offers": 1} if is_reached else {"status": "not_swept"}))
            offers += [OFFER | cell | {"total": 100}] if is_reached else []
        load_night(made, number, cell=cells, offer=offers)
        publish(made, sweep_id(number), started_at(number), analysis=Analysis(reference_market="AT"))
        gap, lost = _points_about(made, "compared"), _points_about(made, "planned cells were answered")
        if number in (1, 2):
            why = "the reference market AT was not requested, because the night ended early"
            again = "The next night that reaches it compares them again."
            assert gap == [f"Markets have not been compared since 2 Jan 2030: {why}. {again}"]
            assert "0 failed, 2 not requested, because the night ended early (AT, SE); the night before" in lost[0]
        else:
            assert gap == []
            assert "not requested" not in lost[0]


@pytest.mark.slow
def test_a_market_that_sells_nothing_is_a_call_about_the_market(tmp_path):
    """GB sells nothing from the second night on, and SE nothing of its one property; DE sells throughout.

    The call does not weaken when the properties of GB count as quiet. Once that case is acknowledged, it ends.
    """
    made = Lake(str(tmp_path / "lake"))
    of_market = {"GB": range(1, 7), "DE": range(1, 7), "SE": range(1, 2)}
    reported = []
    for number in range(6):
        cells, offers = [], []
        for market, properties in of_market.items():
            is_silent = number > 0 and market != "DE"
            for each in properties:
                cell = STAY | {"property_id": each, "market": market, "search_id": each}
                cells.append(cell | ({"status": "no_offer", "code": 1023} if is_silent else {"offers": 1}))
                if not is_silent:
                    offers.append(OFFER | cell | {"total": 100})
        load_night(made, number, cell=cells, offer=offers)
        publish(made, sweep_id(number), started_at(number))
        reported.append(_points_about(made, "market GB"))
    call = (
        "Call the supplier about market GB: none of its 6 answered cells has an offer. "
        "6 properties were on sale there on 2030-01-01."
    )
    assert reported[1] == reported[2] == reported[5] == [call]
    # When they do, it says that this is a problem that opened, and asks for no second call.
    first, opened = reported[3]
    assert first == call
    assert opened.startswith("2 problems opened: Property gone quiet (market GB);")
    query = "SELECT case_id FROM report.finding_case WHERE rule = 'property_gone_quiet' AND scope = 'market'"
    ((case_id,),) = query_published(made.published_file, query).fetchall()
    say_of_case(made, case_id, started_at(6), is_acknowledged=True)
    refresh(made)
    assert _points_about(made, "market GB") == []


@pytest.mark.slow
def test_a_problem_acknowledged_in_one_market_counts_once_in_every_title(tmp_path):
    """Property 1 has a struck-through price that no promotion explains, in GB and DE, on both nights."""
    made = Lake(str(tmp_path / "lake"))
    stays = [STAY | {"property_id": 1, "market": market, "search_id": at} for at, market in enumerate(("GB", "DE"))]
    for number in range(2):
        offers = [OFFER | stay | {"total": 100, "pre_promo_total": 120} for stay in stays]
        load_night(made, number, cell=[stay | {"offers": 1} for stay in stays], offer=offers)
        publish(made, sweep_id(number), started_at(number))
    query = "SELECT case_id FROM report.finding_case WHERE market = 'DE' AND rule = 'unnamed_promotion'"
    ((case_id,),) = query_published(made.published_file, query).fetchall()
    say_of_case(made, case_id, started_at(2), is_acknowledged=True)
    refresh(made)
    (page,) = write_reports(made, ["digest"])
    noted = "1 case is acknowledged or muted"
    assert page.title == f"0 new problems, 1 older, 0 ended; {noted}; 0 prices changed"
    digest = json.loads(page.file.with_name("digest.json").read_text())
    assert digest["points"][0].startswith("0 problems opened, 1 problem persists.")
    titles = {section["name"]: section["title"] for section in digest["sections"]}
    assert titles["open_cases"] == f"1 problem persists: 1 high; {noted}"
    of_property = " ".join((page.file.parent / "properties" / "1.html").read_text().split())
    assert "1 problem is open" in of_property
    assert "open problem (2 cases)" in of_property


def _points_about(lake, text):
    (page,) = write_reports(lake, ["digest"])
    return [point for point in json.loads(page.file.with_name("digest.json").read_text())["points"] if text in point]


@pytest.mark.slow
@pytest.mark.parametrize("is_set", [False, True])
def test_that_the_reference_market_has_no_offers_is_said_on_each_night(tmp_path, is_set):
    """AT is what ES and SE are compared with, and sells nothing on nights 1 to 4; ES is dearer on all nights.

    The case about ES ends when it can no longer be compared, and continues, with its first day, when it can.
    """
    made = Lake(str(tmp_path / "lake"))
    reported, called = [], []
    for number in range(6):
        cells, offers = [], []
        for search, (market, total) in enumerate((("AT", 100), ("ES", 112), ("SE", 100))):
            cell = STAY | {"property_id": 1, "market": market, "search_id": search}
            is_gone = market == "AT" and number in range(1, 5)
            cells.append(cell | ({"status": "no_offer", "code": 1023} if is_gone else {"offers": 1}))
            offers += [] if is_gone else [OFFER | cell | {"total": total}]
        load_night(made, number, cell=cells, offer=offers)
        analysis = Analysis(reference_market="AT" if is_set else None)
        publish(made, sweep_id(number), started_at(number), analysis=analysis)
        reported.append(_points_about(made, "compared since") + _points_about(made, "Markets are"))
        called.append(_points_about(made, "ES pays 112.00 EUR"))
    since = "Markets have not been compared since 2 Jan 2030: the reference market AT has no offers."
    how = (
        "The setting NIGHTAUDIT_REFERENCE_MARKET names it: name another market to compare them again."
        if is_set
        else "From 15 Jan 2030 on, another market takes its place; to choose one at once, set "
        "NIGHTAUDIT_REFERENCE_MARKET."
    )
    assert reported[0] == []
    assert reported[1:5] == 4 * [[f"{since} {how}"]]
    again = "Markets are compared with AT again. It had no offers from 2 Jan 2030 on"
    assert reported[5] == [f"{again}, so a problem that is listed as new may be an old one."]
    assert [len(each) for each in called] == [1, 1, 1, 0, 0, 1]
    assert called[5][0].endswith("found since 1 Jan 2030.")
    assert _points_about(made, "1 problem persists.") == ["0 problems opened, 1 problem persists."]


@pytest.mark.slow
def test_that_the_reference_market_has_left_the_spec_is_said_and_silence_is_no_good_news(tmp_path):
    """AT is what ES and SE are compared with, and is not requested from night 1 on; ES is dearer on all nights."""
    made = Lake(str(tmp_path / "lake"))
    reported = []
    for number in range(4):
        cells, offers = [], []
        for search, (market, total) in enumerate((("AT", 100), ("ES", 112), ("SE", 100))):
            if market != "AT" or not number:
                cell = STAY | {"property_id": 1, "market": market, "search_id": search}
                cells.append(cell | {"offers": 1})
                offers.append(OFFER | cell | {"total": total})
        load_night(made, number, cell=cells, offer=offers)
        publish(made, sweep_id(number), started_at(number))
        reported.append(_points_about(made, "compared since"))
    assert reported[:3] == 3 * [[]]
    since = "Markets have not been compared since 2 Jan 2030: the reference market AT is not requested."
    how = "From 15 Jan 2030 on, another market takes its place; to choose one at once, set NIGHTAUDIT_REFERENCE_MARKET."
    assert reported[3] == [f"{since} {how}"]


@pytest.mark.parametrize(
    ("gaps", "furthest"), [([0.1, -0.4], 2.0), ([5.0, -12.5, None], 12.5), ([None], 2.0), ([], 2.0)]
)
def test_a_calendar_is_as_deep_for_a_gap_as_for_its_opposite_and_pale_for_small_ones(gaps, furthest):
    scale = around_zero(pl.Series(gaps, dtype=pl.Float64)).to_dict()
    assert scale["domain"] == [-furthest, 0, furthest]
    assert scale["range"] == ["#2c64a0", "#d9d9d6", "#b2412f"]


def test_a_share_is_said_in_percent_and_never_rounded_to_all_or_none():
    assert [share(*counts) for counts in ((1, 3), (9_999, 10_000), (1, 10_000), (0, 5), (5, 5), (0, 0))] == [
        "33.3%", "99.9%", "0.1%", "0%", "100%", "0%",
    ]  # fmt: skip


def test_what_a_check_measured_is_a_share_in_percent_or_a_count_as_it_is():
    assert measured("answered_share", 0.98765) == "98.77%"
    assert measured("failed_share", 0.0) == "0%"
    assert measured("offers_per_cell", 7.25) == "7.25"
    assert measured("offers_per_cell", 1234.0) == "1,234"
    assert measured("answered_share", None) == "none"


def test_the_digest_says_shares_in_percent_as_the_quality_page_does():
    failed = pl.DataFrame(
        {
            "severity": "warning", "market": "DE", "table_name": "cell", "check_name": "answered_share",
            "observed": 0.5, "lowest": 0.9, "highest": None, "violations": 0, "meaning": "few cells were answered",
        },
        schema_overrides={"highest": pl.Float64},
    )  # fmt: skip
    reader = SimpleNamespace(
        night={"sweep_id": "s"}, whole=lambda _: None, query=lambda *_: failed, total=lambda _: {"checks": 3}
    )
    section = _quality(reader)
    (row,) = section.rows
    assert [column.text(row) for column in section.columns[-3:]] == ["50%", "90%", "–"]


@pytest.mark.parametrize(
    ("failed", "said"),
    [
        ([], "The night passed: no check failed"),
        (["warning"], "The night passed: 1 check failed, none of them critical"),
        (["warning", "critical", "critical"], "The night is blocked: 1 critical check failed"),
    ],
)
def test_the_quality_page_says_whether_the_night_passed(tmp_path, failed, said):
    """A check that fails in two markets has one cause."""
    found = [
        Finding(f"M{at}", "cell", "answered_share", severity, "failed", "history", 0.5, 0.9, None, 0, 5, "Few", None)
        for at, severity in enumerate(failed)
    ]
    audit = Audit(sweep_id(0), 1, started_at(0), tuple(found))
    page = write_report(Lake(str(tmp_path)), audit, {}, is_simulated=True, cold_nights=7, kept=None)
    assert f"<h1>{said}</h1>" in page.read_text()
    assert as_markdown(audit).startswith(f"# {said}\n")


@pytest.mark.slow
def test_offers_that_came_and_went_are_counted_tonight_and_over_the_last_nights(lake):
    night(lake, 1, {1: 100, 2: 100, 4: 100})
    night(lake, 2, {1: 100, 2: 100, 4: 100})
    (page,) = write_reports(lake, ["digest"])
    tiles = [
        (tile["value"], tile["label"]) for tile in json.loads(page.file.with_name("digest.json").read_text())["tiles"]
    ]
    # Property 4 came on the night before, and 3 was not requested since: it is not known to be gone.
    assert ("0", "offers new or back tonight; 1 over the last 2 nights") in tiles
    assert [label for _, label in tiles if label.startswith("offers gone")] == [
        "offers gone tonight; 0 over the last 2 nights"
    ]


@pytest.mark.slow
def test_offers_of_stays_that_were_not_requested_before_are_told_apart(lake):
    """Property 4 is requested for the first time, 3 comes back; the first night requested 1 to 3."""
    night(lake, 1, {1: 100, 2: 100}, gone=3)
    night(lake, 2, {1: 100, 2: 100, 3: 100, 4: 100})
    (page,) = write_reports(lake, ["digest"])
    tiles = {
        tile["label"]: tile["value"] for tile in json.loads(page.file.with_name("digest.json").read_text())["tiles"]
    }
    assert tiles["offers new or back tonight, 1 of them in cells first answered now; 2 over the last 2 nights"] == "2"


@pytest.mark.slow
def test_an_offer_that_comes_back_at_another_price_is_no_price_change_and_each_page_says_so(lake):
    """Property 1 is not on sale on the second night, and dearer on the third."""
    night(lake, 1, {2: 100, 3: 100}, gone=1)
    night(lake, 2, {1: 120, 2: 100, 3: 110})
    digest, availability = write_reports(lake, ["digest", "availability"])
    assert digest.title.endswith("; 1 price changed")
    overview = lake.root / "reports" / "index.html"
    texts = [" ".join(page.read_text().split()) for page in (digest.file, availability.file, overview)]
    assert ["on sale on both nights" in text for text in texts] == [True, True, True]
    assert not [text for text in texts if "last time they were seen" in text or "as last seen" in text]
    (limited,) = write_reports(lake, ["digest"], Scope(property_id=2))
    assert "No price changed among offers on sale on both nights." in limited.file.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("named", [1, 3])
def test_the_digest_says_how_properties_get_names_where_most_have_none(tmp_path, named):
    made = Lake(str(tmp_path / "lake"))
    cells = [STAY | {"property_id": each, "search_id": each} for each in (1, 2, 3, 4)]
    offers = [OFFER | cell | {"offer_no": 0, "room_id": 1, "total": 100} for cell in cells]
    load_night(made, 0, cell=[cell | {"offers": 1} for cell in cells], offer=offers)
    names = tmp_path / "names.csv"
    names.write_text("property_id,property_name\n" + "".join(f"{each},Hotel {each}\n" for each in range(1, named + 1)))
    load(made, "properties", names, started_at(0))
    publish(made, sweep_id(0), started_at(0))
    (page,) = write_reports(made, ["digest"])
    lead = json.loads(page.file.with_name("digest.json").read_text())["lead"]
    assert ("nightaudit load properties FILE" in lead) == (named == 1)


def test_a_report_of_a_property_says_its_name(lake, tmp_path):
    file = tmp_path / "properties.csv"
    file.write_text("property_id,property_name\n1,Fjord <b>\n")
    load(lake, "properties", file, started_at(0))
    night(lake, 1, {1: 120, 2: 95})
    said = {}
    for number in (1, 2):
        (page,) = write_reports(lake, ["digest"], Scope(property_id=number, market="GB"))
        said[number] = next(line for line in page.file.read_text().splitlines() if "Limited to" in line)
    assert "Limited to property 1 (Fjord &lt;b&gt;), market GB." in said[1]
    assert "Limited to property 2, market GB." in said[2]


@pytest.mark.parametrize(
    ("cheaper", "lowest", "said"),
    [
        (0.046, 0.38, "a lower price came later for 4.6% of the offers, and the lowest later price was 0.4% higher"),
        (0.9999, -8.5, "a lower price came later for 99.9% of the offers, and the lowest later price was 8.5% lower"),
        (0.0, 1.25, "a lower price came later for 0% of the offers, and the lowest later price was 1.2% higher"),
        (0.02, -0.04, "a lower price came later for 2.0% of the offers, and the lowest later price was as high"),
    ],
)
def test_the_title_about_waiting_says_how_often_a_lower_price_came_and_what_it_was(cheaper, lowest, said):
    """A mean above zero is not the same as nothing cheaper."""
    row = {"source": "multi", "market": "NL", "product_type": "Hotel", "lead_days": 7, "comparable": 1000}
    row |= {"cheaper_later_share": cheaper, "lowest_later_pct": lowest, "gone_share": 0.125}
    assert _waiting(pl.DataFrame([row])) == (
        f"Waiting from 7 days before check-in (NL, Hotel): {said} on average; 12.5% of the offers disappeared"
    )


@pytest.mark.parametrize(
    ("of_list", "of_detail", "said"),
    [
        (3388, 384, "3,388 offers deviate from the reference rate; the median offer does not"),
        (0, 384, "384 offers of detail answers deviate from the reference rate; the median offer does not"),
        (0, 0, "No offer deviates from the reference rate by more than rounding explains"),
    ],
)
def test_the_title_about_exchange_rates_counts_an_offer_of_two_answers_once(of_list, of_detail, said):
    pair = {"market": "SE", "currency": "SEK", "base_currency": "EUR", "pairs": 4000, "median_markup_pct": 0.0}
    rates = [
        pair | {"source": source, "beyond_rounding": number, "lowest_markup_pct": -1.0, "highest_markup_pct": 1.0}
        for source, number in (("multi", of_list), ("detail", of_detail))
    ]
    section = exchange_rates(SimpleNamespace(rows=lambda *_, **__: pl.DataFrame(rates)))
    assert section.title == said
    assert "counts twice" not in section.note


def test_the_markets_that_are_furthest_off_are_all_named():
    """GB comes before US by name alone; DE is as far off in the other direction; one check-in is no market."""
    gaps = [("DE", 0.61), ("GB", -0.6), ("GB", 0.0), ("NL", None), ("SE", 0.1), ("US", -0.58), ("US", -0.6)]
    rows = pl.DataFrame(
        {
            "reference_market": "FR",
            "market": [market for market, _ in gaps],
            "median_gap_pct": [gap for _, gap in gaps],
            "pairs": 4,
            "lose": [4 if gap and gap > 0.5 else 0 for _, gap in gaps],
            "win": [4 if gap and gap < 0 else 0 for _, gap in gaps],
        }
    )
    title = _of_property(rows).title
    assert title.endswith("12 cheaper; furthest: +0.6% in DE and −0.6% in GB, US (median of a check-in)")
    level = rows.with_columns(median_gap_pct=0.02)
    assert _of_property(level).title.endswith("12 cheaper")
    assert _of_property(rows.filter(pl.col("market") == "SE")).title.endswith("0 are dearer than in FR, 0 cheaper")
    many = rows.with_columns(median_gap_pct=-2.0, market=pl.Series(["DE", "GB", "NL", "SE", "US", "AT", "CH"]))
    assert _of_property(many).title.endswith("furthest: −2.0% in 7 markets (median of a check-in)")


def parts_of(section) -> list[tuple[int, int]]:
    """Return, of each row, the number in the first column of counts and the sum of those that it consists of."""
    labels = {column.label: column.name for column in section.columns}
    names = ("Running", "Resolved", "Ended otherwise", "At or above", "Below", "No floor", "Not comparable", "No offer")
    parts = [labels[name] for name in names if name in labels]
    total = labels.get("Episodes") or labels["Prices"]
    return [(row[total], sum(row[part] for part in parts)) for row in section.rows]


def test_the_columns_of_a_row_add_up_to_what_it_counts():
    """Episodes that ended otherwise, and prices that are outdated or match no offer, used to be left out."""
    of = {"match_grade": "exact", "source": "multi", "market": "DE", "currency_basis": "same"}
    episodes = {"episodes": 1296, "running": 394, "resolved": 60, "ended_otherwise": 842}
    days = {"reference_market": "GB", "median_days_to_resolve": 2.0, "longest_running_days": 9.0}
    reader = SimpleNamespace(
        rows=lambda *_, **__: pl.DataFrame([of | episodes | days]), total=lambda _: {"running": 394, "converted": 0}
    )
    persistence = _persistence(reader)
    assert parts_of(persistence) == [(1296, 1296)]
    assert "gone or no longer requested, its stay began, or the reference market or the" in persistence.note
    prices = {"planned": 291, "comparable": 232, "kept": 230, "breaches": 2, "without_floor": 18, "not_comparable": 41}
    unmatched = of | dict.fromkeys(prices, 0) | {"planned": 284, "currency_basis": None, "median_below_pct": None}
    rows = pl.DataFrame([of | prices | {"median_below_pct": 17.9}, unmatched])
    nothing = pl.DataFrame()
    floors = floor_compliance(SimpleNamespace(rows=lambda *_, **__: rows, query=lambda _: nothing))
    assert parts_of(floors) == [(291, 291), (284, 284)]
    assert [row["no_offer"] for row in floors.rows] == [0, 284]
    assert floors.title == "2 of 232 selling prices lie below the floor"


def test_sums_of_gaps_are_compared_in_the_currency_of_most_pairs():
    parts = pl.DataFrame(
        {"market": ["DE", "SE", "US", "SE"], "currency": ["EUR", "SEK", "EUR", "EUR"], "comparable": [3, 5, 2, 1]}
    )
    assert in_one_currency(parts)["market"].to_list() == ["DE", "US", "SE"]
    assert in_one_currency(parts.clear()).height == 0


def test_markets_with_the_least_on_sale_may_have_different_numbers_of_cells():
    def cells(*numbers):
        return _cells(pl.DataFrame({"answered": numbers}), ["82.9%", "82.9%", "90.0%"][: len(numbers)])

    assert (cells(240), cells(240, 240, 9), cells(240, 480, 9)) == ("240 cells", "240 cells", "their cells")


@pytest.mark.slow
def test_the_first_night_says_when_waiting_can_be_judged(dearer_and_cheaper):
    first = f"{STAY['check_in']:%-d %b %Y}"
    (page,) = write_reports(dearer_and_cheaper, ["availability"])
    said = f"once stays that were observed on several nights have begun; the first of them begins on {first}."
    assert said in page.file.read_text()
