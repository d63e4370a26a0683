"""Cases on a page: one line for each property and rule, however many markets it was found in."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl

from pipeline.report.cases import calls, cases_points, cases_section
from pipeline.report.ended_cases import ended_cases, ended_points


def case(case_id: str, market: str | None, property_id: int | None = 7, **said: object) -> dict[str, object]:
    row = {"case_id": case_id, "market": market, "property_id": property_id, "property_name": f"Hotel {property_id}"}
    row |= {"markets": market or "", "ended_by": "value"}
    row |= {
        "rule": "wrong_discount",
        "rule_words": "Stated discount does not match the prices",
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
    }
    return row | {"evidence": [{"flag_id": f"b-{case_id}", "finding": f"Of {market}."}]} | said


def frame(*rows: dict[str, object]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema_overrides={"property_id": pl.Int64, "market": pl.String})


def test_one_problem_in_several_markets_is_one_line_that_names_them_and_their_cases():
    cases = frame(
        case("case-1", "SE", highest_pct=9.0),
        case("case-2", "DE"),
        case("case-3", "GB", rule="fx"),
        case("case-4", "US", 8),
    )
    found = calls(cases).rows(named=True)
    assert [(row["property_id"], row["rule"], row["market"], row["case_id"]) for row in found] == [
        (7, "wrong_discount", "DE, SE", "case-1 case-2"),
        (7, "fx", "GB", "case-3"),
        (8, "wrong_discount", "US", "case-4"),
    ]
    assert found[0]["finding"] == "4 offers in 2 markets, differences of 4.0% to 9.0%. Of SE."
    assert found[0]["flags"] == 4
    assert found[0]["pages"] == [
        {"text": "DE", "href": "cases/case-2.html"},
        {"text": "SE", "href": "cases/case-1.html"},
    ]
    assert found[1]["finding"] == "2 offers for 1 stay, +4.0%. Of GB."


def test_what_was_acknowledged_is_no_line_of_what_waits():
    cases = frame(case("case-1", "SE"), case("case-2", "DE", status="acknowledged"))
    assert [row["case_id"] for row in calls(cases).rows(named=True)] == ["case-1", "case-2"]


def test_cases_of_markets_and_of_the_supplier_stay_by_themselves():
    cases = frame(case("case-1", "SE", None), case("case-2", "DE", None), case("case-3", None, None))
    assert [row["case_id"] for row in calls(cases).rows(named=True)] == ["case-1", "case-2", "case-3"]


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
    assert first == "5 problems (10 cases) at 5 properties need a decision; 0 are new."
    assert [text.split(" about")[0] for text in named] == ["Call Hotel 0", "Call Hotel 1", "Call Hotel 2"]
    section = cases_section(cases)
    assert (section.figures.height, section.table.height) == (10, 5)


def test_the_summary_names_the_most_severe_first_and_new_ones_before_others_of_that_severity():
    """The table begins with new ones; but those who make only three calls, make the most important ones."""
    cases = frame(
        case("case-1", "SE", 7, status="new", severity="low"),
        case("case-2", "SE", 8, status="new", severity="high"),
        case("case-3", "SE", 9, severity="high"),
        case("case-4", "SE", 10, severity="medium"),
    )
    points = cases_points(cases)
    assert [point.text.split(" about")[0] for point in points[1:]] == ["Call Hotel 8", "Call Hotel 9", "Call Hotel 10"]
    assert cases_section(cases).table["property_id"].to_list() == [7, 8, 9, 10]


def test_whom_to_call_is_in_bold_and_the_reason_is_not():
    cases = frame(
        case("case-1", "SE", 7),
        case("case-2", "SE", None, property_name="market SE"),
        case("case-3", "SE", 8, rule="floor_breach"),
    )
    points = cases_points(cases)[1:]
    assert [point.bold for point in points] == [
        "Call Hotel 7",
        "Call the supplier about market SE",
        "Check your selling price of Hotel 8",
    ]
    assert all(point.text.startswith(point.bold) for point in points)


def test_of_a_market_that_sells_nothing_no_price_is_worth_a_call():
    cases = frame(
        case("case-1", "SE", 7), case("case-2", "DE", 8), case("case-3", "SE", None, property_name="market SE")
    )
    first, *named = cases_points(cases, ["SE"])
    assert first.text.startswith("3 problems")
    assert [point.bold for point in named] == ["Call Hotel 8"]
    assert len(cases_points(cases, ["SE", "DE"])) == 1


def test_what_may_be_no_problem_is_checked_before_a_call():
    quiet = "property_gone_quiet"
    cases = frame(
        case("case-1", None, 7, rule=quiet, severity="high"), case("case-2", None, 8, rule=quiet, severity="medium")
    )
    assert [point.bold for point in cases_points(cases)[1:]] == ["Call Hotel 7", "Check Hotel 8 before you call"]


def test_problems_are_counted_by_their_worst_severity_and_not_once_a_market():
    cases = frame(case("case-1", "SE"), case("case-2", "DE"), case("case-3", "SE", 8, severity="low"))
    assert cases_section(cases).title == "2 problems (3 cases) at 2 properties need a decision: 1 high, 1 low"


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
    assert cases_points(cases)[1].text == "Call Hotel 7 about: Quiet. 2 findings in 2 markets (DE, SE). No offer."


def test_about_a_market_the_supplier_is_called_and_about_a_property_the_property():
    cases = frame(
        case("case-1", "SE", None, property_name="market SE"),
        case("case-2", None, None, property_name="all markets"),
        case("case-3", "SE", 7),
    )
    assert [point.text.split(". ")[0] for point in cases_points(cases)[1:]] == [
        "Call the supplier about market SE: Stated discount does not match the prices",
        "Call the supplier about all markets: Stated discount does not match the prices",
        "Call Hotel 7 about: Stated discount does not match the prices (SE)",
    ]


def test_cases_that_ended_are_named_wider_ones_first():
    ended = frame(case("case-1", "SE", 7), case("case-2", "DE", None), case("case-3", "SE", 8), case("case-4", "DE", 7))
    (point,) = ended_points(ended)
    named = ("DE", "Hotel 7, SE, DE", "Hotel 8, SE")
    first = "; ".join(f"Stated discount does not match the prices ({each})" for each in named)
    assert point.text == f"3 problems (4 cases) ended: {first}."
    (gone,) = ended_points(frame(case("case-1", "SE", 7, ended_by="gone"), case("case-2", "DE", 7)))
    assert gone.text == (
        "2 problems ended: Stated discount does not match the prices (Hotel 7, SE; no longer on sale); "
        "Stated discount does not match the prices (Hotel 7, DE)."
    )
    many = frame(*(case(f"case-{number}", "SE", number) for number in range(5)))
    assert ended_points(many)[0].text.endswith("; and 2 more problems.")
    assert ended_points(ended.clear()) == []
    (unasked,) = ended_points(frame(case("case-1", "SE", 7, ended_by="not_asked"), case("case-2", None, None)))
    assert "(Hotel 7, SE; its currency is no longer requested)" in unasked.text


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
        "Check your selling price of Hotel 7: Sold below the floor (SE)",
        "Call Hotel 8 about: Differs (SE)",
    ]


def test_why_a_case_ended_is_why_its_findings_did():
    """Of a market or of the supplier, too; some that were corrected make it corrected."""
    flags = pl.DataFrame(
        {
            "rule": ["fx", "fx", "fx", "gap", "gap", "quiet", "quiet", "quiet"],
            "property_id": [7, 8, 9, 7, 8, 7, 7, 8],
            "market": ["GB", "GB", "GB", "GB", "GB", "GB", "SE", "GB"],
            "ended_by": ["not_asked", "not_asked", "gone", "gone", "value", "gone", "gone", "value"],
        }
    )
    ended = pl.DataFrame(
        {
            "rule": ["fx", "fx", "gap", "gap", "quiet"],
            "scope": ["market", "supplier", "market", "property", "property"],
            "property_id": [None, None, None, 7, 7],
            "market": ["GB", None, "GB", "GB", None],
        }
    ).with_columns(status=pl.lit("closed"), markets=pl.concat_list(pl.lit("GB")), amounts=pl.lit(""))

    def reasons(*scopes: str) -> dict[tuple[str, str], str | None]:
        of_night = ended.filter(pl.col("scope").is_in(scopes))
        reader = SimpleNamespace(cases_of_night=of_night, night={"sweep_id": "s"}, query=lambda *_: flags)
        return {(row["rule"], row["scope"]): row["ended_by"] for row in ended_cases(reader).rows(named=True)}

    assert reasons("market") == {("fx", "market"): "not_asked", ("gap", "market"): None}
    assert reasons("supplier") == {("fx", "supplier"): "not_asked"}
    assert reasons("property") == {("gap", "property"): "gone", ("quiet", "property"): "gone"}
