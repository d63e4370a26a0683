"""What is new, still open and resolved: a rule's rows against those sent before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.domain.texts import printable
from pipeline.notify.alert_rules import Rule

# Rows that a message lists; it says how many there are.
LISTED = 10

# Characters of a text in a message.
_LONGEST = 500

# What says where a finding was made, and the words before it.
_PLACE = {"property_id": "property ", "market": "", "check_in": "check-in "}

# Under which a row carries the name of its property, and where the page of its case lies, where there are any.
PROPERTY_NAME, CASE_PAGE = "property_name", "case_page"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class News:
    """Keys and words of the rows that a receiver has not received yet, and of those that are resolved."""

    new: Mapping[str, str]
    over: Mapping[str, str]
    standing: int

    def __bool__(self) -> bool:
        return bool(self.new or self.over)


def key_of(rule: Rule, row: Row) -> str:
    """Return what a row is known by from night to night."""
    return " | ".join(str(row[name]) for name in rule.key)


def words_of(rule: Rule, row: Row) -> str:
    """Return a row in words: where it was found and its finding, where it has one, its key, and its page."""
    page = row.get(CASE_PAGE)
    return f"{_words(rule, row)}\n  {page}" if page else _words(rule, row)


def _words(rule: Rule, row: Row) -> str:
    told = _in_a_line(row.get("finding") or "")
    key = _in_a_line(key_of(rule, row))
    if not told:
        return key
    place = ", ".join(f"{word}{_named(row, name)}" for name, word in _PLACE.items() if row.get(name) is not None)
    return f"{place}: {told} ({key})" if place else f"{told} ({key})"


def _named(row: Row, column: str) -> str:
    name = row.get(PROPERTY_NAME) if column == "property_id" else None
    place = _in_a_line(str(row[column]))
    return f"{place} ({_in_a_line(name)})" if name else place


def _in_a_line(text: str) -> str:
    """Return a text that may be the supplier's: one that begins no line of a message, and does not fill it."""
    line = printable(" ".join(text[: 2 * _LONGEST].split()))
    return line if len(line) <= _LONGEST and len(text) <= 2 * _LONGEST else f"{line[:_LONGEST]}…"


def news(rule: Rule, rows: Sequence[Row], told: Mapping[str, str]) -> News:
    """Return what has changed for a receiver who was sent `told`.

    With fewer rows than the rule's least there is no news, and what was sent is resolved.
    """
    now = {key_of(rule, row): words_of(rule, row) for row in rows} if len(rows) >= rule.least else {}
    new = {key: words for key, words in now.items() if key not in told}
    over = {key: words for key, words in told.items() if key not in now}
    return News(new, over, len(now) - len(new))


def messages(rule: Rule, found: News, where: str) -> list[tuple[str, str]]:
    """Return subject and text of at most two messages: of new rows, and of resolved ones."""
    written = []
    if found.new:
        subject = f"nightaudit [{rule.severity}] {rule.name}: {len(found.new):,} new"
        standing = f"\n{found.standing:,} reported before are still open." if found.standing else ""
        written.append((subject, f"{_listed(found.new)}{standing}\n{where}"))
    if found.over:
        subject = f"nightaudit [resolved] {rule.name}: {len(found.over):,} resolved"
        left = found.standing + len(found.new)
        written.append((subject, f"{_listed(found.over)}\n{left:,} still open.\n{where}"))
    return written


def _listed(rows: Mapping[str, str]) -> str:
    lines = [f"- {words}" for words in list(rows.values())[:LISTED]]
    if len(rows) > LISTED:
        lines.append(f"- and {len(rows) - LISTED:,} more")
    return "\n".join(lines)
