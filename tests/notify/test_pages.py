"""Links that the readers of a message can open, and the card that Teams takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_night import receiving

from pipeline.notify import chat_card
from pipeline.notify.chat_card import card, is_of_teams
from pipeline.notify.pages import page_address
from pipeline.notify.ways import webhook

REPORTS = Path("/srv/lake/reports")
PAGE = REPORTS / "20300101T020000Z-000000" / "cases" / "case-1 a.html"
TEXT = """- property 7, DE: dearer by 12%. (case-1)
  https://rates.example/one/cases/case-1.html
- property 8, SE: gone quiet. (case-2)
- and 3 more
2 reported before are still open.
https://rates.example/one/index.html"""


def test_a_page_is_named_by_its_public_address_or_by_its_path():
    public = page_address(REPORTS, PAGE, "https://rates.example/nightly")
    assert public == "https://rates.example/nightly/20300101T020000Z-000000/cases/case-1%20a.html"
    assert page_address(REPORTS, PAGE, None) == str(PAGE)


@pytest.mark.parametrize(
    ("address", "is_it"),
    [
        ("https://prod-12.westeurope.logic.azure.com:443/workflows/a/triggers/manual/paths/invoke?sig=b", True),
        ("https://default1.23.environment.api.powerplatform.com/powerautomate/workflows/a", True),
        ("https://hotel.webhook.office.com/webhookb2/a", True),
        ("https://hooks.slack.com/services/a", False),
        ("https://logic.azure.com.example/a", False),
        ("https://example.com/.logic.azure.com", False),
    ],
)
def test_teams_is_known_by_its_hosts(address, is_it):
    assert is_of_teams(address) == is_it


def test_a_card_has_a_block_for_each_row_links_and_a_button():
    (attachment,) = card("nightaudit [warning] cases: 5 new", TEXT)["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    content = attachment["content"]
    assert [block["text"] for block in content["body"]] == [
        "nightaudit [warning] cases: 5 new",
        "- property 7, DE: dearer by 12%. (case-1)",
        "[See the evidence](https://rates.example/one/cases/case-1.html)",
        "- property 8, SE: gone quiet. (case-2)",
        "- and 3 more",
        "2 reported before are still open.",
    ]
    assert all(block["wrap"] for block in content["body"])
    assert content["actions"] == [
        {"type": "Action.OpenUrl", "title": "Open the report", "url": "https://rates.example/one/index.html"}
    ]


def test_without_a_public_address_a_card_names_the_file_and_has_no_button():
    (attachment,) = card("a subject", f"- a row\n  {PAGE}\n{REPORTS}/index.html")["attachments"]
    assert [block["text"] for block in attachment["content"]["body"]] == [
        "a subject",
        "- a row",
        f"  {PAGE}",
        f"{REPORTS}/index.html",
    ]
    assert "actions" not in attachment["content"]


def test_the_card_says_which_market_a_page_is_about():
    (attachment,) = card("a subject", "- a row\n  SE, 20 EUR: https://rates.example/case-1.html")["attachments"]
    texts = [block["text"] for block in attachment["content"]["body"]]
    assert texts[-1] == "[See the evidence, SE, 20 EUR](https://rates.example/case-1.html)"


def test_teams_gets_the_card_and_others_the_text(monkeypatch):
    with receiving() as (address, got):
        webhook(address)("a subject", TEXT)
        monkeypatch.setattr(chat_card, "_TEAMS", ("127.0.0.1",))
        webhook(address)("a subject", TEXT)
    assert got == [{"subject": "a subject", "text": f"a subject\n{TEXT}"}, card("a subject", TEXT)]
