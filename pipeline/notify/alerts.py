"""Alerts: each receiver is sent new and resolved findings, once.

The lake records every message sent, separately for each rule, receiver and way.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType

from pipeline.domain.errors import InputError
from pipeline.domain.problem import Problems
from pipeline.lake import Lake
from pipeline.lake.simulated import simulated_note
from pipeline.lake.user_query import Bounds
from pipeline.notify.alert_rules import AlertRules, Receiver, Rule
from pipeline.notify.match import News, Row, messages, news, with_page
from pipeline.notify.outbox import Outbox, Outgoing
from pipeline.notify.problem_lines import problem_lines
from pipeline.notify.selected import (
    is_of_cases,
    last_start,
    muted_keys,
    named,
    placed,
    selected,
    still_open,
    without_muted,
)
from pipeline.notify.ways import Tell, mail, through, webhook
from pipeline.process.env_file import value_in_env_file

logger = logging.getLogger(__name__)

_OUTBOX = "alerts/told.json"
# Rule, receiver (or receiver and way, if it has several) and key of a row: the words that were sent.
_Held = dict[str, dict[str, dict[str, str]]]
_BOUNDS = Bounds()

# Returns those of some flags that were found again.
Confirm = Callable[[Sequence[str]], set[str]]


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of a rule for one receiver. `failure` is why nothing could be sent.

    `new` includes the rows `before`: those that were open before the last night, but are new to the receiver. `texts`
    are the messages (subject and text) that were sent or, in a rehearsal, would be.
    """

    rule: str
    receiver: str
    new: int
    before: int
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
    problems: Problems | None = None,
    block: Callable[[str], Tell] | None = None,
    confirm: Confirm | None = None,
    is_rehearsal: bool = False,
    bounds: Bounds = _BOUNDS,
) -> list[Sent]:
    """Send each receiver what is new and resolved since its last message. The caller holds the writer lock.

    `where` says where to see more, and `case_pages` has the pages of cases by id. `problems` groups cases, so that a
    message has one line for each problem. `block` returns the way through a Prefect notification block. Rules with
    `confirm` send new flags only after `confirm` has found them again. A rehearsal sends and records nothing. `bounds`
    limit the query of one rule. Raises InputError if a rule's relation or condition cannot be read; nothing has been
    sent then.
    """
    outbox: Outbox[_Held] = Outbox(lake, _OUTBOX, _Held, {})
    chosen = {rule.name: named(lake, selected(lake.published_file, rule, bounds)) for rule in rules.rule}
    found = {name: placed(lake, rows, case_pages) for name, rows in chosen.items()}
    note = simulated_note(lake.published_file)
    where = f"{note}\n{where}" if note else where
    began_at = last_start(lake)
    # Receivers and ways mostly get the same.
    of_cases = cache(partial(problem_lines, problems, case_pages)) if problems else None
    results = []
    for rule in rules.rule:
        sent = outbox.held.get(rule.name, {})
        heard = without_muted(lake, rule, found[rule.name])
        rows = confirmed(rule, heard, sent, None if is_rehearsal else confirm)
        others = still_open(lake, rule) | muted_keys(rule, found[rule.name], heard)
        changes = partial(news, rule, rows, still_open=others, began_at=began_at)
        write = partial(messages, rule, where=where, lines=of_cases if is_of_cases(rule) else None)
        results += [
            _tell(outbox, rule, who, changes, write, _ways(who, rules.receiver[who], block), case_pages, is_rehearsal)
            for who in rule.who
        ]
    return results


def _tell(
    outbox: Outbox[_Held],
    rule: Rule,
    who: str,
    changes: Callable[[Mapping[str, str]], News],
    write: Callable[[News], list[tuple[str, str]]],
    ways: Mapping[str, Tell],
    case_pages: Mapping[str, str],
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
        changed = changes(before)
        # The page of an ended case is that of tonight, not the one of the night of its first message.
        ended = {key: with_page(words, case_pages.get(key)) for key, words in changed.resolved.items()}
        changed = replace(changed, resolved=ended)
        first = first or changed
        parts = [part for part in (replace(changed, resolved={}), replace(changed, new={})) if part]
        outgoing = [
            Outgoing(subject, text, partial(_remember, before, part))
            for (subject, text), part in zip(write(changed), parts, strict=True)
        ]
        texts |= dict.fromkeys((message.subject, message.text) for message in outgoing)
        if outgoing and not is_rehearsal and (why := outbox.send(tell, outgoing)):
            logger.warning("%r could not be notified of %r: %s. The next alerts retry it.", who, rule.name, why)
            failures.append(why)
    assert first is not None  # noqa: S101 - a receiver has a way
    counts = (len(first.new), len(first.before), len(first.resolved), first.still_open)
    return Sent(rule.name, who, *counts, failures[0] if failures else None, tuple(texts))


def _remember(before: dict[str, str], part: News) -> None:
    before |= part.new
    for key in part.resolved:
        del before[key]


def refuse_unknown(file: Path, rules: AlertRules, bounds: Bounds) -> None:
    """Raise InputError if a rule names a relation, column or function that the published `file` does not have."""
    for rule in rules.rule:
        selected(file, rule, bounds)


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
    address = os.environ.get(variable) or value_in_env_file(variable)
    if not address:
        raise InputError(
            f"{variable}, the address of [receiver.{who}], is not set.",
            kept="The message stays queued.",
            hint="Set it in the environment or .env, then: nightaudit alerts",
        )
    way(address)(subject, text)


def _by_block(block: Callable[[str], Tell] | None, slug: str, subject: str, text: str) -> None:
    through(block, slug)(subject, text)
