"""What is new, still open and resolved: a rule's rows against those sent before."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from pipeline.domain.amounts import cost_said
from pipeline.domain.texts import in_a_chat
from pipeline.lake.relations import finding_rules
from pipeline.notify.alert_rules import Rule

# Rows that a message lists; it says how many there are.
LISTED = 10

# Characters of a text in a message.
_LONGEST = 500

# The columns of a finding's place, and the words before them.
_PLACE = {"property_id": "property ", "market": "", "check_in": "check-in "}

# Keys of a row for the name of its property and the page of its case.
PROPERTY_NAME, CASE_PAGE = "property_name", "case_page"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class News:
    """Keys and words of the rows that are new to a receiver, and of those that are resolved."""

    new: Mapping[str, str]
    resolved: Mapping[str, str]
    still_open: int

    def __bool__(self) -> bool:
        return bool(self.new or self.resolved)


def key_of(rule: Rule, row: Row) -> str:
    """Return the text that identifies a row from night to night."""
    return " | ".join(str(row[name]) for name in rule.key)


def words_of(rule: Rule, row: Row) -> str:
    """Return a row in words: its place, problem and finding, if it has one, its key, and its page."""
    words = _in_a_line(key_of(rule, row))
    if finding := _in_a_line(row.get("finding") or ""):
        finding = f"{_problem(row)}{finding}{_cost_and_since(row)}"
        place = ", ".join(f"{word}{_named(row, name)}" for name, word in _PLACE.items() if row.get(name) is not None)
        words = f"{place}: {finding} ({words})" if place else f"{finding} ({words})"
    return with_page(words, row.get(CASE_PAGE))


def _problem(row: Row) -> str:
    found = finding_rules().get(row.get("rule") or "")
    return f"{found.title}. " if found else ""


def _cost_and_since(row: Row) -> str:
    """Return what a case costs and since when it is open; nothing of other rows."""
    # Files of earlier versions lack the time at which a case opened.
    if "exposure_eur" not in row or (since := row.get("opened_at") or row.get("first_seen_at")) is None:
        return ""
    cost = cost_said(row["exposure_eur"], row.get("amounts"))
    return f" {f'Cost: {cost}, found' if cost else 'Found'} since {since:%-d %b %Y}."


def with_page(words: str, page: str | None) -> str:
    """Return the words of a row with its page below, in place of another one; without a page, as they are."""
    first, _, _ = words.partition("\n")
    return f"{first}\n  {page}" if page else words


def _named(row: Row, column: str) -> str:
    name = row.get(PROPERTY_NAME) if column == "property_id" else None
    place = _in_a_line(str(row[column]))
    return f"{place} ({_in_a_line(name)})" if name else place


def _in_a_line(text: str) -> str:
    """Return a text that may be the supplier's on one line and cut, so that it cannot pose as part of the message."""
    line = in_a_chat(" ".join(text[: 2 * _LONGEST].split()))
    return line if len(line) <= _LONGEST and len(text) <= 2 * _LONGEST else f"{line[:_LONGEST]}…"


def news(rule: Rule, rows: Sequence[Row], sent: Mapping[str, str], still_open: Set[str] = frozenset()) -> News:
    """Return what has changed for a receiver since `sent`.

    With fewer rows than the rule's `least`, nothing is new, and everything sent is resolved. Keys in `still_open` are
    not resolved, although the rule no longer selects their rows.
    """
    now = {key_of(rule, row): words_of(rule, row) for row in rows} if len(rows) >= rule.least else {}
    new = {key: words for key, words in now.items() if key not in sent}
    resolved = {key: words for key, words in sent.items() if key not in now and key not in still_open}
    return News(new, resolved, len(now) - len(new))


def messages(rule: Rule, found: News, where: str) -> list[tuple[str, str]]:
    """Return subject and text of at most two messages: of new rows, and of resolved ones."""
    written = []
    if found.new:
        subject = f"nightaudit [{rule.severity}] {rule.name}: {len(found.new):,} new"
        others = f"\n{found.still_open:,} reported before are still open." if found.still_open else ""
        written.append((subject, f"{_listed(found.new)}{others}\n{where}"))
    if found.resolved:
        subject = f"nightaudit [resolved] {rule.name}: {len(found.resolved):,} resolved"
        left = found.still_open + len(found.new)
        written.append((subject, f"{_listed(found.resolved)}\n{left:,} still open.\n{where}"))
    return written


def _listed(rows: Mapping[str, str]) -> str:
    lines = [f"- {words}" for words in list(rows.values())[:LISTED]]
    if len(rows) > LISTED:
        lines.append(f"- and {len(rows) - LISTED:,} more")
    return "\n".join(lines)
