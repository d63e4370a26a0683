"""Alerts: each receiver is sent new and resolved findings, once.

The lake records every message sent, separately for each rule, receiver and way.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from pipeline.domain.errors import InputError
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.lake.user_query import Bounds, Condition, user_query
from pipeline.notify.alert_rules import AlertRules, Receiver, Rule
from pipeline.notify.match import CASE_PAGE, PROPERTY_NAME, News, Row, messages, news
from pipeline.notify.outbox import Outbox, Outgoing
from pipeline.notify.ways import Tell, mail, through, webhook

logger = logging.getLogger(__name__)

_OUTBOX = "alerts/told.json"
# Rule, receiver (or receiver and way, if it has several) and key of a row: the words that were sent.
_Held = dict[str, dict[str, dict[str, str]]]
# A message lists the first few rows: the most severe flags, of different properties, or the most urgent cases.
_MOST_SEVERE_FIRST = "CASE severity WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END, abs(size_pct) DESC NULLS LAST"
_OF_EACH_PROPERTY = f"row_number() OVER (PARTITION BY rule, property_id ORDER BY {_MOST_SEVERE_FIRST},"

# Rows are held in memory with their evidence.
_MOST_ROWS = 100_000

_BOUNDS = Bounds()

# A case that is part of a wider one has no page of its own.
_CASES = (
    "SELECT coalesce(part_of_case_id, case_id), rule, property_id, market "
    "FROM report.finding_case WHERE status <> 'closed' AND scope = 'property'"
)

# Returns those of some flags that were found again.
Confirm = Callable[[Sequence[str]], set[str]]


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of a rule for one receiver. `failure` is why nothing could be sent.

    `texts` are the messages (subject and text) that were sent or, in a rehearsal, would be.
    """

    rule: str
    receiver: str
    new: int
    resolved: int
    still_open: int
    failure: str | None = None
    texts: tuple[tuple[str, str], ...] = ()


def tell_alerts(
    lake: Lake,
    rules: AlertRules,
    where: str,
    *,
    case_pages: Mapping[str, str] = MappingProxyType({}),
    block: Callable[[str], Tell] | None = None,
    confirm: Confirm | None = None,
    is_rehearsal: bool = False,
    bounds: Bounds = _BOUNDS,
) -> list[Sent]:
    """Send each receiver what is new and resolved since its last message. The caller holds the writer lock.

    `where` says where to see more, and `case_pages` has the pages of cases by id. `block` returns the way through a
    Prefect notification block. Rules with `confirm` send new flags only after `confirm` has found them again. A
    rehearsal sends and records nothing. `bounds` limit the query of one rule.
    Raises InputError if a rule's relation or condition cannot be read; nothing has been sent then.
    """
    outbox: Outbox[_Held] = Outbox(lake, _OUTBOX, _Held, {})
    chosen = {rule.name: _named(lake, _rows(lake.published_file, rule, bounds)) for rule in rules.rule}
    found = {name: _placed(lake, rows, case_pages) for name, rows in chosen.items()}
    results = []
    for rule in rules.rule:
        sent = outbox.held.get(rule.name, {})
        rows = confirmed(rule, found[rule.name], sent, None if is_rehearsal else confirm)
        results += [
            _tell(outbox, rule, who, rows, _ways(who, rules.receiver[who], block), where, is_rehearsal)
            for who in rule.who
        ]
    return results


def _tell(
    outbox: Outbox[_Held],
    rule: Rule,
    who: str,
    rows: Sequence[Row],
    ways: Mapping[str, Tell],
    where: str,
    is_rehearsal: bool,
) -> Sent:
    """Send a receiver, by each of its ways, what has changed since the last message that arrived that way."""
    by_name = outbox.held.setdefault(rule.name, {})
    first: News | None = None
    texts: dict[tuple[str, str], None] = {}
    failures = []
    # A way that was added later starts with what the receiver was sent by the others.
    known = {name: by_name.setdefault(name, dict(by_name.get(who, {}))) for name in ways}
    for name, tell in ways.items():
        before = known[name]
        changed = news(rule, rows, before)
        first = first or changed
        parts = [part for part in (replace(changed, resolved={}), replace(changed, new={})) if part]
        outgoing = [
            Outgoing(subject, text, partial(_remember, before, part))
            for (subject, text), part in zip(messages(rule, changed, where), parts, strict=True)
        ]
        texts |= dict.fromkeys((message.subject, message.text) for message in outgoing)
        if outgoing and not is_rehearsal and (why := outbox.send(tell, outgoing)):
            logger.warning("%r could not be notified of %r: %s. The next alerts retry it.", who, rule.name, why)
            failures.append(why)
    assert first is not None  # noqa: S101 - a receiver has a way
    counts = (len(first.new), len(first.resolved), first.still_open)
    return Sent(rule.name, who, *counts, failures[0] if failures else None, tuple(texts))


def _remember(before: dict[str, str], part: News) -> None:
    before |= part.new
    for key in part.resolved:
        del before[key]


def refuse_unknown(file: Path, rules: AlertRules, bounds: Bounds) -> None:
    """Raise InputError if a rule names a relation, column or function that the published `file` does not have."""
    for rule in rules.rule:
        _rows(file, rule, bounds)


def _rows(file: Path, rule: Rule, bounds: Bounds) -> list[Row]:
    key = ", ".join('"' + name.replace('"', '""') + '"' for name in rule.key)
    first = {
        "report.flag": f"{_OF_EACH_PROPERTY} {key}), {_MOST_SEVERE_FIRST}, ",
        "report.finding_case": "urgency, ",
    }
    order = f"{first.get(rule.relation, '')}{key}"
    try:
        with user_query(file, Condition(rule.relation, rule.where, order), bounds) as answer:
            rows: list[Row] = [
                dict(zip(answer.columns, row, strict=True)) for row in islice(answer.rows(), _MOST_ROWS + 1)
            ]
    except InputError as error:
        # What follows an empty line quotes our own query.
        reason = " ".join(error.message.partition("\n\n")[0].split())
        raise InputError(
            f"The rule {rule.name!r} cannot be evaluated: {reason}",
            kept="No alert was sent.",
            hint=f'Check its relation and `where`: nightaudit query "DESCRIBE {rule.relation}"',
        ) from None
    if len(rows) > _MOST_ROWS:
        raise InputError(
            f"The rule {rule.name!r} selects more than {_MOST_ROWS:,} rows.",
            kept="No alert was sent.",
            hint="Narrow its `where`.",
        )
    return rows


def _named(lake: Lake, rows: list[Row]) -> list[Row]:
    if not any(row.get("property_id") is not None for row in rows):
        return rows
    found = query_published(lake.published_file, "SELECT property_id, property_name FROM mart.property").fetchall()
    names = {number: name for number, name in found if name}
    return [{PROPERTY_NAME: names.get(row.get("property_id"))} | dict(row) for row in rows]


def _placed(lake: Lake, rows: list[Row], case_pages: Mapping[str, str]) -> list[Row]:
    """Return rows with the page of their case: findings of a rule at a property in a market are one case."""
    if not case_pages or not any("case_id" in row or "flag_id" in row for row in rows):
        return rows
    found = query_published(lake.published_file, _CASES).fetchall()
    cases = {tuple(key): case_id for case_id, *key in found}
    placed = []
    for row in rows:
        rule, property_id = row.get("rule"), row.get("property_id")
        # A property that has gone quiet in several markets is a case without a market.
        case_id = (
            row.get("case_id")
            or cases.get((rule, property_id, row.get("market")))
            or cases.get((rule, property_id, None))
        )
        page = case_pages.get(case_id) if case_id else None
        placed.append({**row, CASE_PAGE: page} if page else row)
    return placed


def confirmed(
    rule: Rule, rows: Sequence[Row], sent: Mapping[str, Mapping[str, str]], confirm: Confirm | None
) -> Sequence[Row]:
    """Return the rows of a rule without new flags that were not found again."""
    if not rule.confirm or confirm is None:
        return rows
    known = {key for keys in sent.values() for key in keys}
    doubtful = [row["flag_id"] for row in rows if row["flag_id"] not in known]
    kept = known | (confirm(doubtful) if doubtful else set())
    return [row for row in rows if row["flag_id"] in kept]


def _ways(who: str, receiver: Receiver, block: Callable[[str], Tell] | None) -> dict[str, Tell]:
    """Return the ways to a receiver, by the name under which the outbox keeps what was sent."""
    ways: dict[str, Tell] = {}
    if receiver.webhook_from:
        ways[who] = partial(_by_address, webhook, who, receiver.webhook_from)
    if receiver.mail_from:
        ways[f"{who}, mail" if ways else who] = partial(_by_address, mail, who, receiver.mail_from)
    if slug := receiver.block:
        ways[f"{who}, block {slug}" if ways else who] = partial(_by_block, block, slug)
    return ways


def _by_address(way: Callable[[str], Tell], who: str, variable: str, subject: str, text: str) -> None:
    address = os.environ.get(variable)
    if not address:
        raise InputError(
            f"{variable}, the address of [receiver.{who}], is not set.",
            kept="The message stays queued.",
            hint="Set it in the environment, then: nightaudit alerts",
        )
    way(address)(subject, text)


def _by_block(block: Callable[[str], Tell] | None, slug: str, subject: str, text: str) -> None:
    through(block, slug)(subject, text)
