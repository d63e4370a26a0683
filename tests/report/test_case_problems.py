"""Problems for messages and the terminal: one for several markets, with the digest's cost and reason."""

from __future__ import annotations

import re
from datetime import date

import pytest
from case_alerts import rules_of_cases
from nights import load_night, started_at, sweep_id

from pipeline.cli.case import list_cases
from pipeline.domain.analysis import Analysis
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.notify.alerts import tell_alerts
from pipeline.notify.pages import page_addresses
from pipeline.publish import publish
from pipeline.report.case_problems import problems_of
from pipeline.report.write import write_reports
from pipeline.report.written_pages import written_case_pages

pytestmark = pytest.mark.slow

STAY = {"check_in": date(2030, 3, 1), "nights": 2, "party": "2"}
RULES = rules_of_cases()


def night(lake: Lake, number: int, prices: dict[str, int | None]) -> None:
    """Publish a night of a property with a price in each market (None: not on sale), and one that costs 100 in all."""
    cells, offers = [], []
    for at, (market, total) in enumerate(prices.items()):
        for property_id, price in ((1, total), (2, 100)):
            of = {"search_id": 1000 * property_id + at, "property_id": property_id, "market": market} | STAY
            cells.append(of | ({"offers": 1} if price else {"status": "no_offer", "code": 1023}))
            if price:
                offers.append(of | {"total": price, "currency": "EUR", "room_id": 7, "board_id": 14})
    load_night(lake, number, cell=cells, offer=offers)
    publish(lake, sweep_id(number), started_at(number), analysis=Analysis(reference_market="GB"))


def sent(lake: Lake) -> list[tuple[str, str]]:
    """Write the digest, send alerts, and return the messages."""
    write_reports(lake, ["digest"])
    messages: list[tuple[str, str]] = []
    tell_alerts(
        lake,
        RULES,
        "the digest",
        case_pages=page_addresses(lake.root / "reports", written_case_pages(lake), "https://rates.example"),
        problems=lambda ids: problems_of(lake, ids),
        block=lambda _: lambda *message: messages.append(message),
    )
    return messages


def test_a_problem_of_two_markets_is_one_line_everywhere_and_ends_for_the_reason_and_at_the_cost_of_its_page(
    tmp_path, monkeypatch, capsys
):
    lake = Lake(str(tmp_path / "lake"))
    level = {"GB": 100, "FR": 100, "US": 100, "NL": 100}
    night(lake, 0, level | {"DE": 112, "SE": 120})
    ((subject, text),) = sent(lake)
    assert subject == "nightaudit [warning] cases: 1 new (2 cases)"
    first, page = text.splitlines()[:2]
    assert first.startswith("- property 1, DE, SE: Price differs from other markets. 2 offers in 2 markets, ")
    assert "Cost: 32 EUR, found since 1 Jan 2030." in first
    assert page.startswith("  SE, 20 EUR: https://rates.example/")

    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    monkeypatch.chdir(tmp_path)
    for columns in ("80", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        list_cases(None, {}, "table", None)
        table = capsys.readouterr().out
        assert len(re.findall("case-[0-9a-f]{16}", table)) == 2
        assert table.count("32 EUR") == table.count("Price differs") == 1
        assert "are shown" not in table
        with monkeypatch.context() as changed:
            changed.setattr("pipeline.cli.case.problems_of", lambda *which: problems_of(*which) * 3)
            list_cases(2, {}, "table", None)
        assert "… only 2 of 3 problems are shown; for more, use --limit." in capsys.readouterr().out
    list_cases(None, {}, "csv", None)
    assert len(capsys.readouterr().out.splitlines()) == 3

    # The price grows before the offers are gone: the words of the first message are out of date.
    night(lake, 1, level | {"DE": 112, "SE": 140})
    assert sent(lake) == []
    night(lake, 2, level | {"DE": None, "SE": None})
    ((subject, text),) = sent(lake)
    assert subject == "nightaudit [resolved] cases: 1 resolved (2 cases)"
    first, page = text.splitlines()[:2]
    assert "Ended: the offer is gone." in first
    found = query_published(
        lake.published_file, "SELECT market, exposure_eur, case_id FROM report.finding_case ORDER BY exposure_eur DESC"
    ).fetchall()
    (_, most, case_id), _ = found
    assert page == f"  SE, {most:,.0f} EUR: https://rates.example/{sweep_id(2)}/cases/{case_id}.html"
    assert f"Cost: {sum(amount for _, amount, _ in found):,.0f} EUR" in first
    shown = (lake.root / "reports" / sweep_id(2) / "cases" / f"{case_id}.html").read_text()
    assert f"{most:,.2f} EUR" in shown or f"{most:,.0f} EUR" in shown
    assert "the offer is gone" in shown


def test_a_case_that_ended_on_an_earlier_night_keeps_its_reason(tmp_path):
    lake = Lake(str(tmp_path / "lake"))
    level = {"GB": 100, "FR": 100, "US": 100}
    for number, there in enumerate((112, None, None)):
        night(lake, number, level | {"DE": there})
    ids = query_published(lake.published_file, "SELECT case_id FROM report.finding_case").fetchall()
    (problem,) = problems_of(lake, [case_id for (case_id,) in ids] + ["case-unknown"])
    assert (problem.why_it_ended, problem.markets) == ("the offer is gone", "DE")
    assert problems_of(lake, []) == []
