"""Alerts: each receiver is sent new and resolved findings, once.

The lake records every message sent, separately for each rule, receiver and way.
"""

from __future__ import annotations

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
# Rule, receiver (or receiver and way, where there are two) and key of a row: the words in which it was sent.
_Told = dict[str, dict[str, dict[str, str]]]

# A message lists the first few: the most severe, and not ten of one property.
_GRAVEST_FIRST = "CASE severity WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END, abs(size_pct) DESC NULLS LAST"
_OF_EACH_PROPERTY = f"row_number() OVER (PARTITION BY rule, property_id ORDER BY {_GRAVEST_FIRST},"

# No message is about more, and each is held in memory with its evidence.
_MOST_ROWS = 100_000

_BOUNDS = Bounds()

# A case that is part of a wider one has no page of its own.
_CASES = (
    "SELECT coalesce(part_of_case_id, case_id), rule, property_id, market "
    "FROM report.finding_case WHERE status <> 'closed' AND scope = 'property'"
)

# Returns the flags among those named that were found again just now.
Confirm = Callable[[Sequence[str]], set[str]]


@dataclass(frozen=True, slots=True)
class Told:
    """What came of a rule for one receiver. `failure` is why nothing could be sent.

    `texts` are the messages, subject and text, that were sent or, in a rehearsal, would be.
    """

    rule: str
    receiver: str
    new: int
    over: int
    standing: int
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
) -> list[Told]:
    """Send each receiver what is new and resolved since its last message. The caller holds the writer lock.

    `where` says where more is to be seen, and `case_pages` where the pages of cases lie, by id. `block` gives a way to
    tell through a Prefect notification block. New flags of rules that ask for it are sent only once `confirm` has found
    them again. A rehearsal sends and remembers nothing.

    `bounds` are what the query of one rule may take.

    Raises InputError where a rule's relation or condition cannot be read: then nothing has been sent.
    """
    outbox: Outbox[_Told] = Outbox(lake, _OUTBOX, _Told, {})
    told = outbox.held
    chosen = {rule.name: _named(lake, _rows(lake.published_file, rule, bounds)) for rule in rules.rule}
    found = {name: _placed(lake, rows, case_pages) for name, rows in chosen.items()}
    results = []
    for rule in rules.rule:
        rows = confirmed(rule, found[rule.name], told.get(rule.name, {}), None if is_rehearsal else confirm)
        results += [
            _tell(outbox, rule, who, rows, _ways(who, rules.receiver[who], block), where, is_rehearsal)
            for who in rule.who
        ]
    return results


def _tell(
    outbox: Outbox[_Told],
    rule: Rule,
    who: str,
    rows: Sequence[Row],
    ways: Mapping[str, Tell],
    where: str,
    is_rehearsal: bool,
) -> Told:
    """Send a receiver by each of its ways what has changed since the last message that arrived by it."""
    by_name = outbox.held.setdefault(rule.name, {})
    first: News | None = None
    texts: dict[tuple[str, str], None] = {}
    failures = []
    # A way that was added later knows what the receiver was sent by the others until now.
    known = {name: by_name.setdefault(name, dict(by_name.get(who, {}))) for name in ways}
    for name, tell in ways.items():
        before = known[name]
        changed = news(rule, rows, before)
        first = first or changed
        parts = [part for part in (replace(changed, over={}), replace(changed, new={})) if part]
        outgoing = [
            Outgoing(subject, text, partial(_remember, before, part))
            for (subject, text), part in zip(messages(rule, changed, where), parts, strict=True)
        ]
        texts |= dict.fromkeys((message.subject, message.text) for message in outgoing)
        if outgoing and not is_rehearsal and (why := outbox.send(tell, outgoing)):
            logger.warning(
                "%r could not be notified of %r: %s. This is retried with the next alerts.", who, rule.name, why
            )
            failures.append(why)
    assert first is not None  # noqa: S101 - a receiver has a way
    return Told(
        rule.name, who, len(first.new), len(first.over), first.standing, failures[0] if failures else None, tuple(texts)
    )


def _remember(before: dict[str, str], part: News) -> None:
    before |= part.new
    for key in part.over:
        del before[key]


def refuse_unknown(file: Path, rules: AlertRules, bounds: Bounds) -> None:
    """Raise InputError where a rule names a relation, column or function that `file`, a published file, has not."""
    for rule in rules.rule:
        _rows(file, rule, bounds)


def _rows(file: Path, rule: Rule, bounds: Bounds) -> list[Row]:
    key = ", ".join('"' + name.replace('"', '""') + '"' for name in rule.key)
    order = f"{_OF_EACH_PROPERTY} {key}), {_GRAVEST_FIRST}, {key}" if rule.relation == "report.flag" else key
    try:
        with user_query(file, Condition(rule.relation, rule.where, order), bounds) as answer:
            rows: list[Row] = [
                dict(zip(answer.columns, row, strict=True)) for row in islice(answer.rows(), _MOST_ROWS + 1)
            ]
    except InputError as error:
        # Below an empty line it shows where in our own query the mistake is.
        told = " ".join(error.message.partition("\n\n")[0].split())
        raise InputError(
            f"The rule {rule.name!r} cannot be evaluated: {told}",
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
    """Return rows with the names of their properties, where they have some and the names are known."""
    if not any(row.get("property_id") is not None for row in rows):
        return rows
    found = query_published(lake.published_file, "SELECT property_id, property_name FROM mart.property").fetchall()
    names = {number: name for number, name in found if name}
    return [{PROPERTY_NAME: names.get(row.get("property_id"))} | dict(row) for row in rows]


def _placed(lake: Lake, rows: list[Row], case_pages: Mapping[str, str]) -> list[Row]:
    """Return rows with where the page of their case lies: findings of a rule at a property in a market are one case."""
    if not case_pages or not any("case_id" in row or "flag_id" in row for row in rows):
        return rows
    found = query_published(lake.published_file, _CASES).fetchall()
    cases = {tuple(key): case_id for case_id, *key in found}
    placed = []
    for row in rows:
        rule, property_id = row.get("rule"), row.get("property_id")
        # One that has gone quiet in several markets is a case of none of them.
        case_id = (
            row.get("case_id")
            or cases.get((rule, property_id, row.get("market")))
            or cases.get((rule, property_id, None))
        )
        page = case_pages.get(case_id) if case_id else None
        placed.append({**row, CASE_PAGE: page} if page else row)
    return placed


def confirmed(
    rule: Rule, rows: Sequence[Row], told: Mapping[str, Mapping[str, str]], confirm: Confirm | None
) -> Sequence[Row]:
    """Return the rows of a rule without flags that are new and were not found again."""
    if not rule.confirm or confirm is None:
        return rows
    known = {key for keys in told.values() for key in keys}
    doubtful = [row["flag_id"] for row in rows if row["flag_id"] not in known]
    stand = confirm(doubtful) if doubtful else set()
    return [row for row in rows if row["flag_id"] in known or row["flag_id"] in stand]


def _ways(who: str, receiver: Receiver, block: Callable[[str], Tell] | None) -> dict[str, Tell]:
    """Return the ways to a receiver, by the name under which it is remembered what went out by each."""
    ways: dict[str, Tell] = {}
    if receiver.webhook_from:
        ways[who] = partial(_by_webhook, who, receiver.webhook_from)
    if receiver.mail_from:
        ways[f"{who}, mail" if ways else who] = partial(_by_mail, who, receiver.mail_from)
    if receiver.block:
        ways[f"{who}, block {receiver.block}" if ways else who] = partial(_by_block, block, receiver.block)
    return ways


def _by_webhook(who: str, variable: str, subject: str, text: str) -> None:
    webhook(_address(who, variable))(subject, text)


def _by_mail(who: str, variable: str, subject: str, text: str) -> None:
    mail(_address(who, variable))(subject, text)


def _by_block(block: Callable[[str], Tell] | None, slug: str, subject: str, text: str) -> None:
    through(block, slug)(subject, text)


def _address(who: str, variable: str) -> str:
    if address := os.environ.get(variable):
        return address
    raise InputError(f"[receiver.{who}] takes its address from {variable}, which is not set.")
