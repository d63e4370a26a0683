"""Words for the codes in our columns, on pages. The figures in files keep the codes."""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

from markupsafe import Markup

from pipeline.lake.relations import finding_rules

# By column and value.
_VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    "rule": {name: rule.title for name, rule in finding_rules().items()},
    "source": {"multi": "list", "detail": "detail"},
    "operation": {"multi": "list", "single": "detail"},
    "currency_basis": {
        "same": "one currency",
        "supplier_rate": "the supplier's rate",
        "reference_rate": "the reference rate",
    },
    "match_grade": {"exact": "exact", "board_family": "board family", "cheapest": "cheapest only"},
    "status": {"no_offer": "no offer", "not_swept": "not swept"},
    "verdict": {
        "above_lowest": "above the earlier lowest price",
        "never_charged": "never charged",
        "not_enough_history": "not enough history",
    },
    "ended_by": {
        "value": "the answer changed",
        "gone": "the offer is gone",
        "not_compared": "what it was compared with is gone",
        "not_asked": "what it is about is no longer requested",
        "reference_changed": "markets are compared with another one now",
        "outdated": "its selling price can no longer be judged",
        "rule_changed": "the rule or its settings changed",
        "stay_began": "the stay began",
    },
    "dimension": {
        "all": "all offers",
        "lead_days": "days before check-in",
        "product_type": "product",
        "promotion_kinds": "kind of promotion",
        "weekday": "weekday of check-in",
    },
    "section": {"fx_markup": "mark-up on exchange rates"},
    "weekday": dict(zip("1234567", ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"), strict=True)),
    "part": {"tax_and_fee": "taxes and fees", "fx": "exchange rate"},
    "audit": {
        "none": "not audited",
        "passed": "passed",
        "overridden": "failed, published anyway",
        "blocked": "failed, not published",
    },
}


# By role of an observation in the evidence of a finding.
_ROLES: Final[Mapping[str, str]] = {
    "reference": "reference market",
    "compared": "compared with",
    "base_currency": "compared with",
    "witness": "a third market",
    "other": "another market",
    "held_against": "compared with",
    "promotion_began": "when the promotion began",
    "first": "first seen",
    "plain": "without a promotion",
    "last_offer": "last with an offer",
    "without_offer": "without an offer",
    "list": "list answer",
    "detail": "detail answer",
    "hotel": "hotel only",
    "package": "package",
    "better_room": "usually the better room",
    "lesser_room": "usually the lesser room",
    "floor": "the floor",
    "floor_began": "when the floor began",
    "floor_before": "the floor before",
    "floor_now": "the floor now",
}


def role_said(role: str) -> str:
    """Return the words for the role of an observation; empty: it is what the finding is about."""
    return _ROLES.get(role, "")


# The statuses of a case that is not closed; `back` is a new one that had ended before.
CASE_STATUSES: Final = ("new", "back", "open", "acknowledged", "muted")

# Printed words that follow each other otherwise than by letter, by column.
_ORDERS: Final[Mapping[str, Sequence[str]]] = {
    "severity": ("high", "medium", "low"),
    "status_words": CASE_STATUSES,
    # Of several dimensions: weekdays are the only ones.
    "value_words": tuple(_VALUES["weekday"].values()),
}

# The label of a chart until the page gives it one.
UNNAMED: Final = "Chart of the figures linked below it"


def said(column: str, value: str) -> str:
    """Return the words for a value of a column; by default the value itself."""
    return _VALUES.get(column, {}).get(value, value)


def place_said(column: str, text: str) -> int | None:
    """Return the place of a printed word of a column among those that do not follow each other by letter."""
    words = _ORDERS.get(column, ())
    return words.index(text) if text in words else None


# Characters that XML forbids, and those that change the direction of the text after them.
_DISTURBING: Final = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ufeff\\ufffe\\uffff]"
)


def readable(value: object) -> object:
    """Return text without unreadable characters and those that reverse the text around them."""
    # What can be printed is not disturbing: asking that first is much faster.
    if not isinstance(value, str) or value.isprintable() or not _DISTURBING.search(value):
        return value
    # Markup stays markup.
    return type(value)(_DISTURBING.sub("", value))


# Characters of a text in a chart: the drawing library's time and memory grow with the square of the length.
_DRAWN: Final = 120
# Characters of one text on a page, however long a supplier's texts are.
_PRINTED: Final = 2_000


def drawable(value: object) -> object:
    """Return text for a chart, readable and short; different texts stay different."""
    text = readable(value)
    if not isinstance(text, str) or len(text) <= _DRAWN:
        return text
    return f"{text[: _DRAWN - 6].rstrip()}… {sha256(text.encode('utf-8', 'replace')).hexdigest()[:4]}"


# A hyphen as a minus sign before a percentage, as in findings.
_HYPHEN: Final = re.compile(r"(?<![\w.,-])-(?=[\d.,]+%)")


def printed(value: object) -> object:
    """Return text for a page: readable, with minus signs, and cut if it is very long."""
    text = readable(value)
    if not isinstance(text, str) or isinstance(text, Markup):
        return text
    if "-" in text:
        text = _HYPHEN.sub("−", text)
    if len(text) <= _PRINTED:
        return text
    return f"{text[: _PRINTED - 1].rstrip()}…"


def rule_said(rule: str) -> str:
    """Return the title of a rule."""
    return _VALUES["rule"].get(rule) or rule.replace("_", " ").capitalize()


def unit_of(rule: str) -> str:
    """Return the unit of a rule's sizes: `%`, `% of the total` or `percentage points`."""
    found = finding_rules().get(rule)
    return found.unit if found else "%"


def unit_said(rule: str) -> str:
    """Return the unit of a rule's sizes as it follows their number, such as `%` or ` percentage points`."""
    unit = unit_of(rule)
    return unit if unit.startswith("%") else f" {unit}"


def first_of(name: str, printed: Sequence[str]) -> str:
    """Return who has the first of some printed values, with its verb: `DE has`, `DE and 2 more have`."""
    more = sum(value == printed[0] for value in printed) - 1
    return f"{name} and {more:,} more have" if more else f"{name} has"


def are_alike(printed: Sequence[str]) -> bool:
    """Return whether several printed values are equal, so that none is the most or the least."""
    return len(printed) > 1 and len(set(printed)) == 1


def lead_days_said(step: str) -> str:
    """Return a step of lead days, such as `007-013`, as `7–13`."""
    first, dash, last = step.partition("-")
    ends = [end.lstrip("0") or "0" for end in (first, last) if end]
    return "–".join(ends) if dash else step


def kinds_said(kinds: str) -> str:
    """Return kinds of promotions, such as `discount_off,value_add`, in words."""
    return kinds.replace("_", " ").replace(",", " and ")
