"""A message as a card of Microsoft Teams (Adaptive Cards), which takes no plain text."""

from typing import Any, Final
from urllib.parse import urlsplit

# Of the workflows that took the place of Teams' connectors, and of what is left of these.
_TEAMS: Final = (".logic.azure.com", ".api.powerplatform.com", ".webhook.office.com")
_WEB = ("https://", "http://")


def is_of_teams(address: str) -> bool:
    """Whether a webhook leads to Microsoft Teams."""
    return (urlsplit(address).hostname or "").endswith(_TEAMS)


def card(subject: str, text: str) -> dict[str, Any]:
    """Return a message with one block for each row, and a button if its last line is an address."""
    *lines, last = text.splitlines() or [""]
    if not last.startswith(_WEB):
        lines, last = [*lines, last], ""
    blocks = [_block(subject, weight="Bolder", size="Medium"), *(_block(_linked(line)) for line in lines if line)]
    content = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
        "msteams": {"width": "Full"},
    }
    if last:
        content["actions"] = [{"type": "Action.OpenUrl", "title": "Open the report", "url": last}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": content}
    return {"type": "message", "attachments": [attachment]}


def _block(text: str, **look: str) -> dict[str, Any]:
    return {"type": "TextBlock", "text": text, "wrap": True} | look


def _linked(line: str) -> str:
    """Return the page of a row, perhaps after the market that it is about, as a link, and any other line as it is."""
    about, _, address = line.strip().rpartition(" ")
    is_page = line.startswith("  ") and address.startswith(_WEB)
    words = ", ".join(filter(None, ("See the evidence", about.rstrip(":"))))
    return f"[{words}]({address})" if is_page else line
