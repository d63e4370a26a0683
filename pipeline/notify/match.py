"""What is new, still open and resolved: a rule's rows against those sent before."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipeline.domain.quantities import cost_said
from pipeline.domain.texts import in_a_chat
from pipeline.lake.relations import finding_rules
from pipeline.notify.alert_rules import Rule

# Rows that a message lists; it says how many there are.
LISTED = 10

# Values of a row without a finding that a message shows if the rule's condition names none.
_MOST_COLUMNS = 6

# Characters of a text in a message.
_LONGEST = 500

# The columns of a finding's place, and the words before them.
_PLACE = {"property_id": "property ", "market": "", "check_in": "check-in "}

# Statuses of a case that needs a decision.
_TO_DECIDE = ("new", "open")

# What a finding says about a case that has grown since someone acknowledged it.
_GROWN = " It was acknowledged"

# Keys of a row for the name of its property and the page of its case.
PROPERTY_NAME, CASE_PAGE = "property_name", "case_page"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class News:
    """Keys and words of the rows that are new to a receiver, and of those that are resolved.

    `before` are the keys of the new ones that were open before the last night.
    """

    new: Mapping[str, str]
    resolved: Mapping[str, str]
    still_open: int
    before: Set[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.new or self.resolved)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a message: its words, and the keys of the rows that it is about."""

    keys: Collection[str]
    words: str


# Returns lines about some rows, each about one or several of them; the other rows have a line each.
Lines = Callable[[tuple[str, ...]], Sequence[Line]]


def key_of(rule: Rule, row: Row) -> str:
    """Return the text that identifies a row from night to night."""
    return " | ".join(str(row[name]) for name in rule.key)


def words_of(rule: Rule, row: Row) -> str:
    """Return a row in words: its place, problem, finding, key and page; without a finding, its key and other values."""
    words = in_a_line(key_of(rule, row))
    if finding := in_a_line(row.get("finding") or ""):
        finding = f"{_problem(row)}{finding}{_cost_and_since(row)}{_mute_over(row)}"
        place = ", ".join(f"{word}{_named(row, name)}" for name, word in _PLACE.items() if row.get(name) is not None)
        words = f"{place}: {finding} ({words})" if place else f"{finding} ({words})"
    elif others := in_a_line(_others(rule, row)):
        words = f"{words}: {others}"
    return with_page(words, row.get(CASE_PAGE))


def _others(rule: Rule, row: Row) -> str:
    """Return the values that the rule's condition is about; if it names no column, the first ones."""
    asked = set(re.findall(r"\w+", rule.where.lower()))
    said = {name: _value(value) for name, value in row.items() if name not in {*rule.key, CASE_PAGE}}
    known = {name: value for name, value in said.items() if value}
    shown = [name for name in known if name.lower() in asked] or list(known)[:_MOST_COLUMNS]
    return ", ".join(f"{name.replace('_', ' ')} {known[name]}" for name in shown)


def _value(value: object) -> str:
    """Return a value of a message; '' if there is none, or if it has parts."""
    if value is None or isinstance(value, list | tuple | dict):
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


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


def _mute_over(row: Row) -> str:
    """Return until when a case was muted, if it was since it opened and now needs a decision; else nothing."""
    until, opened_at = row.get("muted_until"), row.get("opened_at")
    if until is None or opened_at is None or row.get("status") not in _TO_DECIDE or until < opened_at.date():
        return ""
    return f" Muted until {until:%-d %b %Y}."


def _is_back(row: Row, sent: str) -> bool:
    """Whether a case that was sent as `sent` needs a decision again: its mute has ended, or it has grown since.

    What says so is part of the words that are sent then, so that it is sent once.
    """
    finding = in_a_line(row.get("finding") or "")
    _, grown, since = finding.rpartition(_GROWN)
    # What was cut may end anywhere.
    has_grown = grown and row.get("status") in _TO_DECIDE and not finding.endswith("…")
    signs = [_mute_over(row), f"{grown}{since}" if has_grown else ""]
    return not all(sign in sent for sign in signs if sign)


def with_page(words: str, page: str | None) -> str:
    """Return the words of a row with its page below, in place of another one; without a page, as they are."""
    first, _, _ = words.partition("\n")
    return f"{first}\n  {page}" if page else words


def _named(row: Row, column: str) -> str:
    name = row.get(PROPERTY_NAME) if column == "property_id" else None
    place = in_a_line(str(row[column]))
    return f"{place} ({in_a_line(name)})" if name else place


def in_a_line(text: str) -> str:
    """Return a text that may be the supplier's on one line and cut, so that it cannot pose as part of the message."""
    line = in_a_chat(" ".join(text[: 2 * _LONGEST].split()))
    return line if len(line) <= _LONGEST and len(text) <= 2 * _LONGEST else f"{line[:_LONGEST]}…"


def news(
    rule: Rule,
    rows: Sequence[Row],
    sent: Mapping[str, str],
    still_open: Set[str] = frozenset(),
    began_at: datetime | None = None,
) -> News:
    """Return what has changed for a receiver since `sent`. A case that needs a decision again is new once more.

    With fewer rows than the rule's `least`, nothing is new, and everything sent is resolved. Keys in `still_open` are
    not resolved, although the rule no longer selects their rows. `began_at` is the start of the last sweep.
    """
    now: dict[str, Row] = {}
    for row in rows if len(rows) >= rule.least else ():
        # Of rows with one key, the first is the most severe.
        now.setdefault(key_of(rule, row), row)
    new = {key: words_of(rule, row) for key, row in now.items() if key not in sent or _is_back(row, sent[key])}
    resolved = {key: words for key, words in sent.items() if key not in now and key not in still_open}
    before = frozenset(key for key in new if _was_open_before(now[key], began_at))
    return News(new, resolved, len(now) - len(new), before)


def _was_open_before(row: Row, began_at: datetime | None) -> bool:
    opened_at = row.get("opened_at") or row.get("first_flagged_at")
    return began_at is not None and isinstance(opened_at, datetime) and opened_at < began_at


def messages(rule: Rule, found: News, where: str, lines: Lines | None = None) -> list[tuple[str, str]]:
    """Return subject and text of at most two messages: of new rows, and of resolved ones.

    Rows that were open before the last night come last, and are counted apart.
    """
    written = []
    if found.new:
        listed = _lines(found.new, lines)
        before = [line for line in listed if set(line.keys) <= found.before]
        tonight = [line for line in listed if line not in before]
        counts = [(tonight, "new"), (before, "open before tonight")]
        subject = ", ".join(_counted(those, what) for those, what in counts if those)
        others = f"\n{found.still_open:,} reported before are still open." if found.still_open else ""
        text = f"{_listed([*tonight, *before])}{others}\n{where}"
        written.append((f"nightaudit [{rule.severity}] {rule.name}: {subject}", text))
    if found.resolved:
        listed = _lines(found.resolved, lines)
        subject = f"nightaudit [resolved] {rule.name}: {_counted(listed, 'resolved')}"
        left = found.still_open + len(found.new)
        written.append((subject, f"{_listed(listed)}\n{left:,} still open.\n{where}"))
    return written


def _lines(rows: Mapping[str, str], lines: Lines | None) -> list[Line]:
    listed = list(lines(tuple(rows))) if lines else []
    known = {key for line in listed for key in line.keys}
    return [*listed, *(Line((key,), words) for key, words in rows.items() if key not in known)]


def _counted(lines: Sequence[Line], what: str) -> str:
    """Return the number of lines, with that of their rows, which are cases then, if they are more."""
    rows = sum(len(line.keys) for line in lines)
    return f"{len(lines):,} {what}" + (f" ({rows:,} cases)" if rows > len(lines) else "")


def _listed(lines: Sequence[Line]) -> str:
    listed = [f"- {line.words}" for line in lines[:LISTED]]
    if len(lines) > LISTED:
        listed.append(f"- and {len(lines) - LISTED:,} more")
    return "\n".join(listed)
