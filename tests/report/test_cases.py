"""Cases on a page: one line for each property and rule, however many markets it was found in."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import duckdb
import polars as pl

from pipeline.lake.relations import relation
from pipeline.report.case_calls import cases_points
from pipeline.report.case_rows import ended_of
from pipeline.report.cases import calls, described, new_cases_section, open_cases_section, problems
from pipeline.report.cost import NOTE, with_amounts_as_text
from pipeline.report.ended_cases import ended_cases_section, ended_points, with_why
from pipeline.report.findings import _worded
from pipeline.report.page import Section
from pipeline.report.read import Reader
from pipeline.report.scope import Scope
from pipeline.report.which_pages import costly_properties
from pipeline.report.words import place_said

OCTOBER = datetime(2026, 10, 14, 2, tzinfo=UTC)


def case(case_id: str, market: str | None, property_id: int | None = 7, **said: object) -> dict[str, object]:
    row = {"case_id": case_id, "market": market, "property_id": property_id, "property_name": f"Hotel {property_id}"}
    row |= {"markets": market or "", "ended_by": "value"}
    row |= {
        "rule": "unnamed_promotion",
        "rule_words": "Price struck through, no promotion named",
        "status": "open",
        "severity": "high",
    }
    row |= {"scope": "property" if property_id is not None else "market" if market else "supplier"}
    row |= {"case_page": f"cases/{case_id}.html", "property_page": None} | {
        "flags": 2,
        "offers": 2,
        "stays": 1,
        "lowest_pct": 4.0,
        "highest_pct": 4.0,
        "finding": f"2 offers for 1 stay, +4.0%. Of {market}.",
        "exposure_eur": Decimal(5),
        "amounts": [{"currency": "EUR", "amount": Decimal(5)}],
        "opened_at": OCTOBER,
        "first_seen_at": OCTOBER,
    }
    row |= {"evidence": [{"flag_id": f"b-{case_id}", "finding": f"Of {market}."}]} | said
    return {"status_words": row["status"]} | row


def frame(*rows: dict[str, object]) -> pl.DataFrame:
    money = pl.Decimal(38, 4)
    of = {"currency": pl.String, "amount": money}
    held = {"property_id": pl.Int64, "market": pl.String, "exposure_eur": pl.Decimal(38, 2)}
    return pl.DataFrame(list(rows), schema_overrides=held | {"amounts": pl.List(pl.Struct(of))})


def persisting(cases: pl.DataFrame) -> Section:
    return open_cases_section(cases, is_first_night=False)


def test_one_problem_in_several_markets_is_one_line_that_names_them_and_their_cases():
    cases = frame(
        case("case-1", "SE", highest_pct=9.0),
        case("case-2", "DE"),
        case("case-3", "GB", rule="fx"),
        case("case-4", "US", 8),
    )
    found = calls(cases).rows(named=True)
    assert [(row["property_id"], row["rule"], row["market"], row["case_id"]) for row in found] == [
        (7, "unnamed_promotion", "DE, SE", "case-1 case-2"),
        (7, "fx", "GB", "case-3"),
        (8, "unnamed_promotion", "US", "case-4"),
    ]
    assert found[0]["finding"] == "4 offers in 2 markets, differences of 4.0% to 9.0%. Of SE."
    assert found[0]["flags"] == 4
    assert found[0]["pages"] == [
        {"text": "DE", "href": "cases/case-2.html"},
        {"text": "SE", "href": "cases/case-1.html"},
    ]
    assert found[1]["finding"] == "2 offers for 1 stay, +4.0%. Of GB."


def test_a_new_problem_that_had_ended_before_is_back_unless_it_is_new_in_a_market():
    back = {"status": "new", "status_words": "back"}
    cases = frame(
        case("case-1", "SE", **back),
        case("case-2", "DE", **back),
        case("case-3", "SE", 8, **back),
        case("case-4", "DE", 8, status="new"),
    )
    section = new_cases_section(cases, is_first_night=False)
    (status,) = (column for column in section.columns if column.label == "Status")
    assert [(row["property_id"], status.text(row)) for row in section.rows] == [(7, "back"), (8, "new")]
    assert [place_said(status.name, word) for word in ("new", "back", "open")] == [0, 1, 2]
    opened = cases_points(cases)[0].text
    assert "(Hotel 7, property 7, back)" in opened
    assert "(Hotel 8, property 8)" in opened


def test_what_was_acknowledged_is_no_line_of_what_waits():
    cases = frame(case("case-1", "SE"), case("case-2", "DE", status="acknowledged"))
    assert [row["case_id"] for row in calls(cases).rows(named=True)] == ["case-1", "case-2"]


def test_cases_of_markets_and_of_the_supplier_stay_by_themselves():
    cases = frame(case("case-1", "SE", None), case("case-2", "DE", None), case("case-3", None, None))
    assert [row["case_id"] for row in calls(cases).rows(named=True)] == ["case-1", "case-2", "case-3"]


def test_many_offers_have_thousands_separators():
    cases = frame(case("case-1", "SE", offers=1_200_000), case("case-2", "DE", offers=34_567))
    assert calls(cases)["finding"].to_list() == ["1,234,567 offers in 2 markets, a difference of 4.0%. Of SE."]


def test_sizes_that_are_not_known_are_left_out():
    cases = frame(
        case("case-1", "SE", lowest_pct=None, highest_pct=None), case("case-2", "DE", lowest_pct=None, highest_pct=None)
    )
    assert calls(cases)["finding"].to_list() == ["4 offers in 2 markets. Of SE."]


def test_a_size_that_the_example_says_is_not_said_twice():
    said = {"lowest_pct": -15.3, "highest_pct": -15.3}
    same = [{"flag_id": "b", "finding": "DE pays 113.88 EUR against 134.52 in GB: -15.3%."}]
    other = [{"flag_id": "b", "finding": "DE pays 113.88 EUR against 134.52 in GB: -115.3%."}]
    cases = frame(
        case("case-1", "SE", evidence=same, **said),
        case("case-2", "DE", evidence=same, **said),
        case("case-3", "SE", 8, evidence=other, **said),
        case("case-4", "DE", 8, evidence=other, **said),
    )
    assert calls(cases)["finding"].to_list() == [
        "4 offers in 2 markets. DE pays 113.88 EUR against 134.52 in GB: -15.3%.",
        "4 offers in 2 markets, -15.3%. DE pays 113.88 EUR against 134.52 in GB: -115.3%.",
    ]


def test_the_summary_names_three_properties_each_once_and_the_figures_keep_every_case():
    cases = frame(*(case(f"case-{number}", "SE", number // 2) for number in range(10)))
    first, *named = [point.text for point in cases_points(cases)]
    assert first == "0 problems opened, 5 problems (10 cases) persist."
    assert [text.split(" about")[0] for text in named] == ["Call Hotel 0 (0)", "Call Hotel 1 (1)", "Call Hotel 2 (2)"]
    section = persisting(cases)
    assert (section.figures.height, section.table.height) == (10, 5)


def costs(euros: int | None, **amounts: int) -> dict[str, object]:
    of = amounts or {"EUR": euros}
    return {
        "exposure_eur": None if euros is None else Decimal(euros),
        "amounts": [{"currency": currency, "amount": Decimal(amount)} for currency, amount in of.items() if amount],
    }


def test_of_problems_of_one_severity_what_costs_most_is_called_about_first_however_new_it_is():
    cases = frame(
        case("case-1", "SE", 7, status="new", severity="high", **costs(10)),
        case("case-2", "SE", 8, status="new", severity="low", **costs(900)),
        case("case-3", "SE", 9, severity="medium", **costs(30_000)),
        case("case-4", "SE", 10, severity="high", **costs(40)),
    )
    points = cases_points(cases)
    assert [point.text.split(" about")[0] for point in points[1:]] == [
        "Call Hotel 10 (10)",
        "Call Hotel 7 (7)",
        "Call Hotel 9 (9)",
    ]
    assert points[0].text.startswith(
        "2 problems opened: Price struck through, no promotion named (Hotel 8, property 8); "
        "Price struck through, no promotion named (Hotel 7, property 7). 2 problems persist. Whom to call first: (1) "
        "problems of high severity; (2) among equals,"
    )
    assert points[3].text.endswith("Of SE. Cost: 30,000 EUR, found since 14 Oct 2026.")
    assert new_cases_section(cases, is_first_night=False).table["property_id"].to_list() == [8, 7]
    assert persisting(cases).table["property_id"].to_list() == [9, 10]


def test_three_properties_are_called_whatever_the_supplier_has_to_be_called_about():
    """A line of a market or the supplier takes no property's place, and costs a sentence of its own."""
    of_market = {"property_name": "market GB", "rule": "fx_markup"}
    cases = frame(
        case("case-1", "GB", None, severity="medium", **of_market, **costs(9_000)),
        case("case-2", None, None, severity="medium", property_name="all markets", **costs(8_000)),
        case("case-3", "SE", None, severity="low", property_name="market SE", **costs(7_000)),
        case("case-4", "SE", 7, severity="medium", rule="market_disparity", **costs(6_000)),
        case("case-5", "SE", 8, severity="high", rule="market_disparity", **costs(50)),
        case("case-6", "SE", 9, severity="high", rule="market_disparity", **costs(60)),
        case("case-7", "SE", 10, severity="medium", rule="market_disparity", **costs(500)),
    )
    first, *named = cases_points(cases)
    assert [point.bold for point in named] == [
        "Call Hotel 9 (9)",
        "Call Hotel 8 (8)",
        "Call Hotel 7 (7)",
        "Then call the supplier about market GB",
        "Then call the supplier about all markets",
    ]
    assert named[3].text.startswith("Then call the supplier about market GB: Price struck through")
    assert named[3].text.endswith("Cost: 9,000 EUR, found since 14 Oct 2026.")
    assert named[4].text.endswith("Cost: 8,000 EUR, found since 14 Oct 2026. Also call about market SE.")
    assert [point.tone for point in (first, *named)] == ["bad", "bad", "bad", "warn", "warn", "warn"]
    assert "What is about a market or the supplier follows." in first.text


def test_properties_come_in_the_order_of_their_most_costly_problem_over_all_its_markets():
    cases = frame(
        case("case-1", "SE", 7, **costs(50)),
        case("case-2", "DE", 8, **costs(30)),
        case("case-3", "SE", 8, **costs(30)),
        case("case-4", "SE", 9, status="muted", **costs(900)),
        case("case-5", "SE", 6, rule="property_gone_quiet", **costs(0)),
    )

    assert costly_properties(cases) == [8, 7, 6, 9]
    assert calls(cases)["property_id"].to_list() == [8, 7, 6, 9]


def test_a_line_costs_what_its_markets_do_together_and_is_open_since_the_first_of_them():
    cases = frame(
        case("case-1", "SE", 7, **costs(60)),
        case("case-2", "SE", 8, **costs(50)),
        case("case-3", "DE", 8, **costs(40), opened_at=datetime(2026, 10, 2, 2, tzinfo=UTC)),
    )
    section = persisting(cases)
    shown = [
        [column.text(row) for column in section.columns if column.name in {"cost", "since"}] for row in section.rows
    ]
    assert shown == [["90 EUR", "2026-10-02"], ["60 EUR", "2026-10-14"]]
    assert [column.label for column in section.columns][2:4] == ["Cost", "Found since"]


def test_pages_and_comments_say_which_offer_a_stay_costs_where_there_are_two_in_the_middle():
    """The lower one: see `lower_middle` of the golden cases of mart.case_amount."""
    comments = [relation(*of).meanings["amounts"] for of in (("mart", "case_amount"), ("report", "finding_case"))]
    for text in (NOTE, *comments):
        assert "the lower of two" in text
        assert "median" not in text


def test_a_cost_without_a_rate_is_in_its_own_currencies_after_those_in_euro_and_before_what_costs_nothing():
    cases = frame(
        case("case-1", "SE", 7, **costs(None, SEK=900, USD=3)),
        case("case-2", "DE", 7, **costs(None, SEK=100)),
        case("case-3", "SE", 8, **costs(20)),
        case("case-4", None, 9, rule="property_gone_quiet", severity="high", **costs(0)),
    )
    lines = calls(cases)
    assert list(zip(lines["property_id"], lines["cost"], strict=True)) == [
        (8, "20 EUR"),
        (7, "1,000 SEK + 3 USD"),
        (9, None),
    ]
    assert costly_properties(cases) == [8, 7, 9]
    assert "in other currencies follows" in NOTE
    quiet = cases_points(cases)[1]
    assert quiet.text.startswith("Call Hotel 9 (9) about")
    assert quiet.text.endswith(" Found since 14 Oct 2026.")


def test_a_call_says_how_much_more_there_is_to_talk_about():
    cases = frame(case("case-1", "SE", 7), case("case-2", "SE", 7, rule="fx"), case("case-3", "SE", 7, rule="quiet"))
    assert cases_points(cases)[1].text.endswith("since 14 Oct 2026. 2 more problems there.")


def test_what_ended_is_shown_by_problem_with_its_cost_its_time_and_its_evidence():
    ended = frame(
        case("case-1", "SE", 7, **costs(5)),
        case("case-2", "SE", 8, ended_by="gone", **costs(50)),
        case("case-3", "DE", 8, ended_by="gone", **costs(40), case_page=None),
    )
    section = ended_cases_section(ended, is_first_night=False)
    assert section.title == "2 problems (3 cases) ended"
    first, second = section.rows
    assert (first["cost"], str(first["since"]), first["in"]) == ("90 EUR", "2026-10-14", "SE, DE")
    assert first["why_it_ended"] == "the offer is gone"
    assert second["why_it_ended"] == "the answer changed"
    assert first["pages"] == [{"text": "SE", "href": "cases/case-2.html"}]
    assert first["without_page"] == "case-3"


def test_whom_to_call_is_in_bold_and_the_reason_is_not():
    cases = frame(
        case("case-1", "SE", 7),
        case("case-2", "SE", None, property_name="market SE"),
        case("case-3", "SE", 8, rule="floor_breach"),
    )
    points = cases_points(cases)[1:]
    assert [point.bold for point in points] == [
        "Call Hotel 7 (7)",
        "Check your selling price of Hotel 8 (8)",
        "Then call the supplier about market SE",
    ]
    assert all(point.text.startswith(point.bold) for point in points)


def test_the_most_costly_of_your_own_prices_has_a_sentence_beside_three_calls():
    """A reader can put it right alone, so calls that cost less must not leave it out."""
    own = {"rule": "floor_breach", "severity": "high"}
    cases = frame(
        *(case(f"case-{of}", "SE", of, rule="market_disparity", severity="high", **costs(of)) for of in (1, 2, 3, 4)),
        case("case-5", "SE", 5, **own, **costs(900)),
        case("case-6", "SE", 6, **own, **costs(1_772)),
        case("case-7", "SE", 4, **own | {"rule": "floor_what_if"}, **costs(5)),
        # The same price, as the usual mark-up makes it.
        case("case-9", "SE", 6, **own | {"rule": "floor_what_if", "rule_words": "What if"}, **costs(1_773)),
        case("case-8", "DE", None, property_name="market DE", rule="fx_markup", **costs(9_000)),
    )
    first, *named = cases_points(cases)
    assert [point.bold for point in named] == [
        "Call Hotel 4 (4)",
        "Call Hotel 3 (3)",
        "Call Hotel 2 (2)",
        "Check your selling price of Hotel 6 (6)",
        "Then call the supplier about market DE",
    ]
    assert named[3].text.endswith(
        "Cost: 1,772 EUR, found since 14 Oct 2026. 1 more problem there. 2 more properties need the same check."
    )
    assert "Your own selling prices follow, then what is about a market or the supplier. The tables" in first.text
    alone = cases_points(cases.filter(pl.col("property_id") == 6))
    assert [point.bold for point in alone[1:]] == ["Check your selling price of Hotel 6 (6)"]
    assert "same check" not in alone[1].text


def test_of_a_market_that_sells_nothing_no_price_is_worth_a_call():
    cases = frame(
        case("case-1", "SE", 7), case("case-2", "DE", 8), case("case-3", "SE", None, property_name="market SE")
    )
    first, *named = cases_points(cases, ["SE"])
    assert first.text == "0 problems opened, 3 problems persist."
    assert [point.bold for point in named] == ["Call Hotel 8 (8)"]
    assert len(cases_points(cases, ["SE", "DE"])) == 1


def test_new_problems_are_named_at_once_and_each_call_leads_to_the_section_of_its_row():
    cases = frame(
        case("case-1", "SE", 7, **costs(900)),
        case("case-2", "SE", 8, status="new", **costs(10)),
        case("case-3", "SE", 9, **costs(50)),
        case("case-4", "DE", 9, status="new", **costs(50)),
    )
    first, *calls_ = cases_points(cases)
    assert first.text.startswith(
        "2 problems opened: Price struck through, no promotion named (Hotel 9, property 9); Price"
    )
    assert [(point.bold, point.section) for point in (first, *calls_)] == [
        ("", "new_cases"),
        ("Call Hotel 7 (7)", "open_cases"),
        # In both tables: its older markets are the larger part.
        ("Call Hotel 9 (9)", "open_cases"),
        ("Call Hotel 8 (8)", "new_cases"),
    ]
    many = frame(*(case(f"case-{number}", "SE", number, status="new") for number in range(5)))
    assert "(Hotel 2, property 2); and 2 more. 0 problems persist." in cases_points(many)[0].text


def test_serious_problems_of_prices_and_quiet_properties_come_before_labels_that_cost_more():
    cases = frame(
        case("case-1", "SE", 7, rule="evergreen_promotion", **costs(9_000)),
        # What is paid at the property is stated beside the price.
        case("case-2", "SE", 8, rule="all_in_gap", **costs(800)),
        case("case-3", "SE", 9, rule="property_gone_quiet", **costs(None)),
        case("case-4", "SE", 8, rule="market_disparity", **costs(70)),
        case("case-5", "SE", 10, rule="market_disparity", severity="low", **costs(5)),
    )
    first, *named = cases_points(cases)
    assert [point.bold for point in named] == ["Call Hotel 8 (8)", "Call Hotel 9 (9)", "Call Hotel 7 (7)"]
    assert "Whom to call first: (1) problems of high severity; (2) among equals, prices and" in first.text
    # One that is less serious comes after all of these, whatever it costs.
    costly = cases.vstack(frame(case("case-6", "SE", 11, rule="market_disparity", severity="medium", **costs(90_000))))
    assert [point.bold for point in cases_points(costly)[1:]] == [
        "Call Hotel 8 (8)",
        "Call Hotel 9 (9)",
        "Call Hotel 7 (7)",
    ]
    assert "Whom to call" not in cases_points(cases.filter(pl.col("rule") == "all_in_gap"))[0].text


def test_a_range_has_its_sign_at_both_ends_and_an_example_without_doubt_comes_first():
    doubtful = {"flag_id": "a", "finding": "Of SE: -6.9%. No third price shows which of the two deviates."}
    certain = {"flag_id": "b", "finding": "Of DE: +7.4%."}
    cases = frame(
        case("case-1", "SE", lowest_pct=-6.9, highest_pct=-6.9, evidence=[doubtful]),
        case("case-2", "DE", lowest_pct=7.4, highest_pct=7.4, evidence=[doubtful, certain]),
    )
    assert calls(cases)["finding"].to_list() == ["4 offers in 2 markets, -6.9% to +7.4%. Of DE: +7.4%."]


def test_sizes_have_the_unit_of_their_rule():
    """Discounts of 15 and 29 percent are stated, and 10 percent are taken off. Fees are measured against the total."""
    sizes = {"rule": "wrong_discount", "lowest_pct": 5.0, "highest_pct": 5.0}
    cases = [
        case("case-1", "SE", **sizes),
        case("case-2", "DE", **sizes | {"highest_pct": 19.0}),
        case("case-3", "SE", 8, **sizes | {"rule": "floor_eats_promotion"}),
        case("case-4", "DE", 8, **sizes | {"rule": "floor_eats_promotion"}),
        case("case-5", "SE", 9, **sizes | {"rule": "excluded_charges_mismatch"}),
        case("case-6", "DE", 9, **sizes | {"rule": "excluded_charges_mismatch", "highest_pct": 6.0}),
    ]
    assert calls(frame(*cases))["finding"].to_list() == [
        "4 offers in 2 markets, differences of 5.0 to 19.0 percentage points. Of SE.",
        "4 offers in 2 markets, a difference of 5.0 percentage points. Of SE.",
        "4 offers in 2 markets, differences of 5.0% to 6.0% of the total. Of SE.",
    ]


def test_what_may_be_no_problem_is_checked_before_a_call():
    quiet = "property_gone_quiet"
    cases = frame(
        case("case-1", None, 7, rule=quiet, severity="high"), case("case-2", None, 8, rule=quiet, severity="medium")
    )
    assert [point.bold for point in cases_points(cases)[1:]] == [
        "Call Hotel 7 (7)",
        "Check Hotel 8 (8) before you call",
    ]


def test_problems_are_counted_by_their_worst_severity_and_not_once_a_market():
    cases = frame(case("case-1", "SE"), case("case-2", "DE"), case("case-3", "SE", 8, severity="low"))
    assert persisting(cases).title == "2 problems (3 cases) persist: 1 high, 1 low"


def test_what_a_list_and_a_detail_answer_say_of_an_offer_counts_once():
    cases = frame(case("case-1", "SE", flags=4), case("case-2", "DE", flags=4))
    assert calls(cases)["finding"].to_list() == ["4 offers in 2 markets, a difference of 4.0%. Of SE."]


def test_a_property_that_has_gone_quiet_has_no_offers():
    quiet = {"stays": 0, "lowest_pct": None, "highest_pct": None}
    assert calls(frame(case("case-1", "SE", **quiet), case("case-2", "DE", **quiet)))["finding"].to_list() == [
        "4 findings in 2 markets. Of SE."
    ]


def test_a_property_that_has_gone_quiet_in_several_markets_is_one_call_that_names_them_once():
    said = {
        "markets": "DE, SE",
        "stays": 0,
        "finding": "2 findings in 2 markets (DE, SE). No offer.",
        "rule_words": "Quiet",
    }
    cases = frame(case("case-1", None, **said))
    assert calls(cases)["market"].to_list() == ["DE, SE"]
    said = "Call Hotel 7 (7) about: Quiet. 2 findings in 2 markets (DE, SE). No offer."
    assert cases_points(cases)[1].text.startswith(said)


def test_about_a_market_the_supplier_is_called_and_about_a_property_the_property():
    cases = frame(
        case("case-1", "SE", None, property_name="market SE"),
        case("case-2", None, None, property_name="all markets"),
        case("case-3", "SE", 7),
    )
    assert [point.text.split(". ")[0] for point in cases_points(cases)[1:]] == [
        "Call Hotel 7 (7) about: Price struck through, no promotion named (SE)",
        "Then call the supplier about market SE: Price struck through, no promotion named",
        "Then call the supplier about all markets: Price struck through, no promotion named",
    ]
    assert [point.bold for point in cases_points(cases[:1])[1:]] == ["Call the supplier about market SE"]


def test_the_figures_of_cases_and_findings_have_the_unit_of_their_sizes():
    reader = SimpleNamespace(linked_properties=(), case_page=pl.lit(None).alias("case_page"))
    cases = pl.DataFrame([case("case-1", "SE", 7, rule=rule, markets=["SE"]) for rule in ("wrong_discount", "unnamed")])
    assert described(reader, cases)["size_unit"].to_list() == ["percentage points", "%"]
    as_read = SimpleNamespace(named=lambda found: found, with_cases=lambda found: found)
    found = _worded(as_read, pl.DataFrame({"rule": ["excluded_charges_mismatch", "floor_breach"]}))
    assert found["size_unit"].to_list() == ["% of the total", "%"]


def test_the_figures_of_cases_have_their_amounts_as_text_as_without_rates_there_is_no_other_cost():
    amounts = [{"currency": "EUR", "amount": Decimal("9.5000")}, {"currency": "SEK", "amount": Decimal(80)}]
    figures = with_amounts_as_text(pl.DataFrame({"case_id": ["a", "b", "c"], "amounts": [amounts, [], None]}))
    assert figures["amounts"].to_list() == ["9.5000 EUR + 80.0000 SEK", None, None]


def test_a_case_of_the_supplier_names_its_markets_unless_they_are_all():
    on_sale = pl.DataFrame({"market": ["AT", "ES", "IT", "PT"]})
    reader = SimpleNamespace(query=lambda *_: on_sale, linked_properties=(), case_page=pl.lit(None).alias("case_page"))
    cases = pl.DataFrame(
        [
            case(f"case-{number}", None, None, markets=markets)
            for number, markets in enumerate([["ES", "IT", "PT"], ["AT", "ES", "IT", "PT"], ["AT", "ES", "FR"], ["ES"]])
        ]
    )
    assert described(reader, cases)["property_name"].to_list() == [
        "markets ES, IT and PT",
        "all markets",
        "markets AT, ES and FR",
        "market ES",
    ]


def test_a_market_ends_for_itself_while_the_suppliers_case_stands():
    """The case of the supplier ends with the last of its markets, and then covers those that end on that night."""

    def over(*rows: tuple[str, str | None, int | None, str]) -> list[tuple[str, str | None]]:
        names = ["scope", "market", "property_id", "status"]
        schema = dict.fromkeys(names, pl.String) | {"property_id": pl.Int64}
        pair = {name: pl.lit(None, pl.String) for name in ("base_currency", "currency")}
        cases = pl.DataFrame(rows, schema, orient="row").with_columns(**pair, rule=pl.lit("unnamed_promotion"))
        return ended_of(cases).select("scope", "market").rows()

    of_two = ("market", "ES", None, "part_of"), ("market", "PT", None, "part_of")
    ended = ("market", "IT", None, "closed")
    assert over(("supplier", None, None, "open"), *of_two, ended) == [("market", "IT")]
    assert over(("supplier", None, None, "closed"), *of_two, ended) == [("market", "IT")]
    assert over(("supplier", None, None, "closed"), ended, ("property", "IT", 7, "closed")) == [("supplier", None)]
    # A property of a market that is no case was no part of it.
    apart = ("property", "SE", 7, "closed")
    assert over(("supplier", None, None, "open"), *of_two, apart) == [("property", "SE")]


def test_problems_that_ended_are_named_the_most_costly_first():
    ended = frame(case("case-1", "SE", 7), case("case-2", "DE", None), case("case-3", "SE", 8), case("case-4", "DE", 7))
    (point,) = ended_points(ended)
    named = ("Hotel 7, property 7, SE, DE", "DE", "Hotel 8, property 8, SE")
    first = "; ".join(f"Price struck through, no promotion named ({each})" for each in named)
    assert point.text == f"3 problems (4 cases) ended: {first}."
    (gone,) = ended_points(frame(case("case-1", "SE", 7, ended_by="gone"), case("case-2", "DE", 7)))
    assert gone.text == (
        "2 problems ended: Price struck through, no promotion named (Hotel 7, property 7, SE; the offer is gone); "
        "Price struck through, no promotion named (Hotel 7, property 7, DE)."
    )
    many = frame(*(case(f"case-{number}", "SE", number) for number in range(5)))
    assert ended_points(many)[0].text.endswith("; and 2 more problems.")
    assert ended_points(ended.clear()) == []
    (unasked,) = ended_points(frame(case("case-1", "SE", 7, ended_by="not_asked"), case("case-2", None, None)))
    assert "(Hotel 7, property 7, SE; what it is about is no longer requested)" in unasked.text


def test_a_property_without_a_name_is_called_by_its_number():
    cases = frame(case("case-1", "SE", 7, property_name=None), case("case-2", "SE", 8, property_name=None))
    named = [point.text.split(" about")[0] for point in cases_points(cases)[1:]]
    assert named == ["Call property 7", "Call property 8"]


def test_no_case_is_no_line():
    none = frame(case("case-1", "SE")).clear()
    assert calls(none).is_empty()
    assert [point.text for point in cases_points(none)] == ["No open case needs a decision."]


def test_a_price_of_the_reader_is_the_readers_to_check_and_no_call_to_the_property():
    cases = frame(
        case("case-1", "SE", 7, rule="floor_breach", rule_words="Sold below the floor"),
        case("case-2", "SE", 8, rule="market_disparity", rule_words="Differs"),
    )
    assert [point.text.split(". ")[0] for point in cases_points(cases)[1:]] == [
        "Call Hotel 8 (8) about: Differs (SE)",
        "Check your selling price of Hotel 7 (7): Sold below the floor (SE)",
    ]


def test_why_a_case_ended_is_why_its_findings_did():
    """Of a market too, and of a pair of currencies; some that were corrected make it corrected."""
    ended_by = {
        "GB": ["not_asked", "not_asked", "gone"],
        "GB EUR-GBP": ["gone"],
        "GB EUR-USD": ["outdated"],
        "GB in all": ["gone", "value"],
        "of another night": ["gone"],
    }
    flags = [(case, f"{case} {number}", why) for case, all_of in ended_by.items() for number, why in enumerate(all_of)]
    cases = pl.DataFrame({"case_id": [*ended_by]})
    with duckdb.connect(":memory:") as session:
        session.execute("CREATE SCHEMA mart; CREATE SCHEMA report")
        session.execute("CREATE TABLE mart.case_flag (case_id VARCHAR, flag_id VARCHAR, first_flagged_at INTEGER)")
        session.execute(
            "CREATE TABLE report.flag_history "
            "(flag_id VARCHAR, first_flagged_at INTEGER, resolved_sweep_id VARCHAR, ended_by VARCHAR)"
        )
        for case, flag, why in flags:
            # It was open before, too, and was corrected then.
            session.execute("INSERT INTO mart.case_flag VALUES ($1, $2, 1), ($1, $2, 3)", [case, flag])
            night = "other" if case == "of another night" else "tonight"
            session.execute(
                "INSERT INTO report.flag_history VALUES ($1, 1, 'before', 'value'), ($1, 3, $2, $3)", [flag, night, why]
            )
        ended = with_why(Reader(session, Scope()), cases, "tonight")

    assert dict(ended.rows()) == {
        "GB": "not_asked",
        "GB EUR-GBP": "gone",
        "GB EUR-USD": "outdated",
        "GB in all": None,
        "of another night": None,
    }


def test_a_problem_acknowledged_in_one_market_is_still_one_problem():
    cases = frame(case("case-1", "SE"), case("case-2", "DE", status="acknowledged"), case("case-3", "DE", 8))
    assert problems(cases) == "2 problems (3 cases)"
    assert persisting(cases).title == "2 problems persist: all high; 1 case is acknowledged or muted"
