"""What is new: each row once, and once more when it is resolved."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.problem import Problem
from pipeline.notify.alert_rules import Rule
from pipeline.notify.match import LISTED, Line, messages, news
from pipeline.notify.problem_lines import problem_lines

RULE = Rule(name="floors", relation="report.flag", who=("me",))
KEYS = st.sets(st.sampled_from("abcdefgh"))


def rows(keys):
    return [{"flag_id": key, "finding": f"finding {key}"} for key in sorted(keys)]


@given(st.lists(KEYS, max_size=8))
def test_over_any_nights_each_row_is_reported_when_it_begins_and_when_it_ends(nights):
    reported, open_before = {}, set()
    for keys in nights:
        found = news(RULE, rows(keys), reported)
        assert set(found.new) == keys - open_before
        assert set(found.resolved) == open_before - keys
        assert found.still_open == len(keys & open_before)
        reported = {key: words for key, words in reported.items() if key not in found.resolved} | found.new
        open_before = keys
    assert set(reported) == open_before


def test_fewer_rows_than_the_least_are_no_news_and_end_what_was_reported():
    rule = RULE.model_copy(update={"least": 3})
    assert not news(rule, rows("ab"), {})
    assert set(news(rule, rows("ab"), {"a": "x"}).resolved) == {"a"}


def test_of_rows_with_one_key_the_message_has_the_first_which_is_the_most_severe():
    rule = RULE.model_copy(update={"key": ("property_id",)})
    found = [{"property_id": 7, "finding": f"It is {size}% off."} for size in (61, 36, 2)]
    assert news(rule, found, {}).new == {"7": "property 7: It is 61% off. (7)"}


def test_a_row_without_a_finding_shows_what_the_condition_is_about():
    row = {
        "sweep_id": "s-1",
        "started_at": datetime(2030, 1, 6, 2, tzinfo=UTC),
        "spec": "hotels\nof <!here>",
        "planned": 120,
        "failed": 12,
        "share": 0.1,
        "parts": [1],
        "state": None,
    }
    rule = Rule(name="failures", relation="mart.sweep", key=("sweep_id",), who=("me",), where="Failed > 0.02 * planned")
    assert news(rule, [row], {}).new == {"s-1": "s-1: planned 120, failed 12"}
    every = rule.model_copy(update={"where": "true"})
    (words,) = news(every, [row], {}).new.values()
    assert words.startswith("s-1: started at 2030-01-06 02:00, spec hotels of ")
    assert words.endswith("planned 120, failed 12, share 0.1")
    assert "<!here>" not in words


def test_what_a_rule_no_longer_selects_is_not_resolved_while_it_is_open():
    sent = {"a": "acknowledged", "b": "ended", "c": "selected"}
    found = news(RULE, rows("c"), sent, {"a", "c"})
    assert (set(found.new), set(found.resolved), found.still_open) == (set(), {"b"}, 1)


def test_one_message_says_what_is_new_and_one_what_is_over():
    found = news(RULE, rows("bcd"), {"a": "finding a", "b": "finding b"})
    new, over = messages(RULE, found, "see the page")
    assert new[0] == "nightaudit [warning] floors: 2 new"
    assert "- finding c (c)" in new[1]
    assert "1 reported before are still open." in new[1]
    assert over[0] == "nightaudit [resolved] floors: 1 resolved"
    assert "3 still open." in over[1]


def test_a_message_says_where_it_was_found():
    row = {"flag_id": "x-1", "finding": "Sold too low.", "property_id": 7, "market": "GB", "check_in": date(2030, 3, 1)}
    ((_, text),) = messages(RULE, news(RULE, [row], {}), "see the page")
    assert "- property 7, GB, check-in 2030-03-01: Sold too low. (x-1)" in text


def test_a_message_names_the_property_where_its_name_is_known():
    row = {"flag_id": "x-1", "finding": "Sold too low.", "property_id": 7, "property_name": "Hotel Astoria"}
    ((_, text),) = messages(RULE, news(RULE, [row], {}), "see the page")
    assert "- property 7 (Hotel Astoria): Sold too low. (x-1)" in text


def test_a_message_of_a_case_says_what_is_wrong_what_it_costs_and_since_when():
    row = {"case_id": "case-1", "rule": "wrong_discount", "finding": "2 offers.", "property_id": 7, "amounts": []}
    row |= {"exposure_eur": Decimal("1234.5"), "opened_at": datetime(2026, 10, 14, 2, tzinfo=UTC)}
    rule = RULE.model_copy(update={"relation": "report.finding_case", "key": ("case_id",)})
    ((_, text),) = messages(rule, news(rule, [row], {}), "see the page")
    problem = "Stated discount does not match the prices"
    assert f"- property 7: {problem}. 2 offers. Cost: 1,234 EUR, found since 14 Oct 2026. (case-1)" in text
    ((_, text),) = messages(rule, news(rule, [row | {"exposure_eur": Decimal(0)}], {}), "see the page")
    assert "2 offers. Found since 14 Oct 2026. (case-1)" in text


def test_a_message_links_the_page_of_a_case_below_its_finding():
    row = {"flag_id": "x-1", "finding": "Sold too low.", "property_id": 7, "case_page": "/lake/reports/cases/c-1.html"}
    ((_, text),) = messages(RULE, news(RULE, [row], {}), "see the page")
    assert "- property 7: Sold too low. (x-1)\n  /lake/reports/cases/c-1.html\n" in text


@pytest.mark.parametrize("name", ["flag_id", "finding", "property_name", "market"])
def test_what_a_supplier_wrote_forges_no_line_and_no_control_and_does_not_fill_the_message(name):
    row = {"flag_id": "x-1", "finding": "Sold too low.", "property_id": 7, "property_name": "A", "market": "GB"}
    hostile = "a\r\n- property 8: forged\x1b[2J\u202e\u2028\v\x85" + "b" * 1_000_000
    found = news(RULE, [row | {name: hostile}], {})
    ((_, text),) = messages(RULE, found, "see the page")
    assert [line for line in text.splitlines() if line != "see the page"] == [text.partition("\n")[0]]
    assert text.replace("\n", "").isprintable()
    assert len(text) < 4_000
    # What a row is known by is not touched.
    assert list(found.new) == [hostile if name == "flag_id" else "x-1"]


@pytest.mark.parametrize("name", ["flag_id", "finding", "property_name", "market"])
@pytest.mark.parametrize(
    "markup",
    ["<!channel>", "<!here|x>", "<@U024BE7LH>", "<https://attacker.example|The report>", "@channel", "@all",
     "<at>x</at>", "[The report](https://attacker.example)", "![x](https://attacker.example/x.png)", "`x`"],
)  # fmt: skip
def test_what_a_supplier_wrote_calls_no_one_in_a_chat_and_hides_no_address_behind_words(name, markup):
    row = {"flag_id": "x-1", "finding": "Sold too low.", "property_id": 7, "property_name": "A", "market": "GB"}
    ((_, text),) = messages(RULE, news(RULE, [row | {name: f"Hotel {markup}"}], {}), "see the page")
    assert "Hotel" in text
    assert not set(text) & set("<>[]@`")


@pytest.mark.parametrize("name", ["finding", "property_name", "market", "flag_id"])
@pytest.mark.parametrize(
    "address",
    ["https://attacker.example/x", "HTTP://attacker.example", "ftp://10.0.0.1/x", "www.attacker.example",
     "attacker.example/pay?x=1", "book.at.attacker.travel", "атака.рф", "a1.co"],
)  # fmt: skip
def test_a_web_address_that_a_supplier_wrote_is_no_link_in_a_chat(name, address):
    row = {"flag_id": "x-1", "finding": "Sold at 66.03 EUR.", "property_id": 7, "property_name": "A", "market": "GB"}
    ((_, text),) = messages(RULE, news(RULE, [row | {name: f"Hotel {address} St. Regis"}], {}), "see the page")
    assert "://" not in text
    assert not re.search(r"\w\.[^\W\d_]", text)
    assert "St. Regis" in text
    assert name == "finding" or "66.03 EUR." in text


def test_a_long_list_is_cut_and_counted():
    ((_, text),) = messages(RULE, news(RULE, rows(str(n) for n in range(LISTED + 5)), {}), "see the page")
    assert text.count("- ") == LISTED + 1
    assert "and 5 more" in text


LAST_NIGHT = datetime(2026, 10, 14, 2, tzinfo=UTC)
CASES = RULE.model_copy(update={"name": "cases", "relation": "report.finding_case", "key": ("case_id",)})


@pytest.mark.parametrize(
    "back",
    [{"muted_until": date(2030, 1, 4)}, {"finding": "DE pays 9% more. It was acknowledged at 4.0% with 3 stays."}],
)
def test_a_case_that_needs_a_decision_again_is_sent_once_more(back):
    rule = RULE.model_copy(update={"relation": "report.finding_case", "key": ("case_id",)})
    opened_at, tonight = datetime(2030, 1, 2, 2, tzinfo=UTC), datetime(2030, 1, 5, 2, tzinfo=UTC)
    row = {"case_id": "case-1", "status": "open", "finding": "DE pays 9% more.", "exposure_eur": None}
    row |= {"amounts": [], "opened_at": opened_at}
    sent = news(rule, [row], {}).new
    assert not news(rule, [row], sent)
    again = news(rule, [row | back], sent, began_at=tonight)
    assert (set(again.new), again.before) == ({"case-1"}, {"case-1"})
    assert not news(rule, [row | back], again.new)
    # A price that moved asks for no other decision.
    assert not news(rule, [row | {"finding": "DE pays 12% more."}], sent)
    # Before it opened, it was another case; and someone has taken on what is acknowledged.
    assert not news(rule, [row | {"muted_until": date(2030, 1, 1)}], sent)
    assert not news(rule, [row | back | {"status": "acknowledged"}], sent)


def test_what_was_open_before_tonight_is_no_news_of_tonight():
    """A receiver who is added to a rule is sent all that is open, and can see what of it is new."""
    earlier = datetime(2026, 10, 13, 2, tzinfo=UTC)
    found = [{"flag_id": f"old-{n}", "finding": "It stood.", "first_flagged_at": earlier} for n in range(12)]
    found += [{"flag_id": "new", "finding": "It opened.", "first_flagged_at": LAST_NIGHT}]
    ((subject, text),) = messages(RULE, news(RULE, found, {}, began_at=LAST_NIGHT), "see the page")
    assert subject == "nightaudit [warning] floors: 1 new, 12 open before tonight"
    assert text.startswith("- It opened. (new)\n- It stood.")
    ((subject, _),) = messages(RULE, news(RULE, found[:2], {}, began_at=LAST_NIGHT), "see the page")
    assert subject == "nightaudit [warning] floors: 2 open before tonight"
    ((subject, _),) = messages(RULE, news(RULE, [{"flag_id": "x"}], {}, began_at=LAST_NIGHT), "see the page")
    assert subject == "nightaudit [warning] floors: 1 new"


def test_the_cases_of_a_problem_are_one_line_and_a_row_without_a_problem_keeps_its_own():
    found = news(CASES, [{"case_id": name} for name in "abc"], {"d": "what was sent of d", "e": "what was sent of e"})

    def lines(keys):
        return [Line([key for key in keys if key in "abd"], "one problem")]

    new, over = messages(CASES, found, "see the page", lines)
    assert new == ("nightaudit [warning] cases: 2 new (3 cases)", "- one problem\n- c\nsee the page")
    assert over[0] == "nightaudit [resolved] cases: 2 resolved"
    assert over[1].startswith("- one problem\n- what was sent of e\n")


PROBLEM = {
    "cases": {"case-a": "DE, 60 EUR", "case-b": "SE, 30 EUR"},
    "status": "closed",
    "title": "Price differs",
    "whom": "property 7 (Hotel Astoria)",
    "markets": "DE, SE",
    "finding": "8 offers.",
    "cost": "90 EUR",
    "since": date(2026, 10, 14),
    "why_it_ended": "the offer is gone",
}


def lines_of(pages=(), **changed):
    (line,) = problem_lines(lambda _: [Problem(**(PROBLEM | changed))], dict(pages), ("case-a", "case-b"))
    return line.words


def test_a_line_of_a_problem_names_its_markets_once_and_says_what_its_page_is_about():
    said = "- property 7 (Hotel Astoria), DE, SE: Price differs. 8 offers. Cost: 90 EUR, found since 14 Oct 2026."[2:]
    assert lines_of() == f"{said} Ended: the offer is gone. (case-a case-b)"
    assert lines_of(why_it_ended="") == f"{said} (case-a case-b)"
    assert lines_of({"case-b": "https://x/b.html"}).splitlines()[1] == "  SE, 30 EUR: https://x/b.html"
    of_one = lines_of({"case-a": "https://x/a.html"}, cases={"case-a": "DE, 60 EUR"})
    assert of_one.splitlines()[1] == "  https://x/a.html"
    is_back = lines_of(status="back", why_it_ended="")
    assert is_back == f"{said} It is back: it had ended before. (case-a case-b)"
    many = {f"case-{number}": "DE" for number in range(9)}
    assert lines_of(cases=many).endswith("(case-0 case-1 case-2 case-3 case-4 and 4 more)")


@pytest.mark.parametrize("name", ["whom", "finding"])
def test_what_a_supplier_wrote_forges_no_line_of_a_problem(name):
    hostile = "a\n- property 8: forged <!channel> [x](https://attacker.example) \u202e" + "b" * 100_000
    text = lines_of(**{name: hostile})
    assert "\n" not in text
    assert text.isprintable()
    assert not set(text) & set("<>[]@`")
    assert "://" not in text
    assert len(text) < 2_000
